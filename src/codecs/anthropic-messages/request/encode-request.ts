/** Encodes a conversation as a Messages request body. Unchanged parts of the same protocol go out as they came. */

import { isInstruction } from '../../../conversation/edit.ts';
import { noteLostName } from '../../../conversation/lost-fields.ts';
import type { Notes } from '../../../conversation/notes.ts';
import { type KnownNodes, NOTHING_KNOWN } from '../../../conversation/session/known-nodes.ts';
import type { Target } from '../../../conversation/target.ts';
import {
  legalCallIds,
  MESSAGES_CALL_ID,
  wrapCallId,
} from '../../../conversation/tools/call-ids.ts';
import { toolNames } from '../../../conversation/tools/tool-names.ts';
import type { Block, Conversation } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { put, putAll } from '../../../lib/json/json-members.ts';
import { objects, ownWire, PROTOCOL, TOOL_NAME_LIMIT } from '../wire.ts';
import { type BlockWriter, encodeBlocks, instructionBlocks } from './encode-blocks.ts';
import { encodeMessages, loopLacksThinking } from './encode-messages.ts';
import { changedSettings, encodeSettings, noToolUse } from './encode-settings.ts';
import { declareCalledTools, encodeTools } from './encode-tools.ts';

/**
 * The body for this target. A conversation of this protocol keeps every unchanged part and the order of its
 * keys. A conversation of another protocol is brought into the form that this API accepts, and what it cannot
 * express becomes a note. Never throws because of content.
 */
export function encodeRequest(
  conversation: Conversation,
  target: Target,
  notes: Notes,
  known: KnownNodes = NOTHING_KNOWN,
): JsonObject {
  const writer: BlockWriter = {
    target,
    notes,
    names: toolNames(conversation.tools, TOOL_NAME_LIMIT),
    ...wireIds(conversation),
    known,
  };
  const origin = conversation.origin;
  return origin?.protocol === PROTOCOL
    ? fromOwn(conversation, { ...origin }, writer)
    : fromForeign(conversation, writer);
}

/**
 * Call ids in a form that Messages accepts. An illegal id of another protocol becomes `toolu_<16 hex digits>`.
 * A client of this protocol has got illegal ids wrapped, and keeps the wrapped form.
 */
function wireIds({ turns, origin }: Conversation): Pick<BlockWriter, 'callId' | 'fixedIds'> {
  if (origin?.protocol === PROTOCOL) return { callId: wrapCallId, fixedIds: true };
  const made = legalCallIds(
    turns,
    MESSAGES_CALL_ID,
    (seed) => `toolu_${Bun.hash.xxHash64(seed).toString(16).padStart(16, '0')}`,
  );
  return { callId: (id) => made.get(id) ?? id, fixedIds: made.size === 0 };
}

function fromOwn(
  conversation: Conversation,
  { value, parts }: NonNullable<Conversation['origin']>,
  writer: BlockWriter,
): JsonObject {
  const { target, notes } = writer;
  const changes: Record<string, Json | undefined> = { model: target.model };
  if (conversation.system !== parts.system) {
    const system = encodeSystem(conversation.system, writer);
    changes.system = system === undefined && value.system !== undefined ? undefined : system;
  }
  if (conversation.tools !== parts.tools) {
    const tools = encodeTools(conversation.tools, writer.names, target, notes);
    const asEmpty = Array.isArray(value.tools) && value.tools.length === 0;
    changes.tools = tools.length > 0 || asEmpty ? tools : undefined;
  }
  if (conversation.settings !== parts.settings) {
    // A choice is one among the tools that are sent.
    const now = 'tools' in changes ? { ...value, tools: changes.tools } : value;
    putAll(changes, changedSettings(conversation, parts.settings, now, writer));
  }
  const rewritten =
    conversation.turns !== parts.turns ||
    conversation.turns.some((turn) => turn.wire === undefined);
  if (rewritten) changes.messages = encodeMessages(conversation.turns, 0, false, writer);
  const body: Record<string, Json | undefined> = {};
  for (const key of Object.keys(value)) {
    const item = Object.hasOwn(changes, key) ? changes[key] : value[key];
    if (item !== undefined) put(body, key, item);
  }
  for (const key of Object.keys(changes)) {
    if (!Object.hasOwn(value, key) && changes[key] !== undefined) put(body, key, changes[key]);
  }
  if (rewritten && body.tools === undefined) {
    // Tools of calls that features added must be declared. If the client itself calls undeclared tools, the
    // upstream decides.
    const missing = calledNames(objects(body.messages)).difference(
      calledNames(objects(value.messages)),
    );
    if (missing.size > 0) {
      Object.assign(body, noToolUse(target.profile.toolChoices), {
        tools: declareCalledTools(missing, notes),
      });
    }
  }
  if ('tools' in changes && body.tools === undefined && body.tool_choice !== undefined) {
    delete body.tool_choice;
    notes.add('parameter_dropped', 'tool_choice', 'no tools are left');
  }
  // If the client itself sends its tool loop without thinking, the upstream decides.
  return rewritten && !openLoopLacksThinking(value) ? withLegalThinking(body, notes) : body;
}

