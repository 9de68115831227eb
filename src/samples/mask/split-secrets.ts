/** Masks credentials that a stream spreads over several events. */

import { runInSlices, type Steps } from '../../lib/loop/steps.ts';
import { BodyMask } from './body-mask.ts';
import { dataLines, eachString } from './json-strings.ts';

/** Members in which streams send texts and arguments in pieces. */
const PIECES = new Set([
  'content',
  'text',
  'delta',
  'arguments',
  'partial_json',
  'thinking',
  'reasoning_content',
  'reasoning',
  'input',
  'refusal',
]);

/** Bytes masked between two yields to the event loop. */
const SLICE = 65_536;

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The positions of all pieces of one member in the stream, which together are one text; nothing is copied. */
class SplitText {
  readonly #places: number[] = [];
  readonly #lengths: number[] = [];

  add(from: number, to: number): void {
    this.#places.push(from);
    this.#lengths.push(to - from);
  }

  /** Masks the pieces in the stream and returns the number of credentials. */
  async mask(bytes: Buffer, literals: readonly string[]): Promise<number> {
    const mask = new BodyMask(() => literals);
    const read = new Cursor(this.#places, this.#lengths);
    // The mask returns bytes it has read already, so writing never overtakes reading.
    const write = new Cursor(this.#places, this.#lengths);
    for (;;) {
      const slice = Buffer.allocUnsafe(SLICE);
      const length = read.walk(SLICE, (from, to, at) => bytes.copy(slice, at, from, to));
      const out = length === 0 ? mask.end() : mask.push(slice.subarray(0, length));
      write.walk(out.length, (from, to, at) => {
        bytes.set(out.subarray(at, at + to - from), from);
      });
      if (length === 0) return mask.count;
      await turn();
    }
  }
}

/** Reads the pieces of a stream as if they were one text. */
class Cursor {
  readonly #places: readonly number[];
  readonly #lengths: readonly number[];
  #piece = 0;
  #within = 0;

  constructor(places: readonly number[], lengths: readonly number[]) {
    this.#places = places;
    this.#lengths = lengths;
  }

  /** Visits the next `most` bytes piece by piece; `at` is the offset among them. Returns how many there were. */
  walk(most: number, visit: (from: number, to: number, at: number) => void): number {
    let at = 0;
    while (at < most && this.#piece < this.#places.length) {
      const from = this.#places[this.#piece]! + this.#within;
      const left = this.#lengths[this.#piece]! - this.#within;
      const length = Math.min(left, most - at);
      visit(from, from + length, at);
      at += length;
      this.#within += length;
      if (length < left) continue;
      this.#piece++;
      this.#within = 0;
    }
    return at;
  }
}

/**
 * Masks in place what looks like a credential once the pieces of each member are joined, and returns the
 * number. Credentials within one event are masked already and are not counted again.
 */
export async function maskSplitSecrets(
  bytes: Buffer,
  literals: readonly string[],
): Promise<number> {
  const channels = new Map<string, SplitText>();
  await runInSlices(collect(bytes, channels));
  let count = 0;
  for (const said of channels.values()) count += await said.mask(bytes, literals);
  return count;
}

function* collect(bytes: Buffer, channels: Map<string, SplitText>): Steps<void> {
  for (const [from, to] of dataLines(bytes)) {
    yield* eachString(bytes, from, to, (start, end, { key }) => {
      if (!PIECES.has(key) || start === end) return undefined;
      const said = channels.get(key) ?? new SplitText();
      channels.set(key, said);
      said.add(start, end);
      return undefined;
    });
    yield;
  }
}
