/** Tokens, estimated: about four Latin letters or one East Asian character each. */

// Kana, Han, Hangul and their full-width punctuation.
const WIDE = '\\u3000-\\u30ff\\u3400-\\u9fff\\uac00-\\ud7af\\uf900-\\ufaff\\uff00-\\uffef';
const WIDE_CHARS = new RegExp(`[${WIDE}]`, 'g');
const PIECES = new RegExp(`\\s*(?:[${WIDE}]{1,2}|[^\\s${WIDE}]+)|\\s+$`, 'gu');

/** How many tokens the text would be, roughly; 0 for no text, never 0 for some. */
export function estimateTokens(text: string): number {
  const wide = text.match(WIDE_CHARS)?.length ?? 0;
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
