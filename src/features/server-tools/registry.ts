/** The registry of server tools, by the names under which models call them. */

import type { ServerTool } from './tool.ts';

export interface ToolRegistry {
  readonly tools: readonly ServerTool[];
  /** By canonical name or alias. */
  named(name: string): ServerTool | undefined;
  /** The tool that stands in for a hosted tool of this canonical name. */
  standIn(hosted: string): ServerTool | undefined;
  /** Some of the tools are not known yet; `ready` finds out. Left out: all are. */
  readonly starting?: boolean;
  /**
   * Starts the sources of tools and waits a limited time for them. Rejects only with the signal.
   * @param userText the user's latest text: tools that it does not call for are not waited for
   */
  ready?(signal: AbortSignal, userText?: () => string): Promise<void>;
}

const LEGAL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * @throws Error when two tools share a name or alias or stand in for the same hosted tool, or when a
 * name is one that upstreams refuse
 */
export function toolRegistry(tools: readonly ServerTool[]): ToolRegistry {
  const names = new Map<string, ServerTool>();
  const hosted = new Map<string, ServerTool>();
  for (const tool of tools) {
    for (const name of [tool.name, ...(tool.aliases ?? [])]) {
      if (!LEGAL_NAME.test(name)) throw new Error(`Server tool name '${name}' is not legal.`);
      if (names.has(name)) throw new Error(`Two server tools are called '${name}'.`);
      names.set(name, tool);
    }
    if (tool.hosted === undefined) continue;
    if (hosted.has(tool.hosted)) {
      throw new Error(`Two server tools stand in for the hosted tool '${tool.hosted}'.`);
    }
    hosted.set(tool.hosted, tool);
  }
  return {
    tools,
    named: (name) => names.get(name),
    standIn: (name) => hosted.get(name),
  };
}

/** A source of tools that cannot be listed beforehand; `tools` is the same object as long as nothing changed. */
export type ToolSource = Required<Pick<ToolRegistry, 'tools' | 'starting' | 'ready'>>;

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
