/** A registry over tools that come and go: those of MCP servers, which are known once they run. */

import { type ToolRegistry, toolRegistry } from './registry.ts';
import type { ServerTool } from './tool.ts';

/** Where tools come from that cannot be listed beforehand. */
export interface ToolSource {
  /** What is known now; the same list object as long as nothing changed. */
  readonly tools: readonly ServerTool[];
  /** It was not started yet, so its tools are not known. */
  readonly starting: boolean;
  /** As {@link ToolRegistry.ready}. */
  ready(signal: AbortSignal, said?: () => string): Promise<void>;
}

/**
 * The tools of the program itself, and behind them those that a source knows at the moment. A tool of
 * the source whose name is taken is left out: nothing that a server offers can replace one of ours.
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
    ready: (signal, said) => source.ready(signal, said),
  };
}

function joined(own: ToolRegistry, more: readonly ServerTool[]): ToolRegistry {
  const free = more.filter(({ name }) => own.named(name) === undefined);
  return free.length === 0 ? own : toolRegistry([...own.tools, ...free]);
}
