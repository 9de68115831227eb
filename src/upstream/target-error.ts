/** Failures that say by themselves what may be tried next. */

import { type ErrorDetails, type ErrorKind, GatewayError } from '../conversation/errors.ts';
import type { Remedy } from './classify.ts';

/** An error of this gateway about one target, with its remedy. */
export class TargetError extends GatewayError {
  readonly remedy: Remedy;

  constructor(remedy: Remedy, kind: ErrorKind, message: string, more: ErrorDetails = {}) {
    super(kind, message, more);
    this.remedy = remedy;
  }
}

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
