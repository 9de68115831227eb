/** Makes text from clients, vendors and files safe where only plain characters may appear: headers, labels, terminals. */

// Characters that a terminal obeys or hides: C0, DEL, C1, and marks that reverse or break a line.
const UNSEEN =
  '\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff';
const HIDDEN = new RegExp(`[${UNSEEN}]|\\p{Cs}`, 'u');
const EACH_HIDDEN = new RegExp(HIDDEN.source, 'gu');

// Visible ASCII and the space, without `%`, which begins an escape.
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

// The longest run without a space that may be a credential.
const MAX_WORD = 1024;

/** The same for a text that may hold a credential. Cuts before a word, because no mask recognises half a credential. */
export function cutWords(text: string, most: number): string {
  if (text.length <= most) return text;
  let end = most;
  const least = Math.max(0, most - MAX_WORD);
  while (end > least && text.charCodeAt(end - 1) > 0x20) end--;
  return text.slice(0, end) + CUT;
}

/**
 * A text as a header value: everything but visible ASCII, and `%`, is percent-encoded as UTF-8, so that
 * `decodeURIComponent` restores it. Half a surrogate pair becomes U+FFFD.
 * @param most the most UTF-16 units; a longer text is cut, and three dots follow
 */
export function encodeHeaderText(text: string, most = 256): string {
  const short = cutText(text, most);
  if (PLAIN.test(short)) return short;
  return short.toWellFormed().replace(EACH_ODD, (odd) => encodeURIComponent(odd));
}

/** The text without its percent-encoding; the text itself where that is broken. */
export function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Control characters, line breaks of Unicode, halves of surrogate pairs.
const CONTROL = /[\p{Cc}\p{Cs}\u2028\u2029]/u;

/** Does the text hold a character that no name has: a control character, a line break, half a surrogate pair? */
export const containsControl = (text: string): boolean => CONTROL.test(text);

/** A text for one line of a terminal: characters that it would obey or hide become `\u{…}`. */
export function printableLine(text: string, most: number): string {
  const short = cutText(text, most);
  if (!HIDDEN.test(short)) return short;
  return short.replace(EACH_HIDDEN, (one) => `\\u{${one.codePointAt(0)!.toString(16)}}`);
}

/** The same for several lines: line breaks and tabs stay. */
export function printableLines(text: string): string {
  return text.replace(EACH_HIDDEN, (one) =>
    one === '\n' || one === '\t' ? one : `\\u{${one.codePointAt(0)!.toString(16)}}`,
  );
}

// Line breaks and tabs, and joiners that letters and pictures need.
const HARMLESS = '\n\t\u200b\u200c\u200d\u2060';

/** A text of any length for a terminal: what it would obey becomes `\\u009b`, as in JSON. Line breaks and tabs stay. */
export const withoutControls = (text: string): string =>
  HIDDEN.test(text)
    ? text.replace(EACH_HIDDEN, (one) =>
        HARMLESS.includes(one) ? one : `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
      )
    : text;
