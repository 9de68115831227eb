/** Decodes vendors' errors into typed errors, and encodes errors as OpenAI's Chat API writes them. */

import { boundedError } from '../../../conversation/error-size.ts';
import { type ErrorKind, GatewayError } from '../../../conversation/errors.ts';
import {
  kindOfStatus,
  messageOfBody,
  publicErrorCode,
  retryAfterHeader,
  retryAfterOf,
  retryHintOf,
} from '../../../conversation/http-error.ts';
import { ERROR_LINE } from '../../../lib/bytes/sse.ts';
import type { ReadonlyHeaders } from '../../../lib/http/headers.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import {
  type KnownError,
  kindOfVendorError,
  readVendorError,
  retryDelayOf,
  type VendorErrorTexts,
} from '../../../vendors/errors/read-error.ts';
import type { HttpError } from '../../codec.ts';
import { list, number, object, text } from '../wire.ts';

/** Error codes and types that are names. */
const NAMES: Readonly<Record<string, KnownError>> = {
  authentication_error: { kind: 'authentication' },
  permission_error: { kind: 'permission' },
  rate_limit_exceeded: { kind: 'rate_limit' },
  rate_limit_error: { kind: 'rate_limit' },
  not_found_error: { kind: 'not_found' },
  billing_error: { kind: 'billing', retryable: false },
  request_too_large: { kind: 'too_large' },
  timeout_error: { kind: 'timeout' },
  tool_use_failed: { kind: 'upstream', retryable: true },
};

/** The kind of an error. `status` is 0 for an error inside a stream. */
function kindOfError(status: number, error: VendorErrorTexts, body: string): KnownError {
  const known = kindOfVendorError(status, error, body);
  if (known !== undefined) return known;
  const byStatus = status === 0 ? undefined : kindOfStatus(status);
  if (byStatus !== undefined && byStatus !== 'invalid_request') return { kind: byStatus };
  const byName = memberOf(NAMES, error.code ?? '') ?? memberOf(NAMES, error.type ?? '');
  if (byName !== undefined) return byName;
  if (byStatus !== undefined) return { kind: byStatus };
  return { kind: error.type === 'invalid_request_error' ? 'invalid_request' : 'upstream' };
}

/**
 * An upstream's error answer. `body` is the raw text. The vendor's own message is kept, but a page of HTML is
 * not a message.
 */
export function decodeError(status: number, body: string, headers: ReadonlyHeaders): GatewayError {
  const parsed = boundedError(tryParse(body));
  const error = readVendorError(parsed);
  const { kind, retryable } = kindOfError(status, error, body);
  const { details, message } = error;
  const wait = retryAfterOf(headers) ?? retryDelayOf(details, message) ?? waitInMessage(message);
  return new GatewayError(kind, error.message ?? messageOfBody(status, body), {
    // For an error body with HTTP 200, the kind's own status is used.
    status: status >= 400 && status < 600 ? status : undefined,
    param: error.param,
    code: error.code,
    retryAfter: wait,
    fromUpstream: true,
    retryable: retryHintOf(headers) ?? retryable,
  });
}

/** OpenAI and Groq: `Please try again in 1m2.5s.` / `in 120ms`; Azure, Kimi, LiteLLM: `retry after 23 seconds`. */
function waitInMessage(message: string | undefined): number | undefined {
  const found = /(?:try again|retry) (?:in|after) (?:(\d+)m(?!s))?(?:([\d.]+) ?(ms|s))?/i.exec(
    message ?? '',
  );
  if (found === null || (found[1] === undefined && found[2] === undefined)) return undefined;
  const seconds = Number(found[2] ?? 0) / (found[3] === 'ms' ? 1000 : 1);
  return Number(found[1] ?? 0) * 60 + (Number.isFinite(seconds) ? seconds : 0);
}

/**
 * The error in a reply or stream chunk that was sent with HTTP 200: a top-level `error`, OpenRouter's `error`
 * in a choice, MiniMax's `base_resp`, vLLM's `object: "error"`, any content of an `event: error` frame, and what
 * says nothing of an answer, but has FastAPI's `detail` or a message with a code or type.
 */
