/** Fits the order of turns to what a vendor or a model's chat template accepts: roles, neighbours, first and last turn, parallel calls. */

import {
  editNode,
  instructionsAsUser,
  isClientCall,
  isClientResult,
  isInstruction,
  mapBlocks,
  mapUnchanged,
  withParts,
} from '../../conversation/edit.ts';
import type { Notes } from '../../conversation/notes.ts';
import type { Block, ToolResultBlock, Turn } from '../../conversation/types.ts';
import type { FitContext, FitRule } from './rule.ts';

const hasUserContent = (turn: Turn | undefined): boolean =>
  turn?.role === 'user' && turn.blocks.some((block) => !isClientResult(block));

/** Instructions that the model knows no place for stand before the first user text, later ones where they stood. */
export const fitInstructions: FitRule = (conversation, { profile, notes }) => {
  if (profile.instructions !== false) return conversation;
  const lead = conversation.turns.findIndex((turn) => !isInstruction(turn));
  const count = lead < 0 ? conversation.turns.length : lead;
  const leading = conversation.turns.slice(0, count).flatMap(({ blocks }) => blocks);
  const said = [...conversation.system, ...leading];
  const turns = mapUnchanged(
    conversation.turns.slice(count),
    (turn): Turn => (isInstruction(turn) ? { role: 'user', blocks: turn.blocks } : turn),
  );
  if (said.length === 0 && !conversation.turns.some(isInstruction)) return conversation;
  notes.add('content_bridged', 'system', 'instructions as user text');
  if (said.length === 0) return withParts(conversation, { turns });
  const [first, ...rest] = turns;
  const joins = first !== undefined && hasUserContent(first) && !first.blocks.some(isClientResult);
  const start: readonly Turn[] = joins
    ? [editNode(first, { blocks: [...said, ...first.blocks] }), ...rest]
    : [{ role: 'user', blocks: said }, ...turns];
  return withParts(conversation, { system: [], turns: start });
};

/** Only on Chat, where servers run the model's own chat template over the messages. */
export const fitChatTemplate: FitRule = (conversation, context) => {
  const { profile, protocol } = context;
  if (protocol !== 'openai-chat') return conversation;
  let { turns } = conversation;
  if (profile.systemTurns === false) turns = instructionsFirst(turns, context);
  if (profile.emptyReplies === false) turns = withoutReplies(turns, context, saysNothing);
  if (profile.parallelCalls === false) turns = oneCallPerTurn(turns, context);
  return withParts(conversation, { turns });
};

/** Adds turns that the vendor requires, and moves instructions that it refuses in mid-dialogue. */
export const fitTurns: FitRule = (conversation, context) => {
  const { profile, protocol, sameProtocol, notes } = context;
  let { turns } = conversation;
  if (protocol === 'anthropic-messages' && sameProtocol && profile.systemTurns === false) {
    turns = instructionsAsUser(turns, notes);
  }
  if (profile.userAfterTool === false && protocol === 'openai-chat')
    turns = closeToolRounds(turns, context);
  if (profile.needsUserTurn === true && !turns.some(hasUserContent))
    turns = withUserTurn(turns, context);
  return withParts(conversation, { turns });
};

/** Fixes the first and last turn, and joins neighbours of one role. Runs last: earlier rules add and split turns. */
export const fitNeighbours: FitRule = (conversation, context) => {
  const { profile, protocol } = context;
  let turns = fitFirstAndLast(conversation.turns, context);
  if (profile.sameRoleTurns === false && protocol !== 'openai-responses') {
    // Of another protocol, what says nothing in Chat is not written there: its neighbours would meet.
    if (protocol === 'openai-chat' && !context.sameProtocol) {
      turns = withoutReplies(turns, context, (block) => isNotWritten(block, context));
    }
    turns = joinNeighbours(turns, context);
  }
  return withParts(conversation, { turns });
};

/** "System message must be at the beginning": leading ones are joined, later ones become user text. */
function instructionsFirst(
  turns: readonly Turn[],
  { notes, sameProtocol }: FitContext,
): readonly Turn[] {
  const found = turns.findIndex((turn) => !isInstruction(turn));
  const lead = found < 0 ? turns.length : found;
  const late = mapUnchanged(turns, (turn, at): Turn => {
    if (at < lead || !isInstruction(turn)) return turn;
    notes.add('content_bridged', `/messages/${at}`, `${turn.role} turn as user text`);
    return { role: 'user', blocks: turn.blocks };
  });
  // From another protocol the codec writes one message anyway.
  if (!sameProtocol || lead < 2) return late;
  notes.add('message_shape_repaired', '/messages', `${lead} leading system messages as one`);
  return [joinTurns(late.slice(0, lead)), ...late.slice(lead)];
}

