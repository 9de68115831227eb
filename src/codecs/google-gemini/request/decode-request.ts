/** Decodes a Gemini request body into a conversation. */

import { invalid } from '../../../conversation/errors.ts';
import { type KnownNodes, NOTHING_KNOWN } from '../../../conversation/session/known-nodes.ts';
import type { Block, Conversation, Turn } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { bareModel } from '../address.ts';
import { field, list, PROTOCOL, text, wireOf, wrongValue } from '../wire.ts';
import { type AskedId, type CallIds, GivenIds, HistoryCallIds, RecordedIds } from './call-ids.ts';
import { decodePart } from './decode-parts.ts';
import { decodeSettings } from './decode-settings.ts';
import { decodeTools } from './decode-tools.ts';

/**
 * Every content becomes one turn, but neighbouring contents of the model become one, and so do the pieces of a sealed thought: clients
 * store a streamed answer chunk by chunk, in contents or in parts of one, and it is one answer all the same. `model` and `stream` are those of the address.
 * @throws GatewayError invalid_request with `param` naming the field
 */
export function decodeRequest(body: Json, known: KnownNodes = NOTHING_KNOWN): Conversation {
  if (!isObject(body)) throw invalid('Invalid JSON payload received. Expected an object.');
  const named = text(body.model);
  if (!named) throw invalid('The path names no model: …/models/MODEL:generateContent.', 'model');
  // A request to count may hold the request that is meant.
  const meant = field(body, 'generateContentRequest');
  if (isObject(meant)) return decodeRequest({ ...meant, model: named, stream: false });
  const contents = field(body, 'contents');
  if (contents === undefined || contents === null) {
    throw invalid('* GenerateContentRequest.contents: contents is not specified', 'contents');
  }
  // The API takes one content in place of a list of one.
  const sent = list(contents) ?? (isObject(contents) ? [contents] : undefined);
  if (sent === undefined) throw wrongValue('contents', 'a list', contents);
  if (sent.length === 0) {
    throw invalid('* GenerateContentRequest.contents: contents is not specified', 'contents');
  }
  const model = bareModel(named);
  const turns = decodeContents(sent, known);
  const system = decodeSystem(field(body, 'systemInstruction'));
  const tools = known.tools(body, decodeTools);
  const settings = decodeSettings(body);
  const parts = { model, system, turns, tools, settings };
  return { ...parts, origin: { protocol: PROTOCOL, value: body, parts } };
}

function decodeContents(contents: readonly Json[], known: KnownNodes): readonly Turn[] {
  const ids = new HistoryCallIds();
  const turns: Turn[] = [];
  /** The neighbouring contents of the model. */
  let answer: Turn[] = [];
  const close = () => {
    const [only] = answer;
    if (only !== undefined)
      turns.push(answer.length === 1 && isWhole(only) ? only : joined(answer));
    answer = [];
  };
  contents.forEach((content, i) => {
    const turn = knownContent(content, `contents[${i}]`, ids, known);
    if (turn.role === 'assistant') answer.push(turn);
    else {
      close();
      turns.push(turn);
    }
  });
  close();
  return turns;
}

function decodeContent(content: Json, where: string, ids: CallIds): Turn {
  // The API takes a bare text for a content of the user.
  if (typeof content === 'string') {
    return { role: 'user', blocks: [{ type: 'text', text: content }], wire: wireOf(content) };
  }
  if (!isObject(content)) throw wrongValue(where, 'an object', content);
  const role = roleOf(content.role, `${where}.role`);
  const parts = content.parts;
  const sent = list(parts) ?? (isObject(parts) ? [parts] : []);
  if (parts !== undefined && parts !== null && list(parts) === undefined && !isObject(parts))
    throw wrongValue(`${where}.parts`, 'a list', parts);
  const blocks = sent.map((part, i) => decodePart(part, `${where}.parts[${i}]`, ids));
  return { role, blocks, wire: wireOf(content) };
}

/** The ids that the turns of known contents asked for. */
const askedIds = new WeakMap<Turn, readonly AskedId[]>();

