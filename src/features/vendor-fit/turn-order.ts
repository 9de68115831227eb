/** Shapes of a history that a model's own chat template refuses: late instructions, neighbours of one role, parallel calls. */

import { editNode, mapUnchanged, withParts } from '../../conversation/edit.ts';
import { instructionsAsUser } from '../../conversation/late-instructions.ts';
import type { Block, ToolCallBlock, Turn } from '../../conversation/types.ts';
import type { FitContext, FitRule } from './rule.ts';

const isResult = (block: Block) => block.type === 'tool-result' && block.by !== 'provider';
const isCall = (block: Block): block is ToolCallBlock =>
  block.type === 'tool-call' && block.by !== 'provider';
const isInstruction = ({ role }: Turn) => role === 'system' || role === 'developer';
const hasUserContent = (turn: Turn | undefined): boolean =>
  turn?.role === 'user' && turn.blocks.some((block) => !isResult(block));

/** Chat only: the other protocols have no template of the model's own before them. */
export const fitChatTemplate: FitRule = (conversation, fit) => {
  const { profile, protocol } = fit;
  if (protocol !== 'openai-chat') return conversation;
  let { turns } = conversation;
  if (profile.systemTurns === false) turns = instructionsFirst(turns, fit);
  if (profile.parallelCalls === false) turns = oneCallPerTurn(turns, fit);
  return turns === conversation.turns ? conversation : withParts(conversation, { turns });
};

/** A user message where the vendor wants one, an assistant message between tool results and the user, no late instructions. */
export const fitTurns: FitRule = (conversation, fit) => {
  const { profile, protocol, sameProtocol, notes } = fit;
  let { turns } = conversation;
  if (protocol === 'anthropic-messages' && sameProtocol && profile.systemTurns === false) {
    turns = instructionsAsUser(turns, notes);
  }
  if (profile.userAfterTool === false && protocol === 'openai-chat')
    turns = closeToolRounds(turns, fit);
  if (profile.needsUserTurn === true && !turns.some(hasUserContent))
    turns = withUserTurn(turns, fit);
  return turns === conversation.turns ? conversation : withParts(conversation, { turns });
};

/** The last of the rules about turns: those before it make neighbours and part some, and say who is first and last. */
export const fitNeighbours: FitRule = (conversation, fit) => {
  const { profile, protocol } = fit;
  let { turns } = conversation;
  if (protocol === 'anthropic-messages') turns = fitFirstAndLast(turns, fit);
  if (profile.sameRoleTurns === false && protocol !== 'openai-responses')
    turns = joinNeighbours(turns, fit);
  return turns === conversation.turns ? conversation : withParts(conversation, { turns });
};

/** "System message must be at the beginning": one stands there, later ones are the user's words. */
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
  // Those of another protocol become one message anyway.
  if (!sameProtocol || lead < 2) return late;
  notes.add('message_shape_repaired', '/messages', `${lead} leading system messages as one`);
  return [joinTurns(late.slice(0, lead)), ...late.slice(lead)];
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
    const calls = round.flatMap(({ blocks }) => blocks.filter(isCall));
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

/** Behind one answer of the model: codecs write neighbouring assistant turns of another protocol as one message. */
function answerEnd(turns: readonly Turn[], at: number, own: boolean): number {
  if (turns[at]!.role !== 'assistant') return at;
  let end = at + 1;
  while (!own && turns[end]?.role === 'assistant') end++;
  return end;
}

