/** The interface of a server tool: a function that models call and this gateway runs. */

import type { Payer } from '../../conversation/account/payer.ts';
import type { Block, Conversation, MediaBlock, ProtocolName } from '../../conversation/types.ts';
import type { Json, JsonObject } from '../../lib/json/json.ts';

/** Writes a log event; `fields` must not contain secrets. */
export type ToolLog = (event: string, fields: JsonObject) => void;

/**
 * - `force`: offered in every request on the route
 * - `selective`: offered where the user's text calls for it, see `wanted`
 * - `declared`: offered only where the client declared the hosted tool
 *
 * A tool that the client declared is offered in all three modes.
 */
export type InjectMode = 'force' | 'selective' | 'declared';

export interface ToolLimits {
  /** Milliseconds for one call; its signal fires then. */
  readonly timeoutMs: number;
  /** Calls per exchange; a client's `max_uses` can only lower it. Left out: limited by the rounds alone. */
  readonly maxUses?: number;
}

/** What a running tool may use. */
export interface ToolContext {
  /** Fires when the client goes away, or when the exchange or the tool runs out of time. */
  readonly signal: AbortSignal;
  readonly callId: string;
  /** The client's declaration of the hosted tool without type and name (`allowed_domains`, …); `{}` otherwise. */
  readonly options: JsonObject;
  /** The client reads citations: the text may ask the model to mark its sources as `[n]`. */
  readonly wantsCitations?: boolean;
  /** The client's conversation, where it is at hand. Read only. */
  readonly conversation?: Conversation;
  readonly client?: ProtocolName;
  /** The name of the gateway key, '' without auth. */
  readonly owner?: string;
  /** On whose account the tool's calls to models go. */
  readonly payer?: Payer | undefined;
  readonly log: ToolLog;
}

/** A page that an answer may cite. */
export interface CitableSource {
  readonly url: string;
  readonly title: string;
  /** The part of it that the model saw and that may be quoted. */
  readonly text?: string;
  readonly published?: string;
}

export interface ToolOutcome {
  /** False: the tool failed and says so in `text`; the model continues with that. */
  readonly ok: boolean;
  /** The result as data: what apps get as tool event, `{ok, tool, message, retryable}` of a failure. */
  readonly payload: Json;
  /**
   * The text for the model. As a function it gets the number of the call's first source: sources are
   * numbered through all calls of a conversation, so that `[n]` in an answer means one page.
   */
  readonly text: string | ((firstSource: number) => string);
  /** Media for the model, such as images of a page. */
  readonly media?: readonly MediaBlock[];
  /** The pages that may be cited as `[n]`, in the order of their numbers. */
  readonly sources?: readonly CitableSource[];
  /**
   * The content of the result for a client that declared the hosted tool: blocks as the Messages codec
   * decodes them (opaque, with `wire`). Left out: made from `sources` for `web_search`, one text block
   * for other tools.
   */
  readonly shown?: readonly Block[];
  /**
   * The error code of a failure in the terms of Messages: unavailable (default), invalid_tool_input,
   * max_uses_exceeded, too_many_requests, query_too_long, url_not_accessible, …
   */
  readonly code?: string;
  /** Fields for the log line of this run (`engine`, `query`, …). */
  readonly log?: JsonObject;
}

export interface ServerTool {
  /** The canonical function name for upstreams, `[a-zA-Z0-9_-]{1,64}`. */
  readonly name: string;
  /** Other names under which models call it (`google_search`, …), where no other tool has that name. */
  readonly aliases?: readonly string[];
  /** The canonical name of the hosted tool that it stands in for (`web_search`, `web_fetch`), if any. */
  readonly hosted?: string;
  readonly description: string;
  /** JSON Schema of the arguments, an object. */
  readonly schema: JsonObject;
  readonly limits: ToolLimits;
  /** A second call can do what a first one did already; said to the model when the time is over. */
  readonly changes?: boolean;
  readonly inject: InjectMode;
  /**
   * Offered even where the client forbids calls: the context already contains a call of it, and a model
   * that sees calls of tools it does not have writes them as text.
   */
  readonly pinned?: boolean;
  /** For `inject: selective`: does this text of the latest user turn call for the tool? */
  readonly wanted?: (text: string) => boolean;
  /**
   * Runs one call. It may throw or reject, which becomes a failed result. `args` is the parsed JSON of
   * the model; calls whose arguments are not a JSON object never get here.
   */
  run(args: JsonObject, context: ToolContext): Promise<ToolOutcome>;
}

/** A failed outcome in the shape that models and apps get. */
export function failedOutcome(
  tool: string,
  message: string,
  more: { readonly retryable?: boolean; readonly code?: string; readonly log?: JsonObject } = {},
): ToolOutcome {
  const { retryable = false, code = 'unavailable', log } = more;
  const payload = { ok: false, tool, message, retryable };
  return { ok: false, payload, text: JSON.stringify(payload), code, ...(log ? { log } : {}) };
}

/** For a call that may change something and whose answer was lost: a repeated one could do it twice. */
export const OUTCOME_UNKNOWN =
  'The call may have taken effect. Find out whether it did before you call again.';

/** A failure of a tool with a message for the model. */
export class ToolError extends Error {
  override readonly name = 'ToolError';
  readonly retryable: boolean;
  /** See {@link ToolOutcome.code}. */
  readonly code: string;

  constructor(
    message: string,
    more: { readonly retryable?: boolean; readonly code?: string; readonly cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.retryable = more.retryable ?? false;
    this.code = more.code ?? 'unavailable';
  }
}
