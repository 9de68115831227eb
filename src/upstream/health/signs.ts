/** Reads from the end of a try how healthy the place is that it was sent to. */

import type { GatewayError } from '../../conversation/errors.ts';
import { saysModelIsGone } from '../../vendors/errors/kind-of-words.ts';
import { NoDescriptor, type Remedy } from '../target-error.ts';
import type { Cause } from './cooldown.ts';

/**
 * - `answered`: it works
 * - `failed`: the server is in trouble, cannot be reached, or is silent; enough of these begin a cooldown
 * - `neither`: says nothing: the request is at fault, or the client left
 * - `no_model`: the vendor does not have the model; what it says of others is not known
 * - a cause: a cooldown begins at once
 */
export type Sign = 'answered' | 'failed' | 'neither' | 'no_model' | Cause;

// Vendors answer 503 for faults of their own too; only these words say that all keys would fare the same.
const OVERLOAD =
  /overload|capacity|too busy|is busy|server_busy|high (?:demand|load|traffic)|too many requests|访问量过大|繁忙/i;
const SEARCHED_CHARS = 2000;

/**
 * @param error as the vendor meant it, or this gateway's own
 * @param resetAfter seconds until the vendor's limit is reset, where it did not say `Retry-After`
 */
export function signOf(
  error: GatewayError,
  remedy: Remedy,
  resetAfter: number | undefined,
): Exclude<Sign, 'answered'> {
  const { kind, fromUpstream } = error;
  const seconds = error.retryAfter ?? resetAfter;
  const askedMs = seconds === undefined ? undefined : seconds * 1000;
  // What was refused inside a stream has no status of its own.
  const status = fromUpstream ? error.status : 0;
  switch (kind) {
    case 'rate_limit':
      return fromUpstream ? { reason: 'rate_limit', status, askedMs } : 'neither';
    case 'overloaded':
      if (!fromUpstream) return 'neither';
      return isOverload(error) ? { reason: 'overloaded', status, askedMs } : 'failed';
    case 'authentication':
    case 'permission':
      return { reason: 'key_refused', status: refusedStatus(error), askedMs };
    case 'billing':
    case 'quota':
      return fromUpstream ? { reason: 'quota', status, askedMs } : 'neither';
    case 'not_found':
      return fromUpstream && saysModelIsGone(error) ? 'no_model' : 'neither';
    case 'timeout':
      // 408 is a 4xx, 499 a client that left.
      return error.status >= 400 && error.status < 500 ? 'neither' : 'failed';
    case 'upstream':
    case 'internal':
      return isServersFault(error, remedy) ? 'failed' : 'neither';
    default:
      return 'neither';
  }
}

/** The status with which the vendor refused the gateway's key; clients get a 502 instead. */
const refusedStatus = ({ kind, status }: GatewayError): number =>
  status === 401 || status === 403 ? status : kind === 'authentication' ? 401 : 403;

function isOverload({ status, message, code = '' }: GatewayError): boolean {
  return status !== 503 || OVERLOAD.test(`${code} ${message.slice(0, SEARCHED_CHARS)}`);
}

function isServersFault(error: GatewayError, remedy: Remedy): boolean {
  // An answer that is empty, too large or a redirect is an answer; a missing descriptor is our own trouble.
  if (remedy === 'once' || remedy === 'next-target' || error instanceof NoDescriptor) return false;
  if (error.fromUpstream) return error.status >= 500;
  // `elsewhere`: it could not be reached.
  return error.kind === 'upstream' && (error.retryable !== false || remedy === 'elsewhere');
}

/** What a status alone says, for answers that nothing else is read of: is the key refused? */
export const signOfStatus = (status: number): Sign =>
  status === 401 || status === 402 || status === 403
    ? { reason: status === 402 ? 'quota' : 'key_refused', status }
    : 'neither';
