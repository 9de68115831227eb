/** Grammars written in XML-like tags: DSML, Anthropic's, MiniMax', GLM's, Hermes', Qwen's. */

import type { Word } from '../grammar.ts';

/** DeepSeek V3.2 (`function_calls`), V4 (`tool_calls`) and V4.1 (`calls`, with a space before it). */
const dsml: readonly Word[] = [
  { setting: 'dsml', word: 'function_calls', role: 'wrap', family: 'dsml', opens: 'yes' },
  { setting: 'dsml', word: 'tool_calls', role: 'wrap', family: 'dsml', opens: 'yes' },
  { setting: 'dsml', word: 'calls', role: 'wrap', family: 'dsml', opens: 'yes' },
  { setting: 'dsml', word: 'invoke', role: 'call', family: 'dsml', opens: 'yes', nameIn: 'name' },
  { setting: 'dsml', word: 'parameter', role: 'arg', family: 'dsml', opens: 'yes', nameIn: 'name' },
  { setting: 'dsml', word: 'function', role: 'call', family: 'dsml', opens: 'yes', nameIn: 'name' },
  { setting: 'dsml', word: 'name', role: 'name', family: 'dsml' },
  // Corrupted: the block's tag lost its DSML, its calls did not.
  { setting: 'plain', word: 'calls', role: 'wrap', family: 'dsml', opens: 'yes', common: true },
  { setting: 'plain', word: 'name', role: 'name', family: 'dsml' },
];

/** Claude's own XML, also what DSML looks like when its marks are lost. */
const anthropic: readonly Word[] = [
  { setting: 'plain', word: 'function_calls', role: 'wrap', family: 'anthropic-xml', opens: 'yes' },
  {
    setting: 'plain',
    word: 'invoke',
    role: 'call',
    family: 'anthropic-xml',
    opens: 'named',
    nameIn: 'name',
  },
  { setting: 'plain', word: 'parameter', role: 'arg', family: 'anthropic-xml', nameIn: 'name' },
];

/** M1: JSON lines in `tool_calls`. M2: Claude's tags in a wrapper of its own. M3: marked tags. */
const minimax: readonly Word[] = [
  {
    setting: 'plain',
    word: 'tool_calls',
    role: 'wrap',
    family: 'minimax-m1',
    opens: 'yes',
    common: true,
  },
  {
    setting: 'plain',
    word: 'minimax:tool_call',
    role: 'wrap',
    family: 'minimax-m2',
    opens: 'yes',
  },
  { setting: 'm3', word: 'tool_call', role: 'wrap', family: 'minimax-m3', opens: 'yes' },
  {
    setting: 'm3',
    word: 'invoke',
    role: 'call',
    family: 'minimax-m3',
    opens: 'named',
    nameIn: 'name',
  },
];

/** `tool_call` holds JSON (Hermes), `NAME<arg_key>…` (GLM) or `<function=NAME>` (Qwen3-Coder). */
const toolCall: readonly Word[] = [
  { setting: 'plain', word: 'tool_call', role: 'box', family: 'hermes', opens: 'yes' },
  { setting: 'plain', word: 'arg_key', role: 'key', family: 'glm' },
  { setting: 'plain', word: 'arg_value', role: 'value', family: 'glm' },
  { setting: 'plain', word: 'function', role: 'call', family: 'qwen', opens: 'named', nameIn: '=' },
];

// Claude's `<thinking>` is text it was asked for, not a tag of its own.
const think: readonly Word[] = ['think', 'mm:think'].map((word) => ({
  setting: 'plain',
  word,
  role: 'channel',
  family: 'think-tags',
  opens: 'start',
  channel: 'reasoning',
}));

export const angleTags: readonly Word[] = [
  ...dsml,
  ...anthropic,
  ...minimax,
  ...toolCall,
  ...think,
];
