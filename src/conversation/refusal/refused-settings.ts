/** Reads from a vendor's error which setting it refuses and what it takes instead: an output cap, efforts, sampling, tool choices. */

import { wordSet } from '../../lib/text/words.ts';
import type { GatewayError } from '../errors.ts';
import { EFFORTS, type Effort } from '../models/efforts.ts';
import type { Profile } from '../profile-facts.ts';
import type { FieldPath } from './refused-fields.ts';

export interface SettingRefusal {
  readonly kind: 'setting';
  /** Which one: each is mended once for a request. */
  readonly setting: string;
  /** Facts of the target. */
  readonly facts?: Partial<Profile>;
  /** Fields of the body to leave out. */
  readonly paths?: readonly FieldPath[];
  /** Holds for this request alone. */
  readonly once?: boolean;
}

/** How much of a message is read. */
const MAX_READ = 4096;
// Quotes differ between relays of the same vendor, so sentences are matched without them.
const QUOTES = /[`'"“”‘’]/g;

/** A cap below this is no answer, and a limit below it is another kind of number. */
const MIN_CAP = 16;
/** Room for less than this is no answer to go on with: then the prompt is what is too long. */
const MIN_ROOM = 1024;

/** A limit in the message becomes a fact. */
type Limit = readonly [pattern: RegExp, below?: number];

/**
 * Output caps, the group is the limit; `below` is taken off where the sentence excludes it.
 * Each pattern's sentence is a row of test/features/refusal-retry/settings.test.ts, with its source.
 */
const CAPS: readonly Limit[] = [
  // DeepSeek, DashScope, Zhipu: … the valid range of max_tokens is [1, 8192]
  [/max_?\w{0,12}tokens?\b[^[\]]{0,100}[[（(] ?\d+ ?[,，] ?(\d+) ?[\]）)]/],
  // OpenAI Chat: max_tokens is too large: 32000. This model supports at most 16384 completion tokens
  [/supports at most (\d+) (?:completion|output) tokens/],
  // OpenAI Responses: integer above maximum value. Expected a value <= 16384, but got 32000 instead.
  [/max_\w{0,12}tokens: integer above maximum value\. expected a value <= (\d+)/],
  // Groq, Cohere
  [
    /max_?\w{0,12} ?tokens?\b.{0,60}?must be (?:less than or equal to|<=|at most|no more than|smaller than or equal to) (\d+)/,
  ],
  [/max_?\w{0,12} ?tokens?\b.{0,60}?must be (?:less|smaller|lower) than (\d+)/, 1],
  // Anthropic: max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for …
  [/max_tokens: \d+ > (\d+), which is the maximum/],
  // Bedrock
  [/maximum tokens you requested exceeds? the model limit of (\d+)/],
  // Nova: #/inferenceConfig/maxTokens: 32000 is not less or equal to 5120
  [/maxtokens: \d+ is not less (?:than )?or equal to (\d+)/],
  // Vertex: … a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 65537 (exclusive).
  [
    /maxoutputtokens value of \d+ but the supported range is from \d+ \(inclusive\) to (\d+) \(exclusive\)/,
    1,
  ],
  // pydantic: body.max_tokens: Input should be less than or equal to 8192
  [/max_\w{0,12}tokens\b.{0,40}input should be less than or equal to (\d+)/],
  // The rest, in the words that they have in common. A window is not a cap.
  [
    /max_?\w{0,12} ?tokens?\b(?:(?!context|window|model_len|sequence).){0,120}?(?:maximum|at most|up to|limit|exceeds?|greater than|larger than|no more than)(?:(?!context|window|model_len|sequence).){0,40}? (\d{3,7})\b(?! ?>)(?!.{0,60}(?:context|window))/,
  ],
];

/** Sentences that tell the window and the prompt: what is left is room for an answer. */
const WINDOWS: readonly {
  readonly pattern: RegExp;
  readonly room: (a: number, b: number, c: number) => number;
}[] = [
  // vLLM: maximum context length is 40960 tokens and your request has 12000 input tokens
  {
    pattern: /maximum context length is (\d+) tokens and your request has (\d+) input tokens/,
    room: (limit, input) => limit - input,
  },
  // OpenAI, DeepSeek, OpenRouter: … is 102400 tokens. However, you requested 102772 tokens (70772 in the messages, 32000 in the completion)
  {
    pattern:
      /maximum context length is (\d+) tokens.{0,40}requested (?:about )?(\d+) tokens \(.{0,120}?(\d+) (?:in|of|for) the (?:completion|output)/,
    room: (limit, all, output) => limit - (all - output),
  },
  // SGLang
  {
    pattern:
      /maximum context length of (\d+) tokens.{0,60}: (\d+) tokens from the input messages and \d+ tokens for the completion/,
    room: (limit, input) => limit - input,
  },
  // TGI, Together: inputs tokens + max_new_tokens must be <= 8193. Given: 4120 inputs tokens and 5000 max_new_tokens
  {
    pattern: /inputs tokens \+ max_new_tokens must be <= (\d+)\. given: (\d+) inputs tokens/,
    room: (limit, input) => limit - input,
  },
  // Anthropic: input length and max_tokens exceed context limit: 188240 + 21333 > 200000
  {
    pattern: /input length and max_tokens exceed context limit: (\d+) \+ \d+ > (\d+)/,
    room: (input, limit) => limit - input,
  },
];

/** Asked before the caps: one of the sentences names a cap that holds without a stream. */
const STREAMS: readonly (readonly [RegExp, Omit<SettingRefusal, 'kind' | 'setting'>])[] = [
  // Fireworks: Requests with max_tokens > 4096 must have stream=true
  [/must have stream ?= ?true/, { facts: { streams: 'always' }, once: true }],
  [
    /enable[_ ]thinking\b.{0,40}(?:for non-streaming|when stream=false|非流式)|only supports? (?:the )?stream(?:ing)?\b|enable the stream parameter|stream must be (?:set to )?true|streaming is required|(?:requires|must use) streaming|non-?stream(?:ing)? (?:\w{1,12} ){0,2}(?:is|are) not supported/,
    { facts: { streams: 'always' } },
  ],
  // OpenAI, until the organization is verified; Bedrock, for requests with tools.
  [
    /must be verified to stream|tool use in streaming mode/,
    { facts: { streams: 'never' }, once: true },
  ],
  [
    /stream does not support true|(?:does not|doesnt) support streaming\b|streaming is not (?:supported|available)|(?:unsupported|unknown|unrecognized)[^.]{0,40}: ?stream\b(?!_)/,
    { facts: { streams: 'never' } },
  ],
];

const FORCED = ['auto', 'none'] as const;

/** Sentences that say by themselves what the target takes. */
const SENTENCES: readonly (readonly [RegExp, Omit<SettingRefusal, 'kind'>])[] = [
  // Anthropic, the newest models.
  [
    /thinking\.type\.enabled is not supported/,
    { setting: 'thinking', facts: { budgetThinking: false, adaptiveThinking: true } },
  ],
  [
    /adaptive thinking is not supported|thinking\.type\.adaptive is not supported|input tag adaptive found using type does not match/,
    { setting: 'thinking', facts: { adaptiveThinking: false } },
  ],
  [
    /does not support the effort parameter/,
    { setting: 'effort', paths: [['output_config', 'effort']] },
  ],
  // Anthropic, Sonnet 5.5: thinking.type.disabled is not supported …, use between_tools.
  [/between_tools/, { setting: 'reasoning', facts: { thinkingOff: 'between_tools' } }],
  // OpenAI, Azure: Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use
  // function tools, use /v1/responses or set reasoning_effort to none.
  [
    /function tools with reasoning_?effort are not supported/,
    { setting: 'tools with reasoning', facts: { chatToolsWhileThinking: false } },
  ],
  // Google; DashScope: The value of the enable_thinking parameter is restricted to True.
  [
    /only works in thinking mode|budget 0 is invalid|enable_thinking parameter is restricted to true|thinking\.type\.disabled is not supported|(?:reasoning|thinking) (?:is mandatory|cannot be disabled|cant be disabled)/,
    { setting: 'reasoning', facts: { thinkingDefault: 'always' } },
  ],
  // Google; Ollama: "llama3.2" does not support thinking
  [
    /thinking is not (?:enabled|supported)|(?:does not|doesnt) support (?:thinking|reasoning)(?! ?(?:effort|level|budget|parameter|with|in))/,
    { setting: 'reasoning', facts: { reasoningParam: 'none', thinkingDefault: 'off' } },
  ],
  [
    /thinking (?:level|budget) is not supported/,
    { setting: 'reasoning', facts: { reasoningParam: 'none' } },
  ],
  // DeepSeek's address for Messages, whose signatures mean nothing: The content[].thinking in the thinking mode must
  // be passed back to the API.
  [
    /content\[\]\.thinking\b.{0,60}must be passed back/,
    {
      setting: 'thinking',
      facts: { reasoningReplay: 'calls', anySignature: true, thinkingDefault: 'on' },
    },
  ],
  [
    /top_p must be greater than or equal to 0\.95 or unset when thinking/,
    { setting: 'top_p', paths: [['top_p']], once: true },
  ],
  // LM Studio
  [
    /response_format\.type must be json_schema/,
    { setting: 'response_format', facts: { jsonObject: false } },
  ],
  // Google: Penalty is not enabled for models/gemini-2.5-flash
  [
    /^penalty is not enabled/,
    { setting: 'penalties', paths: fields('presence_penalty', 'frequency_penalty') },
  ],
  [
    /^logprobs is not enabled/,
    { setting: 'logprobs', paths: fields('logprobs', 'response_logprobs') },
  ],
  // OpenAI: an item whose id is another program's.
  [
    /input\[\d{1,6}\]\.id\b.{0,200}(?:begins with|string too long)/,
    { setting: 'item ids', paths: [['input', '*', 'id']], once: true },
  ],
  // DeepSeek and other servers in Rust; JSON Schema's words.
  [
    /unknown variant developer|developer is not one of|role\b.{0,30}\bdoes not support developer/,
    { setting: 'developer role', facts: { developerRole: false } },
  ],
  // Moonshot, DeepSeek, Mistral, xAI.
  [
    /each message must have at least one content element|role assistant must not be empty|assistant message must have either content or tool_calls|content or tool_calls (?:must be set|should be non-empty)/,
    { setting: 'empty replies', facts: { emptyReplies: false } },
  ],
  // Anthropic, DeepSeek; Google: Duplicate function declaration found: read
  [
    /tool names must be unique|duplicate function declaration/,
    { setting: 'tools twice', facts: { uniqueTools: true } },
  ],
  // Google: Developer instruction is not enabled for models/gemma-3-27b-it
  [
    /(?:developer|system) instructions? (?:is|are) not (?:enabled|supported)/,
    { setting: 'instructions', facts: { instructions: false } },
  ],
  // Anthropic, OpenAI, DeepSeek, Moonshot.
  [
    /input_schema: json schema is invalid|input_schema does not support|invalid schema for function |is not a valid moonshot flavored json schema/,
    { setting: 'tool schemas', facts: { looseSchemas: false, rootUnions: false } },
  ],
  // llama.cpp, which makes a grammar of all tools; vLLM: Grammar error: Unimplemented keys: ["propertyNames"]
  [
    /failed to parse grammar|json schema conversion failed|grammar error: unimplemented keys/,
    { setting: 'tool schemas', facts: { schemaBounds: false } },
  ],
  // Google, of its own form of schemas.
  [
    /functiondeclaration .{0,200}schema (?:didnt specify the schema type field|specified other fields alongside any_of)|function_declarations\[\d{1,4}\]\.parameters\S{0,300}: missing field/,
    { setting: 'tool schemas', facts: { looseSchemas: false } },
  ],
  [
    /schema produces a constraint that has too many states/,
    { setting: 'response_format', facts: { jsonSchema: false }, once: true },
  ],
  // Anthropic: `clear_thinking_20251015` strategy requires `thinking` to be enabled
  [
    /clear_thinking_\d{8} strategy requires thinking/,
    { setting: 'context_management', paths: [['context_management']], once: true },
  ],
  // Google: Unknown name "const" at 'tools[0].function_declarations[5].parameters…': Cannot find field, or: Proto field is not repeating
  [
    /(?:unknown name|invalid value)\b.{0,80}\btools\[\d{1,4}\]\.function_?declarations\[\d{1,4}\]\.parameters/,
    { setting: 'tool schemas', facts: { looseSchemas: false } },
  ],
  // MiniMax, of a tool without parameters.
  [/function parameters is empty/, { setting: 'tool schemas', facts: { looseSchemas: false } }],
  [
    /invalid thinking\.type: enabled \(allowed: adaptive/,
    { setting: 'thinking', facts: { budgetThinking: false, adaptiveThinking: true } },
  ],
  // OpenAI, vLLM.
  [
    /\btools: empty array|\[\] is too short - tools/,
    {
      setting: 'no tools',
      paths: [['tools'], ['tool_choice'], ['parallel_tool_calls']],
      once: true,
    },
  ],
  [
    /parallel_tool_calls is only allowed when tools are specified/,
    { setting: 'parallel_tool_calls', paths: [['parallel_tool_calls']], once: true },
  ],
  // OpenAI, xAI: what only marks a request is longer than it may be.
  [
    /invalid prompt_cache_key: string too long/,
    { setting: 'prompt_cache_key', paths: [['prompt_cache_key']], once: true },
  ],
  // Google: $ref 'X' was set alongside unsupported fields. If a schema node has $ref set, then only description and default …
  [
    /\bref\b.{0,200}was set alongside unsupported fields|reference to undefined schema at/,
    { setting: 'references in tool schemas', facts: { jsonSchemaTools: false } },
  ],
  [
    /unknown name parametersjsonschema\b/,
    { setting: 'parametersJsonSchema', facts: { jsonSchemaTools: false } },
  ],
  [
    /unknown name (?:\S{1,64} at (?:request\.)?generation_config\.)?response_?(?:json_?)?schema\b/,
    { setting: 'response_format', facts: { jsonSchema: false } },
  ],
  // Anthropic: `temperature` and `top_p` cannot both be specified for this model.
  [
    /temperature and top_p cannot both be (?:specified|set)/,
    { setting: 'temperature', facts: { temperatureWithTopP: false }, paths: [['top_p']] },
  ],
  // Anthropic, Moonshot, DashScope: a forced tool while the model reasons.
  [
    /(?:thinking|reasoning)\b.{0,40}\btool_?choice\b.{0,40}forces|tool_?choice\b.{0,80}(?:incompatible|not compatible|not supported|not support|cannot be used|not allowed)\b.{0,60}(?:thinking|reasoning)/,
    { setting: 'tool_choice', facts: { thinkingToolChoices: FORCED } },
  ],
  [
    /not support (?:this |a )?(?:forced )?tool_?choice|tool_?choice\b.{0,80}(?:incompatible|not compatible|not supported|not support|unsupported|not allowed)|unsupported\b.{0,30}\btool_?choice\b/,
    { setting: 'tool_choice', facts: { toolChoices: FORCED } },
  ],
  // DeepSeek, Groq, OpenAI.
  [
    /response_format type is unavailable|(?:not support|unsupported)\b.{0,40}(?:response.?format|json_schema)|response_?format\b.{0,60}(?:not supported|unsupported)/,
    { setting: 'response_format', facts: { jsonSchema: false } },
  ],
  // Anthropic: output_config.format.schema: Circular reference detected in schema definitions; Schema is too complex …
  [
    /output_(?:config\.)?format\.schema\b/,
    { setting: 'response_format', facts: { jsonSchema: false }, once: true },
  ],
  // OpenAI: Your organization must be verified to generate reasoning summaries.
  [
    /must be verified to (?:generate|use) reasoning summar|reasoning\.summary\b.{0,60}(?:unsupported|not supported)|unsupported\b.{0,30}reasoning\.summary/,
    { setting: 'reasoning.summary', paths: [['reasoning', 'summary']] },
  ],
  [/encrypted content is not supported/, { setting: 'include', paths: [['include']] }],
];

interface Setting {
  readonly facts?: Partial<Profile>;
  readonly paths?: readonly FieldPath[];
  /** An ordinary word, too: counts only where the message quotes it or calls it a parameter. */
  readonly word?: true;
}

/** OpenAI, Anthropic, Bedrock; Zhipu's relays, Google, Mistral, Moonshot. */
const TOOL_NAMES = [
  /\b(?:tools?|functions?|tool_?calls?|tool_?use|tool_?spec|tool_reference|input)\b\S{0,80}name\b.{0,40}(?:string too long|should have at most \d|should match pattern|does not match pattern|must satisfy regular expression|must have length less than)/,
  /tool name too long|工具名称过长|invalid function name\. must|function name (?:is invalid, must|was .{1,300} but must be)/,
];
const NAME_LIMIT = /(?:at most|maximum length(?: of)?|less than or equal to|\{1,?) ?(\d{2,3})\b/;

function toolNameLimit(words: string): SettingRefusal | undefined {
  if (!TOOL_NAMES.some((pattern) => pattern.test(words))) return undefined;
  const limit = Number(NAME_LIMIT.exec(words)?.[1] ?? 64);
  return { kind: 'setting', setting: 'tool names', facts: { maxToolName: limit } };
}

/** xAI, Perplexity, OpenCode's gateway: custom function name "web_search" is reserved; DashScope: Tool names are not allowed to be [search] */
const RESERVED =
  /\b(?:tool|function) name ["'`]?([\w.-]{1,128})["'`]? is reserved\b|\btool names are not allowed to be \[([\w.-]{1,128})\]/i;

/** One name at a time is said, so each is a fault of its own. */
function reservedTool(message: string): SettingRefusal | undefined {
  const [, reserved, refused] = RESERVED.exec(message) ?? [];
  const name = reserved ?? refused;
  if (name === undefined) return undefined;
  return { kind: 'setting', setting: `tool ${name}`, facts: { reservedTools: [name] } };
}

/** The fields of a sampling setting in all protocols. */
function fields(...names: readonly string[]): readonly FieldPath[] {
  return names.flatMap((name) => [
    [name],
    ['generationConfig', name],
    ['generationConfig', camelCase(name)],
    ['generation_config', name],
    ['generation_config', camelCase(name)],
  ]);
}

function camelCase(name: string): string {
  return name.replace(/_[a-z]/g, (one) => one[1]!.toUpperCase());
}

const REASONING: Setting = { facts: { reasoningParam: 'none' } };
const REASONING_NAMES = wordSet(`
  reasoningeffort reasoning.effort reasoning.enabled enablethinking thinkingbudget thinkingconfig
  thinkinglevel thinking.type thinking.budgettokens includereasoning`);
const STOPS: Setting = { facts: { maxStops: 0 } };

/** Settings that may be left out, by their name without separators. */
const SETTINGS: ReadonlyMap<string, Setting> = new Map<string, Setting>([
  ...Array.from(REASONING_NAMES, (name) => [name, REASONING] as const),
  ['reasoning', { ...REASONING, word: true }],
  ['thinking', { ...REASONING, word: true }],
  ['think', { ...REASONING, word: true }],
  ['temperature', { paths: fields('temperature') }],
  ['topp', { paths: fields('top_p') }],
  ['topk', { paths: fields('top_k') }],
  ['presencepenalty', { paths: fields('presence_penalty') }],
  ['frequencypenalty', { paths: fields('frequency_penalty') }],
  ['logitbias', { paths: fields('logit_bias') }],
  ['logprobs', { paths: fields('logprobs', 'top_logprobs', 'response_logprobs'), word: true }],
  ['toplogprobs', { paths: fields('logprobs', 'top_logprobs', 'response_logprobs') }],
  ['responselogprobs', { paths: fields('logprobs', 'response_logprobs') }],
  ['seed', { paths: fields('seed'), word: true }],
  ['stop', { ...STOPS, word: true }],
  ['stopsequences', STOPS],
  ['paralleltoolcalls', { facts: { parallelToolsParam: false } }],
  ['tools.strict', { facts: { strictTools: false } }],
  ['streamoptions', { facts: { streamUsage: false } }],
  ['verbosity', { paths: [['verbosity'], ['text', 'verbosity']] }],
  ['text.verbosity', { paths: [['text', 'verbosity']] }],
  ['servicetier', { paths: [['service_tier'], ['serviceTier']] }],
  ['promptcachekey', { paths: [['prompt_cache_key']] }],
  ['promptcacheretention', { paths: [['prompt_cache_retention']] }],
  ['safetyidentifier', { paths: [['safety_identifier']] }],
  ['maxoutputtokens', { paths: [['max_output_tokens']] }],
]);

const UNSUPPORTED =
  /unsupported|not supported|unavailable|(?:does not|doesnt|do not|not) (?:support|accept|allow|take)|not (?:be )?(?:allowed|permitted|accepted|available|enabled|compatible|configurable)|incompatible|unrecognized|unknown|unexpected|deprecated|extra inputs|cannot be (?:set|used|specified|modified|changed)|only the default|(?:can|may|must) only be|only \d+(?:\.\d+)? is (?:allowed|supported)|is fixed|unsupported_parameter|unsupported_value|unknown_parameter/;

/** `'name'`; parameter: name; parameter name; does not support name. */
const NAMED =
  /[`'"“‘]([a-z][\w.]{0,60})[`'"”’]|(?:parameters?|arguments?|fields?|options?|settings?)(?: supplied| not supported)?(?: (?:on|with|by|for) this model)?:? +([a-z][\w.]{0,60})/gi;
const NAME = /[a-z][a-z0-9]{0,20}(?:[_.][a-z0-9]{1,20}){0,4}/gi;

/** The name of a field without separators, prefixes and case. */
const plain = (name: string): string =>
  name
    .toLowerCase()
    .replace(/^(?:body|parameters?|request|generation_?config|inference_?config)\./, '')
    .replace(/[_-]/g, '');

/** The setting that the vendor names: by the error's `param`, else the first that it quotes, else the first it mentions. */
function settingIn(message: string, param: string | undefined): string | undefined {
  const own = param === undefined ? undefined : plain(param);
  if (own !== undefined && SETTINGS.has(own)) return own;
  for (const [, quoted, named] of message.matchAll(NAMED)) {
    const name = plain(quoted ?? named ?? '');
    if (SETTINGS.has(name)) return name;
  }
  for (const [word] of message.matchAll(NAME)) {
    const setting = SETTINGS.get(plain(word));
    if (setting !== undefined && setting.word === undefined) return plain(word);
  }
  return undefined;
}

const EFFORT_NAMED =
  /reasoning[._ ]?effort|output_config\.effort|\beffort\b|(?:think|reasoning|thinking level) value|thinking[_ ]?level/;
const VALUES =
  /(?:values? (?:are|is)|levels? (?:are|is)|values|levels|options|one of|input should be|must be|expected)\b:?(.{0,200})/;

/** The efforts that a message lists; undefined if it is not about efforts or lists none. */
function effortsIn(words: string, param: string | undefined): readonly Effort[] | undefined {
  if (!EFFORT_NAMED.test(param?.toLowerCase() ?? '') && !EFFORT_NAMED.test(words)) return undefined;
  const list = VALUES.exec(words)?.[1];
  if (list === undefined) return undefined;
  const named = new Set(list.match(/[a-z]+/g));
  const found = EFFORTS.filter((effort) => named.has(effort));
  return found.length > 0 ? found : undefined;
}

/** Google: Thinking level MINIMAL is not supported for this model; Vertex AI: Thinking level is unsupported: THINKING_LEVEL_MINIMAL */
const LEVEL =
  /thinking level (minimal|low|medium|high) is not supported|thinking level is unsupported: thinking_level_(minimal|low|medium|high)/;
const LEVELS = ['minimal', 'low', 'medium', 'high'] as const;

/** The other levels, where one is refused. */
function effortsWithout(words: string): readonly Effort[] | undefined {
  const [, one, other] = LEVEL.exec(words) ?? [];
  const level = one ?? other;
  return level === undefined ? undefined : LEVELS.filter((each) => each !== level);
}

const ABOVE =
  /(?:<=|less than or equal to|at most|not exceed|maximum(?: value)? (?:of|is)|between \d+(?:\.\d+)? and|range:? \d+(?:\.\d+)? ?(?:\.\.|-|to)) ?(\d{1,3}(?:\.\d+)?)/;

const MAX_STOPS =
  /\bstop\b.{0,60}?(?:maximum length|at most|up to|no more than|maximum of) (\d{1,2})\b/;

/** Says nothing of requests that do not reason. */
const WHILE_THINKING = /\b(?:when|while|if|in|with) (?:extended )?(?:thinking|reasoning)\b/;

const CHAT_CAPS = ['max_tokens', 'max_completion_tokens'] as const;

const REFUSED_CAP =
  /(?:unsupported|unknown|unrecognized)[^.]{0,40}: ?(max_\w{0,12}tokens)\b|\b(max_\w{0,12}tokens) (?:is|was) (?:not supported|unsupported|deprecated|unexpected)/;

/** A cap under the other of its two names. */
function renamedCap(words: string, param: string | undefined): SettingRefusal | undefined {
  if (!UNSUPPORTED.test(words)) return undefined;
  const found =
    param ??
    REFUSED_CAP.exec(words)
      ?.slice(1)
      .find((name) => name !== undefined);
  const refused = CHAT_CAPS.find((name) => name === found);
  if (refused === undefined) return undefined;
  const other = refused === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
  return { kind: 'setting', setting: refused, facts: { maxTokensParam: other } };
}

// Vertex AI and Anthropic: Unexpected value(s) `a`, `b` for the `anthropic-beta` header.
const REFUSED_BETAS = /unexpected value\(s\) (.{1,2000}?) for the anthropic-beta header/;

/** Betas that a vendor of Messages does not know. Bedrock names none of them, and knows this one with every model. */
function betasIn(words: string): Partial<Profile> | undefined {
  const named = REFUSED_BETAS.exec(words)?.[1];
  if (named !== undefined) return { refusedBetas: named.split(/[, ]+/).slice(0, MAX_BETAS) };
  // Anthropic, of accounts without the long window: https://github.com/anthropics/claude-code/issues/27944
  if (/\blong context beta (?:is not yet available|header)/.test(words)) {
    return { refusedBetas: ['context-1m-*'] };
  }
  // https://github.com/anthropics/claude-code/issues/49370
  return /\binvalid beta flag\b/.test(words) ? { betas: ['interleaved-thinking-*'] } : undefined;
}

const MAX_BETAS = 64;

/**
 * The setting that an error refuses; undefined if it is about something else. Only what an answer does without is
 * ever taken out: no message, no tool, no model.
 */
export function refusedSetting(error: GatewayError): SettingRefusal | undefined {
  const { kind, param } = error;
  if (kind !== 'invalid_request' && kind !== 'context_overflow') return undefined;
  const message = error.message.slice(0, MAX_READ);
  const words = `${message} ${error.code ?? ''}`
    .replace(QUOTES, '')
    .replace(/(\d),(\d{3})(?!\d)/g, '$1$2')
    .toLowerCase();
  for (const { pattern, room } of WINDOWS) {
    const found = pattern.exec(words);
    if (found === null) continue;
    const left = room(Number(found[1]), Number(found[2]), Number(found[3]));
    if (!(left >= MIN_ROOM)) return undefined;
    return { kind: 'setting', setting: 'window', facts: { maxOutput: left }, once: true };
  }
  if (kind === 'context_overflow') return undefined;
  for (const [pattern, refusal] of STREAMS) {
    if (pattern.test(words)) return { kind: 'setting', setting: 'stream', ...refusal };
  }
  // OpenRouter: You requested up to 64000 tokens, but can only afford 12345
  const affordable = /can only afford (\d{4,7})\b/.exec(words)?.[1];
  if (affordable !== undefined) {
    // Without a cap it reckons with the largest answer.
    const cap = Number(affordable);
    const facts = { maxOutput: cap, defaultMaxTokens: cap };
    return { kind: 'setting', setting: 'cap', facts, once: true };
  }
  for (const [pattern, below = 0] of CAPS) {
    const limit = pattern.exec(words)?.[1];
    if (limit === undefined) continue;
    const most = Number(limit) - below;
    if (most < MIN_CAP) return undefined;
    return { kind: 'setting', setting: 'cap', facts: { maxOutput: most } };
  }
  const cap = renamedCap(words, param);
  if (cap !== undefined) return cap;
  const betas = betasIn(words);
  if (betas !== undefined) return { kind: 'setting', setting: 'anthropic-beta', facts: betas };
  const efforts = effortsWithout(words) ?? effortsIn(words, param);
  if (efforts !== undefined) return { kind: 'setting', setting: 'effort', facts: { efforts } };
  const stops = MAX_STOPS.exec(words)?.[1];
  if (stops !== undefined) {
    return { kind: 'setting', setting: 'stop', facts: { maxStops: Number(stops) } };
  }
  const named = toolNameLimit(words) ?? reservedTool(message);
  if (named !== undefined) return named;
  for (const [pattern, refusal] of SENTENCES) {
    if (pattern.test(words)) return { kind: 'setting', ...refusal };
  }
  const name = settingIn(message, param);
  if (name === undefined) return undefined;
  const most = ABOVE.exec(words)?.[1];
  if (most !== undefined && (name === 'temperature' || name === 'topp')) {
    const range = { min: 0, max: Number(most) };
    const facts = name === 'temperature' ? { temperature: range } : { topP: range };
    return { kind: 'setting', setting: name, facts };
  }
  if (!UNSUPPORTED.test(words)) return undefined;
  const { facts, paths } = SETTINGS.get(name)!;
  const refusal = { kind: 'setting', setting: name, facts, paths } as const;
  return WHILE_THINKING.test(words) ? { ...refusal, once: true } : refusal;
}
