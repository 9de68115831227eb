/** Tokens, estimated: about four Latin letters or one East Asian character each. */

// Kana, Han, Hangul and their full-width punctuation.
const WIDE = '\\u3000-\\u30ff\\u3400-\\u9fff\\uac00-\\ud7af\\uf900-\\ufaff\\uff00-\\uffef';
/** Whether a UTF-16 unit is one of {@link WIDE}. */
const isWide = (unit: number): boolean =>
  unit >= 0x3000 &&
  (unit <= 0x30ff ||
    (unit >= 0x3400 && unit <= 0x9fff) ||
    (unit >= 0xac00 && unit <= 0xd7af) ||
    (unit >= 0xf900 && unit <= 0xfaff) ||
    (unit >= 0xff00 && unit <= 0xffef));
const PIECES = new RegExp(`\\s*(?:[${WIDE}]{1,2}|[^\\s${WIDE}]+)|\\s+$`, 'gu');

/** How many tokens the text would be, roughly; 0 for no text, never 0 for some. */
export function estimateTokens(text: string): number {
  let wide = 0;
  for (let i = 0; i < text.length; i++) if (isWide(text.charCodeAt(i))) wide++;
  return wide + Math.ceil((text.length - wide) / 4);
}

/** The text word by word (two East Asian characters make a word); put together it is the text. */
export function wordsOf(text: string): readonly string[] {
  return text.match(PIECES) ?? [];
}

/** The text in pieces of about `size` characters, never inside a character. */
export function slicesOf(text: string, size: number): readonly string[] {
  const out: string[] = [];
  let piece = '';
  for (const char of text) {
    piece += char;
    if (piece.length >= size) {
      out.push(piece);
      piece = '';
    }
  }
  return piece === '' ? out : [...out, piece];
}
