/** Tool pairing: repairs histories that the target would refuse, and leaves valid ones untouched. */

import { withParts } from '../../conversation/edit.ts';
import { Notes } from '../../conversation/notes.ts';
import { targetAfterRefusal } from '../../conversation/refusal.ts';
import type { Target } from '../../conversation/target.ts';
import type {
  Conversation,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
} from '../../conversation/types.ts';
import { runAtOnce, type Steps } from '../../lib/loop/steps.ts';
import type { Feature } from '../feature.ts';
import { clean, mapTurns, withChanges } from './clean.ts';
import {
  fillEmpty,
  fitThinking,
  limitCacheMarks,
  placeThinking,
  type SealContext,
  trimPrefill,
} from './messages/index.ts';
import { dropLoneReasoning, parsableInputs } from './openai/index.ts';
import {
  type CallTable,
  indexCalls,
  newIds,
  runsOf,
  sanityPass,
  settleServerTools,
  splitRoles,
  writeBack,
} from './pairs/index.ts';
import { mayNeedRepair } from './prefilter.ts';
import { isBlank, NO_CONTENT } from './replacements.ts';
import { isContinued, mustPair, type PairingRules, type RepairCounts, rulesFor } from './rules.ts';
import { keepSettled, unsettledTurns } from './settled-prefix.ts';

export { repairBody } from './body-repair/index.ts';
export { sanityPass } from './pairs/index.ts';

/**
 * Enabled for every provider. Applies the target's rules, whichever client wrote the history. Never throws;
 * returns the same conversation if the target would accept it.
 */
export const toolPairing: Feature = {
  name: 'pairing',
  mayApply: (body, { client, target, refusal }) =>
    client !== target.protocol || refusal !== undefined || mayNeedRepair(body, target.protocol),
  request: (conversation, { target, notes, refusal }) =>
    repairHistory(conversation, targetAfterRefusal(target, refusal), notes),
  requestSteps: (conversation, { target, notes, refusal }) =>
    repairSteps(conversation, targetAfterRefusal(target, refusal), notes),
};

/**
 * The request pass of {@link toolPairing}.
 * @param madeBy the provider that made the seals of the history, if known
 */
export const repairHistory = (
  conversation: Conversation,
  target: Target,
  notes: Notes,
  madeBy?: string,
): Conversation => runAtOnce(repairSteps(conversation, target, notes, madeBy));

function* repairSteps(
  conversation: Conversation,
  target: Target,
  notes: Notes,
  madeBy?: string,
): Steps<Conversation> {
  const rules = rulesFor(conversation, target);
  const counts = noCounts();
  const noted = notes.size;
  const unchecked = target.profile.anySignature === true;
  const sealContext = { provider: target.provider, madeBy, unchecked };
  const paired =
    (yield* pairedBefore(conversation, target, rules, sealContext)) ??
    (yield* pair(conversation, rules, sealContext, notes, counts));
  if (paired === conversation && notes.size === noted && isNothing(counts)) {
    keepSettled(conversation, target, madeBy);
  }
  yield;
  const finished = yield* finish(paired, rules, unchecked, notes, counts);
  noteCounts(counts, notes);
  const silent = rules.sameProtocol ? finished.turns.length === 0 : finished.turns.every(isSilent);
  if (!silent || conversation.turns.length === 0) return finished;
  // Nothing is left to send, and no API accepts an empty history.
  notes.add('empty_content_removed', '/', 'all of the history');
  const blocks = [{ type: 'text', text: NO_CONTENT } as const];
  return withParts(finished, { turns: [{ role: 'user', blocks }] });
}

/** The same conversation, where nothing of it that is new since it was let through before needs a change. */
function* pairedBefore(
  conversation: Conversation,
  target: Target,
  rules: PairingRules,
  sealContext: SealContext,
): Steps<Conversation | undefined> {
  const turns = unsettledTurns(conversation, target, sealContext.madeBy);
  if (turns === undefined) return undefined;
  const rest = withParts(conversation, { turns });
  const notes = new Notes();
  const counts = noCounts();
  const paired = yield* pair(rest, rules, sealContext, notes, counts);
  const isSame = paired === rest && notes.size === 0 && isNothing(counts);
  return isSame ? conversation : undefined;
}

