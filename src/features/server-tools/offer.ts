/** Decides which server tools a request offers (declared by the client, wanted by its text, forced by the route), and writes them into it. */

import { mapUnchanged, withParts } from '../../conversation/edit.ts';
import type { Notes } from '../../conversation/notes.ts';
import type { Target } from '../../conversation/target.ts';
import type {
  CacheMark,
  Conversation,
  FunctionTool,
  HostedTool,
  Settings,
  Tool,
  ToolChoice,
  Turn,
} from '../../conversation/types.ts';
import { isObject, type JsonObject } from '../../lib/json/json.ts';
import type { ToolRegistry } from './registry.ts';
import type { ServerTool } from './tool.ts';

/** One tool in one exchange. */
export interface OfferedTool {
  readonly tool: ServerTool;
  /** The function's name in requests to the upstream. */
  readonly name: string;
  /** The client's declaration of the hosted tool: it is shown calls, results and citations. */
  readonly declared: HostedTool | undefined;
  /** The declaration's options, `{}` without a declaration. */
  readonly options: JsonObject;
  /** Calls in this exchange; Infinity without a limit. */
  readonly maxUses: number;
}

export interface Offer {
  /** In the order of the registry. */
  readonly tools: readonly OfferedTool[];
  /** How many tools found no room beside the client's: the target takes no more. */
  readonly leftOut: number;
  /** By the function's name, or by an alias that no other tool uses. */
  byName(name: string): OfferedTool | undefined;
}

export const EMPTY_OFFER: Offer = { tools: [], leftOut: 0, byName: () => undefined };

/** Where the tools of a request stand: as the client declared them. */
export type Declared = Pick<Conversation, 'tools' | 'origin'>;

const isRun = (hosted: string, { profile }: Target): boolean =>
  profile.hostedTools?.includes(hosted) === true;

/**
 * Does the target run this hosted tool itself? Only where its profile says so, and not beside functions where it
 * refuses both. A client of the vendor's own protocol knows what it takes together.
 */
export const isNative = (hosted: string, target: Target, { tools, origin }: Declared): boolean =>
  isRun(hosted, target) &&
  (target.profile.hostedWithFunctions !== false ||
    origin?.protocol === target.protocol ||
    !tools.some((tool) => tool.type !== 'hosted' || !isRun(tool.name, target)));

/** Functions that the client did not ask for would take a tool from it that the target runs for it. */
const leavesNoRoom = ({ tools }: Conversation, target: Target): boolean =>
  target.profile.hostedWithFunctions === false &&
  tools.length > 0 &&
  tools.every((tool) => tool.type === 'hosted' && isRun(tool.name, target));

/**
 * The offer for a conversation as the client sent it. Pure: the same for every hop on one target. A
 * hosted tool that the target runs is left to it. The client's own functions keep their names; a
 * stand-in for a declared tool then gets another name.
 * @param history the turns as the upstream gets them, with hidden calls; called only when needed
 */
export function offerFor(
  original: Conversation,
  target: Target,
  registry: ToolRegistry,
  history: () => readonly Turn[] = () => original.turns,
): Offer {
  if (leavesNoRoom(original, target)) return EMPTY_OFFER;
  const taken = new Set<string>();
  const hosted = new Map<string, HostedTool>();
  for (const tool of original.tools) {
    if (tool.type !== 'hosted') {
      if (tool.namespace === undefined) taken.add(tool.name);
    } else if (!hosted.has(tool.name)) hosted.set(tool.name, tool);
  }
  let calledNames: ReadonlySet<string> | undefined;
  const isCalled = ({ name, aliases = [] }: ServerTool) => {
    calledNames ??= calledIn(history());
    return calledNames.size > 0 && [name, ...aliases].some((one) => calledNames!.has(one));
  };
  const tools: OfferedTool[] = [];
  const names = new Map<string, OfferedTool>();
  let room = (target.profile.maxTools ?? Number.POSITIVE_INFINITY) - original.tools.length;
  let leftOut = 0;
  for (const tool of registry.tools) {
    const declared = tool.hosted === undefined ? undefined : hosted.get(tool.hosted);
    if (declared !== undefined && isNative(declared.name, target, original)) continue;
    if (declared === undefined && !isWanted(tool, original, isCalled)) continue;
    const name = freeName(tool.name, taken, declared !== undefined);
    if (name === undefined) continue;
    // With one tool too many, the vendor would refuse every request of every client.
    if (declared === undefined && tool.pinned !== true && --room < 0) {
      leftOut++;
      continue;
    }
    const offered = offeredAs(tool, name, declared);
    tools.push(offered);
    names.set(name, offered);
    for (const alias of [tool.name, ...(tool.aliases ?? [])]) {
      if (!taken.has(alias) && !names.has(alias)) names.set(alias, offered);
    }
  }
  if (tools.length + leftOut === 0) return EMPTY_OFFER;
  return { tools, leftOut, byName: (name) => names.get(name) };
}

function freeName(name: string, taken: ReadonlySet<string>, declared: boolean): string | undefined {
  if (!taken.has(name)) return name;
  const other = `hopgate_${name}`;
  return declared && !taken.has(other) ? other : undefined;
}

