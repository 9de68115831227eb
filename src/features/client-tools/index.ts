/** Offers tools that the client of Responses runs (shell, local_shell, apply_patch) as functions to vendors that have none. */

import { mapUnchanged, withParts } from '../../conversation/edit.ts';
import { sourceOfUrl } from '../../conversation/media-source.ts';
import type { Notes } from '../../conversation/notes.ts';
import { CLIENT_TOOLS } from '../../conversation/tools/client-tools.ts';
import type {
  Block,
  ClientToolKind,
  Conversation,
  HostedTool,
  Tool,
  ToolChoice,
  Turn,
} from '../../conversation/types.ts';
import { isObject, type JsonObject } from '../../lib/json/json.ts';
import type { Feature } from '../feature.ts';

const KINDS = Object.keys(CLIENT_TOOLS) as ClientToolKind[];
const byType = new Map<unknown, ClientToolKind>(
  KINDS.map((kind) => [CLIENT_TOOLS[kind].type, kind]),
);
const byCall = new Map<unknown, ClientToolKind>(
  KINDS.map((kind) => [CLIENT_TOOLS[kind].call, kind]),
);
const byOutput = new Map<unknown, ClientToolKind>(
  KINDS.map((kind) => [CLIENT_TOOLS[kind].output, kind]),
);

/** Place it before every feature that knows tools, calls or results. */
export const clientTools: Feature = {
  name: 'client-tools',
  mayApply: (_body, { client, target }) =>
    client === 'openai-responses' && target.protocol !== client,
  request(conversation, { client, target, notes }) {
    if (client !== 'openai-responses' || target.protocol === client) return conversation;
    const { settings } = conversation;
    const tools = mapUnchanged(conversation.tools, (tool) => asFunction(tool, notes));
    const turns = conversation.turns.some(isItem)
      ? new Items(conversation.turns).turns
      : conversation.turns;
    const toolChoice = choice(settings.toolChoice);
    return withParts(conversation, {
      tools,
      turns,
      settings: toolChoice === settings.toolChoice ? settings : { ...settings, toolChoice },
    });
  },
};

/** A shell that runs in a container of the vendor is not the client's. */
function kindOf({ kind, options: { environment } }: HostedTool): ClientToolKind | undefined {
  const isElsewhere = isObject(environment) && environment.type !== 'local';
  return isElsewhere ? undefined : byType.get(kind);
}

function asFunction(tool: Tool, notes: Notes): Tool {
  const callKind = tool.type === 'hosted' ? kindOf(tool) : undefined;
  if (callKind === undefined) return tool;
  const { type, description, schema } = CLIENT_TOOLS[callKind];
  notes.add('content_bridged', `tools.${type}`, `${type} as a function`);
  return { type: 'function', name: type, description, schema, callKind };
}

const choice = (given: ToolChoice | undefined): ToolChoice | undefined =>
  given?.type === 'tool' && given.kind === 'hosted' && byType.has(given.name)
    ? { ...given, kind: 'function' }
    : given;

function itemIn({ blocks: [block] }: Turn): JsonObject | undefined {
  if (block?.type !== 'opaque') return undefined;
  const { wire, residue = wire } = block;
  return isObject(residue?.value) ? residue.value : undefined;
}

const isItem = (turn: Turn): boolean => {
  const type = itemIn(turn)?.type;
  return byCall.has(type) || byOutput.has(type) || type === SCREENSHOT;
};

const SCREENSHOT = 'computer_call_output';

/** The history with calls and results in place of such items. */
class Items {
  readonly turns: Conversation['turns'];
  /** Ids of calls by those of their items: outputs of local_shell name the item. */
  readonly #callIds = new Map<string, string>();

  constructor(turns: Conversation['turns']) {
    this.turns = mapUnchanged(turns, (turn) => {
      const item = itemIn(turn);
      const block = item && this.#block(item);
      return block === undefined ? turn : { role: turn.role, blocks: [block].flat() };
    });
  }

  #block(item: JsonObject): Block | readonly Block[] | undefined {
    const kind = byCall.get(item.type);
    if (kind !== undefined) return this.#call(kind, item);
    const of = byOutput.get(item.type);
    if (of !== undefined) return this.#result(of, item);
    return item.type === SCREENSHOT ? screenshot(item) : undefined;
  }

  #call(kind: ClientToolKind, item: JsonObject): Block | undefined {
    const id = item.call_id ?? item.id;
    if (typeof id !== 'string') return undefined;
    if (typeof item.id === 'string') this.#callIds.set(item.id, id);
    const { type: name, argumentsOf } = CLIENT_TOOLS[kind];
    const input = JSON.stringify(argumentsOf(item));
    return { type: 'tool-call', id, name, kind, input, by: 'client' };
  }

  #result(kind: ClientToolKind, item: JsonObject): Block | undefined {
    const given = item.call_id ?? item.id;
    if (typeof given !== 'string') return undefined;
    return {
      type: 'tool-result',
      callId: this.#callIds.get(given) ?? given,
      kind,
      content: [{ type: 'text', text: CLIENT_TOOLS[kind].resultOf(item) }],
      isError: item.status === 'failed',
      by: 'client',
    };
  }
}

/** What the screen showed; the action before it has no form that other vendors know. */
function screenshot({ output }: JsonObject): readonly Block[] | undefined {
  const url = isObject(output) ? output.image_url : undefined;
  if (typeof url !== 'string') return undefined;
  return [
    { type: 'text', text: 'The screen after an earlier action:' },
    { type: 'media', media: 'image', source: sourceOfUrl(url) },
  ];
}
