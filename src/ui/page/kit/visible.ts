/** Makes invisible and direction-changing characters visible before a text is shown. */

// Controls but tab and newline; format characters (bidi marks, embeddings, isolates, zero widths, tags);
// line and paragraph separators; halves of surrogate pairs. ZWNJ and ZWJ stay, Persian and emoji need
// them, and the Arabic number signs, which can be seen.
const HIDDEN = /(?!\u200c|\u200d|[\t\n\u0600-\u0605\u06dd])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;
const EACH = new RegExp(HIDDEN, 'gu');

/** A piece of a text: unchanged, or the sign for an invisible character, with its code. */
export interface Piece {
  readonly text: string;
  readonly hidden?: string;
}

/** `U+202E`. */
export function codeOf(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** Whether a text holds invisible characters. */
export const hides = (text: string): boolean => HIDDEN.test(text);

/** The text in pieces; a carriage return in front of a newline is left out. */
export function pieces(text: string): readonly Piece[] {
  if (!hides(text)) return text === '' ? [] : [{ text }];
  const all: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(EACH)) {
    const at = match.index;
    if (at > from) all.push({ text: text.slice(from, at) });
    const character = match[0];
    from = at + character.length;
    if (character === '\r' && text[from] === '\n') continue;
    const code = character.codePointAt(0)!;
    const sign = code < 0x20 ? String.fromCharCode(0x2400 + code) : codeOf(character);
    all.push({ text: sign, hidden: codeOf(character) });
  }
  if (from < text.length) all.push({ text: text.slice(from) });
  return all;
}

/** The same as plain text, for titles and labels. */
export function plain(text: string): string {
  if (!hides(text)) return text;
  return pieces(text)
    .map(({ text: piece, hidden }) => (hidden === undefined ? piece : `⟨${piece}⟩`))
    .join('');
}
