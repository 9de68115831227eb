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

export interface McpServer {
  readonly name: string;
  /** The server's latest list; it stays while the server is down, so that prompts stay the same. */
  readonly tools: readonly McpTool[];
  /** A first start has been tried, with or without success. */
  readonly attempted: boolean;
  /** It is not running, and no pause is pending. */
  readonly startable: boolean;
  /** Starts it where needed. @throws ToolError when it is not available now */
  start(signal: AbortSignal): Promise<void>;
  /** @throws ToolError, or the signal's reason */
  call(
    tool: Pick<McpTool, 'name' | 'repeatable'>,
    args: JsonObject,
    signal: AbortSignal,
  ): Promise<JsonObject>;
  /** Ends it for good. */
  close(): Promise<void>;
}

export interface McpServerContext {
  readonly dial: Dial;
  readonly log: ToolLog;
  /** The list of tools has changed. */
  readonly onTools: () => void;
  /** Milliseconds; `performance.now` when left out. */
  readonly now?: () => number;
}

export function mcpServer(options: McpServerOptions, context: McpServerContext): McpServer {
  const { name } = options;
  const now = context.now ?? (() => performance.now());
  const ending = new AbortController();
  let state: ServerState = { kind: 'idle' };
  let tools: readonly McpTool[] = [];
  let failures = 0;
  let attempted = false;

  const log = (event: string, fields: JsonObject = {}) =>
    context.log(`mcp.${event}`, { server: name, ...fields });

  const adopt = (found: readonly McpTool[]) => {
    if (JSON.stringify(found) === JSON.stringify(tools)) return;
    tools = found;
    context.onTools();
  };

  const fail = (why: string) => {
    failures++;
    const pause = Math.min(MAX_PAUSE, FIRST_PAUSE * 2 ** (failures - 1));
    state = { kind: 'down', until: now() + pause, why };
    log('down', { why, failures, pauseMs: pause });
  };

  const open = (): Promise<McpSession> => {
    let own: McpSession | undefined;
    let over = false;
    let listing = false;
    let changed = false;
    /** One list at a time: however often a server says that its tools have changed, the next list has it all. */
    const listAgain = async (session: McpSession) => {
      changed = true;
      if (listing) return;
      listing = true;
      while (changed && !over) {
        changed = false;
        try {
          adopt(await session.list());
        } catch (thrown) {
          log('list.failed', { why: reasonText(thrown) });
        }
      }
      listing = false;
    };
    const listeners = {
      onClose() {
        over = true;
        if (state.kind !== 'up' || state.session !== own) return;
        if (now() - state.since >= STABLE_AFTER_MS) failures = 0;
        fail('it ended');
      },
      onToolsChanged() {
        if (own !== undefined) void listAgain(own);
      },
      onToolSkipped: (tool: string, why: string) => log('tool_skipped', { tool, why }),
      onStderrLine: (line: string) => log('stderr', { line }),
    };
    const timeout = AbortSignal.timeout(options.timeoutMs);
    const signal = AbortSignal.any([ending.signal, timeout]);
    const opening = (async () => {
      try {
        const session = await context.dial(options, listeners, signal);
        own = session;
        const found = await session.list();
        if (over) throw new Error('it ended right away');
        if (ending.signal.aborted) throw ending.signal.reason;
        adopt(found);
        state = { kind: 'up', session, since: now() };
        log('up', { tools: found.length });
        return session;
      } catch (thrown) {
        await own?.close().catch(() => {});
        const why = timeout.aborted ? 'it did not start in time' : reasonText(thrown);
        if (state.kind !== 'closed') fail(why);
        throw unavailable(why);
      } finally {
        attempted = true;
      }
    })();
    state = { kind: 'starting', session: opening };
    return opening;
  };

  const unavailable = (why: string) =>
    new ToolError(`The MCP server "${name}" is not available: ${why}.`, { retryable: true });

  const session = async (signal: AbortSignal): Promise<McpSession> => {
    signal.throwIfAborted();
    if (state.kind === 'down') {
      const rest = state.until - now();
      if (rest > SHORT_PAUSE) throw unavailable(state.why);
      if (rest > 0) await sleep(rest, signal);
    }
    switch (state.kind) {
      case 'closed':
        throw unavailable('the gateway is stopping');
      case 'up':
        return state.session;
      case 'starting':
        return unlessAborted(state.session, signal);
      default:
        return unlessAborted(open(), signal);
    }
  };

  /** Drops a session that the server has lost or that cannot be reached; the next use opens another. */
  const drop = (lost: McpSession) => {
    if (state.kind !== 'up' || state.session !== lost) return;
    state = { kind: 'idle' };
    lost.close().catch(() => {});
  };

  return {
    name,
    get tools() {
      return tools;
    },
    get attempted() {
      return attempted;
    },
    get startable() {
      return state.kind === 'idle' || (state.kind === 'down' && state.until <= now());
    },
    async start(signal) {
      await session(signal);
    },
    async call(tool, args, signal) {
      for (let isRetry = false; ; isRetry = true) {
        const open = await session(signal);
        try {
          const result = await open.call(tool.name, args, signal);
          failures = 0;
          return result;
        } catch (thrown) {
          if (signal.aborted) throw signal.reason;
          // The server has restarted and did not run this call, so it may be sent again.
          const sessionLost = isSessionLost(thrown);
          if (sessionLost || unreachable(thrown)) drop(open);
          if (sessionLost && !isRetry) continue;
          const isUnknown = tool.repeatable !== true && isAnswerLost(thrown);
          const hint = isUnknown ? ` ${OUTCOME_UNKNOWN}` : '';
          throw new ToolError(`The MCP server "${name}" failed: ${reasonText(thrown)}.${hint}`, {
            retryable: !isUnknown && codeOf(thrown) !== INVALID_PARAMS,
            cause: thrown,
          });
        }
      }
    },
    async close() {
      const last = state;
      state = { kind: 'closed' };
      ending.abort(new Error('the gateway is stopping'));
      const open =
        last.kind === 'up'
          ? last.session
          : last.kind === 'starting'
            ? await last.session.catch(() => undefined)
            : undefined;
      await open?.close().catch(() => {});
    },
  };
}

const INVALID_PARAMS = -32602;
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
  const message = messageOf(thrown);
  return message
    .replace(/^MCP error -?\d+: /, '')
    .replace(/\s+/g, ' ')
    .replace(/\.$/, '')
    .slice(0, 500);
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return unlessAborted(new Promise((resolve) => setTimeout(resolve, ms)), signal);
}
