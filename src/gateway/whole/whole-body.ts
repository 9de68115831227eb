/** Reads the body of an answer that is not streamed, within the limits of its size and of its silence. */

import { Pieces } from '../../lib/bytes/bytes.ts';
import { madeLarge } from '../../lib/loop/large-garbage.ts';
import { tooMuch } from '../../upstream/target-error.ts';
import { boundsOf } from '../stream/choose-pipeline.ts';
import { firstNonBlank, QuietLimit } from '../stream/quiet-bytes.ts';
import type { Reading } from '../types.ts';

/** @throws GatewayError if it breaks off, is too large, or is nothing but white space for too long */
export function wholeBody(reading: Reading): Uint8Array | Promise<Uint8Array> {
  const { source, common } = reading;
  const { provider, limits } = boundsOf(reading);
  // With a length the rest follows at once; without one the vendor may keep the line alive for minutes.
  const length = source.hasPeeked ? null : common.headers.get('content-length');
  if (length === null) return bodyOfUnknownLength(reading);
  if (Number(length) <= limits.bytes) return source.readAll();
  source.cancel();
  throw tooMuch(provider, 'an answer', limits.bytes, 'answer_bytes');
}

async function bodyOfUnknownLength(reading: Reading): Promise<Uint8Array> {
  const { source } = reading;
  const bounds = boundsOf(reading);
  const pieces = new Pieces();
  let quiet: QuietLimit | undefined = new QuietLimit(bounds);
  for (;;) {
    const more = await source.read();
    if (more === undefined) return pieces.joined();
    for (const chunk of more) {
      pieces.push(chunk);
      // Some vendors send blank lines while a request waits for its turn.
      if (quiet !== undefined && firstNonBlank(chunk) >= 0) quiet = undefined;
    }
    const { bytes } = bounds.limits;
    const error =
      pieces.size > bytes
        ? tooMuch(bounds.provider, 'an answer', bytes, 'answer_bytes')
        : quiet?.timeError();
    if (error === undefined) continue;
    madeLarge(pieces.size);
    source.cancel();
    throw error;
  }
}
