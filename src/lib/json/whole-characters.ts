/** Halves of surrogate pairs in the bytes of a JSON text: they are no characters, and most parsers refuse the whole text. */

import { containsAny, needles } from '../bytes/bytes.ts';

const ESCAPES = needles('\\ud', '\\uD');
const BACKSLASH = 0x5c;
/** Of `\uXXXX`. */
const LENGTH = 6;

/**
 * The text with `\ufffd` for each escape of half a pair, as encoders of UTF-8 write it: as long as before, so what is
 * known of its places holds. The same object where there is none.
 */
export function wholeCharacters(text: Buffer): Buffer {
  if (!containsAny(text, ESCAPES)) return text;
  let out: Buffer | undefined;
  for (let at = text.indexOf(BACKSLASH); at >= 0; ) {
    const unit = unitAt(text, at);
    const pair = isHigh(unit) && isLow(unitAt(text, at + LENGTH));
    if (!pair && (isHigh(unit) || isLow(unit))) {
      out ??= Buffer.from(text);
      out.write('\\ufffd', at, 'latin1');
    }
    // A backslash that is escaped begins nothing.
    at = text.indexOf(BACKSLASH, at + (pair ? 2 * LENGTH : 2));
  }
  return out ?? text;
}

/** The unit that the escape at this place names; NaN where there is none. */
function unitAt(text: Buffer, at: number): number {
  if (text[at] !== BACKSLASH || text[at + 1] !== 0x75) return Number.NaN;
  return Number.parseInt(text.toString('latin1', at + 2, at + LENGTH), 16);
}

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;
