/** Decodes a vendor's errors into typed errors, and encodes errors as OpenAI's Responses API writes them. */

import { boundedError } from '../../../conversation/error-size.ts';
import { type ErrorKind, GatewayError } from '../../../conversation/errors.ts';
import {
  kindOfStatus,
  publicErrorCode,
  retryAfterHeader,
  retryAfterOf,
  retryHintOf,
} from '../../../conversation/http-error.ts';
import type { ReadonlyHeaders } from '../../../lib/http/headers.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import {
  kindOfVendorError,
  readVendorError,
  retryDelayOf,
  type VendorErrorTexts,
} from '../../../vendors/errors/read-error.ts';
import type { HttpError } from '../../codec.ts';
import { object } from '../wire.ts';

const BY_CODE: Readonly<Record<string, ErrorKind>> = {
  context_length_exceeded: 'context_overflow',
  string_above_max_length: 'invalid_request',
  insufficient_quota: 'quota',
  usage_not_included: 'quota',
  billing_hard_limit_reached: 'billing',
  rate_limit_exceeded: 'rate_limit',
  rate_limit_error: 'rate_limit',
  slow_down: 'rate_limit',
  invalid_api_key: 'authentication',
  authentication_error: 'authentication',
  permission_error: 'permission',
  model_not_found: 'not_found',
  not_found_error: 'not_found',
  content_filter: 'content_filter',
  content_policy_violation: 'content_filter',
  invalid_prompt: 'content_filter',
  server_is_overloaded: 'overloaded',
  overloaded_error: 'overloaded',
  server_error: 'upstream',
  internal_error: 'upstream',
  vector_store_timeout: 'timeout',
  invalid_request_error: 'invalid_request',
  // Copilot, inside a stream.
  bad_request: 'invalid_request',
};

/**
 * A vendor's error object, or the plain text that some vendors send, as a typed error.
 * @param status of the HTTP answer; undefined for an error inside a stream
 * @param source the vendor's error, of any size
 */
export function vendorError(
  status: number | undefined,
  source: Json | undefined,
  headers?: ReadonlyHeaders,
): GatewayError {
  const error = boundedError(source);
  const read = readVendorError(isObject(error) && !hasEnvelope(error) ? { error } : error);
  const code = read.code ?? read.type;
  const message =
    (typeof error === 'string' ? error : undefined) ??
    read.message ??
    (status === undefined ? 'The upstream failed.' : `The upstream answered HTTP ${status}.`);
  const known = kindOfVendorError(status ?? 0, { ...read, message });
  return new GatewayError(known?.kind ?? kindOf(status, read), message, {
    status,
    param: read.param,
    code: read.code ?? (code === undefined || code.endsWith('_error') ? undefined : code),
    retryAfter:
      (headers === undefined ? undefined : retryAfterOf(headers)) ?? retryDelayOf(read.details),
    retryable: (headers === undefined ? undefined : retryHintOf(headers)) ?? known?.retryable,
    fromUpstream: true,
  });
}

/** The whole body, and not the error in it. */
const hasEnvelope = (value: JsonObject): boolean =>
  ENVELOPES.some((name) => value[name] !== undefined && value[name] !== null);
const ENVELOPES = ['error', 'errors', 'detail', 'base_resp', 'error_msg'];

function kindOf(status: number | undefined, { code, type }: VendorErrorTexts): ErrorKind {
  const byCode = memberOf(BY_CODE, code ?? '') ?? memberOf(BY_CODE, type ?? '');
  // The status says more than a vague type.
  if (byCode !== undefined && byCode !== 'invalid_request' && byCode !== 'upstream') return byCode;
  if (status === undefined) return byCode ?? 'upstream';
  return kindOfStatus(status);
}

/** An upstream's error answer. The body may be OpenAI's, another vendor's, or not JSON. */
export function decodeError(status: number, body: string, headers: ReadonlyHeaders): GatewayError {
  const value = tryParse(body);
  if (isObject(value) || Array.isArray(value)) return vendorError(status, value as Json, headers);
  const plain = body.trim();
  const readable = plain !== '' && plain.length <= 500 && !plain.startsWith('<');
  return vendorError(status, readable ? plain : undefined, headers);
}

interface TypeAndCode {
  readonly type: string;
  readonly code?: string;
}

const TYPES_AND_CODES: Readonly<Record<ErrorKind, TypeAndCode>> = {
  invalid_request: { type: 'invalid_request_error' },
  authentication: { type: 'invalid_request_error', code: 'invalid_api_key' },
  permission: { type: 'invalid_request_error' },
  not_found: { type: 'invalid_request_error' },
  conflict: { type: 'invalid_request_error' },
  too_large: { type: 'invalid_request_error' },
  context_overflow: { type: 'invalid_request_error', code: 'context_length_exceeded' },
  content_filter: { type: 'invalid_request_error', code: 'content_filter' },
  rate_limit: { type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  quota: { type: 'insufficient_quota', code: 'insufficient_quota' },
  billing: { type: 'insufficient_quota', code: 'insufficient_quota' },
  budget: { type: 'insufficient_quota', code: 'insufficient_quota' },
  overloaded: { type: 'server_error' },
  timeout: { type: 'server_error' },
  upstream: { type: 'server_error' },
  internal: { type: 'server_error' },
};

function errorObject(error: GatewayError): JsonObject {
  const { type, code } = TYPES_AND_CODES[error.kind];
  return {
    message: error.message,
    type,
    param: error.param ?? null,
    // Official clients branch on this code, so a vendor's own code must not replace it.
    code:
      (error.kind === 'context_overflow' ? code : (publicErrorCode(error.code) ?? code)) ?? null,
  };
}

/** The error answer for the client. Both official SDKs obey `x-should-retry` and `retry-after`. */
export function encodeError(error: GatewayError, requestId: string): HttpError {
  return {
    status: error.status,
    headers: {
      'x-request-id': requestId,
      ...retryAfterHeader(error),
      ...(error.retryable === false ? { 'x-should-retry': 'false' } : {}),
    },
    body: { error: errorObject(error) },
  };
}

/**
 * The code of a failed response. Codex gives up on `server_is_overloaded` but retries `server_error`, so an
 * overload is reported as `server_error`.
 */
const FAILURE_CODES: Readonly<Partial<Record<ErrorKind, string>>> = {
  context_overflow: 'context_length_exceeded',
  quota: 'insufficient_quota',
  billing: 'insufficient_quota',
  budget: 'insufficient_quota',
  rate_limit: 'rate_limit_exceeded',
  invalid_request: 'invalid_prompt',
  content_filter: 'invalid_prompt',
  too_large: 'invalid_prompt',
};
export const failureCode = ({ kind }: GatewayError): string =>
  FAILURE_CODES[kind] ?? 'server_error';

/** The `error` event in both known forms at once: nested, as recorded, and flat, as in the SDK's type. */
export function errorEvent(error: GatewayError, sequence: number): JsonObject {
  const { type } = TYPES_AND_CODES[error.kind];
  const code = failureCode(error);
  const param = error.param ?? null;
  const { message } = error;
  return {
    type: 'error',
    sequence_number: sequence,
    code,
    message,
    param,
    error: { type, code, message, param },
  };
}

/** The error in an `error` event of either form. */
export function decodeErrorEvent(data: JsonObject): GatewayError {
  return vendorError(undefined, object(data.error) ?? data.error ?? { ...data, type: undefined });
}
