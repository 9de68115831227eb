/** Tells from its bytes whether a JSON text holds more than can be parsed in a moment. */

import type { Steps } from '../loop/steps.ts';
import { BRACE_OPEN, BRACKET_OPEN, COLON, COMMA } from './scan-values.ts';
import { isEscaped, pastEscapes, QUOTE } from './string-ends.ts';

/** Bytes outside of strings, and ends of strings, that are looked at between two yields. */
const STEP = 32 * 1024;

const ZERO = 0x30;
const NINE = 0x39;
/** Digits of a number that a double may not hold: it is kept as a text, which takes as long as a member. */
const LONG_NUMBER = 16;
/** So many plain values, which stand between commas, take as long to parse as one member. */
export const PLAIN_VALUES = 10;

/** So many texts, names included: each that is new to the parser costs most of what a name does. */
export const TEXTS = 2;

/**
 * Are there more members, objects, lists and numbers of 16 digits in it than this, all levels together, twice as many
 * texts, or ten times as many values? A parser makes each of them in one go: a million names take a second, as short as they are. Linear; a
 * text that is no JSON gets some answer.
 * @param parts each begins outside of a string
 */
export function* holdsMoreValues(parts: readonly Buffer[], most: number): Steps<boolean> {
  const mostPlain = PLAIN_VALUES * most;
  const mostTexts = TEXTS * most;
  let count = 0;
  let texts = 0;
  let commas = 0;
  let left = STEP;
  for (const bytes of parts) {
    let inString = false;
    let digits = 0;
    for (let at = 0; at < bytes.length; left--) {
      if (left === 0) {
        left = STEP;
        yield;
      }
      if (inString) {
        const quote = bytes.indexOf(QUOTE, at);
        if (quote < 0) break;
        inString = isEscaped(bytes, quote);
        at = inString ? pastEscapes(bytes, quote + 1) : quote + 1;
        continue;
      }
      const byte = bytes[at++]!;
      if (byte >= ZERO && byte <= NINE) {
        if (++digits === LONG_NUMBER && ++count > most) return true;
        continue;
      }
      digits = 0;
      if (byte === QUOTE) {
        inString = true;
        if (++texts > mostTexts) return true;
      } else if (byte === COMMA) {
        if (++commas > mostPlain) return true;
      } else if (byte === COLON || byte === BRACE_OPEN || byte === BRACKET_OPEN) {
        if (++count > most) return true;
      }
    }
  }
  return false;
}
