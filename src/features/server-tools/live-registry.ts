/** A registry whose tools may change, for MCP servers: their tools are known once they run. */

import { type ToolRegistry, toolRegistry } from './registry.ts';
import type { ServerTool } from './tool.ts';

/** A source of tools that cannot be listed beforehand. */
export interface ToolSource {
  /** The tools known now; the same list object as long as nothing changed. */
  readonly tools: readonly ServerTool[];
  /** It has not been started yet, so its tools are unknown. */
  readonly starting: boolean;
  /** As {@link ToolRegistry.ready}. */
  ready(signal: AbortSignal, userText?: () => string): Promise<void>;
}

/**
 * The program's own tools, then those that the source knows at the moment. A tool of the source whose
 * name is taken is left out, so no server can replace one of the program's tools.
 * @throws Error as {@link toolRegistry}, for the fixed ones
 */
export function liveRegistry(fixed: readonly ServerTool[], source: ToolSource): ToolRegistry {
  const own = toolRegistry(fixed);
  let from = source.tools;
  let now = joined(own, from);
  const current = () => {
    if (source.tools !== from) {
      from = source.tools;
      now = joined(own, from);
    }
    return now;
  };
  return {
    get tools() {
      return current().tools;
    },
    named: (name) => current().named(name),
    standIn: (hosted) => current().standIn(hosted),
    get starting() {
      return source.starting;
    },
    ready: (signal, userText) => source.ready(signal, userText),
  };
}

function joined(own: ToolRegistry, more: readonly ServerTool[]): ToolRegistry {
  const free = more.filter(({ name }) => own.named(name) === undefined);
  return free.length === 0 ? own : toolRegistry([...own.tools, ...free]);
}
