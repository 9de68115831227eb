/** All grammars as data: the words of each family, the lexicon of all of them, and the list of families. */

/**
 * The meaning of a piece of markup, independent of the vendor: `wrap` encloses calls; `call` is one call
 * (its name is in the tag or is the text after it); `box` is either, depending on what follows; `arg` is one
 * argument; `key`/`value` are an argument in two tags; `args` comes before JSON arguments; `name` holds a
 * call's name; `fence` separates header and body; `header` begins a header; `stop` ends a message; `channel`
 * switches between thinking and answer; `node` is a key of nested arguments; `skip` is ignored; `python` comes
 * before Python calls.
 */
export type MarkupRole =
  | 'wrap'
  | 'call'
  | 'box'
  | 'arg'
  | 'key'
  | 'value'
  | 'args'
  | 'name'
  | 'fence'
  | 'header'
  | 'stop'
  | 'channel'
  | 'node'
  | 'python'
  | 'skip';

/**
 * How the word is written: `plain` `<word …>` (also with a namespace, `<ns:word>`); `dsml`
 * `<｜DSML｜word …>`, also `<｜GCML｜word …>`; `bars` `<|word|>` or `<｜word｜>`; `xtml` `<|open|>word …<|sep|>`;
 * `m3` `]<]minimax[>[<word …>`; `square` `[WORD]`; `half` `<|word>` and `<word|>`; `bare` the word itself.
 */
export type MarkupNotation = 'plain' | 'dsml' | 'bars' | 'xtml' | 'm3' | 'square' | 'half' | 'bare';

export interface MarkupWord {
  readonly notation: MarkupNotation;
  /** The word between the marks; `▁` counts as `_`. */
  readonly word: string;
  readonly role: MarkupRole;
  readonly family: string;
  /** A closer with its own word (`tool_call_end`) instead of a slash. */
  readonly closes?: true;
  /**
   * Whether it may begin a leak: `yes`; `named` only with a name in the tag, or with a
   * tool's name in another attribute or in a `<name>` right after it; `start` only at the beginning of
   * the reply.
   */
  readonly opens?: 'yes' | 'named' | 'start';
  /** Other XML uses the word too, so it proves nothing alone. */
  readonly common?: true;
  /** A colon and a suffix may follow the word. */
  readonly suffixed?: true;
  /** The attribute that holds the name (of the tool, of the argument). */
  readonly nameIn?: string;
  /** For `channel`: the channel that begins. */
  readonly channel?: 'reasoning' | 'text';
}

export interface Lexicon {
  readonly words: ReadonlyMap<string, MarkupWord>;
  /** All prefixes of all words, to recognise an incomplete one. */
  readonly prefixes: ReadonlySet<string>;
  /** M3: any other tag with M3's mark is an argument's key. */
  readonly nodes: boolean;
}

export const keyOf = (setting: MarkupNotation, word: string): string => `${setting} ${word}`;

export function lexicon(words: readonly MarkupWord[], nodes = false): Lexicon {
  const table = new Map<string, MarkupWord>();
  const prefixes = new Set<string>();
  for (const word of words) {
    const key = keyOf(word.notation, word.word);
    table.set(key, word);
    for (let n = word.notation.length + 1; n <= key.length; n++) prefixes.add(key.slice(0, n));
  }
  return { words: table, prefixes, nodes };
}

/** Words of one notation and one family. */
interface Grammar {
  readonly family: string;
  readonly notation: MarkupNotation;
  readonly words: Readonly<Record<string, Omit<MarkupWord, 'family' | 'notation' | 'word'>>>;
}

