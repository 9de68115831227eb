/** Repairs what a turn needs wherever it stands, and pairs calls with results; of a history that was let through before, only what came since. */

import { withParts } from '../../conversation/edit.ts';
import { Notes } from '../../conversation/notes.ts';
import type { Target } from '../../conversation/target.ts';
import type { Conversation, Turn } from '../../conversation/types.ts';
import type { Steps } from '../../lib/loop/steps.ts';
import { clean } from './clean.ts';
import type { SealContext } from './messages/thinking.ts';
import { parsableInputs } from './openai/call-inputs.ts';
import { newIds } from './pairs/call-ids.ts';
import { type CallTable, indexCalls } from './pairs/index-calls.ts';
import { runsOf } from './pairs/runs.ts';
import { settleServerTools } from './pairs/server-tools.ts';
import { splitRoles } from './pairs/split-roles.ts';
import { writeBack } from './pairs/write-back.ts';
import { isContinued, mustPair, type PairingRules, type RepairCounts } from './rules.ts';
import { keepSettled, unsettledTurns } from './settled-prefix.ts';

export const noCounts = (): RepairCounts => ({
  blank: 0,
  thinking: 0,
  foreign: 0,
  cache: 0,
  renamed: 0,
});

const isNothing = ({ blank, thinking, foreign, cache }: RepairCounts): boolean =>
  blank + thinking + foreign + cache === 0;

/** The same conversation if nothing was wrong. */
export function* paired(
  conversation: Conversation,
  target: Target,
  rules: PairingRules,
  sealContext: SealContext,
  notes: Notes,
  counts: RepairCounts,
): Steps<Conversation> {
  const turns = unsettledTurns(conversation, target, sealContext.madeBy);
  const isSound =
    turns !== undefined &&
    (yield* passesUnchanged(withParts(conversation, { turns }), rules, sealContext));
  const noted = notes.size;
  const out = isSound ? conversation : yield* pair(conversation, rules, sealContext, notes, counts);
  if (out === conversation && notes.size === noted && isNothing(counts)) {
    keepSettled(conversation, target, sealContext.madeBy);
  }
  return out;
}

function* passesUnchanged(
  conversation: Conversation,
  rules: PairingRules,
  sealContext: SealContext,
): Steps<boolean> {
  const notes = new Notes();
  const counts = noCounts();
  const out = yield* pair(conversation, rules, sealContext, notes, counts);
  return out === conversation && notes.size === 0 && isNothing(counts);
}

function* pair(
  conversation: Conversation,
  rules: PairingRules,
  sealContext: SealContext,
  notes: Notes,
  counts: RepairCounts,
): Steps<Conversation> {
  const cleaned = clean(conversation, rules, sealContext, notes, counts);
  yield;
  const matched = yield* pairUp(cleaned, conversation, rules, notes, counts);
  yield;
  // After pairing, which turns some of the vendor's calls into the client's.
  return withParsableInputs(matched, rules, notes);
}

/** Makes the arguments of calls parsable. The Messages codec writes objects itself. */
function withParsableInputs(
  conversation: Conversation,
  rules: PairingRules,
  notes: Notes,
): Conversation {
  if (rules.protocol === 'anthropic-messages') return conversation;
  return withParts(conversation, {
    turns: parsableInputs(conversation.turns, rules.where, notes),
  });
}

/** Pairs calls with results: index and write-back. */
function* pairUp(
  conversation: Conversation,
  original: Conversation,
  rules: PairingRules,
  notes: Notes,
  counts: RepairCounts,
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