function fromForeign(conversation: Conversation, writer: BlockWriter): JsonObject {
  const { target, notes, names } = writer;
  const { turns } = conversation;
  const found = turns.findIndex((turn) => !isInstruction(turn));
  const lead = found < 0 ? turns.length : found;
  for (let i = 0; i < lead; i++) noteLostName(turns[i]!, notes, `/messages/${i}/name`);
  const instructions = turns.slice(0, lead).flatMap((turn) => turn.blocks);
  const system = encodeSystem([...conversation.system, ...instructions], writer);
  const messages = encodeMessages(turns.slice(lead), lead, true, writer);
  const shape = [PROTOCOL, target.provider, target.model, target.profile];
  const declared = writer.known.encoded(conversation.tools, shape, notes, (from) =>
    encodeTools(conversation.tools, names, target, from),
  );
  const missing = declared.length === 0 ? calledNames(messages) : new Set<string>();
  const tools = missing.size > 0 ? declareCalledTools(missing, notes) : declared;
  const settings = encodeSettings(conversation, tools, missing.size > 0, writer);
  const body: JsonObject = {
    model: target.model,
    ...settings,
    ...(system === undefined ? {} : { system }),
    ...(settings.tools !== undefined || tools.length === 0 ? {} : { tools }),
    messages,
  };
  return withLegalThinking(body, notes);
}

/** GLM writes `server_tool_use` for calls of the client's functions. */
const CALLS = new Set(['tool_use', 'server_tool_use']);

/** The names of the tools that the history calls. */
function calledNames(messages: readonly JsonObject[]): Set<string> {
  const names = new Set<string>();
  for (const message of messages) {
    if (!Array.isArray(message.content)) continue;
    for (const block of message.content) {
      if (isObject(block) && CALLS.has(String(block.type))) names.add(String(block.name));
    }
  }
  return names;
}

/** `system`: a single text as a string, several as blocks. Other content is left out with a note. */
function encodeSystem(blocks: readonly Block[], writer: BlockWriter): Json | undefined {
  const plain = instructionBlocks(blocks, '/system', writer.notes);
  const out = encodeBlocks(plain, '/system', writer);
  const only = out.length === 1 ? out[0] : undefined;
  if (out.length === 0) return undefined;
  const object = plain.some((block) => isObject(ownWire(block)));
  return only?.type === 'text' && only.cache_control === undefined && !object
    ? (only.text as string)
    : out;
}

const openLoopLacksThinking = ({ messages }: JsonObject): boolean =>
  Array.isArray(messages) && loopLacksThinking(messages.filter(isObject));

/**
 * With a thinking budget, the open tool loop must begin with thinking. If that thinking was lost, the request
 * is sent without `thinking`, and without the context edit that depends on it.
 */
function withLegalThinking(body: JsonObject, notes: Notes): JsonObject {
  const { thinking } = body;
  if (!isObject(thinking) || thinking.type !== 'enabled' || !openLoopLacksThinking(body))
    return body;
  notes.add('parameter_dropped', 'thinking', 'the open tool loop has lost its thinking');
  const { thinking: _thinking, ...rest } = body;
  const management = rest.context_management;
  if (!isObject(management) || !Array.isArray(management.edits)) return rest;
  const edits = management.edits.filter(
    (edit) => !(isObject(edit) && String(edit.type).startsWith('clear_thinking')),
  );
  if (edits.length === management.edits.length) return rest;
  return { ...rest, context_management: { ...management, edits } };
}
