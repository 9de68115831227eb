/** Errors that carry what may be tried next. */

import { type ErrorDetails, type ErrorKind, GatewayError } from '../conversation/errors.ts';

/** An error of this gateway about one target, with its remedy. */
export class TargetError extends GatewayError {
  constructor(
    readonly remedy: Remedy,
    kind: ErrorKind,
    message: string,
    more: ErrorDetails = {},
  ) {
    super(kind, message, more);
  }
}

/** This machine has no file descriptor left: no upstream's fault. */
export class NoDescriptor extends GatewayError {}

/**
 * An upstream that sent more than is taken; its connection is cut. The same request there would end in the
 * same way. `limit`: the key of the configuration.
 */
export const tooMuch = (
  provider: string,
  what: string,
  bytes: number,
  limit: 'answer_bytes' | 'frame_bytes',
): TargetError =>
  new TargetError(
    'next-target',
    'upstream',
    `Provider ${provider} sent ${what} of more than ${bytes} bytes (limits.${limit}).`,
    { retryable: false },
  );

/**
 * - `again`: the same target, after a pause
 * - `next-key`: the same target with another key, at once; where there is none, `next-target`
 * - `next-target`: this target will not do; another one may
 * - `elsewhere`: the next target where there is one, else the same again
 * - `wider`: the request is too large for this target; another one may take it
 * - `once`: one more try in all, at the next target where there is one: what came is likely to come again
 * - `never`: the request itself is at fault, or the vendor forbade a retry
 */
export type Remedy =
  | 'again'
  | 'next-key'
  | 'next-target'
  | 'elsewhere'
  | 'wider'
  | 'once'
  | 'never';
