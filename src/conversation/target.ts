/** Where a request goes, and what is known of the vendor there. */

import type { ErrorKind } from './errors.ts';
import type { ProtocolName } from './types.ts';

/** Both ends included. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

/** What an error code of the vendor means. */
export interface VendorError {
  readonly kind: ErrorKind;
  /** Whether the same request can succeed a moment later; left out: the kind and the status decide. */
  readonly retryable?: boolean;
}

/**
 * Facts about a vendor, as data. Every fact may be left out; the default in each comment is what an
 * upstream of unknown make is taken for. Codecs and features read facts, never a vendor's name.
 */
export interface Profile {
  readonly name: string;

  // Parameters of the target's own wire body, by top-level key.
  /** Keys that the vendor refuses: dropped with the note `parameter_dropped`. Default: none. */
  readonly dropParams?: readonly string[];
  /** Keys that the vendor spells otherwise: renamed with the note `parameter_mapped`. */
  readonly renameParams?: Readonly<Record<string, string>>;
  /** Chat: the name of the output cap. Default `max_tokens`. */
  readonly maxTokensParam?: 'max_tokens' | 'max_completion_tokens';
  /** Messages wants an output cap; used when the client named none. Default 8192. */
  readonly defaultMaxTokens?: number;
  /** Responses: the least output cap that is taken; less goes out as this. Default: any. */
  readonly leastMaxTokens?: number;
  /** Tool choices that the vendor takes. Default: auto, none, required, tool. */
  readonly toolChoices?: readonly ('auto' | 'none' | 'required' | 'tool')[];
  /** Those of them that it takes while it reasons. Default: the same. */
  readonly thinkingToolChoices?: readonly ('auto' | 'none' | 'required' | 'tool')[];
  /** What is outside goes to the nearest end, with the note `parameter_mapped`. Default: any number. */
  readonly temperature?: Range;
  /** The same for `top_p`. */
  readonly topP?: Range;
  /** Messages: takes `temperature` and `top_p` in one request. Default true. */
  readonly temperatureWithTopP?: boolean;
  /** How many stop sequences are taken; the first ones go out. Default: any number. */
  readonly maxStops?: number;
  /** Takes temperature, top_p, penalties and log-probabilities while it reasons. Default true. */
  readonly samplingWhileThinking?: boolean;
  /** Chat: asks for usage in streams with `stream_options.include_usage`. Default true. */
  readonly streamUsage?: boolean;
  /** Takes `parallel_tool_calls` / `disable_parallel_tool_use`. Default true. */
  readonly parallelToolsParam?: boolean;
  /** Takes `strict` on function tools. Default true. */
  readonly strictTools?: boolean;
  /** Chat, Responses: takes anyOf, oneOf, allOf, enum and not at the root of a tool's schema. Default true. */
  readonly rootUnions?: boolean;
  /** Chat: knows the ids of files that a Responses client names. Default false. */
  readonly fileIds?: boolean;
  /**
   * Takes json_schema output formats. Default true; else the vendor's JSON mode is asked for and the
   * schema is said in the prompt.
   */
  readonly jsonSchema?: boolean;

