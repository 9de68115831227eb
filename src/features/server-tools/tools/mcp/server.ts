/** One MCP server's life: started when first needed, started again after it died, never in a rush. */

import type { JsonObject } from '../../../../lib/json/json.ts';
import { ToolError, type ToolLog } from '../../tool.ts';
import type { Dial, McpServerOptions, McpSession } from './dial.ts';
import type { McpTool } from './result.ts';

const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 60_000;
/** A server that lived this long did not die of its start. */
const SOUND_LIFE = 30_000;
/** A pause this short is waited for. */
const WORTH_WAITING = 1500;

type State =
  | { readonly kind: 'idle' }
  | { readonly kind: 'starting'; readonly session: Promise<McpSession> }
  | { readonly kind: 'up'; readonly session: McpSession; readonly since: number }
  | { readonly kind: 'down'; readonly until: number; readonly why: string }
  | { readonly kind: 'closed' };

export interface McpServer {
  readonly name: string;
  /** The last list that the server gave; kept while it is down, so that prompts stay the same. */
  readonly tools: readonly McpTool[];
  /** It was started once, whatever came of it. */
  readonly met: boolean;
  /** It is not running, and no pause is to be kept. */
  readonly startable: boolean;
  /** Starts it where needed. @throws ToolError when it cannot be had now */
  start(signal: AbortSignal): Promise<void>;
  /** @throws ToolError, or the signal's reason */
  call(tool: string, args: JsonObject, signal: AbortSignal): Promise<JsonObject>;
  /** Ends it for good. */
  close(): Promise<void>;
}

export interface McpServerContext {
  readonly dial: Dial;
  readonly log: ToolLog;
  /** The list is another one now. */
  readonly onTools: () => void;
  /** Milliseconds; `performance.now` when left out. */
  readonly now?: () => number;
}

export function mcpServer(options: McpServerOptions, context: McpServerContext): McpServer {
  const { name } = options;
  const now = context.now ?? (() => performance.now());
  const ending = new AbortController();
  let state: State = { kind: 'idle' };
  let tools: readonly McpTool[] = [];
  let failures = 0;
  let met = false;

  const log = (event: string, fields: JsonObject = {}) =>
    context.log(`mcp.${event}`, { server: name, ...fields });

  const adopt = (found: readonly McpTool[]) => {
    if (JSON.stringify(found) === JSON.stringify(tools)) return;
    tools = found;
    context.onTools();
  };

  const fail = (why: string) => {
    failures++;
    const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (failures - 1));
    state = { kind: 'down', until: now() + pause, why };
    log('down', { why, failures, pauseMs: pause });
  };

  const open = (): Promise<McpSession> => {
    let mine: McpSession | undefined;
    let over = false;
    const listeners = {
      onClose() {
        over = true;
        if (state.kind !== 'up' || state.session !== mine) return;
        if (now() - state.since >= SOUND_LIFE) failures = 0;
        fail('it ended');
      },
      onToolsChanged() {
        if (mine === undefined) return;
        mine.list().then(adopt, (thrown) => log('list.failed', { why: reason(thrown) }));
      },
      onToolSkipped: (tool: string, why: string) => log('tool_skipped', { tool, why }),
      onNoise: (line: string) => log('stderr', { line }),
    };
    const timeout = AbortSignal.timeout(options.timeoutMs);
    const signal = AbortSignal.any([ending.signal, timeout]);
    const opening = (async () => {
      try {
        const session = await context.dial(options, listeners, signal);
        mine = session;
        const found = await session.list();
        if (over) throw new Error('it ended right away');
        if (ending.signal.aborted) throw ending.signal.reason;
        adopt(found);
        state = { kind: 'up', session, since: now() };
        log('up', { tools: found.length });
        return session;
      } catch (thrown) {
        await mine?.close().catch(() => {});
        const why = timeout.aborted ? 'it did not start in time' : reason(thrown);
        if (state.kind !== 'closed') fail(why);
        throw down(why);
      } finally {
        met = true;
      }
    })();
    state = { kind: 'starting', session: opening };
    return opening;
  };

  const down = (why: string) =>
    new ToolError(`The MCP server "${name}" is not available: ${why}.`, { retryable: true });

  const session = async (signal: AbortSignal): Promise<McpSession> => {
    signal.throwIfAborted();
    if (state.kind === 'down') {
      const rest = state.until - now();
      if (rest > WORTH_WAITING) throw down(state.why);
      if (rest > 0) await sleep(rest, signal);
    }
    switch (state.kind) {
      case 'closed':
        throw down('the gateway is stopping');
      case 'up':
        return state.session;
      case 'starting':
        return unlessAborted(state.session, signal);
      default:
        return unlessAborted(open(), signal);
    }
  };

  /** A session that the server forgot or that cannot be reached: the next use opens another. */
  const drop = (dead: McpSession) => {
    if (state.kind !== 'up' || state.session !== dead) return;
    state = { kind: 'idle' };
    dead.close().catch(() => {});
  };

  return {
    name,
    get tools() {
      return tools;
    },
    get met() {
      return met;
    },
    get startable() {
      return state.kind === 'idle' || (state.kind === 'down' && state.until <= now());
    },
    async start(signal) {
      await session(signal);
    },
    async call(tool, args, signal) {
      for (let again = false; ; again = true) {
        const open = await session(signal);
        try {
          const result = await open.call(tool, args, signal);
          failures = 0;
          return result;
        } catch (thrown) {
          if (signal.aborted) throw signal.reason;
          // The server was started anew and did nothing with this call.
          const forgotten = isForgotten(thrown);
          if (forgotten || unreachable(thrown)) drop(open);
          if (forgotten && !again) continue;
          throw new ToolError(`The MCP server "${name}" failed: ${reason(thrown)}.`, {
            retryable: codeOf(thrown) !== INVALID_PARAMS,
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
/** Codes of the runtime are words (`ECONNRESET`, `ConnectionRefused`), those of HTTP and JSON-RPC numbers. */
const unreachable = (thrown: unknown) => typeof codeOf(thrown) === 'string';

/**
 * Does the server not know the session? The specification says 404; the servers of the official SDKs also
 * answer 400, or a JSON-RPC error, with words about the session.
 * @see https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#session-management
 */
function isForgotten(thrown: unknown): boolean {
  const code = codeOf(thrown);
  if (code === 404 || code === 410) return true;
  if (code !== 400 && !(typeof code === 'number' && code < 0)) return false;
  const words = thrown instanceof Error ? thrown.message.slice(0, 2000) : '';
  return /\bsession\b|\bnot (?:yet )?initialized\b/i.test(words) && LOST.test(words);
}

const LOST =
  /\b(?:no valid|invalid|not found|unknown|missing|required|expired|terminated|does not exist|not initialized|not yet initialized)\b/i;

/** In words, on one line, without the SDK's prefix. */
function reason(thrown: unknown): string {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return message
    .replace(/^MCP error -?\d+: /, '')
    .replace(/\s+/g, ' ')
    .replace(/\.$/, '')
    .slice(0, 500);
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return unlessAborted(new Promise((resolve) => setTimeout(resolve, ms)), signal);
}

function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}
