/** Turns as `messages`, shaped so that the upstream accepts them. */

import { noteLostName } from '../../../conversation/lost-fields.ts';
import type { Turn } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { ownResidue, ownWire, rebuilt } from '../wire.ts';
import { type BlockWriter, encodeBlocks, instructionBlocks, textBlock } from './encode-blocks.ts';

type MessageRole = 'user' | 'assistant' | 'system';

interface MessageDraft {
  readonly role: MessageRole;
  readonly content: readonly JsonObject[];
  /** The message came on this wire: it keeps its borders, even beside one of the same role. */
  readonly ownMessage: boolean;
  /** The message as it will be sent, if nothing is joined to it. */
  readonly value: JsonObject;
  /** `value` is what came, untouched. */
  readonly verbatim: boolean;
}

/**
 * Untouched turns of this protocol go out as they came; the others are written anew: neighbours of
 * one role joined, results first in a user message, nothing behind the calls of an assistant's.
 * `foreign`: the conversation as a whole came on another wire, and its ends are put right as well.
 */
export function encodeMessages(
  turns: readonly Turn[],
  offset: number,
  foreign: boolean,
  writer: BlockWriter,
): readonly JsonObject[] {
  const drafts: MessageDraft[] = [];
  for (let i = 0; i < turns.length; i++) {
    const draft = encodeTurn(turns[i]!, `/messages/${i + offset}`, writer);
    if (draft !== undefined) drafts.push(draft);
  }
  // Joined before they are put in order: on Responses a thought and the call it led to are two turns.
  const settled = join(drafts)
    .map((draft) => inOrder(draft, writer))
    .filter((draft) => draft.verbatim || draft.content.length > 0);
  const messages = join(settled).map((draft) => inOrder(draft, writer));
  if (foreign) repairEnds(messages, writer);
  return messages.map((draft) => draft.value);
}

function encodeTurn(turn: Turn, where: string, writer: BlockWriter): MessageDraft | undefined {
  const own = ownWire(turn);
  if (isObject(own)) {
    const role = turn.role as MessageRole;
    return { role, content: listOf(own.content), ownMessage: true, value: own, verbatim: true };
  }
  noteLostName(turn, writer.notes, `${where}/name`);
  const role = roleOf(turn, where, writer);
  const blocks =
    role === 'system' ? instructionBlocks(turn.blocks, where, writer.notes) : turn.blocks;
  const content = encodeBlocks(blocks, `${where}/content`, writer);
  if (content.length === 0) return undefined;
  const residue = ownResidue(turn);
  const kept = isObject(residue) && residue.role === role ? residue : undefined;
  const single = turn.blocks.length === 1 ? ownWire(turn.blocks[0]!) : undefined;
  const value = rebuilt(kept, { role, content: typeof single === 'string' ? single : content });
  return { role, content, ownMessage: residue !== undefined, value, verbatim: false };
}

/** Neighbours of one role as one message, unless both came as messages of their own. */
function join(drafts: readonly MessageDraft[]): MessageDraft[] {
  const out: MessageDraft[] = [];
  for (let at = 0; at < drafts.length; ) {
    let end = at + 1;
    let { ownMessage } = drafts[at]!;
    while (end < drafts.length && joins(drafts[at]!, drafts[end]!, ownMessage)) {
      ownMessage ||= drafts[end]!.ownMessage;
      end++;
    }
    out.push(end === at + 1 ? drafts[at]! : joined(drafts.slice(at, end), ownMessage));
    at = end;
  }
  return out;
}

/** @param own something of what is joined already came as a message of its own */
const joins = (first: MessageDraft, draft: MessageDraft, own: boolean): boolean =>
  first.role === draft.role && draft.role !== 'system' && !(own && draft.ownMessage);

/** At once: step by step, each one more would copy all before it. */
function joined(drafts: readonly MessageDraft[], own: boolean): MessageDraft {
  const content = drafts.flatMap((draft) => draft.content);
  // Of what the messages have beside their content, the first to say something is heard.
  const value: Record<string, Json | undefined> = {};
  for (let i = drafts.length - 1; i >= 0; i--) Object.assign(value, drafts[i]!.value);
  value.content = content;
  return { role: drafts[0]!.role, content, ownMessage: own, value, verbatim: false };
}

