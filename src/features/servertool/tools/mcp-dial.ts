/** Opens a session with an MCP server through the official SDK, which is loaded when first needed. */

import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { isObject, type JsonObject } from '../../../lib/json.ts';
import type { McpTool } from './mcp-result.ts';
import { type Revealable, revealed } from './revealable.ts';

/** How a server is reached: by a program or by an address. */
export interface McpServerOptions {
  readonly name: string;
  readonly command?: string;
  readonly args: readonly string[];
  /** Besides PATH, HOME and the like; nothing else of this process's environment is handed on. */
  readonly env: Readonly<Record<string, Revealable>>;
  /** Never the directory this process was started in: programs obey what lies there. */
  readonly cwd: string;
  readonly url?: string;
  readonly headers: Readonly<Record<string, Revealable>>;
  /** Milliseconds for one call, and for the start. */
  readonly timeoutMs: number;
}

/** An open session. */
export interface McpSession {
  /** All pages of the list. */
  list(): Promise<readonly McpTool[]>;
  /** The result object of `tools/call`. */
  call(tool: string, args: JsonObject, signal: AbortSignal): Promise<JsonObject>;
  close(): Promise<void>;
}

export interface McpListeners {
  /** The session is over, whoever ended it. */
  onClose(): void;
  /** The server's tools are others now. */
  onToolsChanged(): void;
  /** A line the program wrote on stderr. */
  onNoise(line: string): void;
}

/** @throws whatever keeps the session from opening; the program is ended then */
export type Dial = (
  server: McpServerOptions,
  listeners: McpListeners,
  signal: AbortSignal,
) => Promise<McpSession>;

const MAX_PAGES = 100;

/** The dial that everybody uses. `version` is what servers are told of this program. */
export const dialer =
  (version: string): Dial =>
  async (server, listeners, signal) =>
    openSession(await transportOf(server, listeners), server, listeners, signal, version);

async function transportOf(server: McpServerOptions, listeners: McpListeners): Promise<Transport> {
  if (server.command === undefined) {
    const { StreamableHTTPClientTransport } = await import(
      '@modelcontextprotocol/sdk/client/streamableHttp.js'
    );
    return new StreamableHTTPClientTransport(new URL(server.url ?? ''), {
      requestInit: { headers: revealed(server.headers) },
      fetch: sameOrigin,
    }) as Transport;
  }
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
  const transport = new StdioClientTransport({
    command: server.command,
    args: [...server.args],
    env: revealed(server.env),
    cwd: server.cwd,
    // Not inherited: this process's stderr is its own log.
    stderr: 'pipe',
  });
  transport.stderr?.on('data', (chunk: Uint8Array) => {
    for (const line of new TextDecoder().decode(chunk).split('\n')) {
      if (line.trim() !== '') listeners.onNoise(line.slice(0, 1000));
    }
  });
  return transport;
}

/** Redirects are followed within one origin only: headers with keys must not travel. */
async function sameOrigin(input: string | URL, init?: RequestInit): Promise<Response> {
  let url = new URL(input);
  for (let hop = 0; ; hop++) {
    const response = await fetch(url.href, { ...init, redirect: 'manual' });
    const location = [301, 302, 307, 308].includes(response.status)
      ? response.headers.get('location')
      : null;
    if (location === null) return response;
    await response.body?.cancel();
    const next = new URL(location, url);
    if (next.origin !== url.origin || hop >= 3) throw new Error('redirects to somewhere else');
    url = next;
  }
}

/** Speaks the first words over a transport. Exported for servers that live in this process. */
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
  client.onclose = () => listeners.onClose();
  client.setNotificationHandler(types.ToolListChangedNotificationSchema, () =>
    listeners.onToolsChanged(),
  );
  const close = () => client.close();
  try {
    await client.connect(transport, { ...timing, signal });
  } catch (thrown) {
    await close().catch(() => {});
    throw thrown;
  }
  return {
    close,
    // Plain requests: the SDK's own methods compile a validator for every output schema and refuse
    // results that are not quite what the server announced.
    async list() {
      if (client.getServerCapabilities()?.tools === undefined) return [];
      const tools: McpTool[] = [];
      let cursor: string | undefined;
      for (let page = 0; page < MAX_PAGES; page++) {
        const params = cursor === undefined ? {} : { cursor };
        const request = { method: 'tools/list' as const, params };
        const result = await client.request(request, types.ListToolsResultSchema, timing);
        tools.push(...(result.tools as unknown as McpTool[]));
        cursor = result.nextCursor;
        if (cursor === undefined) break;
      }
      return tools;
    },
    async call(name, args, callSignal) {
      const request = { method: 'tools/call' as const, params: { name, arguments: args } };
      const options = { ...timing, signal: callSignal };
      const result = await client.request(request, types.CallToolResultSchema, options);
      return isObject(result) ? (result as JsonObject) : {};
    },
  };
}
