/** Decodes and encodes errors as Google's APIs write them: `{error: {code, message, status, details}}`. */

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
import type { ReadonlyHeaders } from '../../../lib/http/headers.ts';
import { type JsonObject, tryParse } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import {
  googleQuota,
  kindOfVendorError,
  readVendorError,
  retryDelayOf,
  type VendorErrorTexts,
} from '../../../vendors/errors/read-error.ts';
import type { HttpError } from '../../codec.ts';
import { compact, number, object, text } from '../wire.ts';

/** https://cloud.google.com/apis/design/errors#handling_errors */
const BY_STATUS: Readonly<Record<string, ErrorKind>> = {
  INVALID_ARGUMENT: 'invalid_request',
  FAILED_PRECONDITION: 'invalid_request',
  OUT_OF_RANGE: 'invalid_request',
  UNAUTHENTICATED: 'authentication',
  PERMISSION_DENIED: 'permission',
  NOT_FOUND: 'not_found',
  ALREADY_EXISTS: 'conflict',
  ABORTED: 'conflict',
  RESOURCE_EXHAUSTED: 'rate_limit',
  CANCELLED: 'timeout',
  DEADLINE_EXCEEDED: 'timeout',
  UNAVAILABLE: 'overloaded',
  INTERNAL: 'upstream',
  UNKNOWN: 'upstream',
  DATA_LOSS: 'upstream',
  UNIMPLEMENTED: 'invalid_request',
};

const OVERFLOW = /input token count[^.]{0,80}exceeds|exceeds the maximum number of tokens/i;

/** An upstream's error answer. `body` is the raw text; a stream's is a list with one error. */
export function decodeError(status: number, body: string, headers: ReadonlyHeaders): GatewayError {
  const read = readVendorError(boundedError(tryParse(body)));
  const message = read.message ?? messageOfBody(status, body);
  return made(read, message, status, retryAfterOf(headers), retryHintOf(headers));
}

/** The error in a chunk that was sent with HTTP 200; undefined for other chunks. */
export function inBandError(chunk: JsonObject): GatewayError | undefined {
  const failed = Boolean(chunk.error) || isErrorChunk(chunk);
  if (!failed) return undefined;
  const body = boundedError(chunk);
  const read = readVendorError(body);
  const message = read.message ?? 'The upstream failed while it answered.';
  const stated = number(object(body.error)?.code) ?? Number(read.code);
  return made(read, message, stated >= 400 && stated < 600 ? stated : 0, undefined, undefined);
}

/** An error without the key `error`, as relays send it. */
function isErrorChunk(chunk: JsonObject): boolean {
  if (chunk.candidates || chunk.usageMetadata || chunk.promptFeedback) return false;
  if (chunk.detail || chunk.object === 'error') return true;
  const named = chunk.code ?? chunk.type ?? chunk.status;
  return Boolean(text(chunk.message)) && named !== undefined && named !== null;
}

/** The form that Google gives a reason (https://google.aip.dev/193); anything else may be a text of any kind. */
const REASON = /^[A-Z][A-Z0-9_]{0,62}$/;

function made(
  read: VendorErrorTexts,
  message: string,
  status: number,
  wait: number | undefined,
  hint: boolean | undefined,
): GatewayError {
  const { details, type: named = '' } = read;
  const reason = details
    .map((detail) => text(detail.reason))
    .find((one) => one && REASON.test(one));
  const kind = kindOf(named, status, { ...read, message, code: reason ?? read.code });
  const retryAfter = wait ?? retryDelayOf(details, message);
  const passing = kind === 'quota' || kind === 'context_overflow' ? false : undefined;
  // The name of the status says what the kind says, and only Google's clients know it.
  return new GatewayError(kind, message, {
    status: status >= 400 && status < 600 ? status : undefined,
    code: reason?.toLowerCase(),
    retryAfter,
    details: details.length > 0 ? details : undefined,
    fromUpstream: true,
    retryable: hint ?? passing,
  });
}

function kindOf(named: string, status: number, read: VendorErrorTexts): ErrorKind {
  const limited = status === 429 || named === 'RESOURCE_EXHAUSTED';
  const known = limited
    ? (googleQuota(read) ?? kindOfVendorError(429, read))
    : kindOfVendorError(status, read);
  if (known !== undefined) return known.kind;
  const byName = memberOf(BY_STATUS, named);
  if (byName !== undefined) return byName;
  return status === 0 ? 'upstream' : kindOfStatus(status);
}

/**
 * Google's name for each HTTP status (https://cloud.google.com/apis/design/errors#handling_errors): clients
 * read both, so they must agree. A vendor that refuses the gateway's key is a 502 and no UNAUTHENTICATED:
 * the client's own key is fine.
 */
const NAMES: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  408: 'DEADLINE_EXCEEDED',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  501: 'UNIMPLEMENTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
  529: 'UNAVAILABLE',
};

const nameOf = (status: number): string =>
  NAMES[status] ?? (status < 500 ? 'INVALID_ARGUMENT' : 'INTERNAL');

/** The beginning of Google's own message, which its clients know a full context by. */
const OVERFLOW_WORDS = 'The input token count exceeds the maximum number of tokens allowed';

/** A billing error is a 402 elsewhere, which Google does not have. */
const statusOf = ({ kind, status }: GatewayError): number => (kind === 'billing' ? 429 : status);

/** `{error: {code, message, status, details}}`, with an `ErrorInfo` for a code and a `RetryInfo` for a wait. */
export function errorBody(error: GatewayError): JsonObject {
  const { kind, retryAfter, param } = error;
  const details: JsonObject[] = [];
  const code = publicErrorCode(error.code);
  if (code !== undefined) {
    const reason = code
      .toUpperCase()
      .replace(/[^A-Z0-9]+/g, '_')
      .slice(0, 63);
    details.push({
      '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
      reason,
      domain: 'hopgate',
    });
  }
  if (param !== undefined) {
    const fieldViolations = [{ field: param, description: error.message }];
    details.push({ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations });
  }
  if (retryAfter !== undefined) {
    const retryDelay = `${Math.ceil(retryAfter)}s`;
    details.push({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay });
  }
  const status = statusOf(error);
  const known = kind !== 'context_overflow' || OVERFLOW.test(error.message);
  return {
    error: compact({
      code: status,
      message: known ? error.message : `${OVERFLOW_WORDS}: ${error.message}`,
      status: nameOf(status),
      details: details.length > 0 ? details : undefined,
    }),
  };
}

/** An error answer. */
export function encodeError(error: GatewayError, requestId: string): HttpError {
  const headers = { 'x-request-id': requestId, ...retryAfterHeader(error) };
  return { status: statusOf(error), headers, body: errorBody(error) };
}