  // Roles and content.
  /** Chat: knows the role `developer`. Default false: it is sent as `system`. */
  readonly developerRole?: boolean;
  /**
   * Takes instructions behind the first message. Default: true on Chat; on Messages (`role: "system"`
   * inside `messages`) false. Else they are sent as user text.
   */
  readonly systemTurns?: boolean;
  /** Images can be sent. Default true. */
  readonly images?: boolean;
  /** Images can stand inside tool results. Default: true on Messages and Responses, false on Chat. */
  readonly imagesInResults?: boolean;
  /** PDF and other files can be sent. Default true. */
  readonly documents?: boolean;
  /** Messages: takes a conversation that ends with the assistant's words. Default true. */
  readonly assistantLast?: boolean;
  /** Messages: refuses a conversation that the assistant begins. Default false. */
  readonly userFirst?: boolean;
  /** Refuses a conversation without any user message. Default false. */
  readonly needsUserTurn?: boolean;
  /** Chat, Messages: takes neighbouring messages of the user, or of the assistant. Default true. */
  readonly sameRoleTurns?: boolean;
  /** Chat: takes several calls in one assistant message. Default true. */
  readonly parallelCalls?: boolean;
  /** A user message may follow tool messages directly. Default true. */
  readonly userAfterTool?: boolean;
  /**
   * The only shape of tool call ids that the vendor takes; `short`: at most 40 of `[a-zA-Z0-9_-]`.
   * Default: whatever the client sent.
   */
  readonly callIds?: 'nine-alphanumeric' | 'short';
  /** Fails on large records of executed tools: the last round's results are sent as short text. */
  readonly shortToolResults?: boolean;

  // Reasoning.
  /**
   * Chat: the field in which reasoning is sent back. Default `reasoning_content`; `none` drops it.
   */
  readonly reasoningField?: 'reasoning_content' | 'reasoning' | 'none';
  /** How reasoning is asked for on Chat. Default `reasoning_effort`. */
  readonly reasoningParam?:
    | 'reasoning_effort'
    | 'thinking'
    | 'enable_thinking'
    | 'reasoning'
    | 'none';
  /** Messages: takes `thinking.type: adaptive` with `output_config.effort`. Default false: a budget. */
  readonly adaptiveThinking?: boolean;
  /** Messages: takes `thinking.type: enabled` with a budget. Default true. */
  readonly budgetThinking?: boolean;
  /**
   * Messages: takes thinking back whatever its signature, as vendors that do not check their own.
   * Default false: a signature that cannot be genuine is refused.
   */
  readonly anySignature?: boolean;
  /** Whether the model reasons when nothing is said of it; `always`: it cannot be told not to. */
  readonly thinkingDefault?: 'on' | 'off' | 'always';
  /** Efforts that are taken; others go to the nearest one. Default: all. */
  readonly efforts?: readonly ('none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max')[];
  /**
   * Chat: assistant messages that must carry reasoning while the model reasons (a space where there is
   * none): those with calls, or all. Default: none.
   */
  readonly reasoningReplay?: 'calls' | 'all';

  // Errors.
  /** The vendor's own error codes, as text. */
  readonly errors?: Readonly<Record<string, VendorError>>;
  /** The same by words of the message, case aside, where the vendor has no code for it. */
  readonly errorWords?: Readonly<Record<string, VendorError>>;

  // Markup that the vendor lets through.
  /**
   * Families of leaked tool calls that are looked for; an empty list switches it off. Default: all but
   * `think-unopened`, for which all text would have to wait.
   */
  readonly leakFamilies?: readonly string[];

  // Services of the vendor's own.
  /** Hosted tools served natively, by canonical name. Default: none. */
  readonly hostedTools?: readonly string[];
  /** Responses: keeps responses, so `store` and `previous_response_id` may be left to it. Default false. */
  readonly storesResponses?: boolean;
  /**
   * Has `/v1/messages/count_tokens`. Default: true for Messages, where a 404 falls back to an estimate; other
   * protocols are asked only where it is true.
   */
  readonly countTokens?: boolean;
}

export const NO_PROFILE: Profile = { name: 'none' };

/** One place a request can be sent to. */
export interface Target {
  /** The provider's name in the configuration. */
  readonly provider: string;
  /** The model name that goes on the wire. */
  readonly model: string;
  readonly protocol: ProtocolName;
  readonly profile: Profile;
}

const names = new WeakMap<Target, string>();

/** `provider/model`: the very string each time, which is told on every answer. */
export function targetName(target: Target): string {
  let name = names.get(target);
  if (name === undefined) {
    name = `${target.provider}/${target.model}`;
    names.set(target, name);
  }
  return name;
}
