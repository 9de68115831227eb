/** All grammars, and the two tables the engine reads: what may begin a leak, and what may stand in one. */

import { lexicon, type MarkupWord } from '../grammar.ts';
import { angleTags } from './angle-tags.ts';
import { specialTokens } from './special-tokens.ts';
import { squareMarks } from './square-marks.ts';

const WORDS: readonly MarkupWord[] = [...angleTags, ...specialTokens, ...squareMarks];

/** Every word of every grammar. */
export const EVERYTHING = lexicon(WORDS, true);

/** The families that markup words belong to, and those that are found by other means. */
export const FAMILIES: readonly string[] = [
  ...new Set([
    ...WORDS.map(({ family }) => family).filter((family) => family !== 'stop'),
    'json',
    'pythonic',
    'tool-result',
    'think-unopened',
  ]),
];
