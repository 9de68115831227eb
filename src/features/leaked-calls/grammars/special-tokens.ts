/** Grammars of special tokens that a server did not filter out: DeepSeek, Kimi, Llama, gpt-oss. */

import type { MarkupWord } from '../grammar.ts';

/** R1, V3 and V3.1; DeepSeek writes `▁` and full-width bars, Kimi K2 neither. */
const deepseekAndKimi: readonly MarkupWord[] = [
  { notation: 'bars', word: 'tool_calls_begin', role: 'wrap', family: 'deepseek', opens: 'yes' },
  { notation: 'bars', word: 'tool_calls_end', role: 'wrap', family: 'deepseek', closes: true },
  { notation: 'bars', word: 'tool_sep', role: 'args', family: 'deepseek' },
  {
    notation: 'bars',
    word: 'tool_calls_section_begin',
    role: 'wrap',
    family: 'kimi-k2',
    opens: 'yes',
  },
  {
    notation: 'bars',
    word: 'tool_calls_section_end',
    role: 'wrap',
    family: 'kimi-k2',
    closes: true,
  },
  // Some releases of the template write the singular.
  {
    notation: 'bars',
    word: 'tool_call_section_begin',
    role: 'wrap',
    family: 'kimi-k2',
    opens: 'yes',
  },
  {
    notation: 'bars',
    word: 'tool_call_section_end',
    role: 'wrap',
    family: 'kimi-k2',
    closes: true,
  },
  { notation: 'bars', word: 'tool_call_begin', role: 'call', family: 'kimi-k2', opens: 'yes' },
  { notation: 'bars', word: 'tool_call_end', role: 'call', family: 'kimi-k2', closes: true },
  { notation: 'bars', word: 'tool_call_argument_begin', role: 'args', family: 'kimi-k2' },
];

/** Kimi K3 (XTML): every tag is `<|open|>…<|sep|>` or `<|close|>…<|sep|>`. */
const kimiK3: readonly MarkupWord[] = [
  { notation: 'xtml', word: 'tools', role: 'wrap', family: 'kimi-k3', opens: 'yes' },
  {
    notation: 'xtml',
    word: 'call',
    role: 'call',
    family: 'kimi-k3',
    opens: 'named',
    nameIn: 'tool',
  },
  { notation: 'xtml', word: 'argument', role: 'arg', family: 'kimi-k3', nameIn: 'key' },
  {
    notation: 'xtml',
    word: 'response',
    role: 'channel',
    family: 'kimi-k3',
    opens: 'yes',
    channel: 'text',
  },
  {
    notation: 'xtml',
    word: 'think',
    role: 'channel',
    family: 'kimi-k3',
    opens: 'yes',
    channel: 'reasoning',
  },
  { notation: 'xtml', word: 'message', role: 'stop', family: 'kimi-k3' },
];

/** JSON lists between tokens: Granite and Phi, whose last token may be missing, and Cohere. */
const jsonLists: readonly MarkupWord[] = [
  { notation: 'bars', word: 'tool_call', role: 'box', family: 'json-list', opens: 'yes' },
  { notation: 'bars', word: 'START_ACTION', role: 'box', family: 'json-list', opens: 'yes' },
  { notation: 'bars', word: 'END_ACTION', role: 'box', family: 'json-list', closes: true },
];

const llama: readonly MarkupWord[] = [
  { notation: 'bars', word: 'python_tag', role: 'python', family: 'llama', opens: 'yes' },
  { notation: 'bars', word: 'python_start', role: 'python', family: 'llama', opens: 'yes' },
  { notation: 'bars', word: 'python_end', role: 'skip', family: 'llama', closes: true },
];

const harmony: readonly MarkupWord[] = [
  { notation: 'bars', word: 'start', role: 'header', family: 'harmony', opens: 'yes' },
  { notation: 'bars', word: 'channel', role: 'header', family: 'harmony', opens: 'yes' },
  { notation: 'bars', word: 'constrain', role: 'header', family: 'harmony' },
  { notation: 'bars', word: 'message', role: 'fence', family: 'harmony' },
  { notation: 'bars', word: 'call', role: 'stop', family: 'harmony' },
  { notation: 'bars', word: 'end', role: 'stop', family: 'harmony' },
  { notation: 'bars', word: 'return', role: 'stop', family: 'harmony' },
  // The rest of a header whose tokens were filtered out.
  { notation: 'bare', word: 'commentary to=', role: 'header', family: 'harmony', opens: 'yes' },
  {
    notation: 'bare',
    word: 'assistantcommentary to=',
    role: 'header',
    family: 'harmony',
    opens: 'yes',
  },
];

/** Ends of messages; they count only directly after a call. */
const stops: readonly MarkupWord[] = [
  'eom_id',
  'eot_id',
  'im_end',
  'endoftext',
  'end_of_sentence',
  'im_start',
  'begin_of_sentence',
].map((word) => ({ notation: 'bars', word, role: 'stop', family: 'stop' }));

export const specialTokens: readonly MarkupWord[] = [
  ...deepseekAndKimi,
  ...kimiK3,
  ...jsonLists,
  ...llama,
  ...harmony,
  ...stops,
];
