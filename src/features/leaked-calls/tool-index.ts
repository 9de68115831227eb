/** Finds a request's tools by the spellings of their names that models use. */

import { toolNames } from '../../conversation/tools/tool-names.ts';
import type { Tool, ToolKind } from '../../conversation/types.ts';
import type { JsonObject } from '../../lib/json/json.ts';

export interface KnownTool {
  readonly name: string;
  readonly namespace?: string;
  readonly kind: ToolKind;
  /** JSON Schema of the input; empty if the client gave none. */
  readonly schema: JsonObject;
}

export interface ToolIndex {
  readonly size: number;
  /** The tool that a leaked name refers to, or undefined. */
  resolve(spelled: string): KnownTool | undefined;
  /** Does the gateway itself run calls of this name? */
  runsHere(name: string): boolean;
}

const NO_SCHEMA: JsonObject = {};

/**
 * Indexes tools of the client and of the gateway, not those that the vendor runs. An ambiguous name finds
 * none. The spellings are made on the first search, since most answers contain no call.
 */
export function toolIndex(tools: readonly Tool[]): ToolIndex {
  let find: FindTool | undefined;
  return {
    size: tools.reduce((sum, { type }) => (type === 'hosted' ? sum : sum + 1), 0),
    resolve(spelled) {
      find ??= spellingsOf(tools);
      const name = spelled.trim().replace(/^["'`]|["'`]$/g, '');
      // Kimi's `functions.NAME:IDX`, Harmony's `functions.NAME`, Gemini's `default_api:NAME`, Python's dotted names.
      const bare = name.replace(/^(?:functions?|default_api)[.:/]/, '').replace(/:\d+$/, '');
      return find(name) ?? find(bare) ?? find(bare.slice(bare.lastIndexOf('.') + 1));
    },
    runsHere: (name) =>
      tools.some((tool) => tool.type === 'function' && tool.runsHere?.includes(name) === true) &&
      // A client's tool of the same name takes precedence.
      !tools.some((tool) => tool.type !== 'hosted' && tool.name === name && !isOurs(tool)),
  };
}

const isOurs = (tool: Tool) => tool.type === 'function' && tool.runsHere !== undefined;

type FindTool = (name: string) => KnownTool | undefined;

function spellingsOf(tools: readonly Tool[]): FindTool {
  const exact = new Map<string, KnownTool>();
  const loose = new Map<string, KnownTool | undefined>();
  const flat = toolNames(tools, 64);
  for (const tool of tools) {
    if (tool.type === 'hosted') continue;
    const { name, namespace } = tool;
    const known: KnownTool = {
      name,
      namespace,
      kind: tool.type === 'custom' ? 'custom' : (tool.callKind ?? 'function'),
      schema: (tool.type === 'function' ? tool.schema : undefined) ?? NO_SCHEMA,
    };
    const spellings =
      namespace === undefined
        ? [name, flat.flat(name)]
        : [flat.flat(name, namespace), `${namespace}.${name}`, `${namespace}__${name}`];
    for (const spelling of spellings) if (!exact.has(spelling)) exact.set(spelling, known);
    const before = loose.has(name);
    loose.set(name, before ? undefined : known);
  }
  return (name) => exact.get(name) ?? loose.get(name);
}
