/** Gives tools names that the vendor takes, and clients their own names back. */

import { editNode, mapBlocks, mapUnchanged, withParts } from '../../conversation/edit.ts';
import type { StreamEvent } from '../../conversation/events.ts';
import { IGNORES_TEXT } from '../../conversation/fast-text.ts';
import { targetAfterRefusals } from '../../conversation/refusal/refusal.ts';
import { noteRenamed, toolNames } from '../../conversation/tools/tool-names.ts';
import type { Block, Conversation, Tool, ToolChoice } from '../../conversation/types.ts';
import { isObject, type JsonObject } from '../../lib/json/json.ts';
import type { Feature, FeatureContext, Interceptor } from '../feature.ts';

interface ClientName {
  readonly name: string;
  readonly namespace: string | undefined;
}
type Names = ReadonlyMap<string, ClientName>;

/** The client's names by those that were sent, of the requests that were renamed. */
const sentNames = new WeakMap<FeatureContext, Names>();

interface Limits {
  /** Characters; undefined: names are those of the protocol. */
  readonly most: number | undefined;
  readonly reserved: ReadonlySet<string>;
}

function limitsOf({ target, refusals }: FeatureContext): Limits | undefined {
  const { maxToolName: most, reservedTools } = targetAfterRefusals(target, refusals).profile;
  return most === undefined && reservedTools === undefined
    ? undefined
    : { most, reserved: new Set(reservedTools) };
}

const NOTHING: readonly StreamEvent[] = [];

/** Place it behind what makes calls of an answer's text, and before every feature that knows tools by their names. */
export const clientToolNames: Feature = {
  name: 'client-tool-names',
  mayApply: (_body, context) => limitsOf(context) !== undefined,
  intercept(_sent, context) {
    const names = sentNames.get(context);
    return names === undefined || names.size === 0 ? undefined : new RestoredNames(names);
  },
};

class RestoredNames implements Interceptor {
  readonly fast = IGNORES_TEXT;

  constructor(private readonly names: Names) {}

  event(event: StreamEvent): StreamEvent {
    if (event.type !== 'block-start' || event.head.type !== 'tool-call') return event;
    const own = this.names.get(event.head.name);
    if (own === undefined) return event;
    const { namespace: _, ...head } = event.head;
    const { name, namespace } = own;
    return { ...event, head: { ...head, name, ...(namespace !== undefined && { namespace }) } };
  }

  end(): readonly StreamEvent[] {
    return NOTHING;
  }
}

/** Place it behind every feature that knows tools by their names. */
export const vendorToolNames: Feature = {
  name: 'vendor-tool-names',
  mayApply: (_body, context) => limitsOf(context) !== undefined,
  request(conversation, context) {
    const limits = limitsOf(context);
    return limits === undefined ? conversation : renamed(conversation, limits, context);
  },
};

type NameOf = (name: string, namespace?: string) => string;

// Moonshot: "function name is invalid, must start with a letter".
const START = /^[a-zA-Z_]/;

function namesFor(tools: readonly Tool[], { most, reserved }: Limits): NameOf {
  // One character is for the start.
  const names = most === undefined ? undefined : toolNames(tools, most - 1);
  const own = new Set(tools.map(({ name }) => name));
  // A client may have many tools whose names begin so: each name is looked for once.
  const others = new Map<string, string>();
  const free = (name: string): string => {
    let other = others.get(name);
    if (other !== undefined) return other;
    other = `my_${name}`;
    while (own.has(other) || reserved.has(other)) other = `my_${other}`;
    others.set(name, other);
    return other;
  };
  return (name, namespace) => {
    if (namespace === undefined && reserved.has(name)) return free(name);
    if (names === undefined) return name;
    const flat = names.flat(name, namespace);
    return START.test(flat) ? flat : `t${flat}`;
  };
}

function renamed(
  conversation: Conversation,
  limits: Limits,
  context: FeatureContext,
): Conversation {
  const { target, notes } = context;
  const nameOf = namesFor(conversation.tools, limits);
  // Responses has namespaces, and its limit is that of the name within one.
  const keeps = (namespace: string | undefined) =>
    namespace !== undefined && target.protocol === 'openai-responses';
  const own = new Map<string, ClientName>();
  sentNames.set(context, own);
  const tools = mapUnchanged(conversation.tools, (tool): Tool => {
    if (tool.type === 'hosted' || keeps(tool.namespace)) return tool;
    const name = nameOf(tool.name, tool.namespace);
    if (name === tool.name) return tool;
    own.set(name, { name: tool.name, namespace: tool.namespace });
    noteRenamed(tool, name, `/tools/${tool.name}`, notes);
    return editNode<Tool>(tool, { name, namespace: undefined } as Partial<Tool>);
  });
  const block = (given: Block): Block => {
    if (given.type === 'tool-call' && given.by !== 'provider' && !keeps(given.namespace)) {
      const name = nameOf(given.name, given.namespace);
      return name === given.name ? given : editNode<Block>(given, { name, namespace: undefined });
    }
    if (given.type === 'tool-result') {
      const content = mapUnchanged(given.content, block);
      return content === given.content
        ? renamedWire(given, nameOf)
        : editNode<Block>(given, { content });
    }
    return given.type === 'opaque' ? renamedWire(given, nameOf) : given;
  };
  const turns = mapUnchanged(conversation.turns, (turn) => mapBlocks(turn, block));
  const { settings } = conversation;
  const toolChoice = settings.toolChoice && renamedChoice(settings.toolChoice, nameOf);
  return withParts(conversation, {
    tools,
    turns,
    settings: toolChoice === settings.toolChoice ? settings : { ...settings, toolChoice },
  });
}

/** Members of blocks that name a tool and have no meaning here: what Messages' search has found, and Gemini's results. */
function renamedWire<T extends Block>(block: T, nameOf: NameOf): T {
  const { wire } = block;
  if (wire === undefined || !isObject(wire.value)) return block;
  const { value } = wire;
  const rename = (holder: JsonObject, member: string) => {
    const given = holder[member];
    const name = typeof given === 'string' ? nameOf(given) : given;
    return name === given ? holder : { ...holder, [member]: name };
  };
  let out = value.type === 'tool_reference' ? rename(value, 'tool_name') : value;
  for (const key of ['functionResponse', 'function_response']) {
    const result = out[key];
    if (!isObject(result)) continue;
    const own = rename(result, 'name');
    if (own !== result) out = { ...out, [key]: own };
  }
  return out === value ? block : { ...block, wire: { ...wire, value: out } };
}

function renamedChoice(choice: ToolChoice, nameOf: NameOf): ToolChoice {
  if (choice.type === 'tool' && choice.kind !== 'hosted') {
    const name = nameOf(choice.name, choice.namespace);
    return name === choice.name ? choice : { ...choice, name, namespace: undefined };
  }
  if (choice.type !== 'allowed') return choice;
  const names = choice.names.map((name) => nameOf(name));
  return names.every((name, i) => name === choice.names[i]) ? choice : { ...choice, names };
}
