/** Grammars of XML-like tags: DSML, Anthropic, MiniMax, GLM, Hermes, Qwen. */

import type { MarkupWord } from '../grammar.ts';

/** DeepSeek V3.2 (`function_calls`), V4 (`tool_calls`) and V4.1 (`calls`, with a space before it). */
const dsml: readonly MarkupWord[] = [
  { notation: 'dsml', word: 'function_calls', role: 'wrap', family: 'dsml', opens: 'yes' },
  { notation: 'dsml', word: 'tool_calls', role: 'wrap', family: 'dsml', opens: 'yes' },
  { notation: 'dsml', word: 'calls', role: 'wrap', family: 'dsml', opens: 'yes' },
  { notation: 'dsml', word: 'invoke', role: 'call', family: 'dsml', opens: 'yes', nameIn: 'name' },
  {
    notation: 'dsml',
    word: 'parameter',
    role: 'arg',
    family: 'dsml',
    opens: 'yes',
    nameIn: 'name',
  },
  {
    notation: 'dsml',
    word: 'function',
    role: 'call',
    family: 'dsml',
    opens: 'yes',
    nameIn: 'name',
  },
  { notation: 'dsml', word: 'name', role: 'name', family: 'dsml' },
  // Corrupted: the block's tag lost its DSML, its calls did not.
  { notation: 'plain', word: 'calls', role: 'wrap', family: 'dsml', opens: 'yes', common: true },
  { notation: 'plain', word: 'name', role: 'name', family: 'dsml' },
];

/** Claude's own XML; DSML without its marks looks the same. */
const anthropic: readonly MarkupWord[] = [
  {
    notation: 'plain',
    word: 'function_calls',
    role: 'wrap',
    family: 'anthropic-xml',
    opens: 'yes',
  },
  {
    notation: 'plain',
    word: 'invoke',
    role: 'call',
    family: 'anthropic-xml',
    opens: 'named',
    nameIn: 'name',
  },
  { notation: 'plain', word: 'parameter', role: 'arg', family: 'anthropic-xml', nameIn: 'name' },
];

/** M1: JSON lines in `tool_calls`. M2: Claude's tags in a wrapper of its own. M3: marked tags. */
const minimax: readonly MarkupWord[] = [
  {
    notation: 'plain',
    word: 'tool_calls',
    role: 'wrap',
    family: 'minimax-m1',
    opens: 'yes',
    common: true,
  },
  {
    notation: 'plain',
    word: 'minimax:tool_call',
    role: 'wrap',
    family: 'minimax-m2',
    opens: 'yes',
  },
  { notation: 'm3', word: 'tool_call', role: 'wrap', family: 'minimax-m3', opens: 'yes' },
  {
    notation: 'm3',
    word: 'invoke',
    role: 'call',
    family: 'minimax-m3',
    opens: 'named',
    nameIn: 'name',
  },
];

/** `tool_call` holds JSON (Hermes), `NAME<arg_key>…` (GLM) or `<function=NAME>` (Qwen3-Coder). */
const toolCall: readonly MarkupWord[] = [
  { notation: 'plain', word: 'tool_call', role: 'box', family: 'hermes', opens: 'yes' },
  // Seed-OSS and Nemotron put the same between tags of their own.
  { notation: 'plain', word: 'seed:tool_call', role: 'box', family: 'hermes', opens: 'yes' },
  { notation: 'plain', word: 'TOOLCALL', role: 'box', family: 'hermes', opens: 'yes' },
  { notation: 'plain', word: 'arg_key', role: 'key', family: 'glm' },
  { notation: 'plain', word: 'arg_value', role: 'value', family: 'glm' },
  {
    notation: 'plain',
    word: 'function',
    role: 'call',
    family: 'qwen',
    opens: 'named',
    nameIn: '=',
  },
];

// Claude writes `<thinking>` only when a prompt asks for it, so it is not listed.
const think: readonly MarkupWord[] = ['think', 'mm:think'].map((word) => ({
  notation: 'plain',
  word,
  role: 'channel',
  family: 'think-tags',
  opens: 'start',
  channel: 'reasoning',
}));

export const angleTags: readonly MarkupWord[] = [
  ...dsml,
  ...anthropic,
  ...minimax,
  ...toolCall,
  ...think,
];
