/** What a server tool is: a function that models may call and this gateway runs, wherever it comes from. */

import type { Block, Conversation, MediaBlock, ProtocolName } from '../../conversation/types.ts';
import type { Json, JsonObject } from '../../lib/json/json.ts';

/** Writes a log event; `fields` must hold no secret. */
export type ToolLog = (event: string, fields: JsonObject) => void;

/**
 * - `force`: offered in every request on the route
 * - `selective`: offered where the request seems to need it, see `wanted`
 * - `declared`: offered where the client declared the hosted tool
 *
 * A tool that the client declared is served in all three modes.
 */
export type Inject = 'force' | 'selective' | 'declared';

export interface ToolLimits {
  /** Milliseconds for one call; its signal fires then. */
  readonly timeoutMs: number;
  /** Calls per exchange; a client's own `max_uses` can only lower it. Left out: no limit but the rounds. */
  readonly maxUses?: number;
}

/** What a running tool may know and use. */
export interface ToolContext {
  /** Fires when the client goes away, the exchange runs out of time, or the tool does. */
  readonly signal: AbortSignal;
  /** The id under which the model called it. */
  readonly callId: string;
  /** The client's declaration of the hosted tool without type and name (`allowed_domains`, …); `{}` otherwise. */
  readonly options: JsonObject;
  /** The client reads citations: the text may ask the model to mark what it cites as `[n]`. */
  readonly cites?: boolean;
  /** What the client asked, where it is at hand. Read only. */
  readonly conversation?: Conversation;
  /** The protocol that the client speaks. */
  readonly client?: ProtocolName;
  /** Whose request it is: the gateway key's name, '' without auth. */
  readonly owner?: string;
  readonly log: ToolLog;
}

/** A page that the answer may cite. */
export interface Source {
  readonly url: string;
  readonly title: string;
  /** What of it the model saw, as far as it can be quoted. */
  readonly text?: string;
  readonly published?: string;
}

export interface ToolOutcome {
  /** False: the tool failed and says so in `text`; the model goes on with that. */
  readonly ok: boolean;
  /** The result as data: what apps get as tool event, `{ok, tool, message, retryable}` of a failure. */
  readonly payload: Json;
  /**
   * What the model reads. As a function it gets the number of the tool's first source: sources are
   * numbered through over all calls of a conversation, so that `[n]` in an answer means one page.
   */
  readonly text: string | ((firstSource: number) => string);
  /** More than words for the model: images of a page. */
  readonly media?: readonly MediaBlock[];
  /** What may be cited as `[n]`, in the order of the numbers. */
  readonly sources?: readonly Source[];
  /**
   * What a client that declared the hosted tool is shown as its result: the blocks that the result's
   * content on the Messages wire decodes to (opaque, with `wire`). Left out: for `web_search` made
   * from `sources`; for other tools one text block.
   */
  readonly shown?: readonly Block[];
  /**
   * Of a failure, in the words of the client's protocol: unavailable (default), invalid_tool_input,
   * max_uses_exceeded, too_many_requests, query_too_long, url_not_accessible, …
   */
  readonly code?: string;
  /** Fields for the log line of this run (`engine`, `query`, …). */
  readonly log?: JsonObject;
}

export interface ServerTool {
  /** Canonical function name, `[a-zA-Z0-9_-]{1,64}`: what upstreams see. */
  readonly name: string;
  /** Other names under which models call it (`google_search`, …); taken for it only where nobody else has that name. */
  readonly aliases?: readonly string[];
  /** The hosted tool that it stands in for, by canonical name (`web_search`, `web_fetch`). Left out: none. */
  readonly hosted?: string;
  readonly description: string;
  /** JSON Schema of the arguments, an object. */
  readonly schema: JsonObject;
  readonly limits: ToolLimits;
  readonly inject: Inject;
  /**
   * Offered even to a client that wants no calls now: a call of it stands in the context already, and a
   * model that sees calls of tools it does not have writes them as text.
   */
  readonly pinned?: boolean;
  /** `inject: selective`: does this text of the latest user turn ask for the tool? */
  readonly wanted?: (text: string) => boolean;
  /**
   * Runs one call. May throw or reject: that becomes a result that says so. `args` is what the model
   * wrote, parsed; the engine answers calls whose arguments are no JSON object itself.
   */
  run(args: JsonObject, context: ToolContext): Promise<ToolOutcome>;
}

/** A failed outcome in the one shape that models and apps get. */
export function failedOutcome(
  tool: string,
  message: string,
  more: { readonly retryable?: boolean; readonly code?: string; readonly log?: JsonObject } = {},
): ToolOutcome {
  const { retryable = false, code = 'unavailable', log } = more;
  const payload = { ok: false, tool, message, retryable };
  return { ok: false, payload, text: JSON.stringify(payload), code, ...(log ? { log } : {}) };
}

/** A tool failed in a way that it can put into words for the model. */
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
