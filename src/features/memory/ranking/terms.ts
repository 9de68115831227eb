/** Splits texts into search terms: stems of words, or characters and pairs in scripts without blanks. */

import { stem } from '../../../lib/text/stem.ts';
import { STOP_WORDS, withoutFillers } from './stop-words.ts';

/** The terms of a text with their counts. */
export interface Terms {
  readonly counts: ReadonlyMap<string, number>;
  /** Words, and characters of unspaced scripts. */
  readonly length: number;
}

const SCRIPTS =
  'Han|Hiragana|Katakana|Bopomofo|Hangul|Thai|Lao|Khmer|Myanmar|Tibetan|Javanese|Balinese|Yi';
// Their letters, marks and digits. The Japanese vowel sign ー belongs to no script of its own.
const UNSPACED = `[[${SCRIPTS.split('|')
  .map((script) => `\\p{Script=${script}}`)
  .join('')}ー]&&[\\p{L}\\p{M}\\p{N}]]`;
const RUN = new RegExp(
  `${UNSPACED}+|[[\\p{L}\\p{N}\\p{M}]--${UNSPACED}]+|\\p{Extended_Pictographic}`,
  'gv',
);
const UNSPACED_START = new RegExp(`^${UNSPACED}`, 'v');
/** Letters and digits side by side: `iphone15`. */
const PARTS = /\p{N}+|[\p{L}\p{M}]+/gu;
/** `e-mail`, `wi-fi`: also written without the hyphen. */
const HYPHENATED = /(?<!\p{L})\p{L}{1,64}(?:[-\u2010\u2011]\p{L}{1,64}){1,3}/gu;
/** Scripts in which marks are accents; in the others they are letters. */
const ACCENTED =
  /^[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Arabic}\p{Script=Hebrew}\p{M}\p{N}]+$/u;
const MARKS = /\p{Mn}/gu;
/** Longer words are cut. */
const MAX_LENGTH = 64;

/** Lower case, with compatible forms unified: ＡＢＣ and abc, ﬁ and fi, half-width kana. */
export const folded = (text: string): string => text.toWellFormed().normalize('NFKC').toLowerCase();

/** The terms of a text to be indexed. */
export function termsOf(text: string): Terms {
  const counts = new Map<string, number>();
  let length = 0;
  const add = (term: string) => counts.set(term, (counts.get(term) ?? 0) + 1);
  const plain = folded(text);
  if (/[-\u2010\u2011]/.test(plain)) {
    for (const [word] of plain.matchAll(HYPHENATED)) {
      for (const joined of wordsOf(word.replace(/[-\u2010\u2011]/g, ''))) add(joined);
    }
  }
  for (const [run] of plain.matchAll(RUN)) {
    if (UNSPACED_START.test(run)) {
      const characters = [...run];
      length += characters.length;
      characters.forEach((character, at) => {
        add(character);
        const next = characters[at + 1];
        if (next !== undefined) add(character + next);
      });
    } else {
      length++;
      for (const word of wordsOf(run)) add(word);
    }
  }
  return { counts, length };
}

/** The words of a text in scripts with blanks, without accents, as they are before they are stemmed. */
export const plainWords = (text: string): readonly string[] =>
  [...folded(text).matchAll(RUN)].flatMap(([run]) =>
    UNSPACED_START.test(run) ? [] : [withoutAccents(run)],
  );

const withoutAccents = (run: string): string =>
  ACCENTED.test(run) ? run.normalize('NFD').replace(MARKS, '') : run;

/** The stem of a word; where it mixes letters and digits, also the stems of its parts. */
function wordsOf(run: string): readonly string[] {
  const plain = withoutAccents(run);
  const word = plain.length > MAX_LENGTH ? [...plain].slice(0, MAX_LENGTH).join('') : plain;
  if (word === '') return [];
  const parts = /\p{N}/u.test(word) ? (word.match(PARTS) ?? []) : [];
  return parts.length > 1 ? [word, ...parts.map(stem)] : [stem(word)];
}

/**
 * The terms of a question, without the words that every question has; those stay where the question has
 * no others.
 */
export function queryTerms(query: string): readonly string[] {
  const bare = [...termsOf(withoutFillers(folded(query))).counts.keys()].filter(
    (term) => !STOP_WORDS.has(term),
  );
  return bare.length > 0 ? bare : [...termsOf(query).counts.keys()];
}

/** Is the term a single character of an unspaced script? */
export const isSingleCharacter = (term: string): boolean =>
  UNSPACED_START.test(term) &&
  (term.codePointAt(0)! > 0xffff ? term.length === 2 : term.length === 1);
