/** The facts of a vendor profile as the file may state them; a test checks that the keys are those of `Profile`. */

import { ERROR_KINDS } from '../../conversation/errors.ts';
import { EFFORTS } from '../../conversation/models/efforts.ts';
import {
  flag as boolean,
  choice,
  closed,
  integer,
  list,
  named,
  number,
  string,
} from '../file/schema.ts';

const flag = (description: string) => boolean(description).optional();
const oneOf = <const T extends string>(values: readonly T[], description: string) =>
  choice(values, description).optional();
const texts = (description: string) => list(string(), description).optional();
const least = (minimum: number, description: string) => integer(description, minimum).optional();

const TOOL_CHOICES = ['auto', 'none', 'required', 'tool'] as const;

/** Budgets are this gateway's own: no vendor's error means one. */
const MEANINGS = ERROR_KINDS.filter((kind) => kind !== 'budget');

const range = (description: string) =>
  closed(description, {
    min: number('The minimum, included.'),
    max: number('The maximum, included.'),
  }).optional();

const meaning = (kind: string, description: string) =>
  closed(description, {
    kind: choice(MEANINGS, kind),
    retryable: flag('Whether the same request can succeed a moment later.'),
  });

const ANY_NAME = '^(.*)$';

// What a key may use is checked under these names, before a profile changes any.
const UNCHECKED =
  '^(?!(?:model|tools|mcp_servers|previous_response_id|conversation|container|cachedContent|cached_content)$)';

