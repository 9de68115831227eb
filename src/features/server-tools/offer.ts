/** Which server tools a request is offered: what the client declared, what the text asks for, what the route forces. */

import type { Target } from '../../conversation/target.ts';
import type { Conversation, HostedTool, Turn } from '../../conversation/types.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import type { ToolRegistry } from './registry.ts';
import type { ServerTool } from './tool.ts';

/** One tool in one exchange. */
export interface Offered {
  readonly tool: ServerTool;
  /** The function's name in requests to the upstream. */
  readonly name: string;
  /** The client asked for the hosted tool: it is shown calls, results and citations. */
  readonly declared: HostedTool | undefined;
  /** The declaration's options, `{}` where there is none. */
  readonly options: JsonObject;
  /** Calls in this exchange; Infinity where nobody limits them. */
  readonly maxUses: number;
}

export interface Offer {
  /** In the order of the registry. */
  readonly list: readonly Offered[];
  /** By the function's name and by aliases that nobody else uses. */
  byName(name: string): Offered | undefined;
}

export const NOTHING: Offer = { list: [], byName: () => undefined };

/** Does the target run this hosted tool itself? Only where its profile says so. */
export const isNative = (hosted: string, target: Target): boolean =>
  target.profile.hostedTools?.includes(hosted) === true;

/**
 * The offer for a conversation as the client asked it. Pure: the same for every hop on one target. A
 * hosted tool that the target serves stays its own; a function of the client's own keeps its name,
 * and a stand-in for a declared tool then goes by another.
 * @param history the turns as the upstream gets them, hidden calls and all; asked for where it matters
 */
export function offerFor(
  asked: Conversation,
  target: Target,
  registry: ToolRegistry,
  history: () => readonly Turn[] = () => asked.turns,
): Offer {
  const taken = new Set<string>();
  const hosted = new Map<string, HostedTool>();
  for (const tool of asked.tools) {
    if (tool.type !== 'hosted') {
      if (tool.namespace === undefined) taken.add(tool.name);
    } else if (!hosted.has(tool.name)) hosted.set(tool.name, tool);
  }
  let called: ReadonlySet<string> | undefined;
  const isCalled = ({ name, aliases = [] }: ServerTool) => {
    called ??= calledIn(history());
    return called.size > 0 && [name, ...aliases].some((one) => called!.has(one));
  };
  const list: Offered[] = [];
  const names = new Map<string, Offered>();
  for (const tool of registry.tools) {
    const declared = tool.hosted === undefined ? undefined : hosted.get(tool.hosted);
    if (declared !== undefined && isNative(declared.name, target)) continue;
    if (declared === undefined && !isWanted(tool, asked, isCalled)) continue;
    const name = freeName(tool.name, taken, declared !== undefined);
    if (name === undefined) continue;
    const offered = offeredAs(tool, name, declared);
    list.push(offered);
    names.set(name, offered);
    for (const alias of [tool.name, ...(tool.aliases ?? [])]) {
      if (!taken.has(alias) && !names.has(alias)) names.set(alias, offered);
    }
  }
  return list.length === 0 ? NOTHING : { list, byName: (name) => names.get(name) };
}

function freeName(name: string, taken: ReadonlySet<string>, declared: boolean): string | undefined {
  if (!taken.has(name)) return name;
  const other = `hopgate_${name}`;
  return declared && !taken.has(other) ? other : undefined;
}

function offeredAs(tool: ServerTool, name: string, declared: HostedTool | undefined): Offered {
  const options = declared?.options ?? {};
  const asked = typeof options.max_uses === 'number' ? options.max_uses : Infinity;
  const maxUses = Math.min(asked, tool.limits.maxUses ?? Infinity);
  return { tool, name, declared, options, maxUses };
}

/**
 * Undeclared tools: always, or where the latest words of the user call for them. One that was called before
 * stays: a model that sees calls of a tool it does not have writes them as text, and another list of tools
 * costs the prompt cache.
 */
function isWanted(
  tool: ServerTool,
  asked: Conversation,
  isCalled: (tool: ServerTool) => boolean,
): boolean {
  if (asked.settings.toolChoice?.type === 'none') return tool.pinned === true;
  if (tool.inject === 'force') return true;
  if (tool.inject !== 'selective' || tool.wanted === undefined) return false;
  return tool.wanted(latestUserText(asked.turns)) || isCalled(tool);
}

/** Names of the functions that are called in a history. */
function calledIn(turns: readonly Turn[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { role, blocks } of turns) {
    if (role !== 'assistant') continue;
    for (const block of blocks) {
      if (block.type === 'tool-call' && block.by !== 'provider') names.add(block.name);
    }
  }
  return names;
}

/** The text of the last turn in which the user said something; results of tools are no words of theirs. */
export function latestUserText(turns: readonly Turn[]): string {
  for (let at = turns.length - 1; at >= 0; at--) {
    const turn = turns[at]!;
    if (turn.role !== 'user') continue;
    const said: string[] = [];
    for (const block of turn.blocks) if (block.type === 'text') said.push(block.text);
    if (said.some((text) => text.trim() !== '')) return said.join('\n');
  }
  return '';
}
