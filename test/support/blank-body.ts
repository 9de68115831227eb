/** A blanked copy of a body, made in one go. */

import { runAtOnce } from '../../src/lib/loop/steps.ts';
import { type BlankedContent, blankBodyInSteps } from '../../src/samples/mask/blank-body.ts';

/** Of equal length, of JSON or of the data lines of an event stream. */
export const blankBody = (
  bytes: Uint8Array,
  sse: boolean,
  what: readonly BlankedContent[] = ['texts', 'images'],
): Uint8Array => runAtOnce(blankBodyInSteps(Buffer.from(bytes), sse, what));