function inOrder(draft: MessageDraft, { notes }: BlockWriter): MessageDraft {
  if (draft.verbatim) return draft;
  const content = draft.role === 'user' ? resultsFirst(draft.content) : callsLast(draft.content);
  if (content === draft.content) return draft;
  if (content.length < draft.content.length) {
    notes.add('reasoning_dropped', '/messages', 'thinking that nothing follows');
  }
  return { ...draft, content, value: { ...draft.value, content } };
}

/** Instructions in mid-conversation: a role of their own where the vendor has it, else a user's words. */
function roleOf(turn: Turn, where: string, { target, notes }: BlockWriter): MessageRole {
  if (turn.role === 'user' || turn.role === 'assistant') return turn.role;
  if (target.profile.systemTurns === true) return 'system';
  notes.add('content_bridged', where, `${turn.role} turn as user text`);
  return 'user';
}

/** `content` of a message as blocks. */
function listOf(content: Json | undefined): readonly JsonObject[] {
  if (typeof content === 'string') {
    const block = textBlock(content);
    return block === undefined ? [] : [block];
  }
  return Array.isArray(content) ? content.filter(isObject) : [];
}

const isThinking = (block: JsonObject | undefined) =>
  block?.type === 'thinking' || block?.type === 'redacted_thinking';

const isResult = (block: JsonObject) => block.type === 'tool_result';

/** Results lead a user message; the same list when they do. */
function resultsFirst(blocks: readonly JsonObject[]): readonly JsonObject[] {
  const lead = blocks.findIndex((block) => !isResult(block));
  if (lead < 0 || !blocks.slice(lead).some(isResult)) return blocks;
  return [...blocks.filter(isResult), ...blocks.filter((block) => !isResult(block))];
}

/**
 * Nothing stands behind the last call of an assistant message: text moves before the last run of
 * calls, thinking that led to nothing goes. Thinking is never the last block. The same list when
 * all that is so.
 */
function callsLast(blocks: readonly JsonObject[]): readonly JsonObject[] {
  let end = blocks.length;
  while (end > 0 && isThinking(blocks[end - 1])) end--;
  const kept = end === blocks.length ? blocks : blocks.slice(0, end);
  const last = kept.findLastIndex((block) => block.type === 'tool_use');
  if (last < 0 || last === kept.length - 1) return kept;
  let first = last;
  while (first > 0 && kept[first - 1]!.type === 'tool_use') first--;
  const behind = kept.slice(last + 1).filter((block) => !isThinking(block));
  return [...kept.slice(0, first), ...behind, ...kept.slice(first, last + 1)];
}

/** What begins with the assistant gets a user message before it; a final prefill loses its blank tail. */
function repairEnds(drafts: MessageDraft[], { notes }: BlockWriter): void {
  const end = drafts.at(-1);
  if (end?.role === 'assistant' && end.content.at(-1)?.type === 'text') {
    const text = end.content.at(-1)!;
    const trimmed = String(text.text).trimEnd();
    if (trimmed !== text.text) {
      const content = [...end.content.slice(0, -1), { ...text, text: trimmed }];
      drafts[drafts.length - 1] = { ...end, content, value: { ...end.value, content } };
    }
  }
  if (drafts[0]?.role === 'user') return;
  const content = [{ type: 'text', text: '.' }];
  const value = { role: 'user', content };
  drafts.unshift({ role: 'user', content, ownMessage: false, value, verbatim: false });
  notes.add('user_turn_inserted', '/messages/0', 'the first message must be a user message');
}

/**
 * The tool loop that the last message continues has no thinking at its head, which an upstream with
 * a thinking budget refuses. False where no loop is open.
 */
export function loopLacksThinking(messages: readonly JsonObject[]): boolean {
  let head: JsonObject | undefined;
  for (let i = messages.length - 1; i > 0; i -= 2) {
    const results = listOf(messages[i]!.content).some((block) => block.type === 'tool_result');
    if (messages[i]!.role !== 'user' || !results) break;
    if (messages[i - 1]!.role !== 'assistant') break;
    head = messages[i - 1];
  }
  return head !== undefined && !isThinking(listOf(head.content)[0]);
}
