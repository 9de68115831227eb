/** Tool pairing: histories that the target would refuse are made valid; valid ones go out untouched. */

import { mapUnchanged, withParts } from '../../conversation/edit.ts';
import { instructionsAsUser } from '../../conversation/late-instructions.ts';
import type { Notes } from '../../conversation/notes.ts';
import { targetAfterRefusal } from '../../conversation/refusal.ts';
import type { Target } from '../../conversation/target.ts';
import type {
  Conversation,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
} from '../../conversation/types.ts';
import { isObject } from '../../lib/json/json.ts';
import type { Feature } from '../feature.ts';
import { limitCacheMarks } from './cache-marks.ts';
import { newIds } from './call-ids.ts';
import { parsableInputs } from './call-inputs.ts';
import { cleanChat } from './chat-messages.ts';
import { fillEmpty, trimPrefill } from './ends.ts';
import { indexCalls } from './index-calls.ts';
import { cleanSystem, cleanTurn } from './messages-blocks.ts';
import { mayNeedRepair } from './prefilter.ts';
import { cleanItems, withFollowers } from './responses-items.ts';
import type { Tally } from './rules.ts';
import { type Rules, rulesFor } from './rules.ts';
import { runsOf } from './runs.ts';
import { sanityPass } from './sanity.ts';
import { settleServerTools } from './server-tools.ts';
import { splitRoles } from './split-roles.ts';
import { fitThinking, placeThinking, type Seals } from './thinking.ts';
import { isBlank, NO_CONTENT } from './words.ts';
import { writeBack } from './write-back.ts';

export { repairBody } from './mend/index.ts';
export { sanityPass } from './sanity.ts';

/**
 * On for every provider. Repairs by what is wrong at the target, whoever wrote it; never throws; the
 * same conversation comes back when the target would take it as it is.
 */
export const pairing: Feature = {
  name: 'pairing',
  mayApply: (body, { client, target, refusal }) =>
    client !== target.protocol || refusal !== undefined || mayNeedRepair(body, target.protocol),
  request: (conversation, { target, notes, refusal }) =>
    repair(conversation, targetAfterRefusal(target, refusal), notes),
};

/**
 * The request pass of {@link pairing}.
 * @param madeBy the provider that sealed what is sealed in the history, where that is known
 */
export function repair(
  conversation: Conversation,
  target: Target,
  notes: Notes,
  madeBy?: string,
): Conversation {
  const rules = rulesFor(conversation, target);
  const tally: Tally = { blank: 0, thinking: 0, foreign: 0, cache: 0 };
  const unchecked = target.profile.anySignature === true;
  const seals = { provider: target.provider, madeBy, unchecked };
  const cleaned = clean(conversation, rules, seals, notes, tally);
  // Behind the pairing, which makes the client's calls of some that came as the vendor's.
  const paired = readable(pairUp(cleaned, conversation, rules, notes, tally), rules, notes);
  const finished = finish(paired, rules, unchecked, notes, tally);
  addTally(tally, notes);
  const silent = rules.own ? finished.turns.length === 0 : finished.turns.every(isSilent);
  if (!silent || conversation.turns.length === 0) return finished;
  // Nothing that may be sent is left, and no API takes a history of nothing.
  notes.add('empty_content_removed', '/', 'all of the history');
  const blocks = [{ type: 'text', text: NO_CONTENT } as const];
  return withParts(finished, { turns: [{ role: 'user', blocks }] });
}

/** Before pairing: blocks and messages that are refused wherever they stand. */
function clean(
  conversation: Conversation,
  rules: Rules,
  seals: Seals,
  notes: Notes,
  tally: Tally,
): Conversation {
  if (!rules.own) return conversation;
  switch (rules.protocol) {
    case 'anthropic-messages': {
      // Before calls and results are paired: the user's words part them, asides do not.
      const { turns } = conversation;
      const spoken = rules.asides ? turns : instructionsAsUser(turns, notes);
      return changed(conversation, {
        system: cleanSystem(conversation.system, tally),
        turns: same(spoken, (turn) => cleanTurn(turn, seals, tally)),
      });
    }
    case 'openai-chat': {
      const note = (at: number) => notes.add('message_shape_repaired', `/messages/${at}`);
      return changed(conversation, { turns: cleanChat(conversation.turns, note) });
    }
    case 'openai-responses':
      return changed(conversation, { turns: cleanItems(conversation, conversation.turns, notes) });
  }
}

/** With arguments that every server can parse; the codec of Messages writes objects itself. */
function readable(conversation: Conversation, rules: Rules, notes: Notes): Conversation {
  if (rules.protocol === 'anthropic-messages') return conversation;
  return changed(conversation, { turns: parsableInputs(conversation.turns, rules.where, notes) });
}

