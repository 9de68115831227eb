/** Splits texts into search terms: stems of words, or characters and pairs in scripts without blanks. */

import { stem } from '../../../lib/text/stem.ts';

/** English ones as stems, and lone Chinese characters; kept texts have them indexed all the same. */
export const STOP_WORDS: ReadonlySet<string> = new Set([
  ...`a about again all also am an and any are as at be been but by can could did do does doing done else
  ever for from get gets give had has have having he her here hers him his how i if in into is it its
  just know let like me mean my of on or our please remember remind said say says she should so some
  something sort tell than that the their them then there these they thing things this those to told too
  us use used want was we were what when where which who whom whose why will with would you your s t re
  ve ll m d don doesn didn isn wasn`
    .split(/\s+/)
    .flatMap((word) => [word, stem(word)]),
  ...'的了是在吗嗎呢么吧啊呀嘛哦噢和与與或也都就还還很我你您他她它们們这這那个個之其把被给給让讓对對从從到说說过過会會能可要想有没沒谁誰哪几幾吗去来來上下中里裡',
]);

const FILLERS = new RegExp(
  [
    '什[么麼]时候|什[么麼]時候|为什[么麼]|為什[么麼]|[干幹]什[么麼]|[做干]啥|什[么麼]样?|啥|怎[么麼][样樣办辦]?|如何|多少|多大|多久|几点|幾點',
    '哪[里裡儿兒个個些位天年]|谁的|誰的|是不是|有没有|有沒有|能不能|会不会|還記得|还记得|记得|記得|知道|知不知道|请问|請問|告诉我|告訴我|提到|说过|說過|来着|來著',
    '最近|之前|以前|上次|是谁|是誰|叫什么|一下|我们|我們|你们|你們|他们|他們|她们|她們|这个|這個|那个|那個',
    '何時|いつ|どこ|だれ|誰|何|なに|なん|どの|どんな|ですか|ますか|でした|でしょう|教えて',
  ].join('|'),
  'gu',
);

/** A blank in the place of question words of scripts without blanks, so that no pair spans it. */
export const withoutFillers = (text: string): string => text.replace(FILLERS, ' ');

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
