/** Masks secrets in the errors of a stream that is forwarded as bytes. */

import { asBuffer, containsAny, needles, Pieces } from '../../lib/bytes/bytes.ts';
import type { SseFrame } from '../../lib/bytes/sse.ts';
import { maskLiterals } from '../../lib/text/secret-literals.ts';

const LF = 0x0a;
const [LETTER_D, LETTER_E, LETTER_F] = [0x64, 0x65, 0x66];
const NO_BYTES = new Uint8Array(0);
const BLANK_LINES = needles('\n\n', '\n\r\n', '\r\r');
const ERROR = needles('"error"', 'event: error', 'event:error');
/** So many bytes of a chunk and of the next one may hold an error mark that is cut. */
const ERROR_BYTES = 12;
// Errors stand at the end of a stream: of a long chunk only its ends are searched.
const ERROR_HEAD = 256;
const SEARCHED_BYTES = 4096;
// An error adds more to a chunk than this.
const GROWN_BYTES = 32;
/** So many bytes of an error wait for its end. */
const HELD_BYTES = 1024 * 1024;

export class ErrorMask {
  readonly #secrets: readonly string[];
  /** Size of the chunk before; 0: the next chunk is searched in any case. */
  #before = 0;
  /** The last bytes of a chunk that was cut within a line. */
  #seam: Uint8Array = NO_BYTES;
  /** The line of an error so far: it waits for its end so that no secret is cut in two. */
  #line: Pieces | undefined;

  constructor(secrets: readonly string[]) {
    this.#secrets = secrets;
  }

  /** What may go out: the very chunk where it holds no error; undefined: the line of an error goes on. */
  push(chunk: Uint8Array): Uint8Array | undefined {
    return this.#line !== undefined || this.#mayHoldError(chunk) ? this.#masked(chunk) : chunk;
  }

  /** As {@link push}, for a chunk from before the answer: the size of the next one says nothing yet. */
  pushFirst(chunk: Uint8Array): Uint8Array | undefined {
    const out = this.push(chunk);
    this.#before = 0;
    return out;
  }

  /** What waits when the stream ends; undefined: nothing. */
  end(): Uint8Array | undefined {
    const line = this.#line?.joined();
    this.#line = undefined;
    return line?.length ? maskedBytes(asBuffer(line), this.#secrets) : undefined;
  }

  /**
   * Errors are looked for where a chunk begins like one, or is longer than the one before (an error came
   * with it), and where chunks do not end with a line.
   */
  #mayHoldError(chunk: Uint8Array): boolean {
    const seam = this.#seam;
    const cut = chunk[chunk.length - 1] !== LF;
    if (seam.length > 0 || cut) {
      const across = Buffer.concat([seam, chunk.subarray(0, ERROR_BYTES)]);
      const end = chunk.length < ERROR_BYTES ? across : chunk;
      this.#seam = cut ? end.subarray(-ERROR_BYTES) : NO_BYTES;
      if (containsAny(across, ERROR)) return true;
    }
    const grown = chunk.length > this.#before + GROWN_BYTES;
    this.#before = chunk.length;
    if (!grown && !cut && seam.length === 0 && !beginsLikeError(chunk)) return false;
    if (chunk.length <= SEARCHED_BYTES) return containsAny(asBuffer(chunk), ERROR);
    return (
      containsAny(asBuffer(chunk.subarray(0, ERROR_HEAD)), ERROR) ||
      containsAny(asBuffer(chunk.subarray(-SEARCHED_BYTES)), ERROR)
    );
  }

  #masked(chunk: Uint8Array): Uint8Array | undefined {
    this.#line ??= new Pieces();
    this.#line.push(chunk);
    if (chunk[chunk.length - 1] !== LF) {
      return this.#line.size < HELD_BYTES ? undefined : this.#begun(this.#line);
    }
    const line = asBuffer(this.#line.joined());
    // A blank line ends the event.
    const over = line.length <= 2 || containsAny(line.subarray(-3), BLANK_LINES);
    this.#line = over ? undefined : new Pieces();
    return maskedBytes(line, this.#secrets);
  }

  /** Of a line that is too long to wait for: all but what may be the beginning of a secret. */
  #begun(line: Pieces): Uint8Array {
    const safe = maskedBytes(asBuffer(line.joined()), this.#secrets);
    const end = safe.length - (this.#secrets[0]?.length ?? 0);
    this.#line = new Pieces();
    this.#line.push(safe.slice(end));
    return safe.slice(0, end);
  }
}

/** `event: error`, `event: response.failed`, `data: {"error"`, `data: {"type":"error"`, with or without blanks. */
function beginsLikeError(chunk: Uint8Array): boolean {
  if (chunk[0] === LETTER_E) {
    return chunk[6] === LETTER_E || chunk[7] === LETTER_E || chunk[16] === LETTER_F;
  }
  if (chunk[0] !== LETTER_D) return false;
  const names = chunk[7] === LETTER_E || chunk[8] === LETTER_E;
  return names || chunk[14] === LETTER_E || chunk[15] === LETTER_E || chunk[16] === LETTER_E;
}

/** The frame with its bytes masked; the very frame where they hold no secret. */
export function maskedFrame(frame: SseFrame, secrets: readonly string[]): SseFrame {
  const own = asBuffer(frame.bytes.subarray(frame.from, frame.to));
  const bytes = maskedBytes(own, secrets);
  return bytes === own ? frame : { ...frame, bytes, from: 0, to: bytes.length };
}

/** The same bytes without these secrets; the very object where it holds none. */
function maskedBytes(bytes: Buffer, secrets: readonly string[]): Uint8Array {
  const text = bytes.toString('latin1');
  const safe = maskLiterals(text, secrets);
  return safe === text ? bytes : Buffer.from(safe, 'latin1');
}
