/** A target of a request, and the profile of facts about its vendor. */

import type { ErrorKind } from './errors.ts';
import type { Effort } from './models/efforts.ts';
import type { FieldPath } from './refusal/refused-fields.ts';
import type { ProtocolName } from './types.ts';

/** Both bounds are inclusive. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

/** The meaning of a vendor's error code. */
export interface VendorError {
  /** A budget is this gateway's own. */
  readonly kind: Exclude<ErrorKind, 'budget'>;
  /** Can the same request succeed a moment later? Left out: the kind and the status decide. */
  readonly retryable?: boolean;
}

/**
 * Facts about a vendor, as data. Every fact may be left out; the default in each comment holds for unknown
 * vendors. Codecs and features read facts, never a vendor's name.
 */
export interface Profile {
  readonly name: string;

  // Parameters of the target's own wire body, by top-level key.
  /** Keys that the vendor refuses: dropped with the note `parameter_dropped`. Default: none. */
  readonly dropParams?: readonly string[];
  /** Chat: the fields that a message may have. Left out: any. */
  readonly messageFields?: readonly string[];
  /** Keys that the vendor calls by another name: renamed with the note `parameter_mapped`. */
  readonly renameParams?: Readonly<Record<string, string>>;
  /**
   * Messages: beta flags (globs) that the vendor takes. All others are dropped from `anthropic-beta`, together with
   * the body fields that belong to them, with the note `parameter_dropped`. Default: all.
   */
  readonly betas?: readonly string[];
  /** Messages: beta flags (globs) of these that the vendor does not take after all. Default: none. */
  readonly refusedBetas?: readonly string[];
  /** Messages: fields of betas that the vendor takes without the flag, by path (`output_config.effort`). */
  readonly betaFields?: readonly string[];
  /** Messages: beta flags that the vendor calls by another name: renamed with the note `parameter_mapped`. */
  readonly renameBetas?: Readonly<Record<string, string>>;
  /** Chat: the name of the output cap. Default `max_tokens`. */
  readonly maxTokensParam?: 'max_tokens' | 'max_completion_tokens';
  /** Messages requires an output cap; this one is used when the client set none. Default 8192. */
  readonly defaultMaxTokens?: number;
  /** The largest output cap that the model accepts; larger ones are lowered to it. Default: any. */
  readonly maxOutput?: number;
  /** Responses: the lowest output cap that the vendor accepts; lower ones are raised to it. Default: any. */
  readonly leastMaxTokens?: number;
  /** Tool choices that the vendor accepts. Default: auto, none, required, tool. */
  readonly toolChoices?: readonly ('auto' | 'none' | 'required' | 'tool')[];
  /** Tool choices that it accepts while the model reasons. Default: the same. */
  readonly thinkingToolChoices?: readonly ('auto' | 'none' | 'required' | 'tool')[];
  /** A value outside goes to the nearest bound, with the note `parameter_mapped`. Default: any number. */
  readonly temperature?: Range;
  /** The range of `top_p`. */
  readonly topP?: Range;
  /** Messages: accepts `temperature` and `top_p` in one request. Default true. */
  readonly temperatureWithTopP?: boolean;
  /** How many stop sequences are accepted; the first ones are sent. Default: any number. */
  readonly maxStops?: number;
  /** Accepts temperature, top_p, penalties and log-probabilities while the model reasons. Default true. */
  readonly samplingWhileThinking?: boolean;
  /** Chat: usage in streams is requested with `stream_options.include_usage`. Default true. */
  readonly streamUsage?: boolean;
  /** `always`: the vendor takes streamed requests only; `never`: none. The client gets the form it asked for. Default: both. */
  readonly streams?: 'always' | 'never';
  /** Accepts `parallel_tool_calls` / `disable_parallel_tool_use`. Default true. */
  readonly parallelToolsParam?: boolean;
  /** Chat: accepts function tools while the model reasons. Default true. */
  readonly chatToolsWhileThinking?: boolean;
  /**
   * Responses: the types of tools that the vendor knows (`function`, `custom`, `namespace`, `tool_search`, and those of
   * tools that it runs). Others become functions, or are left out where the client cannot run them. Default: all.
   */
  readonly toolTypes?: readonly string[];
  /** Accepts `strict` on function tools. Default true. */
  readonly strictTools?: boolean;
  /** Refuses a tool that is declared twice. Default false; a conversion of protocols declares it once in any case. */
  readonly uniqueTools?: boolean;
  /** Tool names have at most so many characters, of `[a-zA-Z0-9_-]`, and begin with a letter or `_`. Default: any. */
  readonly maxToolName?: number;
  /** Chat, Responses: accepts anyOf, oneOf, allOf, enum and not at the root of a tool's schema. Default true. */
  readonly rootUnions?: boolean;
  /**
   * Accepts tool schemas that are no JSON Schema 2020-12, such as tuples of older drafts and arrays that do not say what
   * they hold. Default true; a conversion of protocols mends them in any case.
   */
  readonly looseSchemas?: boolean;
  /** Chat: knows the file ids of OpenAI, which a Responses client may send. Default false. */
  readonly fileIds?: boolean;
  /**
   * Accepts json_schema output formats. Default true; otherwise the vendor's JSON mode is requested and
   * the schema is written into the prompt.
   */
  readonly jsonSchema?: boolean;
  /** Accepts the output format json_object. Default true; otherwise a schema of any object is requested. */
  readonly jsonObject?: boolean;

