/** Takes a conversation apart into units that can be compared across protocols: instructions, tools, what messages hold. */

import { isInstruction } from '../../conversation/edit.ts';
import type { Block, Conversation, Tool, Wire } from '../../conversation/types.ts';
import { canonicalText, type Json, type JsonObject, tryParse } from '../../lib/json/json.ts';
import type { Steps } from '../../lib/loop/steps.ts';

/** The smallest thing that is compared. */
export interface Unit {
  /** Units with equal keys say the same. */
  readonly key: string;
  /** Only units of one kind can be a change of each other: `user text`, `tool Bash`. */
  readonly kind: string;
  /** `text`, `call of Bash`. */
  readonly label: string;
  /** The pieces of its text; protocols join them differently. */
  readonly pieces: readonly string[];
  /** JSON pointer; undefined where the node has no JSON of its own. */
  readonly at: string | undefined;
  /** Number of its message, from 1; 0 where there are none. */
  readonly message: number;
  readonly role: string;
}

/** One side of the comparison. */
export interface Said {
  readonly conversation: Conversation;
  /** JSON pointers by the values of the body. */
  readonly places: ReadonlyMap<unknown, string>;
}

interface Node {
  readonly wire?: Wire;
}

const placeOf = ({ wire }: Node, { places }: Said) =>
  wire === undefined ? undefined : places.get(wire.value);

/** Protocols join the pieces of a text differently: with nothing, a space, one line break or two. */
const JOINTS = ['\n\n', '\n', '', ' '];

/** A key that is the same however the pieces were joined: white space at joints does not count. */
function* textKey(pieces: readonly string[]): Steps<string> {
  let key = '';
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += CHARS_A_STEP) {
      key += piece.slice(at, at + CHARS_A_STEP).replace(/\s+/g, '');
      if (piece.length > CHARS_A_STEP) yield;
    }
  }
  return key;
}

const CHARS_A_STEP = 100_000;

/** Whether two texts with the same key are the same but for their joints. */
export function sameJoined(a: readonly string[], b: readonly string[]): boolean {
  const waysOf = (pieces: readonly string[]) =>
    (pieces.length > 1 ? JOINTS : ['']).map((joint) => pieces.join(joint).trim());
  const ways = waysOf(a);
  return waysOf(b).some((text) => ways.includes(text));
}

/** Turns before the first of a user or the model: some protocols keep instructions there. */
const leadingTurns = ({ turns }: Conversation) => {
  const first = turns.findIndex((turn) => !isInstruction(turn));
  return first < 0 ? turns.length : first;
};

/** The pieces of the instructions, wherever the protocol keeps them. */
export function instructions({ conversation }: Said): readonly string[] {
  const { system, turns } = conversation;
  const leading = turns.slice(0, leadingTurns(conversation));
  return [...system, ...leading.flatMap(({ blocks }) => blocks)].map(blockText).filter(Boolean);
}

/** What the messages hold, in order. Neighbours of one role are one message; texts of one message are one unit. */
export function* messageUnits(said: Said): Steps<readonly Unit[]> {
  const { conversation } = said;
  const units: Unit[] = [];
  const calls = new Map<string, string>();
  let message = 0;
  let last: string | undefined;
  let texts: { readonly pieces: string[]; readonly at: string | undefined } | undefined;
  const put = (
    [kind, key, label]: readonly [string, string, string],
    pieces: readonly string[],
    at: string | undefined,
  ) => {
    const role = last ?? '';
    units.push({
      key: `${role} ${key}`,
      kind: `${role} ${kind}`,
      label,
      pieces,
      at,
      message,
      role,
    });
  };
  function* flush(): Steps<void> {
    if (texts === undefined) return;
    const { pieces, at } = texts;
    texts = undefined;
    put(['text', `text ${yield* textKey(pieces)}`, 'text'], pieces, at);
  }
  for (const turn of conversation.turns.slice(leadingTurns(conversation))) {
    const role = turn.role === 'developer' ? 'system' : turn.role;
    yield;
    if (role !== last) {
      yield* flush();
      message++;
      last = role;
    }
    for (const block of turn.blocks) {
      const at = placeOf(block, said) ?? placeOf(turn, said);
      if (block.type === 'text') {
        if (block.text === '') continue;
        texts ??= { pieces: [], at };
        texts.pieces.push(block.text);
        continue;
      }
      yield* flush();
      yield;
      const pieces =
        block.type === 'tool-result' ? block.content.map(blockText) : [blockText(block)];
      put(yield* namesOf(block, calls), pieces, at);
    }
  }
  yield* flush();
  return units;
}

