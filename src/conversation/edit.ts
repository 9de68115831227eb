/** Nodes and the JSON that they came from; the one way to change a conversation: new nodes that keep their source as residue. */

import { isObject, type Json, type JsonObject } from '../lib/json/json.ts';
import type { Notes } from './notes.ts';
import type {
  Block,
  Conversation,
  ProtocolName,
  Tool,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
  Wire,
} from './types.ts';

interface WireNode {
  readonly wire?: Wire;
  readonly residue?: Wire;
}

/** How the codec of a protocol marks nodes with their JSON, and finds its own again. */
export function wireNodes(protocol: ProtocolName) {
  return {
    wireOf: (value: Json): Wire => ({ protocol, value }),

    /** The JSON of an unchanged node of this protocol, else undefined. */
    ownWire: ({ wire }: WireNode): Json | undefined =>
      wire?.protocol === protocol ? wire.value : undefined,

    /** The JSON object that a node of this protocol was decoded from, edited or not; `{}` for other nodes. */
    ownResidue({ wire, residue }: WireNode): JsonObject {
      const from = residue ?? wire;
      return from?.protocol === protocol && isObject(from.value) ? from.value : {};
    },

    /** Was the node decoded from this protocol, whether or not it was edited? */
    isOwn: ({ wire, residue }: WireNode): boolean => (wire ?? residue)?.protocol === protocol,
  };
}

/**
 * A changed copy of a node. `wire` becomes `residue`, because the node no longer says what its wire says.
 * An encoder of the same protocol takes the fields without a common meaning from the residue.
 */
export function editNode<T extends Turn | Block | Tool>(node: T, changes: Partial<T>): T {
  const { wire, ...rest } = node as T & { wire?: T['wire'] };
  return { ...rest, residue: wire ?? node.residue, ...changes } as T;
}

/**
 * The conversation with other parts; the same reference if they are its own. The origin stays: encoders
 * compare each part with it.
 */
export function withParts(
  conversation: Conversation,
  changes: Partial<Omit<Conversation, 'origin'>>,
): Conversation {
  let part: keyof typeof changes;
  for (part in changes) {
    if (changes[part] !== conversation[part]) return { ...conversation, ...changes };
  }
  return conversation;
}

/**
 * Maps a list; returns the same list if nothing changed. `change` returns the item itself to keep it,
 * undefined to drop it, or a list to insert in its place.
 */
export function mapUnchanged<T>(
  list: readonly T[],
  change: (item: T, index: number) => T | readonly T[] | undefined,
): readonly T[] {
  let out: T[] | undefined;
  for (let i = 0; i < list.length; i++) {
    const item = list[i]!;
    const next = change(item, i);
    if (next === item) {
      out?.push(item);
      continue;
    }
    out ??= list.slice(0, i);
    // Item by item: `push(...next)` overflows the stack for a long list.
    if (Array.isArray(next)) for (const one of next as readonly T[]) out.push(one);
    else if (next !== undefined) out.push(next as T);
  }
  return out ?? list;
}

/** The turn with its blocks changed one by one; the same reference if none changes. See `mapUnchanged`. */
export function mapBlocks(
  turn: Turn,
  change: (block: Block, index: number) => Block | readonly Block[] | undefined,
): Turn {
  const blocks = mapUnchanged(turn.blocks, change);
  return blocks === turn.blocks ? turn : editNode(turn, { blocks });
}

/** Whether its texts are the application's own. */
export const isInstruction = ({ role }: Pick<Turn, 'role'>): boolean =>
  role === 'system' || role === 'developer';

/** A call that the client (or this gateway) answers. */
export const isClientCall = (block: Block): block is ToolCallBlock =>
  block.type === 'tool-call' && block.by !== 'provider';

/** A result that the model reads as a tool message; the vendor's own tools answer in blocks of their own. */
export const isClientResult = (block: Block): block is ToolResultBlock =>
  block.type === 'tool-result' && block.by !== 'provider';

/** The blocks inside a block: the content of a result, the parts of a document. */
export function innerBlocks(block: Block): readonly Block[] {
  if (block.type === 'tool-result') return block.content;
  return block.type === 'opaque' ? (block.parts ?? []) : [];
}

/** The turns of a Messages conversation, with each system or developer turn as a user turn and a note. */
export function instructionsAsUser(turns: readonly Turn[], notes: Notes): readonly Turn[] {
  return mapUnchanged(turns, (turn) => {
    if (!isInstruction(turn)) return turn;
    notes.add('content_bridged', '/messages', `${turn.role} turn as user text`);
    // Only a system message may carry settings, such as an effort for what follows.
    for (const key of settingsOf(turn)) notes.add('parameter_dropped', `/messages/${key}`);
    return { role: 'user', blocks: turn.blocks };
  });
}

/** The wire message's members other than role and content. */
function settingsOf(turn: Turn): readonly string[] {
  const value = (turn.wire ?? turn.residue)?.value;
  return isObject(value) ? Object.keys(value).filter((key) => !/^(role|content)$/.test(key)) : [];
}

/** The text of a tool that failed and said nothing: vendors refuse an empty error, or take it for success. */
export const FAILED_SILENTLY = 'The tool failed without a message.';

/** The text of a message that must not be empty but has no content. */
export const NO_CONTENT = '(no content)';

/** Text that upstreams treat as empty: blank for Python's `str.strip` or JavaScript's `trim`. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: Python counts the separators 1c-1f as white space.
const BLANK = /^[\s\x1c-\x1f\x85]*$/;

export const isBlank = (text: string): boolean => BLANK.test(text);

export const saysNothing = (block: Block): boolean => block.type === 'text' && isBlank(block.text);

/** The texts of a result of another vendor's tool, whose call the next vendor never saw; '' for none. */
export const resultWords = ({ content }: ToolResultBlock): string =>
  content
    .map((block) => (block.type === 'text' || block.type === 'opaque' ? (block.text ?? '') : ''))
    .filter((text) => text !== '')
    .join('\n');
