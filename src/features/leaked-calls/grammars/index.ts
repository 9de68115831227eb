/** All grammars: the lexicon of every word, and the list of families. */

import { lexicon, type MarkupWord } from '../grammar.ts';
import { angleTags } from './angle-tags.ts';
import { specialTokens } from './special-tokens.ts';
import { squareMarks } from './square-marks.ts';

const WORDS: readonly MarkupWord[] = [...angleTags, ...specialTokens, ...squareMarks];

/** Every word of every grammar. */
export const EVERYTHING = lexicon(WORDS, true);

/** The families of markup words, and those that are found by other means. */
export const FAMILIES: readonly string[] = [
  ...new Set([
    ...WORDS.map(({ family }) => family).filter((family) => family !== 'stop'),
    'json',
    'pythonic',
    'tool-result',
    'think-unopened',
  ]),
];
