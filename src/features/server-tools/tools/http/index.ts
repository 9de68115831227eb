/** Server tools that are one HTTP request each, as the operator describes them. */

import { readUpTo } from '../../../../lib/http/read-up-to.ts';
import { retryHint } from '../../../../lib/http/safe-fetch.ts';
import { type JsonObject, tryParse } from '../../../../lib/json/json.ts';
import {
  failedOutcome,
  OUTCOME_UNKNOWN,
  type ServerTool,
  type ToolContext,
  ToolError,
  type ToolOutcome,
} from '../../tool.ts';
import { offeredFor, type Revealable, revealed } from '../configured-tool.ts';
import { fetchWithin } from '../fetch-within.ts';
import { buildRequest, type HttpToolRequest, schemaForModel } from './request.ts';

export interface HttpToolOptions {
  readonly name: string;
  /** Offered where the user's latest text contains one of these; always when left out. */
  readonly keywords?: readonly string[];
  readonly description: string;
  readonly method: string;
  /** See `HttpRequestSpec`. It may be a private address, since the operator wrote it. */
  readonly url: string;
  readonly schema: JsonObject;
  readonly headers: Readonly<Record<string, Revealable>>;
  /** Added to every call. */
  readonly query: Readonly<Record<string, Revealable>>;
  readonly timeoutMs: number;
  /** Bytes read of an answer; the rest is cut off. */
  readonly maxBytes: number;
}

/** What `fetch` reports when there was no connection on which a request could go out. */
const NOT_CONNECTED: ReadonlySet<string> = new Set([
  'ConnectionRefused',
  'ECONNREFUSED',
  'FailedToOpenSocket',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);
/**
 * Methods that may be sent again when it is not known what the first request did.
 * @see https://www.rfc-editor.org/rfc/rfc9110#section-9.2.2
 */
const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT']);
const isRepeatable = ({ method }: HttpToolOptions) => IDEMPOTENT.has(method.toUpperCase());
const TEXT = /^(?:text\/|application\/(?:.*\+)?(?:json|xml|yaml|x-yaml|javascript|x-ndjson)$)/;
const IMAGE = /^image\/(?:png|jpeg|gif|webp)$/;
const ERROR_TEXT = 2000;

export function httpTool(options: HttpToolOptions): ServerTool {
  return {
    name: options.name,
    description: options.description,
    schema: schemaForModel(options.schema),
    ...offeredFor(options.keywords),
    limits: { timeoutMs: options.timeoutMs },
    changes: !isRepeatable(options),
    run: (args, context) => run(args, context, options),
  };
}

async function run(
  args: JsonObject,
  context: ToolContext,
  options: HttpToolOptions,
): Promise<ToolOutcome> {
  const request = buildRequest(options, args);
  for (const [name, value] of Object.entries(revealed(options.query))) {
    request.url.searchParams.set(name, value);
  }
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(options.timeoutMs)]);
  try {
    const response = await send(request, options, signal);
    return await outcome(response, options);
  } catch (thrown) {
    if (thrown instanceof ToolError) throw thrown;
    if (context.signal.aborted) throw context.signal.reason;
    // The error's message may contain the URL with a key in it.
    const { code } = thrown as { code?: unknown };
    const why = typeof code === 'string' ? ` (${code})` : '';
    const neverSent = typeof code === 'string' && NOT_CONNECTED.has(code);
    const what = signal.aborted
      ? `did not answer within ${options.timeoutMs / 1000} s`
      : neverSent || isRepeatable(options)
        ? `cannot be reached${why}`
        : `broke the connection off${why}`;
    if (neverSent || isRepeatable(options)) {
      throw new ToolError(`${options.name} ${what}.`, { retryable: true });
    }
    throw new ToolError(`${options.name} ${what}. ${OUTCOME_UNKNOWN}`);
  }
}

function send(
  request: HttpToolRequest,
  options: HttpToolOptions,
  signal: AbortSignal,
): Promise<Response> {
  const headers = revealed(options.headers);
  const payload = request.body === undefined ? undefined : bodyOf(request.body, headers);
  return fetchWithin(options.name, request.url, {
    method: options.method,
    signal,
    headers: {
      accept: 'application/json, text/*;q=0.9, */*;q=0.5',
      ...payload?.type,
      ...headers,
    },
    ...(payload === undefined ? {} : { body: payload.text }),
  });
}

interface Payload {
  readonly text: string;
  readonly type: Readonly<Record<string, string>>;
}

/** JSON, or a form where the operator's content-type says so. */
function bodyOf(body: JsonObject, headers: Readonly<Record<string, string>>): Payload {
  const type = headers['content-type'];
  if (type?.startsWith('application/x-www-form-urlencoded') !== true) {
    return { text: JSON.stringify(body), type: { 'content-type': 'application/json' } };
  }
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(body)) {
    const items = Array.isArray(value) ? value : [value];
    for (const item of items) {
      form.append(name, typeof item === 'string' ? item : JSON.stringify(item));
    }
  }
  return { text: form.toString(), type: {} };
}

async function outcome(response: Response, options: HttpToolOptions): Promise<ToolOutcome> {
  const [mime = '', ...parameters] = (response.headers.get('content-type') ?? '').split(';');
  const type = mime.trim().toLowerCase();
  const { bytes, truncated } = await readUpTo(response.body, options.maxBytes);
  const log = { status: response.status, bytes: bytes.length, truncated };
  if (response.ok && IMAGE.test(type) && !truncated) {
    const data = Buffer.from(bytes).toString('base64');
    return {
      ok: true,
      payload: { status: response.status, mediaType: type },
      text: `(an image, ${type})`,
      media: [{ type: 'media', media: 'image', source: { type: 'base64', mediaType: type, data } }],
      log,
    };
  }
  const readable = TEXT.test(type) || (type === '' && !bytes.subarray(0, 1024).includes(0));
  const text = readable ? decoded(bytes, parameters) : '';
  if (!response.ok) {
    const { status } = response;
    const isUnknown = status >= 500 && status !== 503 && !isRepeatable(options);
    const retryable = status === 429 || (status >= 500 && !isUnknown);
    const errorText =
      text.trim() === '' ? '' : `: ${text.trim().slice(0, ERROR_TEXT).toWellFormed()}`;
    const later = retryHint(response.headers.get('retry-after'));
    const message = `${options.name} answered with HTTP status ${status}${later}${errorText}${isUnknown ? `\n${OUTCOME_UNKNOWN}` : ''}`;
    const code = status === 429 ? 'too_many_requests' : 'unavailable';
    return failedOutcome(options.name, message, { retryable, code, log });
  }
  if (!readable && bytes.length > 0) {
    throw new ToolError(
      `${options.name} answered with ${type || 'binary data'}, which is not text.`,
    );
  }
  const mark = truncated ? `\n[cut off after ${options.maxBytes} bytes]` : '';
  const parsed = truncated ? undefined : tryParse(text);
  return { ok: true, payload: parsed ?? text + mark, text: text + mark || '(no content)', log };
}

/** Decodes with the charset that the answer names; UTF-8 where it names none or an unknown one. */
function decoded(bytes: Uint8Array, parameters: readonly string[]): string {
  for (const parameter of parameters) {
    const charset = /^\s*charset\s*=\s*"?([\w.:-]{1,40})/i.exec(parameter.slice(0, 100))?.[1];
    if (charset === undefined) continue;
    try {
      return new TextDecoder(charset as Bun.Encoding).decode(bytes);
    } catch {
      break;
    }
  }
  return new TextDecoder().decode(bytes);
}