  // Roles and content.
  /** Chat: knows the role `developer`. Default false: it is sent as `system`. */
  readonly developerRole?: boolean;
  /** Accepts instructions. Default true: otherwise they stand before the first user text. */
  readonly instructions?: boolean;
  /**
   * Accepts instructions after the first message. Default: true on Chat; false on Messages (`role: "system"`
   * inside `messages`). Otherwise they are sent as user text.
   */
  readonly systemTurns?: boolean;
  /** Accepts images. Default true. */
  readonly images?: boolean;
  /** Accepts images inside tool results. Default: true on Messages and Responses, false on Chat. */
  readonly imagesInResults?: boolean;
  /** Accepts PDF and other files. Default true. */
  readonly documents?: boolean;
  /** Accepts a conversation that ends with an assistant message. Default true. */
  readonly assistantLast?: boolean;
  /** Messages: refuses a conversation that begins with an assistant message. Default false. */
  readonly userFirst?: boolean;
  /** Refuses a conversation without any user message. Default false. */
  readonly needsUserTurn?: boolean;
  /** Chat, Messages: accepts consecutive messages of the same role. Default true. */
  readonly sameRoleTurns?: boolean;
  /** Chat: accepts the texts of a message as a list of parts. Default true: otherwise they are sent as one string. */
  readonly contentParts?: boolean;
  /** Chat: accepts assistant messages with neither text nor calls. Default true. */
  readonly emptyReplies?: boolean;
  /** Chat: accepts several calls in one assistant message. Default true. */
  readonly parallelCalls?: boolean;
  /** A user message may follow tool messages directly. Default true. */
  readonly userAfterTool?: boolean;
  /**
   * The only form of tool call ids that the vendor accepts; `short`: at most 40 of `[a-zA-Z0-9_-]`.
   * Default: whatever the client sent.
   */
  readonly callIds?: 'nine-alphanumeric' | 'short';
  /** Fails on large results of executed tools: those of the last round are sent as short text. */
  readonly shortToolResults?: boolean;

