/** The registry: which server tools there are, and by which names models call them. */

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
   * Has the sources of tools started, as far as one may wait for that. Rejects only with the signal.
   * @param said the latest words of the user: for tools that these do not call for nobody waits
   */
  ready?(signal: AbortSignal, said?: () => string): Promise<void>;
}

const LEGAL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * @throws Error when two tools share a name or alias, stand in for the same hosted tool, or have a
 * name that no upstream takes
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
