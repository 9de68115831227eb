/** Decodes errors of Messages upstreams into typed errors, and encodes errors as Anthropic writes them. */

import { boundedError } from '../../../conversation/error-size.ts';
import { type ErrorKind, GatewayError } from '../../../conversation/errors.ts';
import {
  kindOfStatus,
  retryAfterHeader,
  retryAfterOf,
  retryHintOf,
} from '../../../conversation/http-error.ts';
import type { ReadonlyHeaders } from '../../../lib/http/headers.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import { overflowCounts } from '../../../vendors/errors/overflow-counts.ts';
import { kindOfVendorError, readVendorError } from '../../../vendors/errors/read-error.ts';
import type { HttpError } from '../../codec.ts';

const BY_TYPE: Readonly<Record<string, ErrorKind>> = {
  invalid_request_error: 'invalid_request',
  authentication_error: 'authentication',
  billing_error: 'billing',
  permission_error: 'permission',
  not_found_error: 'not_found',
  request_too_large: 'too_large',
  rate_limit_error: 'rate_limit',
  timeout_error: 'timeout',
  overloaded_error: 'overloaded',
  api_error: 'upstream',
};

export interface HttpErrorHints {
  /** Undefined inside a stream, where only the type decides. */
  readonly status: number | undefined;
  readonly retryAfter?: number;
  readonly retryable?: boolean;
}

/** An upstream's error answer. `body` is the raw text; relays send other forms, or HTML. */
export function decodeError(status: number, body: string, headers: ReadonlyHeaders): GatewayError {
  return decodeErrorBody(tryParse(body), {
    status,
    retryAfter: retryAfterOf(headers),
    retryable: retryHintOf(headers),
  });
}

/** The error in a parsed body: `{type:"error",error:{type,message}}`, or another form from a relay. */
export function decodeErrorBody(
  source: Json | undefined,
  { status, retryAfter, retryable }: HttpErrorHints,
): GatewayError {
  const body = boundedError(source);
  const outer = isObject(body) ? body : {};
  const error = isObject(outer.error) ? outer.error : {};
  const read = readVendorError(body);
  const { type, code } = read;
  const message =
    read.message ??
    `The upstream answered ${status === undefined ? 'with an error' : `HTTP ${status}`}.`;
  const known = kindOfVendorError(status ?? 0, read);
  const kind = known?.kind ?? kindOf(type, status);
  return new GatewayError(kind, message, {
    status: status !== undefined && status >= 400 ? status : undefined,
    param: read.param,
    code: code ?? codeOf(type),
    retryAfter,
    retryable: retryable ?? known?.retryable,
    details: error.details,
    fromUpstream: true,
  });
}

/**
 * The code that some vendors send as the type. Messages has no codes, and its own types are not codes: for
 * those, clients of other protocols get the usual code of the kind.
 */
function codeOf(type: string | undefined): string | undefined {
  const own = type === undefined || memberOf(BY_TYPE, type) !== undefined;
  return own || type.endsWith('_error') ? undefined : type;
}

/** The kind of an error by its type. For `api_error` the status decides, and where it says more than "invalid". */
function kindOf(type: string | undefined, status: number | undefined): ErrorKind {
  const typed = type === undefined ? undefined : memberOf(BY_TYPE, type);
  const vague = typed === 'upstream' || (typed === 'invalid_request' && status !== undefined);
  if (typed !== undefined && !vague) return typed;
  if (typed === 'invalid_request' && (status ?? 500) >= 500) return typed;
  return status === undefined || status < 400 ? 'upstream' : kindOfStatus(status);
}

const TYPES: Readonly<Record<ErrorKind, string>> = {
  invalid_request: 'invalid_request_error',
  authentication: 'authentication_error',
  permission: 'permission_error',
  not_found: 'not_found_error',
  too_large: 'request_too_large',
  context_overflow: 'invalid_request_error',
  rate_limit: 'rate_limit_error',
  quota: 'rate_limit_error',
  billing: 'billing_error',
  budget: 'billing_error',
  overloaded: 'overloaded_error',
  timeout: 'timeout_error',
  conflict: 'invalid_request_error',
  content_filter: 'invalid_request_error',
  upstream: 'api_error',
  internal: 'api_error',
};

/** Statuses that Messages always uses for a kind. */
const STATUSES: Partial<Record<ErrorKind, number>> = {
  overloaded: 529,
  context_overflow: 400,
  budget: 402,
};

/** The `error` object in a body or in a stream. */
export function errorObject(error: GatewayError): JsonObject {
  return {
    type: TYPES[error.kind],
    message: error.kind === 'context_overflow' ? overflowMessage(error.message) : error.message,
    ...(isObject(error.details) ? { details: error.details } : {}),
  };
}

/** The error answer for the client, with the headers that its SDK obeys. */
export function encodeError(error: GatewayError, requestId: string): HttpError {
  return {
    status: STATUSES[error.kind] ?? error.status,
    headers: {
      'content-type': 'application/json',
      'request-id': requestId,
      ...retryAfterHeader(error),
      ...(error.retryable === false ? { 'x-should-retry': 'false' } : {}),
    },
    body: { type: 'error', error: errorObject(error), request_id: requestId },
  };
}

/** Anthropic's own two messages, which clients parse. They stay as they are. */
const OWN =
  /prompt is too long: [\d,]+ tokens > [\d,]+|exceed context limit: [\d,]+ \+ [\d,]+ > [\d,]+/i;

/** How many characters of a message are read: limits are named at its beginning. */
const READ = 2000;

/**
 * With the numbers of the upstream's message: where the prompt alone fits, the sentence by which Claude Code
 * lowers `max_tokens` (``input length and `max_tokens` exceed context limit: A + B > C``), else the one by which it
 * compacts (`prompt is too long: N tokens > M maximum`). Without numbers, the upstream's message follows.
 */
export function overflowMessage(words: string): string {
  const message = words.slice(0, READ);
  if (OWN.test(message)) return words;
  const { limit, input, output, total } = overflowCounts(message);
  if (limit !== undefined && input !== undefined && output !== undefined && input < limit) {
    const sum = `${input} + ${output} > ${limit}`;
    return `input length and \`max_tokens\` exceed context limit: ${sum}, decrease input length or \`max_tokens\` and try again`;
  }
  // A prompt that is too long by itself is reported with the vendor's counts.
  const counted = total === (input ?? 0) + (output ?? 0) ? total : input;
  const prompt = counted ?? total;
  if (limit !== undefined && prompt !== undefined && prompt > limit) {
    return `prompt is too long: ${prompt} tokens > ${limit} maximum`;
  }
  return /^prompt is too long/i.test(message) ? words : `prompt is too long: ${words}`;
}
