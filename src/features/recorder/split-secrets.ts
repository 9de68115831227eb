/** Credentials that a stream spells out in pieces, one event after the other: masked in each of its events. */

import { countMasked, maskText } from './body-mask.ts';
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

/** Between two looks at the event loop. */
const SLICE = 65_536;

interface Said {
  text: string;
  /** Where the bits stand: first byte in the stream, first character in `text`. */
  readonly bits: { readonly at: number; readonly from: number; readonly length: number }[];
}

/**
 * Masks in place what looks like a credential once the bits of each member are joined; how many it
 * were. Those that stand in one event are masked already and are not found again.
 */
export async function maskSplit(bytes: Buffer, literals: readonly string[]): Promise<number> {
  const channels = new Map<string, Said>();
  let next = SLICE;
  for (const [from, to] of dataLines(bytes)) {
    if (from > next) {
      next = from + SLICE;
      await new Promise((resolve) => setImmediate(resolve));
    }
    eachString(bytes, from, to, (start, end, { key }) => {
      if (!BITS.has(key) || start === end) return;
      const said = channels.get(key) ?? { text: '', bits: [] };
      channels.set(key, said);
      said.bits.push({ at: start, from: said.text.length, length: end - start });
      said.text += bytes.toString('latin1', start, end);
    });
  }
  let count = 0;
  for (const { text, bits } of channels.values()) {
    const masked = maskText(text, literals);
    if (masked === text) continue;
    count += countMasked(text, masked);
    for (const { at, from, length } of bits) {
      bytes.write(masked.slice(from, from + length), at, 'latin1');
    }
  }
  return count;
}