/** A content as it was decoded before, if its calls and results get the same ids behind this history. */
function knownContent(content: Json, where: string, ids: CallIds, known: KnownNodes): Turn {
  if (known === NOTHING_KNOWN) return decodeContent(content, where, ids);
  let made = false;
  const turn = known.turn(content, where, () => {
    made = true;
    const recorded = new RecordedIds(ids);
    const decoded = decodeContent(content, where, recorded);
    if (recorded.asked.length > 0) askedIds.set(decoded, recorded.asked);
    return decoded;
  });
  const asked = made ? undefined : askedIds.get(turn);
  if (asked === undefined) return turn;
  const now = asked.map((one) => ({ ...one, id: ids[one.kind](one.given, one.name) }));
  return now.every(({ id }, i) => id === asked[i]!.id)
    ? turn
    : decodeContent(content, where, new GivenIds(now));
}

function roleOf(role: Json | undefined, where: string): 'user' | 'assistant' {
  if (role === 'model') return 'assistant';
  // `function` is an older name for the turn with the results.
  if (role === undefined || role === null || role === 'user' || role === 'function' || role === '')
    return 'user';
  throw invalid('Please use a valid role: user, model.', where);
}

/** Has the answer no thought in pieces? The last of them is the seal alone, as streams of this gateway end a thought. */
const isWhole = ({ blocks }: Turn): boolean =>
  blocks.every(
    (block, i) =>
      block.type !== 'reasoning' ||
      block.text !== '' ||
      block.sealed === undefined ||
      block.sealed.protocol === PROTOCOL ||
      i === 0 ||
      !goesOn(blocks[i - 1]!, block, false),
  );

/** Is the block a further piece of the text or thought before it? Texts of one content may be paragraphs. */
function goesOn(last: Block, block: Block, isStored: boolean): boolean {
  if (last.type === 'text') {
    return isStored && block.type === 'text' && isPlain(last) && isPlain(block);
  }
  return last.type === 'reasoning' && block.type === 'reasoning' && last.sealed === undefined;
}

/** The contents of one answer as one turn. Pieces of one text, and of one thought, become one block. */
function joined(contents: readonly Turn[]): Turn {
  const blocks: Block[] = [];
  let pieces: string[] = [];
  const flush = () => {
    const last = blocks.at(-1);
    if (pieces.length > 0 && (last?.type === 'text' || last?.type === 'reasoning')) {
      const { wire: _, ...rest } = last;
      blocks[blocks.length - 1] = { ...rest, text: last.text + pieces.join('') };
    }
    pieces = [];
  };
  for (const { blocks: more } of contents) {
    for (const block of more) {
      const last = blocks.at(-1);
      if (last === undefined || !goesOn(last, block, contents.length > 1)) {
        flush();
        blocks.push(block);
        continue;
      }
      pieces.push((block as typeof last & { text: string }).text);
      if (block.type === 'reasoning' && block.sealed !== undefined) {
        flush();
        blocks[blocks.length - 1] = { ...(blocks.at(-1) as typeof block), sealed: block.sealed };
      }
    }
  }
  flush();
  return { role: 'assistant', blocks };
}

/** Does the part hold nothing but its text, so that another text may be joined to it? */
function isPlain({ wire }: Block): boolean {
  return wire === undefined || (isObject(wire.value) && Object.keys(wire.value).length === 1);
}

/** The blocks of `systemInstruction`: a content, a bare text, or a list of parts. */
function decodeSystem(value: Json | undefined): readonly Block[] {
  if (value === undefined || value === null) return [];
  const where = 'system_instruction';
  if (typeof value === 'string') return value === '' ? [] : [{ type: 'text', text: value }];
  const parts = isObject(value) ? value.parts : value;
  if (parts === undefined || parts === null) return [];
  const sent: readonly Json[] | undefined =
    list(parts) ?? (isObject(parts) ? [parts as JsonObject] : undefined);
  if (sent === undefined)
    throw invalid(`Invalid value at '${where}.parts': expected a list.`, where);
  const ids = new HistoryCallIds();
  return sent.map((part, i) => decodePart(part, `${where}.parts[${i}]`, ids));
}
