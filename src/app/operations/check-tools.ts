/** Checks of `hopgate doctor` for server tools: starts each MCP server and reaches the server of each HTTP tool. */

import type { ToolCheck } from '../../cli/command.ts';
import type { Config } from '../../config/config.ts';
import { revealed } from '../../features/server-tools/tools/configured-tool.ts';
import type { HttpToolOptions } from '../../features/server-tools/tools/http/index.ts';
import { dialer, type McpServerOptions } from '../../features/server-tools/tools/mcp/dial.ts';

/**
 * Runs no tool: an MCP server is asked for its list, an HTTP tool's address for its headers.
 * @param timeoutMs milliseconds for each
 */
export function checkTools(
  { serverTools }: Config,
  version: string,
  timeoutMs: number,
): Promise<readonly ToolCheck[]> {
  return Promise.all([
    ...serverTools.mcp.map((server) => checkMcp(server, version, timeoutMs)),
    ...serverTools.http.map((tool) => checkHttp(tool, timeoutMs)),
  ]);
}

async function checkMcp(
  server: McpServerOptions,
  version: string,
  timeoutMs: number,
): Promise<ToolCheck> {
  const about = `mcp ${server.name}`;
  const words: string[] = [];
  const listeners = {
    onClose: () => {},
    onToolsChanged: () => {},
    onToolSkipped: (tool: string, why: string) =>
      words.push(`the tool ${tool} is left out: ${why}`),
    onStderrLine: (line: string) => words.push(line),
  };
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const session = await dialer(version)({ ...server, timeoutMs }, listeners, signal);
    try {
      const { length } = await session.list();
      return { about, status: length === 0 ? 'warn' : 'ok', message: `started, ${length} tools` };
    } finally {
      await session.close().catch(() => {});
    }
  } catch (thrown) {
    const why = signal.aborted
      ? `it did not start within ${timeoutMs / 1000} s`
      : thrown instanceof Error
        ? thrown.message
        : String(thrown);
    // The last lines of a program say more than its exit.
    return { about, status: 'fail', message: [why, ...words.slice(-3)].join('; ') };
  }
}

async function checkHttp(tool: HttpToolOptions, timeoutMs: number): Promise<ToolCheck> {
  const about = `tool ${tool.name}`;
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    // HEAD runs nothing (RFC 9110, 9.2.1). Places for arguments have no value here.
    const { origin, pathname } = new URL(tool.url.split('{', 1)[0]!);
    const { status } = await fetch(`${origin}${pathname}`, {
      method: 'HEAD',
      redirect: 'manual',
      signal,
      headers: revealed(tool.headers),
    });
    if (status === 401 || status === 403) {
      return {
        about,
        status: 'warn',
        message: `${origin} answers HEAD with ${status}: is its key right?`,
      };
    }
    const ok = status < 500 || status === 501;
    return { about, status: ok ? 'ok' : 'warn', message: `${origin} answers (${status})` };
  } catch (thrown) {
    const code = (thrown as { code?: unknown }).code;
    const why = signal.aborted
      ? `no answer within ${timeoutMs / 1000} s`
      : String(code ?? 'no connection');
    return { about, status: 'fail', message: `cannot be reached: ${why}` };
  }
}
