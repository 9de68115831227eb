/** Encodes turns as `messages` in an order that the API accepts. */

import { noteLostName } from '../../../conversation/lost-fields.ts';
import type { Turn } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { objects } from '../../../lib/json/typed-reads.ts';
import { isThinking, ownResidue, ownWire, PROTOCOL, rebuilt } from '../wire.ts';
import { type BlockWriter, encodeBlocks, instructionBlocks, textBlock } from './encode-blocks.ts';

type MessageRole = 'user' | 'assistant' | 'system';

interface MessageDraft {
  readonly role: MessageRole;
  readonly content: readonly JsonObject[];
  /** The message came in this protocol: it is not joined with another own message of the same role. */
  readonly ownMessage: boolean;
  /** The message to send if nothing is joined to it. */
  readonly value: JsonObject;
  /** `value` is the unchanged message of the client. */
  readonly verbatim: boolean;
}

/**
 * Unchanged turns of this protocol go out as they came. Others are written anew: consecutive messages of one
 * role are joined, results come first in a user message, and calls come last in an assistant message.
 * @param foreign the conversation came in another protocol, so its first and last message are repaired too
 */
export function encodeMessages(
  turns: readonly Turn[],
  offset: number,
  foreign: boolean,
  writer: BlockWriter,
): readonly JsonObject[] {
  const drafts: MessageDraft[] = [];
  for (let i = 0; i < turns.length; i++) {
    const draft = knownDraft(turns[i]!, `/messages/${i + offset}`, writer);
    if (draft !== undefined) drafts.push(draft);
  }
  // Join before ordering: in Responses, reasoning and the call that it led to are two turns.
  const settled = join(drafts)
    .map((draft) => inOrder(draft, writer))
    .filter((draft) => draft.verbatim || draft.content.length > 0);
  const messages = join(settled).map((draft) => inOrder(draft, writer));
  if (foreign) repairEnds(messages, writer);
  return messages.map((draft) => draft.value);
}

/** The draft of a turn, as it was made before if it depends on the turn alone. */
function knownDraft(turn: Turn, where: string, writer: BlockWriter): MessageDraft | undefined {
  const { target, names, fixedIds, known } = writer;
  if (!fixedIds || ownWire(turn) !== undefined) return encodeTurn(turn, where, writer);
  const { provider, model, profile } = target;
  const shape = [PROTOCOL, provider, model, profile, names];
  return known.encoded(turn, shape, writer.notes, (notes) =>
    encodeTurn(turn, where, { ...writer, notes }),
  );
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

/** Joins consecutive messages of one role, unless both came as messages of their own. */
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

/** @param own one of the drafts joined so far came as a message of its own */
const joins = (first: MessageDraft, draft: MessageDraft, own: boolean): boolean =>
  first.role === draft.role && draft.role !== 'system' && !(own && draft.ownMessage);

/** Joins all drafts at once: pairwise joins would copy the content again and again. */
function joined(drafts: readonly MessageDraft[], own: boolean): MessageDraft {
  const content = drafts.flatMap((draft) => draft.content);
  // For fields other than content, the first message wins.
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

/** The role of a turn. Instructions in mid-conversation become user text unless the vendor accepts `system`. */
function roleOf(turn: Turn, where: string, { target, notes }: BlockWriter): MessageRole {
  if (turn.role === 'user' || turn.role === 'assistant') return turn.role;
  if (target.profile.systemTurns === true) return 'system';
  notes.add('content_bridged', where, `${turn.role} turn as user text`);
  return 'user';
}

/** The `content` of a message as blocks. */
function listOf(content: Json | undefined): readonly JsonObject[] {
  if (typeof content === 'string') {
    const block = textBlock(content);
    return block === undefined ? [] : [block];
  }
  return objects(content);
}

const isResult = (block: JsonObject) => block.type === 'tool_result';

/** The blocks of a user message with results first; the same list if they are. */
function resultsFirst(blocks: readonly JsonObject[]): readonly JsonObject[] {
  const lead = blocks.findIndex((block) => !isResult(block));
  if (lead < 0 || !blocks.slice(lead).some(isResult)) return blocks;
  return [...blocks.filter(isResult), ...blocks.filter((block) => !isResult(block))];
}

/**
 * The blocks of an assistant message with calls last: text moves before the last run of calls, and thinking
 * that nothing follows is dropped, because thinking may not be the last block. The same list if nothing changes.
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

/** Inserts a user message before a leading assistant message, and trims the end of a final prefill. */
function repairEnds(drafts: MessageDraft[], { notes }: BlockWriter): void {
  const end = drafts.at(-1);
  if (end?.role === 'assistant' && end.content.at(-1)?.type === 'text') {
    const text = end.content.at(-1)!;
    const trimmed = String(text.text).trimEnd();
    if (trimmed !== text.text) {
      const content = [...end.content.slice(0, -1), { ...text, text: trimmed }];
      drafts[drafts.length - 1] = { ...end, content, value: { ...end.value, content } };
      notes.add('trailing_space_removed', '/messages');
    }
  }
  if (drafts[0]?.role === 'user') return;
  const content = [{ type: 'text', text: '.' }];
  const value = { role: 'user', content };
  drafts.unshift({ role: 'user', content, ownMessage: false, value, verbatim: false });
  notes.add('user_turn_inserted', '/messages/0', 'the first message must be a user message');
}

/**
 * Does the open tool loop begin without thinking? With a thinking budget, the API refuses that. False if no
 * loop is open.
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
