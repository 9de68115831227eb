/** MCP servers as a source of server tools: what they offer becomes `mcp__<server>__<tool>`. */

import type { ServerTool, ToolLog } from '../../tool.ts';
import { offeredFor } from '../keywords.ts';
import { type Dial, dialer, type McpServerOptions } from './dial.ts';
import { isAllowed, type McpTool, mcpOutcome, mcpSchema, mcpToolName } from './result.ts';
import { type McpServer, mcpServer } from './server.ts';

export interface McpToolsServer extends McpServerOptions {
  /** Its tools are offered where the latest words of the user hold one of these; always when left out. */
  readonly keywords?: readonly string[];
  /** Names or globs of tools that are offered; all of them when left out. */
  readonly tools?: readonly string[];
}

export interface McpToolsOptions {
  readonly servers: readonly McpToolsServer[];
  readonly log: ToolLog;
  /** What servers are told of this program. */
  readonly version: string;
  /** Milliseconds that a request waits for servers to start; 15 s when left out. */
  readonly patienceMs?: number;
  /** For tests. */
  readonly dial?: Dial;
}

export interface McpTools {
  /** What is known now; the same list object as long as nothing changed. Empty before `ready`. */
  readonly tools: readonly ServerTool[];
  /** There are servers that nobody has started yet, so their tools are not known. */
  readonly starting: boolean;
  /**
   * Starts the servers that are not running (no server is started before this). Waits for those that
   * start for the first time, but no longer than its patience; a restart holds nobody up, nor does a
   * server whose keywords are not in the latest words of the user. Never rejects: a server that fails
   * has no tools yet.
   */
  ready(signal: AbortSignal, said?: () => string): Promise<void>;
  /** Ends every server. */
  close(): Promise<void>;
}

const PATIENCE = 15_000;

export function mcpTools(options: McpToolsOptions): McpTools {
  const dial = options.dial ?? dialer(options.version);
  let known: readonly ServerTool[] | undefined;
  /** Until when anybody waits for first starts: one patience for all requests, not one for each. */
  let deadline: number | undefined;
  const onTools = () => {
    known = undefined;
  };
  const servers = options.servers.map((server) => ({
    ...server,
    offered: offeredFor(server.keywords),
    running: mcpServer(server, { dial, log: options.log, onTools }),
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
      known ??= collect();
      return known;
    },
    get starting() {
      return servers.some(({ running }) => !running.met);
    },
    async ready(signal, said) {
      const first: Promise<void>[] = [];
      for (const { running, offered } of servers) {
        if (running.met && !running.startable) continue;
        const start = running.start(signal).catch(() => {});
        const awaited = said === undefined || offered.wanted?.(said()) !== false;
        if (!running.met && awaited) first.push(start);
      }
      if (first.length === 0) return;
      deadline ??= performance.now() + (options.patienceMs ?? PATIENCE);
      const rest = deadline - performance.now();
      // Starting goes on when nobody waits any more; a later request finds it done.
      if (rest > 0) await within(rest, Promise.all(first));
    },
    async close() {
      await Promise.allSettled(servers.map(({ running }) => running.close()));
    },
  };
}

/** Resolves with the work, or when the time is over. */
function within(ms: number, work: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    void work.finally(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function serverTool(server: McpToolsServer, running: McpServer, tool: McpTool): ServerTool {
  const name = mcpToolName(server.name, tool.name);
  return {
    name,
    description: tool.description ?? tool.title ?? tool.name,
    schema: mcpSchema(tool),
    ...offeredFor(server.keywords),
    limits: { timeoutMs: server.timeoutMs },
    async run(args, { signal }) {
      const started = performance.now();
      const outcome = mcpOutcome(name, await running.call(tool.name, args, signal));
      return {
        ...outcome,
        log: { server: server.name, ms: Math.round(performance.now() - started) },
      };
    },
  };
}
