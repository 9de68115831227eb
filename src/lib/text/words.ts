/** The words of a text: a long list that is read as one. */
export const words = (text: string): readonly string[] => text.trim().split(/\s+/);

export const wordSet = (text: string): ReadonlySet<string> => new Set(words(text));

/** How often the pattern is found, which has the flag `g`. */
export const countOf = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;

export const LETTERS = /\p{L}/gu;
const HAN = /\p{Script=Han}/gu;
const KANA = /[\p{Script=Hiragana}\p{Script=Katakana}]/gu;

/**
 * Chinese where at least a fifth of the letters are Chinese characters, since one of them says about as
 * much as four letters. Japanese text contains them too, but also kana.
 */
export function isChinese(text: string): boolean {
  const han = countOf(text, HAN);
  return han > 0 && han * 5 >= countOf(text, LETTERS) && countOf(text, KANA) * 5 < han;
}
