/**
 * Facts about vendors, as data: the JSON Schema of each, with what it means. The type of a profile, the schema of the
 * file and the manual follow from this table. Every fact may be left out: a comment says what holds then, for vendors of
 * which nothing is known, too.
 */

import { ERROR_KINDS, type ErrorKind } from './errors.ts';
import { EFFORTS } from './models/efforts.ts';

/** Both bounds are inclusive. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

/** The meaning of a vendor's error code. */
export interface VendorError {
  /** A budget is this gateway's own: no vendor's error means one. */
  readonly kind: Exclude<ErrorKind, 'budget'>;
  /** Can the same request succeed a moment later? Left out: the kind and the status decide. */
  readonly retryable?: boolean;
}

declare const VALUE: unique symbol;

/** A JSON Schema, with the type of its value. */
interface Fact<Value> {
  readonly [keyword: string]: unknown;
  readonly [VALUE]?: Value;
}

const flag = (description: string): Fact<boolean> => ({ type: 'boolean', description });

const atLeast = (minimum: number, description: string): Fact<number> => ({
  type: 'integer',
  description,
  minimum,
});

const text = (description?: string, pattern?: string): Fact<string> => ({
  type: 'string',
  description,
  ...(pattern !== undefined && { pattern }),
});

const oneOf = <const Word extends string>(words: readonly Word[], description: string) =>
  ({ description, anyOf: words.map((word) => ({ type: 'string', const: word })) }) as Fact<Word>;

const list = <Item>(items: Fact<Item>, description: string): Fact<readonly Item[]> => ({
  type: 'array',
  description,
  items,
});

const texts = (description: string) => list(text(), description);

const named = <Item>(item: Fact<Item>, description: string, pattern = '^(.*)$') =>
  ({
    type: 'object',
    description,
    additionalProperties: false,
    patternProperties: { [pattern]: item },
  }) as Fact<Readonly<Record<string, Item>>>;

const range = (description: string): Fact<Range> => ({
  type: 'object',
  additionalProperties: false,
  description,
  required: ['min', 'max'],
  properties: {
    min: { type: 'number', description: 'The minimum, included.' },
    max: { type: 'number', description: 'The maximum, included.' },
  },
});

const meaning = (kind: string, description: string): Fact<VendorError> => ({
  type: 'object',
  additionalProperties: false,
  description,
  required: ['kind'],
  properties: {
    kind: oneOf(
      ERROR_KINDS.filter((one) => one !== 'budget'),
      kind,
    ),
    retryable: flag('Whether the same request can succeed a moment later.'),
  },
});

const TOOL_CHOICE = oneOf(['auto', 'none', 'required', 'tool'], 'A tool choice.');

// What a key may use is checked under these names, before a profile changes any.
const UNCHECKED =
  '^(?!(?:model|tools|mcp_servers|previous_response_id|conversation|container|cachedContent|cached_content)$)';

