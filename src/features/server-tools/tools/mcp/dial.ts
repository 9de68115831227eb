/** Opens sessions with MCP servers through the official SDK, which is loaded when first needed. */

import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { isObject, type Json, type JsonObject } from '../../../../lib/json/json.ts';
import { unlessAborted } from '../../../../lib/loop/abort.ts';
import { fetchWithin, type Revealable, revealed } from '../configured-tool.ts';
import { boundedMessages, MessageTooLarge } from './bounded-messages.ts';
import { MAX_TOOLS, type McpTool, readTools, sizeOf } from './result.ts';

/** How a server is reached: as a program or at an address. */
export interface McpServerOptions {
  readonly name: string;
  readonly command?: string;
  readonly args: readonly string[];
  /** Added to PATH, HOME and the like; the rest of this process's environment is not passed on. */
  readonly env: Readonly<Record<string, Revealable>>;
  /** Never the directory this process was started in: programs read settings from there. */
  readonly cwd: string;
  readonly url?: string;
  readonly headers: Readonly<Record<string, Revealable>>;
  /** Milliseconds for one call, and for the start. */
  readonly timeoutMs: number;
}

/** An open session. */
export interface McpSession {
  /** The tools from all pages of the list. */
  list(): Promise<readonly McpTool[]>;
  /** The result object of `tools/call`. */
  call(tool: string, args: JsonObject, signal: AbortSignal): Promise<JsonObject>;
  close(): Promise<void>;
}

export interface McpListeners {
  /** The session is over, from either side. */
  onClose(): void;
  onToolsChanged(): void;
  /** The server's list contains an entry that is not a valid tool. */
  onToolSkipped(tool: string, why: string): void;
  /** The program wrote a line on stderr. */
  onStderrLine(line: string): void;
}

/** @throws whatever prevents the session; the program has been ended then */
export type Dial = (
  server: McpServerOptions,
  listeners: McpListeners,
  signal: AbortSignal,
) => Promise<McpSession>;

const MAX_PAGES = 100;

/** Statuses with which servers of the older transport refuse the newer one's first request. */
const OLDER_TRANSPORT_STATUSES = new Set<unknown>([400, 404, 405]);

/**
 * The dial used in production. It reports `version` to servers as this program's version. An address is
 * tried as streamable HTTP first and, where that is refused, as the older transport (HTTP with SSE).
 * @see https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#backwards-compatibility
 */
export const dialer =
  (version: string): Dial =>
  async (server, listeners, signal) => {
    const open = (transport: Transport) =>
      openSession(transport, server, listeners, signal, version);
    if (server.command !== undefined) return open(await stdioOf(server, server.command, listeners));
    const url = new URL(server.url ?? '');
    const init = { headers: revealed(server.headers) };
    /** Opens a session by HTTP; a message that is too large ends it, as it ends a program. */
    const openHttp = (make: (options: HttpOptions) => Transport) => {
      const transport = make({
        requestInit: init,
        fetch: async (input, init) =>
          boundedMessages(await sameOrigin(input, init), (why) => {
            transport.onerror?.(why);
            void transport.close();
          }),
      });
      return open(transport);
    };
    const { StreamableHTTPClientTransport } = await import(
      '@modelcontextprotocol/sdk/client/streamableHttp.js'
    );
    try {
      return await openHttp(
        (options) => new StreamableHTTPClientTransport(url, options) as Transport,
      );
    } catch (thrown) {
      const status = (thrown as { code?: unknown } | null)?.code;
      if (!OLDER_TRANSPORT_STATUSES.has(status) || signal.aborted) throw thrown;
      try {
        const { SSEClientTransport } = await import('@modelcontextprotocol/sdk/client/sse.js');
        return await openHttp((options) => new SSEClientTransport(url, options) as Transport);
      } catch {
        const message = thrown instanceof Error ? thrown.message : '';
        const detail = message.replace(/^.*Error POSTing to endpoint: /, '').trim();
        const why =
          detail === '' ? `status ${status}` : `status ${status}: ${detail.slice(0, 300)}`;
        throw new Error(`it speaks neither streamable HTTP (${why}) nor the older HTTP with SSE`, {
          cause: thrown,
        });
      }
    }
  };

