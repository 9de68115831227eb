/** Text of clients, vendors and files where only plain characters may stand: header values, labels, lines for people. */

// What a terminal obeys or hides: C0, DEL, C1, and the marks that turn or break a line.
const UNSEEN =
  '\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff';
const HIDDEN = new RegExp(`[${UNSEEN}]|\\p{Cs}`, 'u');
const EACH_HIDDEN = new RegExp(HIDDEN.source, 'gu');

// Visible ASCII and the blank, without the sign of an escape.
const PLAIN = /^[\x20-\x24\x26-\x7e]*$/;
const EACH_ODD = /[^\x20-\x24\x26-\x7e]+/g;
const CUT = '...';

/** At most `most` UTF-16 units of a text and three dots; no character is cut in half. */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  const half = last >= 0xd800 && last <= 0xdbff;
  return text.slice(0, half ? most - 1 : most) + CUT;
}

// The longest run without a blank that may be a credential.
const LONGEST_WORD = 1024;

/** The same for a text that may hold a credential: a word that would be cut is left out, since no mask knows half of one. */
export function cutWords(text: string, most: number): string {
  if (text.length <= most) return text;
  let end = most;
  const least = Math.max(0, most - LONGEST_WORD);
  while (end > least && text.charCodeAt(end - 1) > 0x20) end--;
  return text.slice(0, end) + CUT;
}

/**
 * A text as a header can carry it: what is not visible ASCII (and `%`) percent-encoded as UTF-8, so that
 * `decodeURIComponent` gives it back. Half a surrogate pair becomes U+FFFD.
 * @param most UTF-16 units that are kept; further ones are left out, and three dots stand for them
 */
export function headerText(text: string, most = 256): string {
  const short = cutText(text, most);
  if (PLAIN.test(short)) return short;
  return short.toWellFormed().replace(EACH_ODD, (odd) => encodeURIComponent(odd));
}

/** What {@link headerText} was given, as far as it was kept; the very text where it is no such one. */
export function fromHeader(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

// Control characters, line breaks of Unicode, halves of surrogate pairs.
const CONTROL = /[\p{Cc}\p{Cs}\u2028\u2029]/u;

/** Does it hold what no name in any script has: a control character, a line break, half a surrogate pair? */
export const holdsControl = (text: string): boolean => CONTROL.test(text);

/** A text for one line on a terminal: characters that it would obey or hide are written as `\u{…}`. */
export function lineText(text: string, most: number): string {
  const short = cutText(text, most);
  if (!HIDDEN.test(short)) return short;
  return short.replace(EACH_HIDDEN, (one) => `\\u{${one.codePointAt(0)!.toString(16)}}`);
}

/** The same for a text of several lines: line breaks and tabs stay. */
export function linesText(text: string): string {
  return text.replace(EACH_HIDDEN, (one) =>
    one === '\n' || one === '\t' ? one : `\\u{${one.codePointAt(0)!.toString(16)}}`,
  );
}
