/** What a text is found by: stems of words, and for scripts without blanks single characters and pairs. */

import { stem } from './stem.ts';
import { STOP_WORDS, withoutFillers } from './stop-words.ts';

/** Terms with how often they stand in a text. */
export interface Terms {
  readonly counts: ReadonlyMap<string, number>;
  /** Words, and characters of unspaced scripts. */
  readonly length: number;
}

const SCRIPTS =
  'Han|Hiragana|Katakana|Bopomofo|Hangul|Thai|Lao|Khmer|Myanmar|Tibetan|Javanese|Balinese|Yi';
// Letters, marks and digits of theirs; ー prolongs a Japanese vowel and belongs to no script of its own.
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
/** Scripts in which marks are only accents; in others they are letters. */
const ACCENTED =
  /^[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Arabic}\p{Script=Hebrew}\p{M}\p{N}]+$/u;
const MARKS = /\p{Mn}/gu;
/** Characters of a word; what is longer is no word. */
const LONGEST = 64;

/** Compatible forms as one, lower case: ＡＢＣ and abc, ﬁ and fi, half-width kana. */
export const folded = (text: string): string => text.toWellFormed().normalize('NFKC').toLowerCase();

/** The terms of a text that is kept. */
export function termsOf(text: string): Terms {
  const counts = new Map<string, number>();
  let length = 0;
  const add = (term: string) => counts.set(term, (counts.get(term) ?? 0) + 1);
  for (const [run] of folded(text).matchAll(RUN)) {
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

/** A word's stem, and where letters and digits are mixed those of its parts. */
function wordsOf(run: string): readonly string[] {
  const plain = ACCENTED.test(run) ? run.normalize('NFD').replace(MARKS, '') : run;
  const word = plain.length > LONGEST ? [...plain].slice(0, LONGEST).join('') : plain;
  if (word === '') return [];
  const parts = /\p{N}/u.test(word) ? (word.match(PARTS) ?? []) : [];
  return parts.length > 1 ? [word, ...parts.map(stem)] : [stem(word)];
}

/**
 * The terms of a question: as those of a text, without the words that every question has. A question
 * that has no others keeps them.
 */
export function queryTerms(query: string): readonly string[] {
  const bare = [...termsOf(withoutFillers(folded(query))).counts.keys()].filter(
    (term) => !STOP_WORDS.has(term),
  );
  return bare.length > 0 ? bare : [...termsOf(query).counts.keys()];
}

/** A pair of characters, or a word: says more than one character of an unspaced script. */
export const isLone = (term: string): boolean =>
  UNSPACED_START.test(term) &&
  (term.codePointAt(0)! > 0xffff ? term.length === 2 : term.length === 1);
