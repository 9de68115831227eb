/** The conversation: what a request says, whatever protocol it came in. Immutable throughout. */

import type { Json, JsonObject } from '../lib/json/json.ts';
import type { ProtocolName } from './protocol-names.ts';

export type { ProtocolName } from './protocol-names.ts';

/**
 * The exact JSON a node was decoded from. `wire` on a node means "untouched": an encoder of the same
 * protocol emits it as it stands. An edit (see `edit.ts`) turns `wire` into `residue`: an encoder of
 * the same protocol then rebuilds what the node's fields say and keeps the residue's other fields.
 */
export interface Wire {
  readonly protocol: ProtocolName;
  readonly value: Json;
}

interface Node {
  readonly wire?: Wire;
  readonly residue?: Wire;
}

/** Anthropic's cache_control; the other protocols have no such mark on content. */
export interface CacheMark {
  readonly ttl?: string;
}

export type Role = 'system' | 'developer' | 'user' | 'assistant';

/** Who executes a tool: the client, this gateway, or the vendor itself. */
export type ExecutedBy = 'client' | 'gateway' | 'provider';

/** Something a citation points at. Offsets are in characters of the cited block's text. */
export interface Citation extends Node {
  readonly url?: string;
  readonly title?: string;
  readonly citedText?: string;
  readonly start?: number;
  readonly end?: number;
}

export interface TextBlock extends Node {
  readonly type: 'text';
  readonly text: string;
  readonly citations?: readonly Citation[];
  readonly cache?: CacheMark;
}

export interface RefusalBlock extends Node {
  readonly type: 'refusal';
  readonly text: string;
}

/**
 * A signature or encrypted payload, bound to who made it. `protocol` is the wire it came on; only
 * that protocol (and, where known, that provider) may get it back.
 */
export interface Sealed {
  readonly protocol: ProtocolName;
  readonly provider?: string;
  /** signature: beside readable text; encrypted: instead of or beside it; redacted: no text at all. */
  readonly kind: 'signature' | 'encrypted' | 'redacted';
  readonly value: string;
}

export interface ReasoningBlock extends Node {
  readonly type: 'reasoning';
  readonly text: string;
  /** The text is a summary (Responses `summary`), not the reasoning itself. */
  readonly summary?: boolean;
  readonly sealed?: Sealed;
}

/** How a tool takes its input. `custom` is freeform text; `tool-search` is Responses' client-run search. */
export type ToolKind = 'function' | 'custom' | 'tool-search';

export interface ToolCallBlock extends Node {
  readonly type: 'tool-call';
  readonly id: string;
  readonly name: string;
  readonly namespace?: string;
  readonly kind: ToolKind;
  /** Raw JSON text as the model wrote it (possibly empty or broken); for `custom`, the free text. */
  readonly input: string;
  readonly by: ExecutedBy;
  readonly cache?: CacheMark;
  /** Gemini's thought signature and the like, bound to this call. */
  readonly sealed?: Sealed;
}

export interface ToolResultBlock extends Node {
  readonly type: 'tool-result';
  readonly callId: string;
  readonly kind: ToolKind;
  /** Text, media or opaque blocks; a string on the wire is one text block. */
  readonly content: readonly Block[];
  readonly isError: boolean;
  readonly by: ExecutedBy;
  readonly cache?: CacheMark;
}

export type MediaSource =
  | { readonly type: 'base64'; readonly mediaType: string; readonly data: string }
  | { readonly type: 'url'; readonly url: string }
  | { readonly type: 'file-id'; readonly id: string }
  | { readonly type: 'text'; readonly mediaType: string; readonly text: string };

export interface MediaBlock extends Node {
  readonly type: 'media';
  readonly media: 'image' | 'document' | 'audio';
  readonly source: MediaSource;
  readonly filename?: string;
  /** Messages documents: `title`, `context`. */
  readonly title?: string;
  readonly context?: string;
  /** OpenAI images: low, high, auto, original. */
  readonly detail?: string;
  readonly cache?: CacheMark;
}

/** Content that has no meaning here; it survives a trip in its own protocol and is a note elsewhere. */
export interface OpaqueBlock extends Node {
  readonly type: 'opaque';
  /** The wire's own name for it, for notes. */
  readonly name: string;
  /** What a reader would see of it, where there is such a thing. */
  readonly text?: string;
  readonly wire: Wire;
}

export type Block =
  | TextBlock
  | RefusalBlock
  | ReasoningBlock
  | ToolCallBlock
  | ToolResultBlock
  | MediaBlock
  | OpaqueBlock;

