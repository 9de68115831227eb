/** Tells from its bytes whether a JSON text holds more than can be parsed in a moment. */

import type { Steps } from '../loop/steps.ts';
import { BRACE_OPEN, BRACKET_OPEN, COLON, QUOTE } from './scan-values.ts';

const BACKSLASH = 0x5c;
/** Bytes outside of strings, and ends of strings, that are looked at between two yields. */
const STEP = 32 * 1024;

/**
 * Are there more members, objects and lists in it than this, all levels together? A parser makes each of them in one
 * go: a million names take a second, as short as they are. Linear; a text that is no JSON gets some answer.
 * @param parts each begins outside of a string
 */
export function* holdsMoreValues(parts: readonly Buffer[], most: number): Steps<boolean> {
  let count = 0;
  let left = STEP;
  for (const bytes of parts) {
    let inString = false;
    for (let at = 0; at < bytes.length; left--) {
      if (left === 0) {
        left = STEP;
        yield;
      }
      if (inString) {
        const quote = bytes.indexOf(QUOTE, at);
        if (quote < 0) break;
        let slashes = 0;
        while (bytes[quote - 1 - slashes] === BACKSLASH) slashes++;
        inString = slashes % 2 === 1;
        at = quote + 1;
        continue;
      }
      const byte = bytes[at++];
      if (byte === QUOTE) inString = true;
      else if (byte === COLON || byte === BRACE_OPEN || byte === BRACKET_OPEN) {
        if (++count > most) return true;
      }
    }
  }
  return false;
}
