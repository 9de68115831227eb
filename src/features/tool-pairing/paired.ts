/** Repairs what a turn needs wherever it stands, and pairs calls with results; of a history that was let through before, only what came since. */

import { instructionsAsUser, mapUnchanged, withParts } from '../../conversation/edit.ts';
import { Notes } from '../../conversation/notes.ts';
import type { Conversation, Turn } from '../../conversation/types.ts';
import type { Steps } from '../../lib/loop/steps.ts';
import { cleanContents } from './google/contents.ts';
import { cleanSystem, cleanTurn } from './messages/blocks.ts';
import { cleanChat } from './openai/chat-messages.ts';
import { cleanItems, parsableInputs } from './openai/responses-items.ts';
import { newIds } from './pairs/call-ids.ts';
import { type CallTable, indexCalls } from './pairs/index-calls.ts';
import { runsOf } from './pairs/runs.ts';
import { settleServerTools } from './pairs/server-tools.ts';
import { splitRoles } from './pairs/split-roles.ts';
import { writeBack } from './pairs/write-back.ts';
import { isContinued, mustPair, noCounts, type Repair, type RepairCounts } from './rules.ts';
import { keepSettled, unsettledTurns } from './settled-prefix.ts';

const isNothing = ({ blank, thinking, foreign, cache }: RepairCounts): boolean =>
  blank + thinking + foreign + cache === 0;

/** The same conversation if nothing was wrong. */
export function* paired(conversation: Conversation, repair: Repair): Steps<Conversation> {
  const { target, madeBy, notes, counts } = repair;
  const turns = unsettledTurns(conversation, target, madeBy);
  const isSound =
    turns !== undefined && (yield* passesUnchanged(withParts(conversation, { turns }), repair));
  const noted = notes.size;
  const out = isSound ? conversation : yield* pair(conversation, repair);
  if (out === conversation && notes.size === noted && isNothing(counts)) {
    keepSettled(conversation, target, madeBy);
  }
  return out;
}

function* passesUnchanged(conversation: Conversation, repair: Repair): Steps<boolean> {
  const notes = new Notes();
  const counts = noCounts();
  const out = yield* pair(conversation, { ...repair, notes, counts });
  return out === conversation && notes.size === 0 && isNothing(counts);
}

function* pair(conversation: Conversation, repair: Repair): Steps<Conversation> {
  const { rules, notes } = repair;
  const cleaned = clean(conversation, repair);
  yield;
  const matched = yield* pairUp(cleaned, conversation, repair);
  yield;
  // The Messages codec writes objects itself.
  if (rules.protocol === 'anthropic-messages') return matched;
  // After pairing, which turns some of the vendor's calls into the client's.
  return withParts(matched, { turns: parsableInputs(matched.turns, rules.where, notes) });
}

/** The conversation without blocks and messages that are refused at any position; the same reference if there are none. */
function clean(conversation: Conversation, repair: Repair): Conversation {
  const { rules, notes, counts } = repair;
  const { turns } = conversation;
  if (!rules.sameProtocol) return conversation;
  switch (rules.protocol) {
    case 'anthropic-messages': {
      // Before pairing: user text separates calls from their results, asides do not.
      const spoken = rules.asidesAllowed ? turns : instructionsAsUser(turns, notes);
      return withParts(conversation, {
        system: cleanSystem(conversation.system, counts),
        turns: mapUnchanged(spoken, (turn) => cleanTurn(turn, repair)),
      });
    }
    case 'openai-chat': {
      const note = (at: number) => notes.add('message_shape_repaired', `/messages/${at}`);
      return withParts(conversation, { turns: cleanChat(turns, note) });
    }
    case 'openai-responses':
      return withParts(conversation, { turns: cleanItems(conversation, notes) });
    case 'google-gemini': {
      const note = (what: string) => notes.add('message_shape_repaired', '/contents', what);
      return withParts(conversation, { turns: cleanContents(turns, counts, note) });
    }
  }
}

/** Pairs calls with results: index and write-back. */
function* pairUp(
  conversation: Conversation,
  original: Conversation,
  { rules, notes, counts }: Repair,
): Steps<Conversation> {
  const split = splitRoles(conversation.turns, counts);
  if (!split.some(holdsTools)) return withParts(conversation, { turns: split });
  const { turns, renamed } = settleServerTools(split, conversation.tools, notes);
  yield;
  const runs = runsOf(turns, rules);
  const all = yield* indexCalls(turns, runs, (block, turn) => mustPair(block, turn, rules));
  // The server knows the calls of results that have none here.
  const table = rules.sameProtocol && isContinued(original) ? withoutStrays(all) : all;
  const ids = newIds(table, rules, renamed);
  yield;
  if (ids.size > 0) notes.add(`rewritten_${ids.size}_srvtoolu_ids`, rules.where);
  const written = yield* writeBack({ turns, runs, table, ids, rules, notes });
  yield;
  return withParts(conversation, { turns: written });
}

const holdsTools = ({ blocks }: Turn): boolean =>
  blocks.some(({ type }) => type === 'tool-call' || type === 'tool-result');

function withoutStrays(table: CallTable): CallTable {
  const results = table.results.filter((result) => result.call !== undefined);
  return { ...table, results, resultOf: new Map(results.map((result) => [result.block, result])) };
}