export function inBandError(value: JsonObject, event: string): GatewayError | undefined {
  const failed =
    Boolean(value.error) || event === 'error' || event === ERROR_LINE || isErrorChunk(value);
  const choice = failed ? undefined : object(object(list(value.choices)?.[0])?.error);
  if (!failed && choice === undefined) return undefined;
  const body = boundedError(choice === undefined ? value : { error: choice });
  const info = readVendorError(body);
  const stated = number(object(body.error)?.status_code) ?? Number(info.code);
  const status = stated >= 400 && stated < 600 ? stated : 0;
  const { kind, retryable } = kindOfError(status, info, '');
  return new GatewayError(kind, info.message ?? 'The upstream failed while it answered.', {
    status: status > 0 ? status : undefined,
    code: info.code,
    param: info.param,
    fromUpstream: true,
    retryable,
    // A repair of the answer starts from Groq's `failed_generation`.
    details: isObject(body.error) ? body.error : undefined,
  });
}

/** Do OpenAI's clients take this chunk for an error? They look for the key `error`, and for an event of this name. */
export const isSaid = (chunk: JsonObject, event: string): boolean =>
  event !== ERROR_LINE && (Boolean(chunk.error) || event === 'error');

/** An error without the key `error`. */
function isErrorChunk(value: JsonObject): boolean {
  if (value.choices !== undefined) {
    return value.base_resp !== undefined && isFailure(value.base_resp);
  }
  if (value.object === 'error' || isFailure(value.base_resp)) return true;
  if (value.usage || value.id) return false;
  if (value.detail) return true;
  const { code, type, status, statusCode, __type, error_code } = value;
  const named = code ?? type ?? status ?? statusCode ?? __type ?? error_code;
  const said = text(value.message) || text(value.msg) || text(value.error_msg);
  return Boolean(said) && named !== undefined && named !== null;
}

const isFailure = (base: Json | undefined): boolean =>
  (number(object(base)?.status_code) ?? 0) !== 0;

/** OpenAI's `type`, and its `code` for an error without one. */
const TYPES_AND_CODES: Readonly<Record<ErrorKind, readonly [type: string, code: string | null]>> = {
  invalid_request: ['invalid_request_error', null],
  authentication: ['invalid_request_error', 'invalid_api_key'],
  permission: ['invalid_request_error', 'permission_denied'],
  not_found: ['invalid_request_error', 'model_not_found'],
  too_large: ['invalid_request_error', 'request_too_large'],
  context_overflow: ['invalid_request_error', 'context_length_exceeded'],
  rate_limit: ['rate_limit_error', 'rate_limit_exceeded'],
  quota: ['insufficient_quota', 'insufficient_quota'],
  billing: ['insufficient_quota', 'billing_hard_limit_reached'],
  budget: ['insufficient_quota', 'insufficient_quota'],
  overloaded: ['server_error', 'server_error'],
  timeout: ['server_error', 'timeout'],
  conflict: ['invalid_request_error', 'conflict'],
  content_filter: ['invalid_request_error', 'content_filter'],
  upstream: ['server_error', 'upstream_error'],
  internal: ['server_error', 'internal_error'],
};

/** Kinds whose code clients act on, so a vendor's own code must not replace it. */
const FIXED_CODES: ReadonlySet<ErrorKind> = new Set(['context_overflow', 'quota', 'budget']);

/** `{error:{message,type,param,code}}`. */
export function errorBody(error: GatewayError): JsonObject {
  const [type, code] = TYPES_AND_CODES[error.kind];
  return {
    error: {
      message: error.message,
      type,
      param: error.param ?? null,
      code: FIXED_CODES.has(error.kind) ? code : (publicErrorCode(error.code) ?? code),
    },
  };
}

/** An error answer. `x-should-retry: false` stops the official SDKs from retrying. */
export function encodeError(error: GatewayError, requestId: string): HttpError {
  const headers = {
    'x-request-id': requestId,
    ...retryAfterHeader(error),
    ...(error.retryable === undefined ? {} : { 'x-should-retry': String(error.retryable) }),
  };
  return { status: error.status, headers, body: errorBody(error) };
}