/** One round of calls as several: what was said goes with the first call, what else came in follows the last. */
function splitRound(round: readonly Turn[], input: readonly Turn[]): readonly Turn[] {
  const results = new Map<string, Turn>();
  const rest: Turn[] = [];
  for (const turn of input) {
    const others: Block[] = [];
    for (const block of turn.blocks) {
      if (block.type !== 'tool-result' || !isResult(block) || results.has(block.callId)) {
        others.push(block);
      } else {
        const alone = turn.blocks.length === 1;
        results.set(block.callId, alone ? turn : { role: 'user', blocks: [block] });
      }
    }
    if (others.length === turn.blocks.length) rest.push(turn);
    else if (others.length > 0) rest.push({ role: 'user', blocks: others });
  }
  const said = round.map((turn): Turn => {
    const blocks = turn.blocks.filter((block) => !isCall(block));
    return blocks.length === turn.blocks.length ? turn : editNode(turn, { blocks });
  });
  const calls = round.flatMap(({ blocks }) => blocks.filter(isCall));
  const out: Turn[] = [];
  calls.forEach((call, i) => {
    if (i > 0) out.push({ role: 'assistant', blocks: [call] });
    else {
      const host = said.pop()!;
      for (const turn of said) if (turn.blocks.length > 0) out.push(turn);
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

/** Mistral: behind tool messages the next one must be the assistant's. */
function closeToolRounds(turns: readonly Turn[], { notes }: FitContext): readonly Turn[] {
  const done = (): Turn => {
    notes.add('assistant_turn_added', '/messages', 'between tool results and the user');
    return { role: 'assistant', blocks: [{ type: 'text', text: 'Done.' }] };
  };
  return mapUnchanged(turns, (turn, at) => {
    const results = turn.blocks.filter(isResult);
    if (turn.role !== 'user' || results.length === 0) return turn;
    const others = turn.blocks.filter((block) => !isResult(block));
    const next = turns[at + 1];
    if (others.length > 0) {
      return [editNode(turn, { blocks: results }), done(), { role: 'user', blocks: others }];
    }
    return next?.role === 'user' && !next.blocks.some(isResult) ? [turn, done()] : turn;
  });
}

/** Zhipu answers 1214 to a conversation without any user message. */
function withUserTurn(turns: readonly Turn[], { notes }: FitContext): readonly Turn[] {
  notes.add('user_turn_added', '/messages', 'the vendor wants one');
  const user: Turn = { role: 'user', blocks: [{ type: 'text', text: 'Continue.' }] };
  const first = turns.findIndex((turn) => !isInstruction(turn));
  return first < 0 ? [...turns, user] : [...turns.slice(0, first), user, ...turns.slice(first)];
}

const userText = (text: string): Turn => ({ role: 'user', blocks: [{ type: 'text', text }] });

/** Who may begin and end a conversation. */
function fitFirstAndLast(turns: readonly Turn[], { profile, notes }: FitContext): readonly Turn[] {
  let out = turns;
  const last = turns.at(-1);
  const prefill = last?.role === 'assistant' && !isUnderWay(last);
  if (profile.assistantLast === false && prefill) {
    notes.add('user_turn_added', '/messages', 'the model takes no words put into its mouth');
    // One that says nothing may only be the last.
    out = [...(last.blocks.length === 0 ? turns.slice(0, -1) : turns), userText('Continue.')];
  }
  const first = turns[0]?.role;
  if (profile.userFirst === true && first !== undefined && first !== 'user') {
    notes.add('user_turn_inserted', '/messages/0', 'the first message must be a user message');
    out = [userText('.'), ...out];
  }
  return out;
}

/** A call of the vendor's own tools has no answer yet: the vendor goes on with this turn itself. */
function isUnderWay({ blocks }: Turn): boolean {
  const open = new Set<string>();
  for (const block of blocks) {
    if (block.type === 'tool-call' && block.by === 'provider') open.add(block.id);
    else if (block.type === 'tool-result') open.delete(block.callId);
  }
  return open.size > 0;
}

/** "Conversation roles must alternate": neighbours of one role are one message. */
function joinNeighbours(
  turns: readonly Turn[],
  { notes, sameProtocol, protocol }: FitContext,
): readonly Turn[] {
  const out: Turn[] = [];
  let changed = false;
  // Messages has results among the user's blocks, and its codec puts them in front.
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
  if (a.role === 'user') return !a.blocks.some(isResult) && !b.blocks.some(isResult);
  // The codec joins the assistant's turns of another protocol itself.
  return a.role === 'assistant' && own && !a.blocks.some(isCall);
}

/** Turns of one role as one, with a blank line between their texts. */
function joinTurns(turns: readonly Turn[]): Turn {
  const blocks: Block[] = [];
  let said = false;
  for (const turn of turns) {
    let apart = said;
    for (const block of turn.blocks) {
      const last = blocks.at(-1);
      if (!apart || block.type !== 'text' || block.text === '') blocks.push(block);
      else if (last?.type === 'text') {
        blocks[blocks.length - 1] = editNode(last, { text: `${last.text}\n\n${block.text}` });
      } else blocks.push(editNode(block, { text: `\n\n${block.text}` }));
      if (block.type === 'text') {
        apart = false;
        said = true;
      }
    }
  }
  return editNode(turns[0]!, { blocks });
}