/** Answers that were cut off before their first word stay in the histories of agents. */
function withoutReplies(
  turns: readonly Turn[],
  { notes }: FitContext,
  isEmpty: (block: Block) => boolean,
): readonly Turn[] {
  return mapUnchanged(turns, (turn, at) => {
    if (turn.role !== 'assistant' || !turn.blocks.every(isEmpty)) return turn;
    notes.add('message_shape_repaired', `/messages/${at}`, 'empty assistant message removed');
    return undefined;
  });
}

const saysNothing = (block: Block): boolean =>
  block.type === 'reasoning' || (block.type === 'text' && block.text === '');

function isNotWritten(block: Block, { profile, protocol }: FitContext): boolean {
  if (block.type !== 'reasoning') return saysNothing(block);
  if (block.sealed?.protocol === protocol) return false;
  return block.text === '' || profile.reasoningField === 'none';
}

/** "This model only supports single tool-calls at once": each call is followed by its own result. */
function oneCallPerTurn(
  turns: readonly Turn[],
  { notes, sameProtocol }: FitContext,
): readonly Turn[] {
  const out: Turn[] = [];
  let changed = false;
  for (let at = 0; at < turns.length; ) {
    const end = answerEnd(turns, at, sameProtocol);
    const round = turns.slice(at, end);
    const calls = round.flatMap(({ blocks }) => blocks.filter(isClientCall));
    let behind = end;
    while (behind < turns.length && turns[behind]!.role !== 'assistant') behind++;
    if (calls.length < 2) {
      for (let i = at; i < behind; i++) out.push(turns[i]!);
    } else {
      changed = true;
      notes.add('message_shape_repaired', `/messages/${at}`, `${calls.length} calls one by one`);
      for (const turn of splitRound(round, turns.slice(end, behind))) out.push(turn);
    }
    at = Math.max(behind, at + 1);
  }
  return changed ? out : turns;
}

/** The index after one answer: codecs write neighbouring assistant turns of another protocol as one message. */
function answerEnd(turns: readonly Turn[], at: number, own: boolean): number {
  if (turns[at]!.role !== 'assistant') return at;
  let end = at + 1;
  while (!own && turns[end]?.role === 'assistant') end++;
  return end;
}

/** Splits a round of parallel calls: text goes with the first call, other input follows the last result. */
function splitRound(round: readonly Turn[], input: readonly Turn[]): readonly Turn[] {
  const results = new Map<string, Turn>();
  const rest: Turn[] = [];
  for (const turn of input) {
    const others: Block[] = [];
    for (const block of turn.blocks) {
      if (!isClientResult(block) || results.has(block.callId)) {
        others.push(block);
      } else {
        const alone = turn.blocks.length === 1;
        results.set(block.callId, alone ? turn : { role: 'user', blocks: [block] });
      }
    }
    if (others.length === turn.blocks.length) rest.push(turn);
    else if (others.length > 0) rest.push({ role: 'user', blocks: others });
  }
  const spoken = round.map((turn) =>
    mapBlocks(turn, (block) => (isClientCall(block) ? undefined : block)),
  );
  const calls = round.flatMap(({ blocks }) => blocks.filter(isClientCall));
  const out: Turn[] = [];
  calls.forEach((call, i) => {
    if (i > 0) out.push({ role: 'assistant', blocks: [call] });
    else {
      const host = spoken.pop()!;
      for (const turn of spoken) if (turn.blocks.length > 0) out.push(turn);
      out.push(editNode(host, { blocks: [...host.blocks, call] }));
    }
    const result = results.get(call.id);
    if (result !== undefined) {
      out.push(result);
      results.delete(call.id);
    }
  });
  for (const result of results.values()) out.push(result);
  return [...out, ...rest];
}

/**
 * Mistral requires an assistant message between tool messages and a user message, and takes no images in tool messages:
 * those of a round follow in a user message.
 */
function closeToolRounds(turns: readonly Turn[], { notes }: FitContext): readonly Turn[] {
  const out: Turn[] = [];
  let changed = false;
  let media: Block[] = [];
  turns.forEach((turn, at) => {
    const results = turn.blocks.filter(isClientResult);
    if (turn.role !== 'user' || results.length === 0) {
      out.push(turn);
      return;
    }
    const texts = results.map((result) => textOf(result, media, notes));
    const others = turn.blocks.filter((block) => !isClientResult(block));
    const isSame = others.length === 0 && texts.every((result, i) => result === results[i]);
    out.push(isSame ? turn : editNode(turn, { blocks: texts }));
    changed ||= !isSame;
    const next = turns[at + 1];
    const goesOn = next?.role === 'user' && next.blocks.some(isClientResult);
    if (others.length === 0 && (goesOn || (media.length === 0 && next?.role !== 'user'))) return;
    changed = true;
    notes.add('assistant_turn_added', '/messages', 'between tool results and the user');
    out.push({ role: 'assistant', blocks: [{ type: 'text', text: 'Done.' }] });
    if (media.length + others.length > 0) out.push({ role: 'user', blocks: [...media, ...others] });
    media = [];
  });
  return changed ? out : turns;
}

