/** Decides what to do about a try that failed before the client got anything. */

import type { ErrorKind, GatewayError } from '../conversation/errors.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import type { Remedy } from './target-error.ts';
import { TargetError } from './target-error.ts';

/**
 * What each kind of error asks for, whatever status it came with. A key or an account is refused: another key.
 * The model or the address is: another target. What is too long for this model may fit another. What is about
 * the request alone ends it, and what passes by itself is asked again.
 */
const REMEDIES: Readonly<Record<ErrorKind, Remedy>> = {
  invalid_request: 'never',
  content_filter: 'never',
  budget: 'never',
  context_overflow: 'wider',
  too_large: 'wider',
  authentication: 'next-key',
  permission: 'next-key',
  billing: 'next-key',
  quota: 'next-key',
  not_found: 'next-target',
  rate_limit: 'again',
  overloaded: 'again',
  timeout: 'again',
  conflict: 'again',
  upstream: 'again',
  internal: 'again',
};

/** Any 3xx: none of them is an answer to what was asked here. */
export const isRedirect = (status: number): boolean => status >= 300 && status < 400;

/**
 * The remedy for an upstream's answer: by its kind. A redirect is never followed, and is this target's alone.
 * `x-should-retry: false` is the vendor's own word that the same request with the same key is in vain, which a fault
 * of its own (5xx) does not prove.
 */
export function remedyForStatus(
  status: number,
  error: GatewayError,
  headers: ReadonlyHeaders,
): Remedy {
  if (error instanceof TargetError) return error.remedy;
  // Asking a server again does not help: it lacks the function (501: llama.cpp without `--embeddings`).
  if (isRedirect(status) || status === 501) return 'next-target';
  const remedy = REMEDIES[error.kind];
  const forbidden = headers.get('x-should-retry') === 'false' || error.retryable === false;
  return remedy === 'again' && forbidden && status < 500 ? 'never' : remedy;
}

/** The remedy for an error that came inside a 200: an error event, an empty or broken answer. */
export function remedyForError(error: GatewayError): Remedy {
  if (error instanceof TargetError) return error.remedy;
  // A limit of this gateway, or state that it cannot read now, is the same at every target, and no answer of any.
  const isBusy = error.kind === 'rate_limit' || error.kind === 'overloaded';
  if (isBusy && !error.fromUpstream) return 'never';
  const remedy = REMEDIES[error.kind];
  return remedy === 'again' && error.retryable === false ? 'never' : remedy;
}

/**
 * Milliseconds before try number `attempt` (the first retry is 1): exponential with full jitter on
 * the upper half, or what the vendor asked for. Undefined when the vendor asks for longer than
 * `longestMs`: then the client has to wait, and the error says how long.
 */
export function retryDelay(
  attempt: number,
  retryAfter: number | undefined,
  baseMs: number,
  longestMs: number,
): number | undefined {
  if (retryAfter !== undefined) {
    const asked = retryAfter * 1000;
    return asked <= longestMs ? asked : undefined;
  }
  const full = Math.min(baseMs * 2 ** (attempt - 1), longestMs);
  return full / 2 + Math.random() * (full / 2);
}
