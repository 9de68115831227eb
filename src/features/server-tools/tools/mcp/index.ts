/** MCP servers as a source of server tools: each of their tools becomes `mcp__<server>__<tool>`. */

import { within } from '../../../../lib/loop/abort.ts';
import type { ToolSource } from '../../registry.ts';
import type { ServerTool, ToolLog } from '../../tool.ts';
import { offeredFor } from '../configured-tool.ts';
import { type Dial, dialer, type McpServerOptions } from './dial.ts';
import { isAllowed, type McpTool, mcpOutcome, mcpSchema, mcpToolName } from './result.ts';
import { McpServer } from './server.ts';

export interface McpToolsServer extends McpServerOptions {
  /** Its tools are offered where the user's latest text contains one of these; always when left out. */
  readonly keywords?: readonly string[];
  /** Names or globs of the tools to offer; all when left out. */
  readonly tools?: readonly string[];
}

export interface McpToolsOptions {
  readonly servers: readonly McpToolsServer[];
  readonly log: ToolLog;
  /** This program's version, reported to servers. */
  readonly version: string;
  /** Milliseconds that requests wait for servers to start; 15 s when left out. */
  readonly startWaitMs?: number;
  /** For tests. */
  readonly dial?: Dial;
}

/**
 * No server starts before the first `ready`. It waits only for servers that start for the first time and whose keywords
 * are in the user's latest text, for a limited time, and never rejects: a server that fails has no tools yet.
 */
export interface McpTools extends ToolSource {
  /** Ends every server. */
  close(): Promise<void>;
}

const START_WAIT_MS = 15_000;

export function mcpTools(options: McpToolsOptions): McpTools {
  const dial = options.dial ?? dialer(options.version);
  let cachedTools: readonly ServerTool[] | undefined;
  /** Until when requests wait for first starts: one limit for all requests together. */
  let deadline: number | undefined;
  const onTools = () => {
    cachedTools = undefined;
  };
  const servers = options.servers.map((server) => ({
    ...server,
    offered: offeredFor(server.keywords),
    running: new McpServer(server, { dial, log: options.log, onTools }),
  }));

  const collect = (): readonly ServerTool[] => {
    const names = new Set<string>();
    return servers.flatMap((server) =>
      server.running.tools
        .filter((tool) => isAllowed(tool.name, server.tools))
        .map((tool) => serverTool(server, server.running, tool))
        .filter(({ name }) => !names.has(name) && names.add(name)),
    );
  };

  return {
    get tools() {
      cachedTools ??= collect();
      return cachedTools;
    },
    get starting() {
      return servers.some(({ running }) => !running.attempted);
    },
    async ready(signal, userText) {
      const first: Promise<void>[] = [];
      for (const { running, offered } of servers) {
        if (running.attempted && !running.startable) continue;
        const start = running.start(signal).catch(() => {});
        const awaited = userText === undefined || offered.wanted?.(userText()) !== false;
        if (!running.attempted && awaited) first.push(start);
      }
      if (first.length === 0) return;
      deadline ??= performance.now() + (options.startWaitMs ?? START_WAIT_MS);
      const rest = deadline - performance.now();
      // The start continues after this wait; a later request finds it done.
      if (rest > 0) await within(rest, Promise.all(first), () => {});
    },
    async close() {
      await Promise.allSettled(servers.map(({ running }) => running.close()));
    },
  };
}

function serverTool(server: McpToolsServer, running: McpServer, tool: McpTool): ServerTool {
  const name = mcpToolName(server.name, tool.name);
  return {
    name,
    description: tool.description ?? tool.title ?? tool.name,
    schema: mcpSchema(tool),
    ...offeredFor(server.keywords),
    limits: { timeoutMs: server.timeoutMs },
    changes: tool.repeatable !== true,
    async run(args, { signal }) {
      const started = performance.now();
      const outcome = mcpOutcome(name, await running.call(tool, args, signal));
      return {
        ...outcome,
        log: { server: server.name, ms: Math.round(performance.now() - started) },
      };
    },
  };
}