/** The facts of a profile without its name. Their names are in camelCase, as the manual lists them. */
export const profileFacts = {
  dropParams: texts('Top-level body keys that the vendor refuses.'),
  messageFields: texts(
    'Chat: fields that a message may have; what else clients add to their messages is dropped.',
  ),
  renameParams: named(
    string('no name under which it is checked what a key may use', { pattern: UNCHECKED }),
    'Top-level body keys that have another name at this vendor.',
    ANY_NAME,
  ).optional(),
  betas: texts(
    'Messages: beta flags (globs) that the vendor takes; others are dropped, with the fields that belong to them.',
  ),
  refusedBetas: texts('Messages: beta flags (globs) that the vendor does not take.'),
  betaFields: texts('Messages: fields of betas that the vendor takes without the flag, by path.'),
  renameBetas: named(
    string(),
    'Messages: beta flags that have another name at this vendor.',
    ANY_NAME,
  ).optional(),
  maxTokensParam: oneOf(
    ['max_tokens', 'max_completion_tokens'],
    'Chat: the name of the output cap.',
  ),
  defaultMaxTokens: least(1, 'Messages: the output cap when the client sets none.'),
  maxOutput: least(
    1,
    'The largest output cap that the vendor accepts; larger ones are lowered to it. `output` of a model sets it, too.',
  ),
  leastMaxTokens: least(1, 'Responses: the smallest output cap that the vendor accepts.'),
  toolChoices: list(
    choice(TOOL_CHOICES, 'A tool choice.'),
    'Tool choices that the vendor accepts.',
  ).optional(),
  thinkingToolChoices: list(
    choice(TOOL_CHOICES, 'A tool choice.'),
    'Tool choices that the vendor accepts while the model reasons.',
  ).optional(),
  temperature: range('Temperatures that the vendor accepts.'),
  topP: range('Values of top_p that the vendor accepts.'),
  temperatureWithTopP: flag('Messages: accepts temperature and top_p in one request.'),
  maxStops: least(0, 'How many stop sequences the vendor accepts.'),
  samplingWhileThinking: flag(
    'Accepts temperature, top_p, penalties and log-probabilities while the model reasons.',
  ),
  streamUsage: flag('Chat: usage in streams is requested with stream_options.include_usage.'),
  streams: oneOf(
    ['always', 'never'],
    'Streamed requests are all that the vendor takes, or none are.',
  ),
  parallelToolsParam: flag('Accepts parallel_tool_calls / disable_parallel_tool_use.'),
  chatToolsWhileThinking: flag('Chat: accepts function tools while the model reasons.'),
  strictTools: flag('Accepts `strict` on function tools.'),
  uniqueTools: flag('Refuses a tool that is declared twice.'),
  maxToolName: least(
    10,
    'The most characters of a tool name, of letters, digits, _ and -; others are renamed.',
  ),
  rootUnions: flag("Accepts anyOf, oneOf, allOf, enum and not at the root of a tool's schema."),
  contentParts: flag('Chat: accepts lists of text parts as content.'),
  emptyReplies: flag('Chat: accepts assistant messages with neither text nor calls.'),
  toolTypes: texts(
    'Responses: the types of tools that the vendor knows; others become functions or are left out.',
  ),
  looseSchemas: flag('Accepts tool schemas that are not JSON Schema 2020-12.'),
  fileIds: flag('Chat: accepts the file ids that a Responses client sends.'),
  jsonSchema: flag('Accepts json_schema output formats.'),
  jsonObject: flag('Accepts json_object output formats.'),
  developerRole: flag('Chat: accepts the role developer.'),
  instructions: flag('Accepts instructions; `false`: they become user text.'),
  systemTurns: flag('Accepts role system (Chat: developer, too) after the first message.'),
  images: flag('Images can be sent.'),
  imagesInResults: flag('Images can be sent inside tool results.'),
  documents: flag('PDF and other files can be sent.'),
  assistantLast: flag('Accepts a conversation that ends with an assistant message.'),
  userFirst: flag('Messages: refuses a conversation that begins with an assistant message.'),
  needsUserTurn: flag('Refuses a conversation without any user message.'),
  sameRoleTurns: flag(
    'Chat, Messages: accepts consecutive messages of the user, or of the assistant.',
  ),
  parallelCalls: flag('Chat: accepts several tool calls in one assistant message of the history.'),
  userAfterTool: flag('A user message may follow tool messages directly.'),
  callIds: oneOf(
    ['nine-alphanumeric', 'short'],
    'The only form of tool call ids that the vendor accepts; short: at most 40 letters, digits, _ and -.',
  ),
  shortToolResults: flag("The last round's tool results are sent as short text."),
  reasoningField: oneOf(
    ['reasoning_content', 'reasoning', 'none'],
    'Chat: the field in which reasoning is sent back.',
  ),
  reasoningParam: oneOf(
    ['reasoning_effort', 'thinking', 'enable_thinking', 'reasoning', 'none'],
    'Chat: how reasoning is asked for. none, in every protocol: reasoning settings are dropped.',
  ),
  adaptiveThinking: flag('Messages: accepts thinking.type adaptive with output_config.effort.'),
  budgetThinking: flag('Messages: accepts thinking.type enabled with a budget.'),
  thinkingOff: oneOf(
    ['disabled', 'between_tools'],
    'Messages: the thinking.type that switches reasoning off.',
  ),
  boundThinking: oneOf(
    ['changed', 'always'],
    'Messages: the vendor refuses thinking behind another prefix. It is asked to drop it (thinking.block_binding) where the gateway changed the request, or always.',
  ),
  anySignature: flag('Messages: accepts thinking blocks with any signature.'),
  thinkingLevels: flag('Gemini: controls reasoning by thinkingLevel, not by thinkingBudget.'),
  callSignatures: flag('Gemini: refuses calls of the history without a thought signature.'),
  jsonSchemaTools: flag('Gemini: accepts parametersJsonSchema.'),
  hostedWithFunctions: flag(
    'Runs hosted tools beside functions; `false`: the gateway runs them instead, if it can.',
  ),
  formatWithFunctions: flag('Gemini: accepts a JSON output format beside functions.'),
  thinkingDefault: oneOf(
    ['on', 'off', 'always'],
    'Whether the model reasons when the request does not say; always: it cannot be switched off.',
  ),
  efforts: list(
    choice(EFFORTS, 'An effort.'),
    'Reasoning efforts that are accepted; others become the nearest one.',
  ).optional(),
  reasoningReplay: oneOf(
    ['calls', 'all'],
    'Chat: assistant messages that must carry reasoning while the model reasons.',
  ),
  cacheMarks: flag(
    "Takes Anthropic's cache marks (cache_control): on blocks of Messages, on parts of Chat.",
  ),
  rootCacheMark: flag('Messages: takes a cache mark at the top of the body.'),
  breakpointsAt: string(
    'Chat, Responses: takes prompt_cache_key and explicit cache breakpoints at addresses of this host.',
  ).optional(),
  errors: named(
    meaning('The meaning of the code.', 'The meaning of one of the codes.'),
    "The vendor's own error codes.",
  ).optional(),
  errorWords: named(
    meaning(
      'The meaning of the message.',
      'The meaning of errors whose message contains this text.',
    ),
    "The same by a part of the error's message, for errors without a code of their own.",
  ).optional(),
  leakFamilies: texts('Families of leaked tool calls to look for; empty: none.'),
  hostedTools: texts('Hosted tools that the vendor serves itself.'),
  storesResponses: flag('Responses: keeps responses for previous_response_id.'),
  exactStreams: flag(
    'Streams have no faults that clients trip over, and are not searched for them. false: all are searched. Not set: those with tools are.',
  ),
  compaction: flag('Responses: compacts conversations itself (input item compaction_trigger).'),
  countTokens: flag('Messages: has /v1/messages/count_tokens.'),
};
