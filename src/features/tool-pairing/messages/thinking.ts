/** Thinking in Messages histories: whose signature can be genuine, where blocks may stand, and when the parameter must go. */

import { editNode, withParts } from '../../../conversation/edit.ts';
import type { Notes } from '../../../conversation/notes.ts';
import type {
  Block,
  Conversation,
  ReasoningBlock,
  Settings,
  Turn,
} from '../../../conversation/types.ts';
import { isObject } from '../../../lib/json/json.ts';
import { isAside, runsOf } from '../pairs/runs.ts';
import type { PairingRules, RepairCounts } from '../rules.ts';

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const HEX = /^(?:[0-9a-f]+|[0-9A-F]+)$/;
const PRINTABLE = /^[\t\n\r\x20-\x7e]*$/;

/** Anthropic's shortest sealContext are longer by far. */
const MIN_SEAL_LENGTH = 32;

/**
 * Can this signature be Anthropic's? Theirs are base64 of sealed bytes. Empty
 * ones, words, UUIDs, hex digests and text in base64 are other vendors'. Nobody can tell more without
 * the key.
 */
export function isPlausibleSeal(value: string): boolean {
  if (value.length < MIN_SEAL_LENGTH || !BASE64.test(value) || HEX.test(value)) return false;
  const bare = value.replace(/={1,2}$/, '').length;
  if (bare % 4 === 1) return false;
  return !PRINTABLE.test(Buffer.from(value.slice(0, 64), 'base64').toString('latin1'));
}

/** Who gets sealContext, and who made them where the block itself does not say. */
export interface SealContext {
  readonly provider: string;
  readonly madeBy: string | undefined;
  /** The vendor does not check its signatures: any that came on its wire goes back. */
  readonly unchecked: boolean;
}

/** May this block go out to this provider under its own seal? */
export function sealHolds(block: ReasoningBlock, sealContext: SealContext): boolean {
  const { sealed } = block;
  const { provider, madeBy } = sealContext;
  if (sealed === undefined || sealed.protocol !== 'anthropic-messages') return false;
  const maker = sealed.provider ?? madeBy;
  if (maker !== undefined && maker !== provider) return false;
  if (sealContext.unchecked) return true;
  // What is sealed altogether may be short.
  if (sealed.kind === 'redacted') return BASE64.test(sealed.value);
  return isPlausibleSeal(sealed.value);
}

const isThinking = (block: Block | undefined): boolean => block?.type === 'reasoning';

/**
 * Thinking stands first in its message and never last ("the first block must be `thinking`", "The
 * final block in an assistant message cannot be `thinking`"). The same reference where that is so.
 */
export function placeThinking(turn: Turn, counts: RepairCounts): Turn {
  let end = turn.blocks.length;
  while (end > 0 && isThinking(turn.blocks[end - 1])) end--;
  const first = turn.blocks.findIndex(isThinking);
  if (first < 0 || (first === 0 && end === turn.blocks.length)) return turn;
  counts.thinking += turn.blocks.length - end;
  const said = end === turn.blocks.length ? turn.blocks : turn.blocks.slice(0, end);
  if (first === 0 || first >= end) return editNode(turn, { blocks: said });
  const thought = said.filter(isThinking);
  return editNode(turn, { blocks: [...thought, ...said.filter((block) => !isThinking(block))] });
}

/**
 * Fits the parameter and the last loop to each other. A budget wants the open tool loop (or a
 * prefill) to begin with thinking: where that was lost, thinking is off for this request, and the
 * thinking that is left in the loop goes too. Switched off, a last assistant message holds none.
 */
export function fitThinking(
  conversation: Conversation,
  rules: PairingRules,
  unchecked: boolean,
  notes: Notes,
  counts: RepairCounts,
): Conversation {
  const { turns, settings } = conversation;
  const { reasoning } = settings;
  const budgeted = reasoning?.enabled === true && reasoning.adaptive !== true && !unchecked;
  const off = reasoning?.enabled !== true;
  if (!budgeted && !off) return conversation;
  const heads = loopHeads(turns, rules);
  const outermost = heads.at(-1);
  if (outermost === undefined) return conversation;
  if (budgeted) {
    if (heads.every((head) => isThinking(turns[head]!.blocks[0]))) return conversation;
    notes.add('thinking_disabled', 'thinking', 'the open tool loop does not begin with thinking');
    return withParts(conversation, {
      turns: withoutThinking(turns, outermost, counts),
      settings: withThinkingOff(settings),
    });
  }
  const last = turns.length - 1;
  if (turns[last]?.role !== 'assistant') return conversation;
  const kept = withoutThinking(turns, last, counts);
  return kept === turns ? conversation : withParts(conversation, { turns: kept });
}

/**
 * Where the loop that the request continues begins: an assistant turn with calls, or a prefill. Words
 * in a message of their own beside results end a loop or do not, the API does not say: what begins
 * behind them is a head then, and what began before them another. Innermost first.
 */
function loopHeads(turns: readonly Turn[], rules: PairingRules): readonly number[] {
  const heads: number[] = [];
  let head: number | undefined;
  for (const run of runsOf(turns, rules).toReversed()) {
    const inside = turns.slice(run.from, run.to).filter((turn) => !isAside(turn, rules));
    if (run.side === 'input') {
      const results = inside.filter((turn) =>
        turn.blocks.some((block) => block.type === 'tool-result'),
      );
      if (results.length === 0) break;
      if (results.length < inside.length && head !== undefined) heads.push(head);
      continue;
    }
    head = run.from + turns.slice(run.from, run.to).findIndex((turn) => turn.blocks.length > 0);
    if (head < run.from) head = undefined;
  }
  return head === undefined || heads.at(-1) === head ? heads : [...heads, head];
}

function withoutThinking(
  turns: readonly Turn[],
  from: number,
  counts: RepairCounts,
): readonly Turn[] {
  let changed = false;
  const out = turns.flatMap((turn, i) => {
    if (i < from || turn.role !== 'assistant' || !turn.blocks.some(isThinking)) return [turn];
    changed = true;
    const blocks = turn.blocks.filter((block) => !isThinking(block));
    counts.thinking += turn.blocks.length - blocks.length;
    // A last message of nothing but thinking is no message.
    return blocks.length === 0 ? [] : [editNode(turn, { blocks })];
  });
  return changed ? out : turns;
}

/** Without thinking, and without the context edit that the API takes only beside it. */
function withThinkingOff(settings: Settings): Settings {
  const management = settings.rest?.context_management;
  const without: Settings = { ...settings, reasoning: { enabled: false } };
  if (!isObject(management) || !Array.isArray(management.edits)) return without;
  const edits = management.edits.filter(
    (edit) => !(isObject(edit) && String(edit.type).startsWith('clear_thinking')),
  );
  if (edits.length === management.edits.length) return without;
  return { ...without, rest: { ...settings.rest, context_management: { ...management, edits } } };
}
