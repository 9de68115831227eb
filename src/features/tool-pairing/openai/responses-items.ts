/** Repairs input items whose form the Responses API refuses: ids, reasoning without a following item, wrong kinds of text. */

import { editNode, mapBlocks, mapUnchanged } from '../../../conversation/edit.ts';
import type { Notes } from '../../../conversation/notes.ts';
import type {
  Block,
  Conversation,
  ToolCallBlock,
  Turn,
  Wire,
} from '../../../conversation/types.ts';
import { isObject, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import { legalName } from '../replacements.ts';

/**
 * "Invalid 'input[2].id': 'call_…'. Expected an ID that begins with 'fc'." Types that are not listed may have
 * any id.
 */
const PREFIXES: Readonly<Record<string, string>> = {
  message: 'msg',
  function_call: 'fc',
  function_call_output: 'fc',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctc',
  reasoning: 'rs',
  web_search_call: 'ws',
};

// "Expected an ID that contains letters, numbers, underscores, or dashes"; 64 characters at most.
const ID = /^[a-zA-Z0-9_-]{1,64}$/;

// Names in a history have no limit; those in the namespace of an MCP server may be long.
const NAME = /^[a-zA-Z0-9_-]+$/;

const wireOf = (turn: Turn): JsonObject | undefined => {
  const value = turn.wire?.protocol === 'openai-responses' ? turn.wire.value : undefined;
  return isObject(value) ? value : undefined;
};

const typeOf = (item: JsonObject): string =>
  typeof item.type === 'string' ? item.type : 'message';

/** Makes each turn an item that the API accepts; pairing is done elsewhere. */
export function cleanItems({ origin, turns }: Conversation, notes: Notes): readonly Turn[] {
  const seen = new Set<string>();
  return mapUnchanged(turns, (turn, at) => {
    const item = wireOf(turn);
    if (item === undefined) return turn;
    if (item.type === 'item_reference') {
      // "Items are not persisted when `store` is set to false."
      if (origin?.value.store !== false) return turn;
      notes.add('item_reference_dropped', `/input/${at}`, String(item.id));
      return undefined;
    }
    const sound = turn.role === 'assistant' ? withOutputText(turn) : turn;
    const shaped = withTextArguments(sound);
    if (shaped !== turn) notes.add('item_shape_repaired', `/input/${at}`, typeOf(item));
    const { id } = item;
    if (id === undefined || id === null) return shaped;
    const prefix = memberOf(PREFIXES, typeOf(item));
    const legal =
      typeof id === 'string' &&
      ID.test(id) &&
      (prefix === undefined || id.startsWith(prefix)) &&
      !seen.has(id);
    if (legal) {
      seen.add(id);
      return shaped;
    }
    notes.add('item_id_dropped', `/input/${at}`, String(id));
    return withoutId(shaped);
  });
}

/** Assistant messages accept only `output_text` and `refusal`; input text is refused there. */
function withOutputText(turn: Turn): Turn {
  return mapBlocks(turn, (block): Block => {
    const part = block.wire?.value;
    if (block.type !== 'text' || !isObject(part) || part.type === 'output_text') return block;
    return { type: 'text', text: block.text };
  });
}

/** Makes arguments a string; some servers send the object itself. */
function withTextArguments(turn: Turn): Turn {
  const [block] = turn.blocks;
  if (turn.blocks.length !== 1 || block === undefined || block.wire === undefined) return turn;
  const item = block.wire.value;
  if (!isObject(item)) return turn;
  if (block.type === 'tool-call' && block.by === 'client') {
    const given = block.kind === 'custom' ? item.input : item.arguments;
    const legal = block.kind === 'tool-search' || typeof given === 'string';
    const named = block.kind === 'tool-search' || NAME.test(block.name);
    if (legal && named && typeof item.call_id === 'string') return turn;
    const name = named ? block.name : legalName(block.name);
    return editNode(turn, { blocks: [editNode(block, { name })] });
  }
  if (block.type === 'tool-result' && block.by === 'client') {
    const { output } = item;
    const legal =
      typeof output === 'string' || Array.isArray(output) || block.kind === 'tool-search';
    if (legal && typeof item.call_id === 'string') return turn;
    return editNode(turn, { blocks: [editNode(block, {})] });
  }
  return turn;
}

/** Removes the item's id, which is always optional in an input. */
function withoutId(turn: Turn): Turn {
  const isWholeItem = (block: Block): boolean =>
    block.type === 'tool-call' || block.type === 'tool-result' || block.type === 'reasoning';
  const blocks = turn.blocks.map((block) => (isWholeItem(block) ? withoutOwnId(block) : block));
  return { ...withoutOwnId(turn), blocks };
}

function withoutOwnId<T extends Turn | Block>(node: T): T {
  const { wire, residue } = node;
  return {
    ...node,
    ...(wire && { wire: withoutIdMember(wire) }),
    ...(residue && { residue: withoutIdMember(residue) }),
  };
}

function withoutIdMember(wire: Wire): Wire {
  if (!isObject(wire.value)) return wire;
  const { id: _, ...value } = wire.value;
  return { ...wire, value };
}

/** An item made by the model, which may follow reasoning. */
function isModelItem(turn: Turn): boolean {
  const item = wireOf(turn);
  if (item === undefined) return turn.role === 'assistant';
  const type = typeOf(item);
  if (type === 'message') return item.role === 'assistant';
  return (
    type.endsWith('_call') ||
    type === 'reasoning' ||
    type === 'item_reference' ||
    type === 'mcp_list_tools'
  );
}

/**
 * "Item 'rs_…' of type 'reasoning' was provided without its required following item." Removes reasoning that
 * no item of the model follows. If the following message has lost its id, the reasoning loses its own id when
 * it has encrypted content, and is removed otherwise.
 */
export function dropLoneReasoning(turns: readonly Turn[], notes: Notes): readonly Turn[] {
  if (!turns.some((turn) => wireOf(turn)?.type === 'reasoning')) return turns;
  let next: Turn | undefined;
  const remaining: Turn[] = [];
  let changed = false;
  for (let i = turns.length - 1; i >= 0; i--) {
    let turn = turns[i]!;
    const item = wireOf(turn);
    if (item?.type === 'reasoning') {
      const disposition = reasoningDisposition(item, next);
      if (disposition !== 'keep') {
        changed = true;
        const dropped = disposition === 'drop';
        notes.add(
          dropped ? 'reasoning_dropped' : 'item_id_dropped',
          `/input/${i}`,
          dropped ? 'nothing that the model made follows it' : String(item.id),
        );
        if (dropped) continue;
        turn = withoutId(turn);
      }
    }
    remaining.push(turn);
    next = turn;
  }
  return changed ? remaining.reverse() : turns;
}

function reasoningDisposition(
  item: JsonObject,
  next: Turn | undefined,
): 'keep' | 'drop' | 'drop-id' {
  if (next === undefined || !isModelItem(next)) return 'drop';
  const after = wireOf(next) ?? (isObject(next.residue?.value) ? next.residue.value : {});
  if (typeof item.id !== 'string' || typeOf(after) !== 'message') return 'keep';
  if (typeof after.id === 'string') return 'keep';
  return typeof item.encrypted_content === 'string' ? 'drop-id' : 'drop';
}

/**
 * Makes the arguments of every function call a JSON object, for Chat and Responses. Clients send back calls
 * that were cut off. llama.cpp and vLLM parse the arguments of the whole history, so every later request
 * would fail ("Failed to parse tool call arguments as JSON"). The text stays readable under `input`, as the
 * Messages codec writes it.
 */
export function parsableInputs(
  turns: readonly Turn[],
  where: string,
  notes: Notes,
): readonly Turn[] {
  return mapUnchanged(turns, (turn, at) => {
    if (turn.role !== 'assistant') return turn;
    return mapBlocks(turn, (block) => {
      if (block.type !== 'tool-call' || block.by === 'provider' || block.kind !== 'function') {
        return block;
      }
      const input = objectText(block);
      if (input === block.input) return block;
      const why = input === '{}' ? 'there are no arguments' : 'the arguments are no JSON object';
      notes.add('tool_input_wrapped', `${where}/${at}`, why);
      return editNode(block, { input });
    });
  });
}

function objectText({ input, wire }: ToolCallBlock): string {
  // A codec that writes the call itself writes {} for empty arguments.
  if (input.trim() === '') return wire === undefined ? input : '{}';
  const value = tryParse(input);
  return isObject(value) ? input : JSON.stringify({ input: value ?? input });
}
