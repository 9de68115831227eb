/** Tool pairing: repairs histories that the target would refuse, and leaves valid ones untouched. */

import { withFewerCacheMarks } from '../../conversation/cache-marks.ts';
import { isBlank, mapUnchanged, NO_CONTENT, withParts } from '../../conversation/edit.ts';
import type { Notes } from '../../conversation/notes.ts';
import { targetAfterRefusals } from '../../conversation/refusal/refusal.ts';
import type { Target } from '../../conversation/target.ts';
import type { Conversation, Turn } from '../../conversation/types.ts';
import { runAtOnce, type Steps } from '../../lib/loop/steps.ts';
import type { Feature } from '../feature.ts';
import { fillEmpty, trimPrefill } from './messages/blocks.ts';
import { fitThinking, placeThinking } from './messages/thinking.ts';
import { dropLoneReasoning } from './openai/responses-items.ts';
import { paired } from './paired.ts';
import { mayNeedRepair } from './prefilter.ts';
import { noCounts, type Repair, rulesFor } from './rules.ts';

export { repairBody } from './body-repair/index.ts';

/**
 * Enabled for every provider. Applies the target's rules, whichever client wrote the history. Never throws;
 * returns the same conversation if the target would accept it.
 */
export const toolPairing: Feature = {
  name: 'pairing',
  mayApply: (body, { client, target, refusals }) =>
    client !== target.protocol || refusals !== undefined || mayNeedRepair(body, target.protocol),
  request: (conversation, { target, notes, refusals }) =>
    repairHistory(conversation, targetAfterRefusals(target, refusals), notes),
  requestSteps: (conversation, { target, notes, refusals }) =>
    repairSteps(conversation, targetAfterRefusals(target, refusals), notes),
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
  const repair = { rules, target, madeBy, notes, counts: noCounts() };
  const sound = yield* paired(conversation, repair);
  yield;
  const finished = yield* finish(sound, repair);
  noteCounts(repair);
  const silent = rules.sameProtocol ? finished.turns.length === 0 : finished.turns.every(isSilent);
  if (!silent || conversation.turns.length === 0) return finished;
  // Nothing is left to send, and no API accepts an empty history.
  notes.add('empty_content_removed', '/', 'all of the history');
  const blocks = [{ type: 'text', text: NO_CONTENT } as const];
  return withParts(finished, { turns: [{ role: 'user', blocks }] });
}

/** After pairing: repairs what depends on final positions. */
function* finish(conversation: Conversation, repair: Repair): Steps<Conversation> {
  const { rules, notes, counts } = repair;
  const isWhole = rules.protocol === 'openai-chat' || rules.protocol === 'google-gemini';
  if (!rules.sameProtocol || isWhole) return conversation;
  if (rules.protocol === 'openai-responses') {
    return withParts(conversation, { turns: dropLoneReasoning(conversation.turns, notes) });
  }
  const blank = () => {
    counts.blank++;
  };
  const placed = mapUnchanged(conversation.turns, (turn) =>
    turn.role === 'assistant' ? placeThinking(turn, counts) : turn,
  );
  // Before fitThinking, because the added text may come first in the last turn; and after it, because it removes blocks.
  const whole = withParts(conversation, { turns: fillEmpty(placed, rules, blank) });
  yield;
  const fitted = fitThinking(whole, repair);
  yield;
  const filled = fillEmpty(fitted.turns, rules, blank);
  const trimmed = trimPrefill(filled, () => notes.add('trailing_space_removed', '/messages'));
  const limited = withFewerCacheMarks(withParts(fitted, { turns: trimmed }));
  counts.cache += limited.removed;
  return limited.conversation;
}

/** A turn with nothing that another protocol could show: only reasoning and blank text. */
const isSilent = (turn: Turn): boolean =>
  turn.blocks.every(
    (block) => block.type === 'reasoning' || (block.type === 'text' && isBlank(block.text)),
  );

function noteCounts({ counts, notes }: Repair): void {
  const { blank, thinking, foreign, cache, renamed } = counts;
  if (thinking > 0) notes.add(`stripped_${thinking}_thinking_blocks`, '/messages');
  if (foreign > 0) notes.add(`removed_${foreign}_vendor_blocks`, '/messages');
  if (blank > 0) notes.add('empty_content_removed', '/messages', `${blank} blocks`);
  if (renamed > 0) notes.add('tool_renamed', '/messages', `${renamed} calls`);
  if (cache > 0) notes.add(`removed_${cache}_cache_control_fields`);
}
