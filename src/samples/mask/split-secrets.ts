/** Credentials that a stream spells out in pieces, one event after the other: masked in each of its events. */

import { runInSlices, type Steps } from '../store/steps.ts';
import { BodyMask } from './body-mask.ts';
import { dataLines, eachString } from './json-strings.ts';

/** Members in which streams send texts and arguments bit by bit. */
const BITS = new Set([
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

/** Bytes masked between two turns of the event loop. */
const SLICE = 65_536;

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** All bits of one member, and where they stand in the stream: a text of its own, but never a copy of it. */
class SplitText {
  readonly #places: number[] = [];
  readonly #lengths: number[] = [];

  add(from: number, to: number): void {
    this.#places.push(from);
    this.#lengths.push(to - from);
  }

  /** Masks them in the stream; how many credentials it were. */
  async mask(bytes: Buffer, literals: readonly string[]): Promise<number> {
    const mask = new BodyMask(() => literals);
    const read = new Cursor(this.#places, this.#lengths);
    // What comes out of the mask went into it before: it is written behind the place of reading.
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

/** Goes through bits of a stream as if they were one text. */
class Cursor {
  readonly #places: readonly number[];
  readonly #lengths: readonly number[];
  #bit = 0;
  #within = 0;

  constructor(places: readonly number[], lengths: readonly number[]) {
    this.#places = places;
    this.#lengths = lengths;
  }

  /** The next so many bytes, bit by bit; `at` counts them. How many there were. */
  walk(most: number, visit: (from: number, to: number, at: number) => void): number {
    let at = 0;
    while (at < most && this.#bit < this.#places.length) {
      const from = this.#places[this.#bit]! + this.#within;
      const left = this.#lengths[this.#bit]! - this.#within;
      const length = Math.min(left, most - at);
      visit(from, from + length, at);
      at += length;
      this.#within += length;
      if (length < left) continue;
      this.#bit++;
      this.#within = 0;
    }
    return at;
  }
}

/**
 * Masks in place what looks like a credential once the bits of each member are joined; how many it
 * were. Those that stand in one event are masked already and are not found again.
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
      if (!BITS.has(key) || start === end) return undefined;
      const said = channels.get(key) ?? new SplitText();
      channels.set(key, said);
      said.add(start, end);
      return undefined;
    });
    yield;
  }
}