/** Kind, key and label of a block that is not text. @param calls what each call says, by its id */
function* namesOf(
  block: Block,
  calls: Map<string, string>,
): Steps<readonly [string, string, string]> {
  switch (block.type) {
    case 'tool-call': {
      const input = tryParse(block.input);
      const says = `${block.name} ${input === undefined ? block.input : canonicalText(input)}`;
      // Ids differ between protocols: a result is known by its call.
      calls.set(block.id, says);
      return [`call ${block.name}`, `call ${says}`, `call of ${block.name}`];
    }
    case 'tool-result': {
      const call = calls.get(block.callId) ?? block.callId;
      const name = calls.get(block.callId)?.split(' ', 1)[0];
      const label = name === undefined ? 'tool result' : `result of ${name}`;
      const failed = block.isError ? 'error ' : '';
      return [label, `result ${failed}${call} ${yield* textKey([blockText(block)])}`, label];
    }
    case 'media':
      return [block.media, `${block.media} ${canonicalText(asJson(block.source))}`, block.media];
    case 'reasoning':
      return ['reasoning', `reasoning ${yield* textKey([block.text])}`, 'reasoning'];
    case 'opaque':
      return [block.name, `${block.name} ${canonicalText(block.wire.value)}`, block.name];
    default:
      return [block.type, `${block.type} ${blockText(block)}`, block.type];
  }
}

/** Values without undefined members are JSON. */
const asJson = (value: object): Json => JSON.parse(JSON.stringify(value)) as Json;

const indented = (value: Json) => JSON.stringify(value, null, 2);

/** What a person reads of a block. */
export function blockText(block: Block): string {
  switch (block.type) {
    case 'text':
    case 'refusal':
    case 'reasoning':
      return block.text;
    case 'tool-call': {
      const input = tryParse(block.input);
      return input === undefined ? block.input : indented(input);
    }
    case 'tool-result':
      return block.content.map(blockText).join('\n');
    case 'media':
      return mediaText(block);
    case 'opaque':
      return block.text ?? indented(block.wire.value);
  }
}

function mediaText({ media, source }: Extract<Block, { type: 'media' }>): string {
  switch (source.type) {
    case 'base64':
      return `[${media}: ${source.mediaType}, ${source.data.length} characters of Base64]`;
    case 'text':
      return source.text;
    case 'url':
      return `[${media}: ${source.url}]`;
    case 'file-id':
      return `[${media}: file ${source.id}]`;
  }
}

/** The tools, by their names. */
export function* toolUnits(said: Said): Steps<readonly Unit[]> {
  const units: Unit[] = [];
  for (const tool of said.conversation.tools) {
    const says = toolJson(tool);
    const name = `tool ${tool.name}`;
    const at = placeOf(tool as Node, said);
    const key = `${name} ${canonicalText(says)}`;
    const pieces = [indented(says)];
    units.push({ key, kind: name, label: name, pieces, at, message: 0, role: '' });
    yield;
  }
  return units;
}

/** What a tool is in every protocol: declarations differ in the envelope only. */
function toolJson(tool: Tool): JsonObject {
  const said =
    tool.type === 'hosted'
      ? { type: tool.kind, name: tool.name, ...tool.options }
      : tool.type === 'custom'
        ? { name: tool.name, description: tool.description, format: tool.format }
        : { name: tool.name, description: tool.description, input: tool.schema ?? {} };
  return asJson(said) as JsonObject;
}