/** The two passes, and the last layer behind them. */
function pairUp(
  conversation: Conversation,
  asked: Conversation,
  rules: Rules,
  notes: Notes,
  tally: Tally,
): Conversation {
  const split = splitRoles(conversation.turns, tally);
  const { turns, renamed } = settleServerTools(split, conversation.tools, notes);
  const runs = runsOf(turns, rules);
  const counts = (block: ToolCallBlock | ToolResultBlock, turn: Turn) =>
    concerns(block, turn, rules);
  const all = indexCalls(turns, runs, counts);
  // The calls of these results are known to the server.
  const table = rules.own && isContinued(asked) ? withoutStrays(all) : all;
  const ids = newIds(table, rules, renamed);
  if (ids.size > 0) notes.add(`rewritten_${ids.size}_srvtoolu_ids`, rules.where);
  const written = writeBack({ turns, runs, table, ids, rules, notes });
  return changed(conversation, { turns: sanityPass(written, rules, counts, notes) });
}

/** After pairing: what depends on where things stand now. */
function finish(
  conversation: Conversation,
  rules: Rules,
  unchecked: boolean,
  notes: Notes,
  tally: Tally,
): Conversation {
  if (!rules.own || rules.protocol === 'openai-chat') return conversation;
  if (rules.protocol === 'openai-responses') {
    return changed(conversation, { turns: withFollowers(conversation.turns, notes) });
  }
  const blank = () => {
    tally.blank++;
  };
  const placed = same(conversation.turns, (turn) =>
    turn.role === 'assistant' ? placeThinking(turn, tally) : turn,
  );
  // Before the fitting, since words may be what a last turn begins with now; and behind it, for what it took out.
  const whole = changed(conversation, { turns: fillEmpty(placed, rules, blank) });
  const fitted = fitThinking(whole, rules, unchecked, notes, tally);
  const filled = fillEmpty(fitted.turns, rules, blank);
  const trimmed = trimPrefill(filled, () => notes.add('trailing_space_removed', '/messages'));
  return limitCacheMarks(changed(fitted, { turns: trimmed }), tally);
}

/** Reasoning says nothing to another protocol unless something follows that it led to. */
const isSilent = (turn: Turn): boolean =>
  turn.blocks.every(
    (block) => block.type === 'reasoning' || (block.type === 'text' && isBlank(block.text)),
  );

function addTally(tally: Tally, notes: Notes): void {
  const { blank, thinking, foreign, cache } = tally;
  if (thinking > 0) notes.add(`stripped_${thinking}_thinking_blocks`, '/messages');
  if (foreign > 0) notes.add(`removed_${foreign}_vendor_blocks`, '/messages');
  if (blank > 0) notes.add('empty_content_removed', '/messages', `${blank} blocks`);
  if (cache > 0) notes.add(`removed_${cache}_cache_control_fields`);
}

/**
 * Calls and results that must find each other: not those of the vendor's own tools, and not Chat's
 * legacy functions, which the API pairs by name or not at all.
 */
function concerns(block: ToolCallBlock | ToolResultBlock, turn: Turn, rules: Rules): boolean {
  if (block.by === 'provider') return false;
  if (rules.protocol !== 'openai-chat' || !rules.own) return true;
  const value = (turn.wire ?? turn.residue)?.value;
  if (!isObject(value)) return true;
  if (value.role === 'function') return false;
  return block.type === 'tool-result' || (block.wire ?? block.residue) !== undefined;
}

/** The request continues what the server keeps, where calls may stand that nobody here sees. */
function isContinued({ origin, turns }: Conversation): boolean {
  if (origin?.protocol !== 'openai-responses') return false;
  const { previous_response_id: previous, conversation, prompt, store } = origin.value;
  if ([previous, conversation, prompt].some((value) => value !== undefined && value !== null)) {
    return true;
  }
  return (
    store !== false &&
    turns.some(({ blocks }) =>
      blocks.some((b) => b.type === 'opaque' && b.name === 'item_reference'),
    )
  );
}

type Found = ReturnType<typeof indexCalls>;

function withoutStrays(table: Found): Found {
  const results = table.results.filter((result) => result.call !== undefined);
  return { ...table, results, resultOf: new Map(results.map((result) => [result.block, result])) };
}

/** The conversation with these parts; itself where they are its own. */
function changed(
  conversation: Conversation,
  parts: Partial<Pick<Conversation, 'turns' | 'system'>>,
): Conversation {
  const { turns = conversation.turns, system = conversation.system } = parts;
  return turns === conversation.turns && system === conversation.system
    ? conversation
    : withParts(conversation, { turns, system });
}

function same(list: readonly Turn[], change: (turn: Turn) => Turn): readonly Turn[] {
  return mapUnchanged(list, change);
}
