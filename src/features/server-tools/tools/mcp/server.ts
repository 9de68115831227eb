/** The life of one MCP server: starts it when first needed and restarts it with growing pauses. */

import type { JsonObject } from '../../../../lib/json/json.ts';
import { unlessAborted } from '../../../../lib/loop/abort.ts';
import { messageOf } from '../../../../lib/text/thrown.ts';
import { OUTCOME_UNKNOWN, ToolError, type ToolLog } from '../../tool.ts';
import type { Dial, McpServerOptions, McpSession } from './dial.ts';
import type { McpTool } from './result.ts';

const FIRST_PAUSE = 1000;
const MAX_PAUSE = 60_000;
/** Milliseconds: a server that ran this long has started well, so its failures are forgotten. */
const STABLE_AFTER_MS = 30_000;
/** Milliseconds: a call waits for the end of a pause this short. */
const SHORT_PAUSE = 1500;

type ServerState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'starting'; readonly session: Promise<McpSession> }
  | { readonly kind: 'up'; readonly session: McpSession; readonly since: number }
  | { readonly kind: 'down'; readonly until: number; readonly why: string }
  | { readonly kind: 'closed' };

export interface McpServerContext {
  readonly dial: Dial;
  readonly log: ToolLog;
  /** The list of tools has changed. */
  readonly onTools: () => void;
  /** Milliseconds; `performance.now` when left out. */
  readonly now?: () => number;
}

export class McpServer {
  readonly name: string;
  /** The server's latest list; it stays while the server is down, so that prompts stay the same. */
  tools: readonly McpTool[] = [];
  /** A first start has been tried, with or without success. */
  attempted = false;
  readonly #now: () => number;
  readonly #ending = new AbortController();
  #state: ServerState = { kind: 'idle' };
  #failures = 0;

  constructor(
    private readonly options: McpServerOptions,
    private readonly context: McpServerContext,
  ) {
    this.name = options.name;
    this.#now = context.now ?? (() => performance.now());
  }

  /** It is not running, and no pause is pending. */
  get startable(): boolean {
    const state = this.#state;
    return state.kind === 'idle' || (state.kind === 'down' && state.until <= this.#now());
  }

  /** Starts it where needed. @throws ToolError when it is not available now */
  async start(signal: AbortSignal): Promise<void> {
    await this.#session(signal);
  }

  /** @throws ToolError, or the signal's reason */
  async call(
    tool: Pick<McpTool, 'name' | 'repeatable'>,
    args: JsonObject,
    signal: AbortSignal,
  ): Promise<JsonObject> {
    for (let isRetry = false; ; isRetry = true) {
      const open = await this.#session(signal);
      try {
        const result = await open.call(tool.name, args, signal);
        this.#failures = 0;
        return result;
      } catch (thrown) {
        if (signal.aborted) throw signal.reason;
        // The server has restarted and did not run this call, so it may be sent again.
        const sessionLost = isSessionLost(thrown);
        if (sessionLost || unreachable(thrown)) this.#drop(open);
        if (sessionLost && !isRetry) continue;
        const isUnknown = tool.repeatable !== true && isAnswerLost(thrown);
        const hint = isUnknown ? ` ${OUTCOME_UNKNOWN}` : '';
        throw new ToolError(`The MCP server "${this.name}" failed: ${reasonText(thrown)}.${hint}`, {
          retryable: !isUnknown && !FINAL.has(codeOf(thrown)),
          cause: thrown,
        });
      }
    }
  }

  /** Ends it for good. */
  async close(): Promise<void> {
    const last = this.#state;
    this.#state = { kind: 'closed' };
    this.#ending.abort(new Error('the gateway is stopping'));
    const isOpen = last.kind === 'up' || last.kind === 'starting';
    const open = isOpen ? await Promise.resolve(last.session).catch(() => undefined) : undefined;
    await open?.close().catch(() => {});
  }

  async #session(signal: AbortSignal): Promise<McpSession> {
    signal.throwIfAborted();
    if (this.#state.kind === 'down') {
      const rest = this.#state.until - this.#now();
      if (rest > SHORT_PAUSE) throw this.#unavailable(this.#state.why);
      if (rest > 0) await sleep(rest, signal);
    }
    const state = this.#state;
    switch (state.kind) {
      case 'closed':
        throw this.#unavailable('the gateway is stopping');
      case 'up':
        return state.session;
      case 'starting':
        return unlessAborted(state.session, signal);
      default: {
        const session = this.#open();
        this.#state = { kind: 'starting', session };
        return unlessAborted(session, signal);
      }
    }
  }