  // Reasoning.
  /**
   * Chat: the field in which reasoning is sent back. Default `reasoning_content`; `none` drops it.
   */
  readonly reasoningField?: 'reasoning_content' | 'reasoning' | 'none';
  /**
   * Chat: the parameter that controls reasoning. Default `reasoning_effort`. `none`, in every protocol: reasoning
   * settings are dropped.
   */
  readonly reasoningParam?:
    | 'reasoning_effort'
    | 'thinking'
    | 'enable_thinking'
    | 'reasoning'
    | 'none';
  /** Messages: accepts `thinking.type: adaptive` with `output_config.effort`. Default false: a budget. */
  readonly adaptiveThinking?: boolean;
  /** Messages: the `thinking.type` that switches reasoning off. Default `disabled`. */
  readonly thinkingOff?: 'disabled' | 'between_tools';
  /**
   * Messages: a thinking block belongs to the prefix that it was made behind, and is dropped behind another one where
   * `thinking.block_binding` asks for that. `changed`: it is asked for where the gateway has changed the request;
   * `always`: wherever the history holds thinking. Default: never.
   */
  readonly boundThinking?: 'changed' | 'always';
  /** Messages: accepts `thinking.type: enabled` with a budget. Default true. */
  readonly budgetThinking?: boolean;
  /**
   * Messages: accepts thinking with any signature, as vendors do that do not check theirs. Default false:
   * a signature that cannot be genuine is refused.
   */
  readonly anySignature?: boolean;
  /** Gemini: controls reasoning by `thinkingLevel`. Default false: by `thinkingBudget`. */
  readonly thinkingLevels?: boolean;
  /** Gemini: refuses a history in which the first call of a step has no thought signature. Default false. */
  readonly callSignatures?: boolean;
  /** Gemini: accepts `parametersJsonSchema`. Default true: otherwise schemas are reduced to Google's own. */
  readonly jsonSchemaTools?: boolean;
  /** Runs its hosted tools beside functions. Default true: otherwise functions stand in for them, or they are left out. */
  readonly hostedWithFunctions?: boolean;
  /** Gemini: accepts a JSON output format beside functions. Default true. */
  readonly formatWithFunctions?: boolean;
  /** Does the model reason when the request does not say so? `always`: reasoning cannot be switched off. */
  readonly thinkingDefault?: 'on' | 'off' | 'always';
  /** Efforts that are accepted; others go to the nearest one. Default: all. */
  readonly efforts?: readonly Effort[];
  /**
   * Chat: which assistant messages must carry reasoning while the model reasons: those with calls, or all.
   * A space stands for missing reasoning. Default: none.
   */
  readonly reasoningReplay?: 'calls' | 'all';

  // Prompt caches.
  /**
   * Takes Anthropic's cache marks: on blocks of Messages, on parts of Chat. Default false: then none are added; those of
   * a client of Messages go on within its protocol, and are dropped with the note `cache_control_dropped` on the way to
   * another.
   */
  readonly cacheMarks?: boolean;
  /** Messages: takes a cache mark at the top of the body, which moves along. Default true. */
  readonly rootCacheMark?: boolean;
  /**
   * Chat, Responses: finds a prompt again by `prompt_cache_key` and explicit breakpoints, at addresses of this host. At
   * any other address neither is sent. Default: nowhere.
   */
  readonly breakpointsAt?: string;

  // Errors.
  /** The vendor's own error codes, as text. */
  readonly errors?: Readonly<Record<string, VendorError>>;
  /** Errors without a code, by words of the message; case is ignored. */
  readonly errorWords?: Readonly<Record<string, VendorError>>;

  // Markup that the vendor lets through.
  /**
   * Families of leaked tool calls to look for; an empty list switches the search off. Default: all but
   * `think-unopened`, which would hold back all text.
   */
  readonly leakFamilies?: readonly string[];

  /** True: streams are as the protocol's reference has them, and are not looked through for faults. False: each is. Default: those with tools. */
  readonly exactStreams?: boolean;

  // Services of the vendor's own.
  /** Hosted tools that the vendor runs, by canonical name. Default: none. */
  readonly hostedTools?: readonly string[];
  /** Responses: stores responses, so `store` and `previous_response_id` may be left to it. Default false. */
  readonly storesResponses?: boolean;
  /** Responses: compacts a conversation itself (input item `compaction_trigger`). Default false: by a summary. */
  readonly compaction?: boolean;
  /**
   * Has `/v1/messages/count_tokens`. Default: true for Messages, where a 404 leads to an estimate. Targets of
   * other protocols are asked only if it is true.
   */
  readonly countTokens?: boolean;
}

export const NO_PROFILE: Profile = { name: 'none' };

/** A model of a provider, to which a request can be sent. */
export interface Target {
  /** The provider's name in the configuration. */
  readonly provider: string;
  /** The model name that goes on the wire. */
  readonly model: string;
  readonly protocol: ProtocolName;
  readonly profile: Profile;
  /** How long its prompts are to be kept where the client cannot say so. Left out: as long as the vendor usually does. */
  readonly promptCache?: 'off' | '1h';
  /** The fewest tokens of a prompt that are kept. */
  readonly leastCache?: number | undefined;
  readonly refusedFields?: readonly FieldPath[];
}

const names = new WeakMap<Target, string>();

/** `provider/model`, the same string object each time: every answer carries it. */
export function targetName(target: Target): string {
  let name = names.get(target);
  if (name === undefined) {
    name = `${target.provider}/${target.model}`;
    names.set(target, name);
  }
  return name;
}