export const PROFILE_FACTS = {
  // Parameters of the target's own body, by top-level key.
  dropParams: texts('Top-level body keys that the vendor refuses.'),
  // Any.
  messageFields: texts('Chat: fields that a message may have; others are dropped.'),
  renameParams: named(
    text('no name under which it is checked what a key may use', UNCHECKED),
    'Top-level body keys that have another name at this vendor.',
  ),
  // All.
  betas: texts(
    'Messages: beta flags (globs) that the vendor takes; others are dropped, with their fields.',
  ),
  refusedBetas: texts('Messages: beta flags (globs) that the vendor refuses.'),
  betaFields: texts('Messages: fields of betas that the vendor takes without the flag, by path.'),
  renameBetas: named(text(), 'Messages: beta flags that have another name at this vendor.'),
  // `max_tokens`
  maxTokensParam: oneOf(
    ['max_tokens', 'max_completion_tokens'],
    'Chat: the name of the output cap.',
  ),
  // 8192
  defaultMaxTokens: atLeast(1, 'Messages: the output cap when the client sets none.'),
  maxOutput: atLeast(
    1,
    'The largest output cap; larger ones are lowered. `output` of a model sets it, too.',
  ),
  leastMaxTokens: atLeast(1, 'Responses: the smallest output cap.'),
  // All four.
  toolChoices: list(TOOL_CHOICE, 'Accepted tool choices.'),
  // As `toolChoices`.
  thinkingToolChoices: list(TOOL_CHOICE, 'Accepted tool choices while the model reasons.'),
  // A value outside goes to the nearest bound.
  temperature: range('Temperatures that the vendor accepts.'),
  topP: range('Values of top_p that the vendor accepts.'),
  // True.
  temperatureWithTopP: flag('Messages: accepts temperature and top_p in one request.'),
  // Any number; the first ones are sent.
  maxStops: atLeast(0, 'Maximum stop sequences.'),
  // Any number; tools of the client go before those of the gateway.
  maxTools: atLeast(0, 'Maximum tools. 0: requests with tools go elsewhere first.'),
  // True.
  samplingWhileThinking: flag(
    'Accepts temperature, top_p, penalties and log-probabilities while the model reasons.',
  ),
  // True.
  streamUsage: flag('Chat: knows stream_options.include_usage.'),
  // Both; the client gets the form that it asked for.
  streams: oneOf(['always', 'never'], 'The vendor takes only streamed requests, or none.'),
  // True.
  parallelToolsParam: flag('Accepts parallel_tool_calls / disable_parallel_tool_use.'),
  // True.
  chatToolsWhileThinking: flag('Chat: accepts function tools while the model reasons.'),
  // True.
  strictTools: flag('Accepts `strict` on function tools.'),
  // False: they become tools, and the calls of the answer function_call.
  legacyFunctions: flag('Chat: knows functions and function_call.'),
  // False; a conversion of protocols declares it once in any case.
  uniqueTools: flag('Refuses a tool declared twice.'),
  maxToolName: atLeast(10, 'Longest tool name, of letters, digits, _ and -; others are renamed.'),
  reservedTools: texts("Tool names of the vendor's own; such tools are renamed."),
  // True.
  rootUnions: flag("Accepts anyOf, oneOf, allOf, enum and not at the root of a tool's schema."),
  // True. Otherwise they are sent as text.
  toolReferences: flag('Messages: accepts tool_reference blocks.'),
  // True.
  contentParts: flag('Chat: accepts lists of text parts as content.'),
  // True.
  foreignParts: flag("Accepts parts in other APIs' forms (Chat), bytes in URLs' base64 (Gemini)."),
  // True.
  emptyReplies: flag('Chat: accepts assistant messages with neither text nor calls.'),
  // All: `function`, `custom`, `namespace`, `tool_search`, and those of tools that the vendor runs.
  toolTypes: texts(
    'Responses: types of tools that the vendor knows; others become functions or are left out.',
  ),
  // True; a conversion of protocols mends tuples of older drafts, and arrays that do not say what they hold, in any case.
  looseSchemas: flag('Accepts tool schemas that are not JSON Schema 2020-12.'),
  // True.
  schemaBounds: flag('Accepts patterns and bounds in tool schemas.'),
  // False.
  fileIds: flag('Chat: accepts file ids of Responses clients.'),
  // True. Otherwise the vendor's JSON mode is requested, and the schema is written into the prompt.
  jsonSchema: flag('Accepts json_schema output formats.'),
  // True. Otherwise a schema of any object is requested.
  jsonObject: flag('Accepts json_object output formats.'),

  // Roles and content.
  // False: it is sent as `system`.
  developerRole: flag('Chat: accepts the role developer.'),
  // True.
  instructions: flag('Accepts instructions; `false`: they become user text.'),
  // True on Chat, false on Messages; otherwise they are sent as user text.
  systemTurns: flag('Accepts role system (Chat: developer, too) after the first message.'),
  // True.
  images: flag('Images can be sent.'),
  // True on Messages and Responses, false on Chat.
  imagesInResults: flag('Images can be sent inside tool results.'),
  // True.
  documents: flag('PDF and other files can be sent.'),
  // True.
  assistantLast: flag('Accepts a conversation that ends with an assistant message.'),
  // None. An answer to `prefix` begins with the message once more, which is left out.
  prefill: oneOf(
    ['prefix', 'partial', 'continue'],
    'Chat: the field that marks a prefill (a last assistant message); `continue`: `continue_final_message`.',
  ),
  // True.
  prefillWhileThinking: flag('Accepts it while the model reasons.'),
  // False.
  userFirst: flag('Messages: refuses a conversation that begins with an assistant message.'),
  // False.
  needsUserTurn: flag('Refuses a conversation without any user message.'),
  // True.
  sameRoleTurns: flag(
    'Chat, Messages: accepts consecutive messages of the user, or of the assistant.',
  ),
  // True.
  parallelCalls: flag('Chat: accepts several tool calls in one assistant message of the history.'),
  // True.
  userAfterTool: flag('A user message may follow tool messages directly.'),
  // Whatever the client sent.
  callIds: oneOf(
    ['nine-alphanumeric', 'short', 'functions'],
    'The only form of tool call ids that the vendor accepts; short: at most 40 letters, digits, _ and -; functions: functions.NAME:NUMBER.',
  ),
  // False.
  shortToolResults: flag("The last round's tool results are sent as short text."),

  // Reasoning.
  // `reasoning_content`; `none` drops it.
  reasoningField: oneOf(
    ['reasoning_content', 'reasoning', 'none'],
    'Chat: the field for reasoning sent back.',
  ),
  // The same fact of Chat is `reasoningField: reasoning_content`.
  readableReasoning: flag('Responses: accepts reasoning as text.'),
  // `reasoning_effort`
  reasoningParam: oneOf(
    ['reasoning_effort', 'thinking', 'enable_thinking', 'reasoning', 'none'],
    'Chat: how reasoning is asked for. none, in every protocol: reasoning settings are dropped.',
  ),
  // False: a budget.
  adaptiveThinking: flag('Messages: accepts thinking.type adaptive with output_config.effort.'),
  // True.
  budgetThinking: flag('Messages: accepts thinking.type enabled with a budget.'),
  // `disabled`
  thinkingOff: oneOf(
    ['disabled', 'between_tools'],
    'Messages: the thinking.type that switches reasoning off.',
  ),
  // Never.
  boundThinking: oneOf(
    ['changed', 'always'],
    'Messages: the vendor refuses thinking behind another prefix. It is asked to drop it (thinking.block_binding) where the gateway changed the request, or always.',
  ),
  // False: a signature that cannot be genuine is refused.
  anySignature: flag('Messages: accepts thinking blocks with any signature.'),
  // False.
  thinkingLevels: flag('Gemini: controls reasoning by thinkingLevel, not thinkingBudget.'),
  // False. It is the first call of a step that needs one.
  callSignatures: flag('Gemini: refuses calls of the history without a thought signature.'),
  // True. Otherwise schemas are reduced to Google's own.
  jsonSchemaTools: flag('Gemini: accepts parametersJsonSchema.'),
  // True.
  hostedWithFunctions: flag(
    'Runs hosted tools beside functions; `false`: the gateway runs them, if it can.',
  ),
  // True.
  formatWithFunctions: flag('Gemini: accepts a JSON output format beside functions.'),
  thinkingDefault: oneOf(
    ['on', 'off', 'always'],
    'Whether the model reasons when the request does not say; always: it cannot be switched off.',
  ),
  // All.
  efforts: list(
    oneOf(EFFORTS, 'An effort.'),
    'Reasoning efforts that are accepted; others become the nearest.',
  ),
  // None. A space stands for reasoning that is missing.
  reasoningReplay: oneOf(
    ['calls', 'all'],
    'Chat: assistant messages that must carry reasoning while the model reasons.',
  ),

  // Prompt caches.
  // False: none are added. Those of a client of Messages go on within its protocol.
  cacheMarks: flag(
    "Takes Anthropic's cache marks (cache_control): on blocks of Messages, parts of Chat.",
  ),
  // True. Such a mark moves along.
  rootCacheMark: flag('Messages: takes a cache mark at the top of the body.'),
  // Nowhere.
  breakpointsAt: text(
    'Chat, Responses: takes prompt_cache_key and explicit cache breakpoints at addresses of this host.',
  ),

  // Errors. Case is ignored.
  errors: named(
    meaning('The meaning of the code.', 'The meaning of one of the codes.'),
    "The vendor's own error codes.",
    '^.+$',
  ),
  errorWords: named(
    meaning(
      'The meaning of the message.',
      'The meaning of errors whose message contains this text.',
    ),
    "The same by a part of the error's message, for errors without a code.",
    '^.+$',
  ),

  // All but `think-unopened`, which would hold back all text.
  leakFamilies: texts('Families of leaked tool calls to find; empty: none.'),
  // None.
  hostedTools: texts('Hosted tools that the vendor serves itself.'),
  // False.
  storesResponses: flag('Responses: keeps responses for previous_response_id.'),
  exactStreams: flag(
    'Streams have no faults that clients trip over, and are not searched. false: all are searched. Not set: those with tools.',
  ),
  // False: by a summary.
  compaction: flag('Responses: compacts conversations itself (input item compaction_trigger).'),
  // True for Messages, where a 404 leads to an estimate; targets of other protocols are asked only if it is true.
  countTokens: flag('Messages: has /v1/messages/count_tokens.'),
};

type Table = typeof PROFILE_FACTS;

export type Facts = {
  readonly [Name in keyof Table]?: Table[Name] extends Fact<infer Value> ? Value : never;
};

/** Codecs and features read facts, never the name of a vendor or of its profile. */
export interface Profile extends Facts {
  readonly name: string;
}

export const NO_PROFILE: Profile = { name: 'none' };
