/** Offers tools that the client of Responses runs (shell, local_shell, apply_patch) as functions to vendors that do not know them. */

import { mapUnchanged, withParts } from '../../conversation/edit.ts';
import { sourceOfUrl } from '../../conversation/media-source.ts';
import { CLIENT_TOOLS } from '../../conversation/tools/client-tools.ts';
import type {
  Block,
  ClientToolKind,
  Conversation,
  HostedTool,
  MediaSource,
  Tool,
  ToolChoice,
  Turn,
} from '../../conversation/types.ts';
import { containsAny, needles } from '../../lib/bytes/bytes.ts';
import { isObject, type JsonObject } from '../../lib/json/json.ts';
import type { Feature, FeatureContext } from '../feature.ts';

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

const NAMES = needles('"shell', '"local_shell', '"apply_patch');

/** Does the vendor know the tool, its calls and their outputs? */
type IsKnown = (kind: ClientToolKind) => boolean;

/** Undefined: it knows all of them. Other protocols have none. */
function knownTo({ client, target }: FeatureContext): IsKnown | undefined {
  if (client !== 'openai-responses') return undefined;
  if (target.protocol !== client) return () => false;
  const { toolTypes } = target.profile;
  if (toolTypes === undefined) return undefined;
  return (kind) => toolTypes.includes(CLIENT_TOOLS[kind].type);
}

/** Place it before every feature that knows tools, calls or results. */
export const clientTools: Feature = {
  name: 'client-tools',
  mayApply: (body, context) =>
    knownTo(context) !== undefined &&
    (context.target.protocol !== context.client || containsAny(body, NAMES)),
  request(conversation, context) {
    const isKnown = knownTo(context);
    if (isKnown === undefined) return conversation;
    const { settings } = conversation;
    const tools = mapUnchanged(conversation.tools, (tool) => asFunction(tool, isKnown, context));
    // A vendor of Responses sees the screen itself.
    const shows = context.target.protocol !== context.client;
    const turns = new Items(conversation.turns, isKnown, shows).turns;
    const toolChoice = choice(settings.toolChoice, isKnown);
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

function asFunction(tool: Tool, isKnown: IsKnown, { notes }: FeatureContext): Tool {
  const callKind = tool.type === 'hosted' ? kindOf(tool) : undefined;
  if (callKind === undefined || isKnown(callKind)) return tool;
  const { type, description, schema } = CLIENT_TOOLS[callKind];
  notes.add('content_bridged', `tools.${type}`, `${type} as a function`);
  return { type: 'function', name: type, description, schema, callKind };
}

function choice(given: ToolChoice | undefined, isKnown: IsKnown): ToolChoice | undefined {
  if (given?.type !== 'tool' || given.kind !== 'hosted') return given;
  const kind = byType.get(given.name);
  return kind === undefined || isKnown(kind) ? given : { ...given, kind: 'function' };
}

function itemIn({ blocks: [block] }: Turn): JsonObject | undefined {
  if (block?.type !== 'opaque') return undefined;
  const { wire, residue = wire } = block;
  return isObject(residue?.value) ? residue.value : undefined;
}

const SCREENSHOT = 'computer_call_output';

/** The history with calls and results in place of such items. */
class Items {
  readonly turns: Conversation['turns'];
  /** Ids of calls by those of their items: outputs of local_shell name the item. */
  readonly #callIds = new Map<string, string>();

  readonly #isKnown: IsKnown;
  readonly #shows: boolean;

  constructor(turns: Conversation['turns'], isKnown: IsKnown, shows: boolean) {
    this.#isKnown = isKnown;
    this.#shows = shows;
    this.turns = mapUnchanged(turns, (turn) => {
      const item = itemIn(turn);
      const block = item && this.#block(item);
      return block === undefined ? turn : { role: turn.role, blocks: [block].flat() };
    });
  }

  #block(item: JsonObject): Block | readonly Block[] | undefined {
    const called = byCall.get(item.type);
    const kind = called ?? byOutput.get(item.type);
    if (kind === undefined) {
      return this.#shows && item.type === SCREENSHOT ? screenshot(item) : undefined;
    }
    if (this.#isKnown(kind)) return undefined;
    return called === undefined ? this.#result(kind, item) : this.#call(kind, item);
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

/** The action has no form that other vendors know, so what the screen showed after it stands for both. Of a file, codecs say that it is not there. */
function screenshot({ output }: JsonObject): readonly Block[] | undefined {
  const { image_url: url, file_id: id } = isObject(output) ? output : {};
  const source: MediaSource | undefined =
    typeof url === 'string'
      ? sourceOfUrl(url)
      : typeof id === 'string'
        ? { type: 'file-id', id }
        : undefined;
  if (source === undefined) return undefined;
  return [
    { type: 'text', text: 'The screen after an earlier action:' },
    { type: 'media', media: 'image', source },
  ];
}
