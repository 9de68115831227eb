/** Arguments of a call that a relay sends more than once: each piece with all before it, or all once more at the end. */

import { isObject, tryParse } from '../../lib/json/json.ts';

/** Times that one object is looked for behind itself. */
const MAX_TIMES = 4;

/**
 * The arguments that these pieces mean, if they are an object only when read this way. Certain, because two objects
 * after each other, or one inside the other's beginning, are no arguments.
 */
export function repeatedArguments(pieces: readonly string[]): string | undefined {
  const whole = cumulative(pieces);
  const half = once(whole);
  if (isObject(tryParse(half))) return half;
  const twice = once(pieces.join(''));
  return isObject(tryParse(twice)) ? twice : undefined;
}

/** A piece that begins with all that came before replaces it. */
function cumulative(pieces: readonly string[]): string {
  let parts: string[] = [];
  let length = 0;
  let first = '';
  for (const piece of pieces) {
    // What is joined here is as long as the piece that follows, so the work is linear.
    if (length > 0 && piece.length >= length && piece.startsWith(first)) {
      const before = parts.join('');
      parts = [before];
      if (piece.startsWith(before)) {
        parts = [piece];
        length = piece.length;
        continue;
      }
    }
    if (length === 0) first = piece;
    parts.push(piece);
    length += piece.length;
  }
  return parts.join('');
}

/** `X` of a text that is `X` several times. */
function once(text: string): string {
  const trimmed = text.trim();
  for (let times = MAX_TIMES; times > 1; times--) {
    const unit = trimmed.length / times;
    if (Number.isInteger(unit) && trimmed.slice(unit) === trimmed.slice(0, -unit)) {
      return trimmed.slice(0, unit);
    }
  }
  return text;
}