/** What does not depend on where in the history a turn stands, and pairing. */
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

const noCounts = (): RepairCounts => ({ blank: 0, thinking: 0, foreign: 0, cache: 0 });

const isNothing = ({ blank, thinking, foreign, cache }: RepairCounts): boolean =>
  blank + thinking + foreign + cache === 0;

/** Makes the arguments of calls parsable. The Messages codec writes objects itself. */
function withParsableInputs(
  conversation: Conversation,
  rules: PairingRules,
  notes: Notes,
): Conversation {
  if (rules.protocol === 'anthropic-messages') return conversation;
  return withChanges(conversation, {
    turns: parsableInputs(conversation.turns, rules.where, notes),
  });
}

/** Pairs calls with results: index and write-back, then the final check. */
function* pairUp(
  conversation: Conversation,
  original: Conversation,
  rules: PairingRules,
  notes: Notes,
  counts: RepairCounts,
): Steps<Conversation> {
  const split = splitRoles(conversation.turns, counts);
  const { turns, renamed } = settleServerTools(split, conversation.tools, notes);
  yield;
  const runs = runsOf(turns, rules);
  const isPaired = (block: ToolCallBlock | ToolResultBlock, turn: Turn) =>
    mustPair(block, turn, rules);
  const all = yield* indexCalls(turns, runs, isPaired);
  // The server knows the calls of results that have none here.
  const table = rules.sameProtocol && isContinued(original) ? withoutStrays(all) : all;
  const ids = newIds(table, rules, renamed);
  yield;
  if (ids.size > 0) notes.add(`rewritten_${ids.size}_srvtoolu_ids`, rules.where);
  const written = yield* writeBack({ turns, runs, table, ids, rules, notes });
  yield;
  return withChanges(conversation, { turns: sanityPass(written, rules, isPaired, notes) });
}

/** After pairing: repairs what depends on final positions. */
function* finish(
  conversation: Conversation,
  rules: PairingRules,
  unchecked: boolean,
  notes: Notes,
  counts: RepairCounts,
): Steps<Conversation> {
  const isWhole = rules.protocol === 'openai-chat' || rules.protocol === 'google-gemini';
  if (!rules.sameProtocol || isWhole) return conversation;
  if (rules.protocol === 'openai-responses') {
    return withChanges(conversation, { turns: dropLoneReasoning(conversation.turns, notes) });
  }
  const blank = () => {
    counts.blank++;
  };
  const placed = mapTurns(conversation.turns, (turn) =>
    turn.role === 'assistant' ? placeThinking(turn, counts) : turn,
  );
  // Before fitThinking, because the added text may come first in the last turn; and after it, because it removes blocks.
  const whole = withChanges(conversation, { turns: fillEmpty(placed, rules, blank) });
  yield;
  const fitted = fitThinking(whole, rules, unchecked, notes, counts);
  yield;
  const filled = fillEmpty(fitted.turns, rules, blank);
  const trimmed = trimPrefill(filled, () => notes.add('trailing_space_removed', '/messages'));
  return limitCacheMarks(withChanges(fitted, { turns: trimmed }), counts);
}

/** A turn with nothing that another protocol could show: only reasoning and blank text. */
const isSilent = (turn: Turn): boolean =>
  turn.blocks.every(
    (block) => block.type === 'reasoning' || (block.type === 'text' && isBlank(block.text)),
  );

function noteCounts(counts: RepairCounts, notes: Notes): void {
  const { blank, thinking, foreign, cache } = counts;
  if (thinking > 0) notes.add(`stripped_${thinking}_thinking_blocks`, '/messages');
  if (foreign > 0) notes.add(`removed_${foreign}_vendor_blocks`, '/messages');
  if (blank > 0) notes.add('empty_content_removed', '/messages', `${blank} blocks`);
  if (cache > 0) notes.add(`removed_${cache}_cache_control_fields`);
}

function withoutStrays(table: CallTable): CallTable {
  const results = table.results.filter((result) => result.call !== undefined);
  return { ...table, results, resultOf: new Map(results.map((result) => [result.block, result])) };
}