/** A result without its media, which are put among those that follow; the same one if it has none. */
function textOf(result: ToolResultBlock, media: Block[], notes: Notes): ToolResultBlock {
  const found = result.content.filter((block) => block.type === 'media');
  if (found.length === 0) return result;
  media.push({ type: 'text', text: `Attached to the result of ${result.callId}:` }, ...found);
  const content = result.content.map((block): Block => {
    if (block.type !== 'media') return block;
    notes.add('content_bridged', '/messages', `${block.media} of a tool result`);
    return { type: 'text', text: `[${block.media} attached in the next user message]` };
  });
  return editNode(result, { content });
}

/** Zhipu refuses a conversation without a user message (error 1214). */
function withUserTurn(turns: readonly Turn[], { notes }: FitContext): readonly Turn[] {
  notes.add('user_turn_added', '/messages', 'the vendor wants one');
  const user: Turn = { role: 'user', blocks: [{ type: 'text', text: 'Continue.' }] };
  const first = turns.findIndex((turn) => !isInstruction(turn));
  return first < 0 ? [...turns, user] : [...turns.slice(0, first), user, ...turns.slice(first)];
}

const userText = (text: string): Turn => ({ role: 'user', blocks: [{ type: 'text', text }] });

/** Makes the first and the last turn such as the vendor accepts. */
function fitFirstAndLast(
  turns: readonly Turn[],
  { profile, notes, protocol }: FitContext,
): readonly Turn[] {
  let out = turns;
  const last = turns.at(-1);
  const prefill = last?.role === 'assistant' && !isUnderWay(last);
  if (profile.assistantLast === false && prefill) {
    notes.add('user_turn_added', '/messages', 'the model accepts no prefill');
    // An empty assistant turn is valid only as the last one.
    out = [...(last.blocks.length === 0 ? turns.slice(0, -1) : turns), userText('Continue.')];
  }
  // In Chat, instructions stand before it.
  const at = protocol === 'openai-chat' ? turns.findIndex((turn) => !isInstruction(turn)) : 0;
  const first = turns[at]?.role;
  if (profile.userFirst === true && first !== undefined && first !== 'user') {
    notes.add('user_turn_inserted', `/messages/${at}`, 'the first message must be a user message');
    out = [...out.slice(0, at), userText('.'), ...out.slice(at)];
  }
  return out;
}

/** The vendor's own tool has no result yet, so the vendor continues this turn itself. */
function isUnderWay({ blocks }: Turn): boolean {
  const open = new Set<string>();
  for (const block of blocks) {
    if (block.type === 'tool-call' && block.by === 'provider') open.add(block.id);
    else if (block.type === 'tool-result') open.delete(block.callId);
  }
  return open.size > 0;
}

/** "Conversation roles must alternate": neighbours of one role become one message. */
function joinNeighbours(
  turns: readonly Turn[],
  { notes, sameProtocol, protocol }: FitContext,
): readonly Turn[] {
  const out: Turn[] = [];
  let changed = false;
  // On Messages results are blocks of user turns, and the codec puts them first.
  const join =
    protocol === 'openai-chat'
      ? mayJoin
      : (a: Turn, b: Turn) => sameProtocol && a.role === b.role && !isInstruction(a);
  for (let at = 0; at < turns.length; ) {
    let end = at + 1;
    while (end < turns.length && join(turns[end - 1]!, turns[end]!, sameProtocol)) end++;
    if (end === at + 1) out.push(turns[at]!);
    else {
      changed = true;
      const { role } = turns[at]!;
      notes.add('message_shape_repaired', `/messages/${at}`, `${end - at} ${role} messages as one`);
      out.push(joinTurns(turns.slice(at, end)));
    }
    at = end;
  }
  return changed ? out : turns;
}

function mayJoin(a: Turn, b: Turn, own: boolean): boolean {
  if (a.role !== b.role) return false;
  if (a.role === 'user') return !a.blocks.some(isClientResult) && !b.blocks.some(isClientResult);
  // From another protocol the codec joins assistant turns itself.
  return a.role === 'assistant' && own && !a.blocks.some(isClientCall);
}

/** Joins turns of one role, with a blank line between their texts. */
function joinTurns(turns: readonly Turn[]): Turn {
  const blocks: Block[] = [];
  let hasText = false;
  for (const turn of turns) {
    let needsGap = hasText;
    for (const block of turn.blocks) {
      const last = blocks.at(-1);
      if (!needsGap || block.type !== 'text' || block.text === '') blocks.push(block);
      else if (last?.type === 'text') {
        blocks[blocks.length - 1] = editNode(last, { text: `${last.text}\n\n${block.text}` });
      } else blocks.push(editNode(block, { text: `\n\n${block.text}` }));
      if (block.type === 'text') {
        needsGap = false;
        hasText = true;
      }
    }
  }
  return editNode(turns[0]!, { blocks });
}
