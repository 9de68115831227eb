/** All grammars: the lexicon of every word, and the list of families. */

import { lexicon, type MarkupWord } from '../grammar.ts';
import { angleTags } from './angle-tags.ts';
import { specialTokens } from './special-tokens.ts';

/** Grammars of words in square brackets: Mistral and LM Studio. */
const squareMarks: readonly MarkupWord[] = [
  // v3 and v7: a JSON array follows; v11: a name, perhaps an id, and JSON arguments.
  { notation: 'square', word: 'TOOL_CALLS', role: 'box', family: 'mistral', opens: 'yes' },
  { notation: 'square', word: 'ARGS', role: 'args', family: 'mistral' },
  { notation: 'square', word: 'CALL_ID', role: 'skip', family: 'mistral' },
  { notation: 'square', word: 'TOOL_REQUEST', role: 'box', family: 'lm-studio', opens: 'yes' },
  {
    notation: 'square',
    word: 'END_TOOL_REQUEST',
    role: 'box',
    family: 'lm-studio',
    closes: true,
  },
  {
    notation: 'square',
    word: 'THINK',
    role: 'channel',
    family: 'think-tags',
    opens: 'start',
    channel: 'reasoning',
  },
];

const WORDS: readonly MarkupWord[] = [...angleTags, ...specialTokens, ...squareMarks];

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