const GRAMMARS: readonly Grammar[] = [
  {
    // DeepSeek V3.2 (`function_calls`), V4 (`tool_calls`) and V4.1 (`calls`, with a space before it);
    // GigaChat 3.5 has V4's words with its own mark.
    family: 'dsml',
    notation: 'dsml',
    words: {
      function_calls: { role: 'wrap', opens: 'yes' },
      tool_calls: { role: 'wrap', opens: 'yes' },
      calls: { role: 'wrap', opens: 'yes' },
      invoke: { role: 'call', opens: 'yes', nameIn: 'name' },
      parameter: { role: 'arg', opens: 'yes', nameIn: 'name' },
      function: { role: 'call', opens: 'yes', nameIn: 'name' },
      name: { role: 'name' },
    },
  },
  {
    // Corrupted: the block's tag lost its DSML, its calls did not.
    family: 'dsml',
    notation: 'plain',
    words: {
      calls: { role: 'wrap', opens: 'yes', common: true },
      name: { role: 'name' },
    },
  },
  {
    // Claude's own XML; DSML without its marks looks the same. Step has the same between DeepSeek's tokens.
    family: 'anthropic-xml',
    notation: 'plain',
    words: {
      function_calls: { role: 'wrap', opens: 'yes' },
      invoke: { role: 'call', opens: 'named', nameIn: 'name' },
      parameter: { role: 'arg', nameIn: 'name' },
      'steptml:invoke': { role: 'call', opens: 'named', nameIn: 'name' },
      'steptml:parameter': { role: 'arg', nameIn: 'name' },
    },
  },
  {
    // JSON lines in `tool_calls`, or Hunyuan's calls.
    family: 'minimax-m1',
    notation: 'plain',
    words: { tool_calls: { role: 'wrap', opens: 'yes', common: true, suffixed: true } },
  },
  {
    // Claude's tags in a wrapper of its own.
    family: 'minimax-m2',
    notation: 'plain',
    words: { 'minimax:tool_call': { role: 'wrap', opens: 'yes' } },
  },
  {
    family: 'minimax-m3',
    notation: 'm3',
    words: {
      tool_call: { role: 'wrap', opens: 'yes' },
      invoke: { role: 'call', opens: 'named', nameIn: 'name' },
    },
  },
  {
    // `tool_call` holds JSON (Hermes), `NAME<arg_key>…` (GLM) or `<function=NAME>` (Qwen3-Coder).
    family: 'hermes',
    notation: 'plain',
    words: {
      tool_call: { role: 'box', opens: 'yes', suffixed: true },
      // Hunyuan, between the name and the arguments.
      tool_sep: { role: 'args', suffixed: true },
      // Some models write the object's members as tags.
      arguments: { role: 'args' },
      // Seed-OSS, Nemotron, LongCat, dots and iQuest put the same between tags of their own.
      'seed:tool_call': { role: 'box', opens: 'yes' },
      TOOLCALL: { role: 'box', opens: 'yes' },
      longcat_tool_call: { role: 'box', opens: 'yes' },
      dots_function_call: { role: 'box', opens: 'yes' },
      iquest_tool_call: { role: 'box', opens: 'yes' },
      iquestcoder_tool_call: { role: 'box', opens: 'yes' },
    },
  },
  {
    family: 'glm',
    notation: 'plain',
    words: {
      arg_key: { role: 'key', suffixed: true },
      arg_value: { role: 'value', suffixed: true },
      longcat_arg_key: { role: 'key' },
      longcat_arg_value: { role: 'value' },
    },
  },
  {
    // MiniCPM 5 has `<param name="…">` in it.
    family: 'qwen',
    notation: 'plain',
    words: {
      function: { role: 'call', opens: 'named', nameIn: '=' },
      param: { role: 'arg', nameIn: 'name', common: true },
    },
  },
  {
    // Claude writes `<thinking>` only when a prompt asks for it, so it is not listed.
    family: 'think-tags',
    notation: 'plain',
    words: {
      think: { role: 'channel', opens: 'start', channel: 'reasoning', suffixed: true },
      think_fast: { role: 'channel', opens: 'start', channel: 'reasoning' },
      think_faster: { role: 'channel', opens: 'start', channel: 'reasoning' },
      'mm:think': { role: 'channel', opens: 'start', channel: 'reasoning' },
    },
  },
  {
    // R1, V3 and V3.1 of DeepSeek, which writes `▁` and full-width bars; Kimi K2 neither.
    family: 'deepseek',
    notation: 'bars',
    words: {
      tool_calls_begin: { role: 'wrap', opens: 'yes' },
      tool_calls_end: { role: 'wrap', closes: true },
      tool_sep: { role: 'args' },
    },
  },
  {
    family: 'kimi-k2',
    notation: 'bars',
    words: {
      tool_calls_section_begin: { role: 'wrap', opens: 'yes' },
      tool_calls_section_end: { role: 'wrap', closes: true },
      // Some releases of the template write the singular.
      tool_call_section_begin: { role: 'wrap', opens: 'yes' },
      tool_call_section_end: { role: 'wrap', closes: true },
      tool_call_begin: { role: 'call', opens: 'yes' },
      tool_call_end: { role: 'call', closes: true },
      tool_call_argument_begin: { role: 'args' },
    },
  },
  {
    // XTML: every tag is `<|open|>…<|sep|>` or `<|close|>…<|sep|>`.
    family: 'kimi-k3',
    notation: 'xtml',
    words: {
      tools: { role: 'wrap', opens: 'yes' },
      call: { role: 'call', opens: 'named', nameIn: 'tool' },
      // The separator between two tags was lost.
      toolscall: { role: 'call', opens: 'named', nameIn: 'tool' },
      toolsmessage: { role: 'stop' },
      argument: { role: 'arg', nameIn: 'key' },
      response: { role: 'channel', opens: 'yes', channel: 'text' },
      think: { role: 'channel', opens: 'yes', channel: 'reasoning' },
      message: { role: 'stop' },
    },
  },
  {
    // JSON between tokens: Granite and Phi, whose last token may be missing, Cohere, InternLM, Inkling.
    family: 'json-list',
    notation: 'bars',
    words: {
      tool_call: { role: 'box', opens: 'yes' },
      START_ACTION: { role: 'box', opens: 'yes' },
      END_ACTION: { role: 'box', closes: true },
      action_start: { role: 'box', opens: 'yes' },
      plugin: { role: 'skip' },
      action_end: { role: 'box', closes: true },
      message_model: { role: 'header', opens: 'yes' },
      content_text: { role: 'fence' },
      content_invoke_tool_json: { role: 'box', opens: 'yes' },
      end_message: { role: 'box', closes: true },
    },
  },
  {
    // `[{NAME: {…}}]`.
    family: 'apertus',
    notation: 'bars',
    words: {
      tools_prefix: { role: 'box', opens: 'yes' },
      tools_suffix: { role: 'box', closes: true },
    },
  },
  {
    // Each key and each value in tokens.
    family: 'solar',
    notation: 'bars',
    words: {
      'tool_call:start': { role: 'call', opens: 'yes' },
      'tool_call:end': { role: 'call', closes: true },
      'tool_arg:start': { role: 'key' },
      'tool_arg:value': { role: 'value' },
      'tool_arg:end': { role: 'value', closes: true },
    },
  },
  {
    family: 'plamo',
    notation: 'bars',
    words: {
      'plamo:begin_tool_requests:plamo': { role: 'wrap', opens: 'yes' },
      'plamo:end_tool_requests:plamo': { role: 'wrap', closes: true },
      'plamo:begin_tool_request:plamo': { role: 'call', opens: 'yes' },
      'plamo:end_tool_request:plamo': { role: 'call', closes: true },
      'plamo:begin_tool_name:plamo': { role: 'name' },
      'plamo:end_tool_name:plamo': { role: 'name', closes: true },
      'plamo:begin_tool_arguments:plamo': { role: 'args' },
      'plamo:end_tool_arguments:plamo': { role: 'skip', closes: true },
    },
  },
  {
    // Gemma 4: `call:NAME{key:<|"|>text<|"|>}` (its chat template).
    family: 'gemma',
    notation: 'half',
    words: {
      tool_call: { role: 'box', opens: 'yes' },
      tool_response: { role: 'stop' },
      turn: { role: 'stop' },
    },
  },
  {
    // FunctionGemma: the same between tags.
    family: 'gemma',
    notation: 'plain',
    words: {
      start_function_call: { role: 'box', opens: 'yes' },
      end_function_call: { role: 'box', closes: true },
    },
  },
  {
    // LFM 2 and Pangu; the end is the word of Kimi's call. LFM speaks behind its calls.
    family: 'lfm',
    notation: 'bars',
    words: { tool_call_start: { role: 'python', opens: 'yes' } },
  },
  {
    family: 'llama',
    notation: 'bars',
    words: {
      python_tag: { role: 'python', opens: 'yes' },
      python_start: { role: 'python', opens: 'yes' },
      python_end: { role: 'skip', closes: true },
    },
  },
  {
    // gpt-oss.
    family: 'harmony',
    notation: 'bars',
    words: {
      start: { role: 'header', opens: 'yes' },
      channel: { role: 'header', opens: 'yes' },
      constrain: { role: 'header' },
      message: { role: 'fence' },
      call: { role: 'stop' },
      end: { role: 'stop' },
      return: { role: 'stop' },
    },
  },
  {
    // The rest of a header whose tokens were filtered out.
    family: 'harmony',
    notation: 'bare',
    words: {
      'commentary to=': { role: 'header', opens: 'yes' },
      'assistantcommentary to=': { role: 'header', opens: 'yes' },
    },
  },
  {
    // Ends of messages; they count only directly after a call.
    family: 'stop',
    notation: 'bars',
    words: {
      eom: { role: 'stop' },
      eot: { role: 'stop' },
      eom_id: { role: 'stop' },
      eot_id: { role: 'stop' },
      im_end: { role: 'stop' },
      endoftext: { role: 'stop' },
      end_of_sentence: { role: 'stop' },
      im_start: { role: 'stop' },
      begin_of_sentence: { role: 'stop' },
    },
  },
  {
    // v3 and v7: a JSON array follows; v11: a name, perhaps an id, and JSON arguments.
    family: 'mistral',
    notation: 'square',
    words: {
      TOOL_CALLS: { role: 'box', opens: 'yes' },
      ARGS: { role: 'args' },
      CALL_ID: { role: 'skip' },
    },
  },
  {
    family: 'lm-studio',
    notation: 'square',
    words: {
      TOOL_REQUEST: { role: 'box', opens: 'yes' },
      END_TOOL_REQUEST: { role: 'box', closes: true },
    },
  },
  {
    family: 'think-tags',
    notation: 'square',
    words: { THINK: { role: 'channel', opens: 'start', channel: 'reasoning' } },
  },
];

const WORDS = GRAMMARS.flatMap(({ family, notation, words }) =>
  Object.entries(words).map(([word, is]): MarkupWord => ({ notation, word, family, ...is })),
);

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