function offeredAs(tool: ServerTool, name: string, declared: HostedTool | undefined): OfferedTool {
  const options = declared?.options ?? {};
  const requestedUses = typeof options.max_uses === 'number' ? options.max_uses : Infinity;
  const maxUses = Math.min(requestedUses, tool.limits.maxUses ?? Infinity);
  return { tool, name, declared, options, maxUses };
}

/**
 * Is an undeclared tool offered: always, or because of the user's latest text? A tool that was called
 * before stays: a model that sees calls of a tool it does not have writes them as text, and a changed
 * list of tools costs the prompt cache.
 */
function isWanted(
  tool: ServerTool,
  original: Conversation,
  isCalled: (tool: ServerTool) => boolean,
): boolean {
  if (original.settings.toolChoice?.type === 'none') return tool.pinned === true;
  if (tool.inject === 'force') return true;
  if (tool.inject !== 'selective' || tool.wanted === undefined) return false;
  return tool.wanted(latestUserText(original.turns)) || isCalled(tool);
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

/** The text of the last user turn that has any; tool results do not count. */
export function latestUserText(turns: readonly Turn[]): string {
  for (let at = turns.length - 1; at >= 0; at--) {
    const turn = turns[at]!;
    if (turn.role !== 'user') continue;
    const texts: string[] = [];
    for (const block of turn.blocks) if (block.type === 'text') texts.push(block.text);
    if (texts.some((text) => text.trim() !== '')) return texts.join('\n');
  }
  return '';
}

export interface InjectOptions {
  /** This hop must answer: it is sent without server tools. */
  readonly last: boolean;
  /** A server tool has already run, so a choice that forces a call is satisfied. */
  readonly followUp: boolean;
  readonly notes: Notes;
}

/** The conversation with the offer in its tools; the same reference where that changes nothing. */
export function inject(
  conversation: Conversation,
  offer: Offer,
  options: InjectOptions,
): Conversation {
  if (offer.leftOut > 0 && !options.last) {
    options.notes.addOnce('tool_dropped', '/tools', `${offer.leftOut} of the gateway`);
  }
  if (offer.tools.length === 0) return conversation;
  const tools = injectTools(conversation.tools, offer, options);
  const settings = injectChoice(conversation.settings, offer, options);
  if (tools === conversation.tools && settings === conversation.settings) return conversation;
  return withParts(conversation, { tools, settings });
}

function injectTools(
  tools: readonly Tool[],
  offer: Offer,
  { last, notes }: InjectOptions,
): readonly Tool[] {
  const placed = new Set<OfferedTool>();
  const replaced = mapUnchanged(tools, (tool) => {
    if (tool.type !== 'hosted') return tool;
    const offered = offer.tools.find(({ declared }) => declared?.name === tool.name);
    if (offered === undefined) return tool;
    const again = placed.has(offered);
    placed.add(offered);
    if (last || again) return undefined;
    notes.add('hosted_tool_emulated', '/tools', tool.kind);
    return functionOf(offered);
  });
  if (last) return replaced;
  const added = offer.tools.filter((offered) => !placed.has(offered));
  for (const { name } of added) notes.add('server_tool_offered', '/tools', name);
  return added.length === 0 ? replaced : [...replaced, ...added.map(functionOf)];
}

function functionOf({ tool, name, options }: OfferedTool): FunctionTool {
  const { description, schema } = tool;
  const mark = options.cache_control;
  const cache: CacheMark | undefined = isObject(mark)
    ? typeof mark.ttl === 'string'
      ? { ttl: mark.ttl }
      : {}
    : undefined;
  const runsHere = [name, tool.name, ...(tool.aliases ?? [])];
  return { type: 'function', name, description, schema, runsHere, ...(cache ? { cache } : {}) };
}

function injectChoice(
  settings: Settings,
  offer: Offer,
  { last, followUp, notes }: InjectOptions,
): Settings {
  const choice = settings.toolChoice;
  if (choice === undefined) return settings;
  const mapped = mapChoice(choice, offer, last || followUp);
  if (mapped === choice) return settings;
  notes.add('parameter_mapped', 'tool_choice', mapped.type === 'auto' ? 'auto' : 'server tool');
  return { ...settings, toolChoice: mapped };
}

const AUTO: ToolChoice = { type: 'auto' };

/** @param done the forced call has been made, or can no longer be made, so the model may answer */
function mapChoice(choice: ToolChoice, offer: Offer, done: boolean): ToolChoice {
  const standIn = (name: string) => offer.tools.find(({ declared }) => declared?.name === name);
  switch (choice.type) {
    case 'tool': {
      const offered =
        choice.kind === 'hosted'
          ? standIn(choice.name)
          : choice.namespace === undefined
            ? offer.tools.find(({ name }) => name === choice.name)
            : undefined;
      if (offered === undefined) return choice;
      return done ? AUTO : { type: 'tool', name: offered.name, kind: 'function' };
    }
    case 'required':
      return done ? AUTO : choice;
    case 'allowed': {
      const names = mapUnchanged(choice.names, (name) => {
        const offered = standIn(name);
        return offered === undefined ? name : offered.name;
      });
      if (done && choice.mode === 'required') return { ...choice, mode: 'auto', names };
      return names === choice.names ? choice : { ...choice, names };
    }
    default:
      return choice;
  }
}
