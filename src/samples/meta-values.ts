/** Values as a meta file writes them: rounded times, and errors. */

import type { GatewayError } from '../conversation/errors.ts';
import { cutWords } from '../lib/text/printable-text.ts';
import type { SampleError } from './sample.ts';

// The recorded body holds the whole text.
const MAX_ERROR_CHARACTERS = 16_384;

/** Milliseconds to two decimals. */
export const round = (ms: number) => Math.round(ms * 100) / 100;

/** An error as a meta file holds it; long texts are cut. */
export function sampleError(error: GatewayError): SampleError {
  const { kind, status, code } = error;
  const message = cutWords(error.message, MAX_ERROR_CHARACTERS);
  return {
    kind,
    message,
    status,
    ...(code !== undefined && { code: cutWords(code, MAX_ERROR_CHARACTERS) }),
  };
}
