/** Orders of turns that a vendor refuses: a user behind tool messages, no user at all, system in the middle. */

import { editNode, mapUnchanged, withParts } from '../../conversation/edit.ts';
import { instructionsAsUser } from '../../conversation/late-instructions.ts';
import type { Block, Turn } from '../../conversation/types.ts';
import type { Fit, Rule } from './rule.ts';

const isResult = (block: Block) => block.type === 'tool-result' && block.by !== 'provider';
const isInstruction = (turn: Turn) => turn.role === 'system' || turn.role === 'developer';
const speaks = (turn: Turn | undefined): boolean =>
  turn?.role === 'user' && turn.blocks.some((block) => !isResult(block));

export const fitTurns: Rule = (conversation, fit) => {
  const { profile, protocol, own, notes } = fit;
  let { turns } = conversation;
  if (protocol === 'anthropic-messages' && own && profile.systemTurns === false) {
    turns = instructionsAsUser(turns, notes);
  }
  if (profile.userAfterTool === false && protocol === 'openai-chat') turns = answered(turns, fit);
  if (profile.needsUserTurn === true && !turns.some(speaks)) turns = asked(turns, fit);
  return turns === conversation.turns ? conversation : withParts(conversation, { turns });
};

/** Mistral: behind tool messages the next one must be the assistant's. */
function answered(turns: readonly Turn[], { notes }: Fit): readonly Turn[] {
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
function asked(turns: readonly Turn[], { notes }: Fit): readonly Turn[] {
  notes.add('user_turn_added', '/messages', 'the vendor wants one');
  const user: Turn = { role: 'user', blocks: [{ type: 'text', text: 'Continue.' }] };
  const first = turns.findIndex((turn) => !isInstruction(turn));
  return first < 0 ? [...turns, user] : [...turns.slice(0, first), user, ...turns.slice(first)];
}
