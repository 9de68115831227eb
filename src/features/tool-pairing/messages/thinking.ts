/** Thinking in Messages histories: plausible signatures, positions of blocks, and when thinking must be turned off. */

import { editNode, withParts } from '../../../conversation/edit.ts';
import type {
  Block,
  Conversation,
  ReasoningBlock,
  Settings,
  Turn,
} from '../../../conversation/types.ts';
import { isObject } from '../../../lib/json/json.ts';
import { isAside, runsOf } from '../pairs/runs.ts';
import type { PairingRules, Repair, RepairCounts } from '../rules.ts';

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const HEX = /^(?:[0-9a-f]+|[0-9A-F]+)$/;
const PRINTABLE = /^[\t\n\r\x20-\x7e]*$/;

/** Anthropic's shortest seals are much longer. */
const MIN_SEAL_LENGTH = 32;

/**
 * Can this signature be Anthropic's? Theirs are base64 of encrypted bytes. Empty strings, words, UUIDs, hex
 * digests and base64 of text come from other vendors. Without the key no more can be checked.
 */
export function isPlausibleSeal(value: string): boolean {
  if (value.length < MIN_SEAL_LENGTH || !BASE64.test(value) || HEX.test(value)) return false;
  const bare = value.replace(/={1,2}$/, '').length;
  if (bare % 4 === 1) return false;
  return !PRINTABLE.test(Buffer.from(value.slice(0, 64), 'base64').toString('latin1'));
}

/** May this block go out to this provider under its own seal? */
export function sealHolds({ sealed }: ReasoningBlock, { target, madeBy }: Repair): boolean {
  if (sealed === undefined || sealed.protocol !== 'anthropic-messages') return false;
  const maker = sealed.provider ?? madeBy;
  if (maker !== undefined && maker !== target.provider) return false;
  if (target.profile.anySignature === true) return true;
  // Redacted thinking may be short.
  if (sealed.kind === 'redacted') return BASE64.test(sealed.value);
  return isPlausibleSeal(sealed.value);
}

const isThinking = (block: Block | undefined): boolean => block?.type === 'reasoning';

/**
 * Moves thinking to the front of its message and removes it from the end ("the first block must be
 * `thinking`", "The final block in an assistant message cannot be `thinking`"). Returns the same turn if it
 * is valid.
 */
export function placeThinking(turn: Turn, counts: RepairCounts): Turn {
  let end = turn.blocks.length;
  while (end > 0 && isThinking(turn.blocks[end - 1])) end--;
  const first = turn.blocks.findIndex(isThinking);
  if (first < 0 || (first === 0 && end === turn.blocks.length)) return turn;
  counts.thinking += turn.blocks.length - end;
  const blocks = end === turn.blocks.length ? turn.blocks : turn.blocks.slice(0, end);
  if (first === 0 || first >= end) return editNode(turn, { blocks });
  const thinking = blocks.filter(isThinking);
  return editNode(turn, { blocks: [...thinking, ...blocks.filter((block) => !isThinking(block))] });
}

/**
 * Makes the thinking parameter and the open tool loop consistent. With a budget, the open tool loop (or a
 * prefill) must begin with thinking. If that is missing, thinking is turned off for this request and removed
 * from the loop. With thinking off, the last assistant message must hold none.
 */
export function fitThinking(
  conversation: Conversation,
  { rules, target, notes, counts }: Repair,
): Conversation {
  const { turns, settings } = conversation;
  const { reasoning } = settings;
  const unchecked = target.profile.anySignature === true;
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
  return withParts(conversation, { turns: withoutThinking(turns, last, counts) });
}

/**
 * The first turns of the loop that the request continues: an assistant turn with calls, or a prefill. The
 * API does not document whether a separate text message beside results ends a loop, so the turns before and
 * after such a message are both heads. Innermost first.
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
    // A message of thinking alone is removed.
    return blocks.length === 0 ? [] : [editNode(turn, { blocks })];
  });
  return changed ? out : turns;
}

/** Turns thinking off, and removes the context edit that the API accepts only with thinking. */
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