/**
 * One message (Chat, Messages) or one input item (Responses) of the wire: never merged or split when
 * decoded. Tool results are blocks of a `user` turn whatever role the wire gave them; encoders merge
 * neighbours and place results as their protocol wants.
 */
export interface Turn extends Node {
  readonly role: Role;
  readonly blocks: readonly Block[];
}

export interface FunctionTool extends Node {
  readonly type: 'function';
  readonly name: string;
  readonly namespace?: string;
  readonly description?: string;
  /** JSON Schema of the input; absent when the client sent none. */
  readonly schema?: JsonObject;
  readonly strict?: boolean;
  readonly cache?: CacheMark;
  /** Known to the client but not yet loaded into the model's context (`defer_loading`). */
  readonly deferred?: boolean;
  /** The gateway runs it, under any of these names: what is wrong with a call is told to the model, not the client. */
  readonly runsHere?: readonly string[];
}

/** A freeform tool: input is text, perhaps under a grammar. */
export interface CustomTool extends Node {
  readonly type: 'custom';
  readonly name: string;
  readonly namespace?: string;
  readonly description?: string;
  readonly format?: Json;
}

/** A tool that the vendor or this gateway runs: web search, web fetch, code execution, … */
export interface HostedTool extends Node {
  readonly type: 'hosted';
  /** Canonical: web_search, web_fetch, code_execution, tool_search, …, else the wire's type. */
  readonly name: string;
  /** The wire's type, e.g. `web_search_20250305`. */
  readonly kind: string;
  /** The declaration without its type and name: max_uses, filters, user_location, … */
  readonly options: JsonObject;
}

export type Tool = FunctionTool | CustomTool | HostedTool;

export type ToolChoice =
  | { readonly type: 'auto' | 'none' | 'required' }
  | {
      readonly type: 'tool';
      readonly name: string;
      readonly namespace?: string;
      readonly kind: ToolKind | 'hosted';
    }
  | {
      readonly type: 'allowed';
      readonly mode: 'auto' | 'required';
      readonly names: readonly string[];
    };

export interface ReasoningSettings {
  /** false: switched off. */
  readonly enabled?: boolean;
  /** none, minimal, low, medium, high, xhigh, max. */
  readonly effort?: string;
  /** Tokens. */
  readonly budget?: number;
  /** The model decides how much (Messages `adaptive`). */
  readonly adaptive?: boolean;
  /** Responses: auto, concise, detailed. */
  readonly summary?: string;
  /** Messages: summarized, omitted, updates. */
  readonly display?: string;
}

export type OutputFormat =
  | { readonly type: 'text' | 'json' }
  | {
      readonly type: 'schema';
      readonly name?: string;
      readonly description?: string;
      readonly schema: JsonObject;
      readonly strict?: boolean;
    };

/** Everything beside model, prompt and tools that more than one protocol can say. */
export interface Settings {
  readonly stream: boolean;
  /** Chat: `stream_options.include_usage`. */
  readonly streamUsage?: boolean;
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly stop?: readonly string[];
  readonly seed?: number;
  readonly n?: number;
  readonly presencePenalty?: number;
  readonly frequencyPenalty?: number;
  readonly logitBias?: JsonObject;
  readonly logprobs?: { readonly top?: number };
  readonly toolChoice?: ToolChoice;
  readonly parallelTools?: boolean;
  readonly reasoning?: ReasoningSettings;
  readonly format?: OutputFormat;
  readonly verbosity?: string;
  readonly metadata?: JsonObject;
  readonly user?: string;
  readonly serviceTier?: string;
  readonly cacheKey?: string;
  readonly store?: boolean;
  readonly previousResponseId?: string;
  readonly include?: readonly string[];
  /** Top-level fields that only the conversation's own protocol knows, as they stood on the wire. */
  readonly rest?: JsonObject;
}

/**
 * What a conversation was decoded from, with the very parts that came out. An encoder of the same
 * protocol compares by reference: a part that is still the same goes out as it came in.
 */
export interface Origin {
  readonly protocol: ProtocolName;
  readonly value: JsonObject;
  readonly parts: Pick<Conversation, 'model' | 'system' | 'turns' | 'tools' | 'settings'>;
}

export interface Conversation {
  readonly model: string;
  /** Instructions that the protocol keeps apart: Messages `system`, Responses `instructions`. */
  readonly system: readonly Block[];
  readonly turns: readonly Turn[];
  readonly tools: readonly Tool[];
  readonly settings: Settings;
  readonly origin?: Origin;
}
