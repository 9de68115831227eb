/** The conversation model: a request of any protocol, immutable throughout. */

import type { Json, JsonObject } from '../lib/json/json.ts';
import type { ProtocolName } from './protocol-names.ts';

export type { ProtocolName } from './protocol-names.ts';

/**
 * The exact JSON that a node was decoded from. A node with `wire` is unchanged: an encoder of the same
 * protocol writes that JSON. An edit (see `edit.ts`) turns `wire` into `residue`: the encoder then writes
 * the node's fields and keeps the other fields of the residue.
 */
export interface Wire {
  readonly protocol: ProtocolName;
  readonly value: Json;
}

interface Node {
  readonly wire?: Wire;
  readonly residue?: Wire;
}

/** Anthropic's cache_control. The other protocols have no cache marks on content. */
export interface CacheMark {
  readonly ttl?: string;
}

export type Role = 'system' | 'developer' | 'user' | 'assistant';

/** Who executes a tool: the client, this gateway, or the vendor itself. */
export type ExecutedBy = 'client' | 'gateway' | 'provider';

/** The source of a citation. Offsets count characters of the cited block's text. */
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
  /** Only Gemini seals text. */
  readonly sealed?: Sealed;
  /** In an answer: the text begins a further message (Responses), where one message holds a paragraph. */
  readonly paragraph?: true;
  readonly citations?: readonly Citation[];
  readonly cache?: CacheMark;
}

export interface RefusalBlock extends Node {
  readonly type: 'refusal';
  readonly text: string;
}

/**
 * A signature or encrypted payload, bound to its maker. Only the protocol it came in (and, if known, the
 * provider) may get it back.
 */
export interface Sealed {
  readonly protocol: ProtocolName;
  readonly provider?: string;
  /** `signature`: with readable text. `encrypted`: with it or instead of it. `redacted`: without any text. */
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
export type ToolKind = 'function' | 'custom' | 'tool-search' | ClientToolKind;

/** Tools of Responses that the client runs, with items of their own for calls. Their input is that of a function. */
export type ClientToolKind = 'shell' | 'local-shell' | 'apply-patch';

export interface ToolCallBlock extends Node {
  readonly type: 'tool-call';
  readonly id: string;
  readonly name: string;
  readonly namespace?: string;
  readonly kind: ToolKind;
  /** The JSON text that the model wrote, possibly empty or broken; for `custom`, the free text. */
  readonly input: string;
  readonly by: ExecutedBy;
  /** In an answer: the vendor wrote the call in a form that clients of its protocol cannot use. */
  readonly odd?: true;
  readonly cache?: CacheMark;
  /** Gemini's thought signature and the like, bound to this call. */
  readonly sealed?: Sealed;
}

export interface ToolResultBlock extends Node {
  readonly type: 'tool-result';
  readonly callId: string;
  readonly kind: ToolKind;
  /** Text, media or opaque blocks. A string on the wire is one text block. */
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
  readonly media: 'image' | 'document' | 'audio' | 'video';
  readonly source: MediaSource;
  readonly filename?: string;
  /** Messages documents: `title`, `context`. */
  readonly title?: string;
  readonly context?: string;
  /** OpenAI images: low, high, auto, original. */
  readonly detail?: string;
  readonly cache?: CacheMark;
}

/** Content without a common meaning. Its own protocol gets it back; for others it becomes a note. */
export interface OpaqueBlock extends Node {
  readonly type: 'opaque';
  /** Its type on the wire, for notes. */
  readonly name: string;
  /** Its readable text, if it has one. */
  readonly text?: string;
  /** Blocks that other protocols get in its place: a Messages document with images has no form there. */
  readonly parts?: readonly Block[];
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
 * One message (Chat, Messages) or one input item (Responses). Decoders never merge or split them. Tool
 * results are blocks of a `user` turn, whatever role they have on the wire. Encoders merge neighbours and
 * place results as their protocol requires.
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
  /** Declared, but not yet loaded into the model's context (`defer_loading`). */
  readonly deferred?: boolean;
  /** Its calls go to the client as items of this kind; left out: as calls of a function. */
  readonly callKind?: ClientToolKind;
  /** The gateway runs it under any of these names, so errors in a call go to the model and not to the client. */
  readonly runsHere?: readonly string[];
}

/** A freeform tool: its input is text, possibly with a grammar. */
export interface CustomTool extends Node {
  readonly type: 'custom';
  readonly name: string;
  readonly namespace?: string;
  readonly description?: string;
  readonly format?: Json;
  /** Chat: the client knows its calls as those of a function, whose arguments are the text. */
  readonly asFunction?: true;
}

/** A tool that the vendor or this gateway runs: web search, web fetch, code execution, … */
export interface HostedTool extends Node {
  readonly type: 'hosted';
  /** The canonical name (web_search, web_fetch, code_execution, tool_search, …), else the wire's type. */
  readonly name: string;
  /** The wire's type, e.g. `web_search_20250305`. */
  readonly kind: string;
  /** The declaration without its type and name: max_uses, filters, user_location, … */
  readonly options: JsonObject;
}

export type Tool = FunctionTool | CustomTool | HostedTool;

export type ToolChoice =
  | {
      readonly type: 'auto';
      /** The forced choice, if the model cannot be forced: the prompt asks for it, and the answer is checked. */
      readonly instead?: ToolChoice;
    }
  | { readonly type: 'none' | 'required' }
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
  /** Messages: thinking of the history that belongs to another prefix is dropped instead of refused. */
  readonly dropUnbound?: true;
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

/** Parameters other than model, prompt and tools that more than one protocol knows. */
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
  /** Top-level fields that only the conversation's own protocol knows, by their wire names. */
  readonly rest?: JsonObject;
}

/**
 * The body that a conversation was decoded from, with the decoded parts. An encoder of the same protocol
 * compares them by reference: an unchanged part goes out as it came in.
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