async function stdioOf(
  server: McpServerOptions,
  command: string,
  listeners: McpListeners,
): Promise<Transport> {
  const [{ GuardedStdio }, { getDefaultEnvironment }, { JSONRPCMessageSchema }] = await Promise.all(
    [
      import('./stdio.ts'),
      import('@modelcontextprotocol/sdk/client/stdio.js'),
      import('@modelcontextprotocol/sdk/types.js'),
    ],
  );
  const guardEnv = getDefaultEnvironment();
  const { args, cwd } = server;
  return new GuardedStdio({
    program: { command, args, env: { ...guardEnv, ...revealed(server.env) }, cwd },
    guardEnv,
    read: (value) => JSONRPCMessageSchema.parse(value),
    onStderrLine: (line) => listeners.onStderrLine(line),
  });
}

interface HttpOptions {
  readonly requestInit: RequestInit;
  fetch(input: string | URL, init?: RequestInit): Promise<Response>;
}

/** Headers with keys must not reach another host. */
const sameOrigin = (input: string | URL, init: RequestInit = {}): Promise<Response> =>
  fetchWithin('it', new URL(input), init);

const MAX_TIMER_MS = 2 ** 31 - 1;
/** Milliseconds for a server to take note of the end of its session. */
const END_MS = 2000;

/** @see https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#session-management */
async function endSession(transport: Transport): Promise<void> {
  const { terminateSession } = transport as { terminateSession?: () => Promise<void> };
  if (terminateSession === undefined) return;
  const ended = terminateSession.call(transport);
  await unlessAborted(ended, AbortSignal.timeout(END_MS));
}

/** Initializes a session over a transport. Exported for tests with servers in the same process. */
export async function openSession(
  transport: Transport,
  server: Pick<McpServerOptions, 'timeoutMs'>,
  listeners: McpListeners,
  signal: AbortSignal,
  version = '0',
): Promise<McpSession> {
  const [{ Client }, types] = await Promise.all([
    import('@modelcontextprotocol/sdk/client/index.js'),
    import('@modelcontextprotocol/sdk/types.js'),
  ]);
  const client = new Client({ name: 'hopgate', version });
  const timing = { timeout: server.timeoutMs, maxTotalTimeout: server.timeoutMs };
  const starting = AbortSignal.any([signal, AbortSignal.timeout(server.timeoutMs)]);
  client.setNotificationHandler(types.ToolListChangedNotificationSchema, () =>
    listeners.onToolsChanged(),
  );
  const close = async () => {
    await endSession(transport).catch(() => {});
    await client.close();
  };
  try {
    // The SDK would cancel the initialize request when its time is over, which clients must not do.
    await unlessAborted(client.connect(transport, { timeout: MAX_TIMER_MS }), starting);
  } catch (thrown) {
    await close().catch(() => {});
    throw thrown;
  }
  let tooLarge: MessageTooLarge | undefined;
  client.onerror = (error) => {
    if (error instanceof MessageTooLarge) tooLarge = error;
  };
  client.onclose = () => listeners.onClose();
  return {
    close,
    // Plain requests, parsed here: the SDK's own methods refuse a whole list because of one invalid tool,
    // and results that differ from the server's announced schema.
    async list() {
      if (client.getServerCapabilities()?.tools === undefined) return [];
      const tools: McpTool[] = [];
      let size = 0;
      let cursor: Json | undefined;
      for (let page = 0; page < MAX_PAGES; page++) {
        const params = cursor === undefined ? {} : { cursor: cursor as string };
        const request = { method: 'tools/list' as const, params };
        const result = (await client.request(request, types.ResultSchema, timing)) as JsonObject;
        for (const tool of readTools(result.tools, listeners.onToolSkipped)) {
          size += sizeOf(tool);
          if (size > MAX_TOOLS) {
            const why = `with it, the tools have more than ${MAX_TOOLS} characters; those behind it are left out, too`;
            listeners.onToolSkipped(tool.name.slice(0, 200), why);
            return tools;
          }
          tools.push(tool);
        }
        cursor = result.nextCursor;
        if (typeof cursor !== 'string') break;
      }
      return tools;
    },
    async call(name, args, callSignal) {
      const request = { method: 'tools/call' as const, params: { name, arguments: args } };
      const options = { ...timing, signal: callSignal };
      try {
        const result = await client.request(request, types.ResultSchema, options);
        return isObject(result) ? (result as JsonObject) : {};
      } catch (thrown) {
        // The session ended with it, which alone the SDK tells.
        throw tooLarge === undefined
          ? thrown
          : Object.assign(tooLarge, { code: types.ErrorCode.ConnectionClosed });
      }
    },
  };
}
