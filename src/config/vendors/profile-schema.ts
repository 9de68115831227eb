/** The facts of a vendor profile as one may write them in the file; the same keys as `Profile`, checked by a test. */

import { type Static, Type } from '@sinclair/typebox';
import { choice, closed, named } from '../file/schema-types.ts';

const flag = (description: string) => Type.Optional(Type.Boolean({ description }));
const oneOf = <const T extends readonly string[]>(values: T, description: string) =>
  Type.Optional(choice(values, description));

const TOOL_CHOICES = ['auto', 'none', 'required', 'tool'] as const;
const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;

/** Meanings of an error, as the program names them. */
const ERROR_KINDS = [
  'invalid_request',
  'authentication',
  'permission',
  'not_found',
  'too_large',
  'context_overflow',
  'rate_limit',
  'quota',
  'billing',
  'overloaded',
  'timeout',
  'conflict',
  'content_filter',
  'upstream',
  'internal',
] as const;

const range = (description: string) =>
  Type.Optional(
    closed(
      {
        min: Type.Number({ description: 'The least, included.' }),
        max: Type.Number({ description: 'The most, included.' }),
      },
      description,
    ),
  );

/** The facts without their name. Names are those of the program, in camelCase, as the manual lists them. */
export const profileFacts = {
  dropParams: Type.Optional(
    Type.Array(Type.String(), { description: 'Top-level body keys that the vendor refuses.' }),
  ),
  renameParams: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description: 'Top-level body keys that the vendor spells otherwise.',
    }),
  ),
  maxTokensParam: oneOf(
    ['max_tokens', 'max_completion_tokens'],
    'Chat: the name of the output cap.',
  ),
  defaultMaxTokens: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'Messages: the output cap when the client named none.',
    }),
  ),
  leastMaxTokens: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'Responses: the least output cap that the vendor takes.',
    }),
  ),
  toolChoices: Type.Optional(
    Type.Array(choice(TOOL_CHOICES, 'A tool choice.'), {
      description: 'Tool choices that the vendor takes.',
    }),
  ),
  thinkingToolChoices: Type.Optional(
    Type.Array(choice(TOOL_CHOICES, 'A tool choice.'), {
      description: 'Tool choices that the vendor takes while the model reasons.',
    }),
  ),
  temperature: range('Temperatures that the vendor takes.'),
  topP: range('Values of top_p that the vendor takes.'),
  temperatureWithTopP: flag('Messages: takes temperature and top_p in one request.'),
  maxStops: Type.Optional(
    Type.Integer({ minimum: 0, description: 'How many stop sequences the vendor takes.' }),
  ),
  samplingWhileThinking: flag(
    'Takes temperature, top_p, penalties and log-probabilities while the model reasons.',
  ),
  streamUsage: flag('Chat: asks for usage in streams with stream_options.include_usage.'),
  parallelToolsParam: flag('Takes parallel_tool_calls / disable_parallel_tool_use.'),
  strictTools: flag('Takes `strict` on function tools.'),
  rootUnions: flag("Takes anyOf, oneOf, allOf, enum and not at the root of a tool's schema."),
  fileIds: flag('Chat: knows the ids of files that a Responses client names.'),
  jsonSchema: flag('Takes json_schema output formats.'),
  developerRole: flag('Chat: knows the role developer.'),
  systemTurns: flag('Takes role system (Chat: developer, too) behind the first message.'),
  images: flag('Images can be sent.'),
  imagesInResults: flag('Images can stand inside tool results.'),
  documents: flag('PDF and other files can be sent.'),
  assistantLast: flag("Messages: takes a conversation that ends with the assistant's words."),
  userFirst: flag('Messages: refuses a conversation that the assistant begins.'),
  needsUserTurn: flag('Refuses a conversation without any user message.'),
  sameRoleTurns: flag(
    'Chat, Messages: takes neighbouring messages of the user, or of the assistant.',
  ),
  parallelCalls: flag('Chat: takes several tool calls in one assistant message of the history.'),
  userAfterTool: flag('A user message may follow tool messages directly.'),
  callIds: oneOf(
    ['nine-alphanumeric', 'short'],
    'The only shape of tool call ids that the vendor takes; short: at most 40 letters, digits, _ and -.',
  ),
  shortToolResults: flag("The last round's tool results are sent as short text."),
  reasoningField: oneOf(
    ['reasoning_content', 'reasoning', 'none'],
    'Chat: the field in which reasoning is sent back.',
  ),
  reasoningParam: oneOf(
    ['reasoning_effort', 'thinking', 'enable_thinking', 'reasoning', 'none'],
    'Chat: how reasoning is asked for.',
  ),
  adaptiveThinking: flag('Messages: takes thinking.type adaptive with output_config.effort.'),
  budgetThinking: flag('Messages: takes thinking.type enabled with a budget.'),
  anySignature: flag('Messages: takes thinking back whatever its signature.'),
  thinkingDefault: oneOf(
    ['on', 'off', 'always'],
    'Whether the model reasons when nothing is said; always: it cannot be told not to.',
  ),
  efforts: Type.Optional(
    Type.Array(choice(EFFORTS, 'An effort.'), {
      description: 'Reasoning efforts that are taken; others go to the nearest one.',
    }),
  ),
  reasoningReplay: oneOf(
    ['calls', 'all'],
    'Chat: assistant messages that must carry reasoning while the model reasons.',
  ),
  errors: Type.Optional(
    named(
      closed(
        {
          kind: choice(ERROR_KINDS, 'What the code means.'),
          retryable: flag('Whether the same request can succeed a moment later.'),
        },
        'What one of the codes means.',
      ),
      "The vendor's own error codes.",
    ),
  ),
  errorWords: Type.Optional(
    named(
      closed(
        {
          kind: choice(ERROR_KINDS, 'What the words mean.'),
          retryable: flag('Whether the same request can succeed a moment later.'),
        },
        'What an error with these words means.',
      ),
      "The same by words of the error's message, for what the vendor has no code for.",
    ),
  ),
  leakFamilies: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Families of leaked tool calls to look for; empty: none.',
    }),
  ),
  hostedTools: Type.Optional(
    Type.Array(Type.String(), { description: 'Hosted tools that the vendor serves itself.' }),
  ),
  storesResponses: flag('Responses: keeps responses for previous_response_id.'),
  countTokens: flag('Messages: has /v1/messages/count_tokens.'),
};

const facts = Type.Object(profileFacts);

/** What a profile knows of the vendor as a whole. */
export type Facts = ReadonlyLists<Static<typeof facts>>;

type ReadonlyLists<T> = {
  readonly [K in keyof T]: NonNullable<T[K]> extends (infer Item)[]
    ? readonly Item[] | Exclude<T[K], Item[]>
    : T[K];
};

/**
 * Structurally `Profile` of the conversation room, which this room does not import, and beside it the
 * facts that hold for some of the vendor's models only: by glob, later ones over earlier ones.
 */
export type ProfileFacts = { readonly name: string } & Facts & {
    readonly models?: Readonly<Record<string, Facts>>;
  };