  async #open(): Promise<McpSession> {
    const { dial } = this.context;
    const timeout = AbortSignal.timeout(this.options.timeoutMs);
    const signal = AbortSignal.any([this.#ending.signal, timeout]);
    let own: McpSession | undefined;
    let over = false;
    const again = this.#listAgain(() => over);
    const listeners = {
      onClose: () => {
        over = true;
        const state = this.#state;
        if (state.kind !== 'up' || state.session !== own) return;
        if (this.#now() - state.since >= STABLE_AFTER_MS) this.#failures = 0;
        this.#fail('it ended');
      },
      onToolsChanged: () => {
        if (own !== undefined) void again(own);
      },
      onToolSkipped: (tool: string, why: string) => this.#log('tool_skipped', { tool, why }),
      onStderrLine: (line: string) => this.#log('stderr', { line }),
    };
    try {
      own = await dial(this.options, listeners, signal);
      const found = await own.list();
      if (over) throw new Error('it ended right away');
      if (this.#ending.signal.aborted) throw this.#ending.signal.reason;
      this.#adopt(found);
      this.#state = { kind: 'up', session: own, since: this.#now() };
      this.#log('up', { tools: found.length });
      return own;
    } catch (thrown) {
      await own?.close().catch(() => {});
      const why = timeout.aborted ? 'it did not start in time' : reasonText(thrown);
      if (this.#state.kind !== 'closed') this.#fail(why);
      throw this.#unavailable(why);
    } finally {
      this.attempted = true;
    }
  }

  /** One list at a time: however often a server says that its tools have changed, the next list has it all. */
  #listAgain(isOver: () => boolean): (session: McpSession) => Promise<void> {
    let listing = false;
    let changed = false;
    return async (session) => {
      changed = true;
      if (listing) return;
      listing = true;
      while (changed && !isOver()) {
        changed = false;
        try {
          this.#adopt(await session.list());
        } catch (thrown) {
          this.#log('list.failed', { why: reasonText(thrown) });
        }
      }
      listing = false;
    };
  }

  #adopt(found: readonly McpTool[]): void {
    if (JSON.stringify(found) === JSON.stringify(this.tools)) return;
    this.tools = found;
    this.context.onTools();
  }

  #fail(why: string): void {
    this.#failures++;
    const pauseMs = Math.min(MAX_PAUSE, FIRST_PAUSE * 2 ** (this.#failures - 1));
    this.#state = { kind: 'down', until: this.#now() + pauseMs, why };
    this.#log('down', { why, failures: this.#failures, pauseMs });
  }

  /** Drops a session that the server has lost or that cannot be reached; the next use opens another. */
  #drop(lost: McpSession): void {
    if (this.#state.kind !== 'up' || this.#state.session !== lost) return;
    this.#state = { kind: 'idle' };
    lost.close().catch(() => {});
  }

  #unavailable(why: string): ToolError {
    const message = `The MCP server "${this.name}" is not available: ${why}.`;
    return new ToolError(message, { retryable: true });
  }

  #log(event: string, fields: JsonObject): void {
    this.context.log(`mcp.${event}`, { server: this.name, ...fields });
  }
}

/** The arguments are wrong (JSON-RPC), or the operator's key is: the same call fails again. */
const FINAL: ReadonlySet<unknown> = new Set([-32602, 401, 403]);
const codeOf = (thrown: unknown) => (thrown as { code?: unknown } | null)?.code;
/** The runtime's codes are strings (`ECONNRESET`, `ConnectionRefused`), those of HTTP and JSON-RPC numbers. */
const unreachable = (thrown: unknown) => typeof codeOf(thrown) === 'string';

/** The SDK's codes for a connection that closed and for an answer that did not come in time. */
const CONNECTION_CLOSED = -32000;
const REQUEST_TIMEOUT = -32001;
const NEVER_SENT: ReadonlySet<unknown> = new Set([
  'ConnectionRefused',
  'ECONNREFUSED',
  'ENOTFOUND',
]);

/** May the server have run the call, although no answer to it came? */
function isAnswerLost(thrown: unknown): boolean {
  const code = codeOf(thrown);
  if (code === CONNECTION_CLOSED || code === REQUEST_TIMEOUT) return true;
  if (typeof code === 'number') return code >= 500 && code !== 503;
  return !NEVER_SENT.has(code);
}

/**
 * Has the server lost the session? The specification says 404; servers built on the official SDKs also
 * answer 400 or a JSON-RPC error whose message mentions the session.
 * @see https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#session-management
 */
function isSessionLost(thrown: unknown): boolean {
  const code = codeOf(thrown);
  if (code === 404 || code === 410) return true;
  if (code !== 400 && !(typeof code === 'number' && code < 0)) return false;
  const message = thrown instanceof Error ? thrown.message.slice(0, 2000) : '';
  return /\bsession\b|\bnot (?:yet )?initialized\b/i.test(message) && SESSION_LOST.test(message);
}

const SESSION_LOST =
  /\b(?:no valid|invalid|not found|unknown|missing|required|expired|terminated|does not exist|not initialized|not yet initialized)\b/i;

/** The error's message on one line, without the SDK's prefix. */
function reasonText(thrown: unknown): string {
  if (thrown instanceof Error && thrown.name === 'ZodError') {
    return 'it answered with what is no message of the protocol';
  }
  const message = messageOf(thrown);
  return message
    .replace(/^MCP error -?\d+: /, '')
    .replace(/^Streamable HTTP error: Error POSTing to endpoint:/, `status ${codeOf(thrown)}:`)
    .replace(/\s+/g, ' ')
    .replace(/\.$/, '')
    .slice(0, 500);
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return unlessAborted(new Promise((resolve) => setTimeout(resolve, ms)), signal);
}
