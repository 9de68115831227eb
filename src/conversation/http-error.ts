/** The meaning of status and headers of an HTTP error answer, the same in every protocol. */

import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import type { ErrorKind, GatewayError } from './errors.ts';

const BY_STATUS: Readonly<Record<number, ErrorKind>> = {
  400: 'invalid_request',
  401: 'authentication',
  402: 'billing',
  403: 'permission',
  404: 'not_found',
  408: 'timeout',
  409: 'conflict',
  410: 'not_found',
  413: 'too_large',
  422: 'invalid_request',
  // Bedrock's and SageMaker's models that failed.
  424: 'upstream',
  425: 'overloaded',
  429: 'rate_limit',
  // RFC 7725: withheld there for legal reasons, and no fault of the key.
  451: 'not_found',
  // Google cancels under load (vertesia/llumiverse#467).
  499: 'upstream',
  503: 'overloaded',
  504: 'timeout',
  524: 'timeout',
  529: 'overloaded',
};

/** The kind of error that a status stands for. Other 4xx are `invalid_request`, everything else is `upstream`. */
export const kindOfStatus = (status: number): ErrorKind =>
  BY_STATUS[status] ?? (status >= 400 && status < 500 ? 'invalid_request' : 'upstream');

/** The wait in seconds, from `retry-after-ms`, or from `retry-after` in seconds or as a date. */
export function retryAfterOf(headers: ReadonlyHeaders): number | undefined {
  const ms = Number.parseFloat(headers.get('retry-after-ms') ?? '');
  if (ms >= 0) return ms / 1000;
  const value = headers.get('retry-after');
  if (value === null) return undefined;
  if (/^\s*\d/.test(value)) {
    const seconds = Number(value);
    if (seconds >= 0) return seconds;
  }
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - Date.now()) / 1000);
}

/** The vendor's `x-should-retry`, which both official SDKs obey. */
export function retryHintOf(headers: ReadonlyHeaders): boolean | undefined {
  const value = headers.get('x-should-retry');
  return value === 'true' ? true : value === 'false' ? false : undefined;
}

/** The message of an error body without one: short plain text, but no JSON and no page, else the status. */
export function messageOfBody(status: number, body: string): string {
  const plain = body.trim();
  const readable = plain !== '' && plain.length <= 500 && !/^[<{[]/.test(plain);
  return readable ? plain : `The upstream answered with HTTP ${status}.`;
}

/** `retry-after` for an error that names a wait. */
export const retryAfterHeader = ({ retryAfter }: GatewayError): Readonly<Record<string, string>> =>
  retryAfter === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfter)) };

/** The error code for clients; undefined for a code that only repeats an HTTP status. */
export const publicErrorCode = (code: string | undefined): string | undefined =>
  code !== undefined && /^[1-5]\d\d$/.test(code) ? undefined : code;
