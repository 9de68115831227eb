/** The error type of the whole gateway. Each codec writes it in its protocol. */

import type { Json } from '../lib/json/json.ts';

/** Kinds of errors, each with its usual status. */
const STATUS = {
  invalid_request: 400,
  authentication: 401,
  permission: 403,
  not_found: 404,
  too_large: 413,
  context_overflow: 400,
  rate_limit: 429,
  quota: 429,
  billing: 402,
  /** A budget of this gateway is used up. The vendor's are quota and billing. */
  budget: 429,
  overloaded: 503,
  timeout: 504,
  conflict: 409,
  content_filter: 400,
  upstream: 502,
  internal: 500,
};

export type ErrorKind = keyof typeof STATUS;

export const ERROR_KINDS = Object.keys(STATUS) as readonly ErrorKind[];

export interface ErrorDetails {
  /** HTTP status; the kind's own when left out. */
  readonly status?: number;
  /** The field at fault, as the client would spell it: `messages[3].content`. */
  readonly param?: string;
  /** A machine-readable code, e.g. `model_not_found`, `context_length_exceeded`. */
  readonly code?: string;
  /** Seconds. */
  readonly retryAfter?: number;
  /** Extra members of the error object, e.g. Messages `details`. */
  readonly details?: unknown;
  /** Made by the vendor, not by this gateway. */
  readonly fromUpstream?: boolean;
  /** The client should (not) try again; undefined leaves it to the status. */
  readonly retryable?: boolean;
  /** Headers of the error answer in each protocol, beside the protocol's own. Lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** An error with everything that a codec needs to write it. The message must never hold a secret. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly status: number;
  readonly param: string | undefined;
  readonly code: string | undefined;
  readonly retryAfter: number | undefined;
  readonly details: unknown;
  readonly fromUpstream: boolean;
  readonly retryable: boolean | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;

  constructor(
    readonly kind: ErrorKind,
    message: string,
    more: ErrorDetails = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.status = more.status ?? STATUS[kind];
    this.param = more.param;
    this.code = more.code;
    this.retryAfter = more.retryAfter;
    this.details = more.details;
    this.fromUpstream = more.fromUpstream ?? false;
    this.retryable = more.retryable;
    this.headers = more.headers;
  }
}

/** A 400 that names the field. */
export function invalid(message: string, param?: string): GatewayError {
  return new GatewayError('invalid_request', message, { param });
}

/** The upstream's answer breaks its protocol. */
export const brokenAnswer = (message: string, cause?: unknown): GatewayError =>
  new GatewayError('upstream', message, { fromUpstream: true, cause });

/** The client left before its answer: 499, as nginx has it. */
export const clientGone = (cause?: unknown): GatewayError =>
  new GatewayError('timeout', 'The client went away.', { status: 499, retryable: false, cause });

/** Is it that? Clients that left are no errors: not in the log, the metrics or samples. */
export const isClientGone = ({ status, fromUpstream }: GatewayError): boolean =>
  status === 499 && !fromUpstream;

const STOPPED = 'shutting_down';
const RETRY_AFTER_STOP_S = 2;

/** Ends an exchange that still runs when the time after a stop (`limits.drain`) is over. */
export const stopped = (): GatewayError =>
  new GatewayError(
    'overloaded',
    'The gateway is restarting, and the time that it leaves to running requests is over. Please try again.',
    { code: STOPPED, retryAfter: RETRY_AFTER_STOP_S, retryable: true },
  );

/** Is it that, of this gateway and not of one behind it? */
export const isStopped = ({ code, fromUpstream }: GatewayError): boolean =>
  code === STOPPED && !fromUpstream;

/** What this gateway has ended an exchange with; undefined where its client has left, or nothing has ended it. */
export const cutBy = ({ reason }: AbortSignal): GatewayError | undefined =>
  reason instanceof GatewayError ? reason : undefined;

/** Why the exchange of an aborted signal is over. */
export const departure = (signal: AbortSignal): GatewayError =>
  cutBy(signal) ?? clientGone(signal.reason);

/** Any thrown value as a GatewayError. Other errors become a 500 that reveals no internals. */
export function asGatewayError(thrown: unknown): GatewayError {
  return thrown instanceof GatewayError
    ? thrown
    : new GatewayError('internal', 'The gateway failed to handle this request.', { cause: thrown });
}

export const missing = (param: string, code?: 'missing_required_parameter'): GatewayError =>
  new GatewayError('invalid_request', `Missing required parameter: '${param}'.`, { param, code });

export function wrongType(
  param: string,
  expected: string,
  given: Json | undefined,
  code?: 'invalid_type',
): GatewayError {
  const words = `Invalid type for '${param}': expected ${expected}, but got ${kindOf(given)} instead.`;
  return new GatewayError('invalid_request', words, { param, code });
}

function kindOf(value: Json | undefined): string {
  if (value === undefined || value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal';
  return `a ${typeof value}`;
}
