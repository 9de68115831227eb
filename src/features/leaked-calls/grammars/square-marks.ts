/** Grammars written in square brackets: Mistral's and LM Studio's. */

import type { Word } from '../grammar.ts';

export const squareMarks: readonly Word[] = [
  // v3 and v7: a JSON array follows; v11: a name, perhaps an id, and JSON arguments.
  { setting: 'square', word: 'TOOL_CALLS', role: 'box', family: 'mistral', opens: 'yes' },
  { setting: 'square', word: 'ARGS', role: 'args', family: 'mistral' },
  { setting: 'square', word: 'CALL_ID', role: 'skip', family: 'mistral' },
  { setting: 'square', word: 'TOOL_REQUEST', role: 'box', family: 'lm-studio', opens: 'yes' },
  {
    setting: 'square',
    word: 'END_TOOL_REQUEST',
    role: 'box',
    family: 'lm-studio',
    closes: true,
  },
  {
    setting: 'square',
    word: 'THINK',
    role: 'channel',
    family: 'think-tags',
    opens: 'start',
    channel: 'reasoning',
  },
];
