/** What to do about a try that failed before the client got anything. */

import type { GatewayError } from '../conversation/errors.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import type { Remedy } from './target-error.ts';
import { TargetError } from './target-error.ts';

const isTooLarge = ({ kind }: GatewayError): boolean =>
  kind === 'context_overflow' || kind === 'too_large';

/** Any 3xx: none of them is an answer to what was asked here. */
export const isRedirect = (status: number): boolean => status >= 300 && status < 400;

/**
 * The remedy for an upstream's answer. 408, 409, 5xx and 529 are passing faults (both official SDKs
 * repeat them); 429 may be the key's; 401, 402 and 403 are the key's or the account's; 404 may be this
 * target's alone, a redirect is: it is never followed. What is too long for this model may fit another.
 * `x-should-retry: false` is the vendor's own word and wins over all that would ask the same target again.
 */
export function remedyForStatus(
  status: number,
  error: GatewayError,
  headers: ReadonlyHeaders,
): Remedy {
  if (isRedirect(status)) return 'next-target';
  if (isTooLarge(error)) return 'wider';
  if (headers.get('x-should-retry') === 'false' && status < 500) return 'never';
  if (error.kind === 'content_filter') return 'never';
  // A profile knows failures of the request that the vendor dresses up as its own.
  if (error.kind === 'invalid_request' && status >= 500) return 'never';
  // Some vendors say "no balance" with a 429 (Zhipu 1113): waiting does not help, another key may.
  if (error.kind === 'quota' || error.kind === 'billing') return 'next-key';
  if (status === 429) return 'again';
  if (status === 401 || status === 402 || status === 403) return 'next-key';
  if (status === 404) return 'next-target';
  if (status === 408 || status === 409 || status >= 500) return 'again';
  // A vendor's profile knows refusals that a second try gets past (Groq's failed tool use is a 400).
  return error.retryable === true ? 'again' : 'never';
}

/** The remedy for an error that came inside a 200: an error event, an empty or broken answer. */
export function remedyForError(error: GatewayError): Remedy {
  if (error instanceof TargetError) return error.remedy;
  if (isTooLarge(error)) return 'wider';
  switch (error.kind) {
    case 'invalid_request':
    case 'content_filter':
    case 'budget':
      return 'never';
    case 'rate_limit':
      // A limit of this gateway holds for every target.
      if (!error.fromUpstream) return 'never';
      return error.retryable === false ? 'never' : 'again';
    case 'authentication':
    case 'permission':
    case 'billing':
    case 'quota':
      return 'next-key';
    case 'not_found':
      return 'next-target';
    default:
      return error.retryable === false ? 'never' : 'again';
  }
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
