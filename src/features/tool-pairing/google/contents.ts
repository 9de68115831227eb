/** Repairs parts and contents of a Gemini history that the API refuses wherever they stand. */

import {
  editNode,
  isClientCall,
  isClientResult,
  mapUnchanged,
} from '../../../conversation/edit.ts';
import type { Block, ToolResultBlock, Turn } from '../../../conversation/types.ts';
import { isObject } from '../../../lib/json/json.ts';
import type { RepairCounts } from '../rules.ts';

/**
 * The turns without empty texts and without contents that hold nothing ("must include at least one parts
 * field"). A text without words may carry a signature, and then it stays. The results of one round stand in one
 * content ("the number of function response parts is equal to the number of function call parts"), in the order
 * of their calls.
 */
export function cleanContents(
  turns: readonly Turn[],
  counts: RepairCounts,
  note: (what: string) => void,
): readonly Turn[] {
  const filled = mapUnchanged(turns, (turn) => {
    const blocks = mapUnchanged(turn.blocks, (block) => (isEmpty(block) ? undefined : block));
    if (blocks === turn.blocks && blocks.length > 0) return turn;
    counts.blank += Math.max(1, turn.blocks.length - blocks.length);
    return blocks.length === 0 ? undefined : editNode(turn, { blocks });
  });
  return inOrder(joinedResults(filled, note), note);
}

function isEmpty(block: Block): boolean {
  if (block.type !== 'text' || block.text !== '') return false;
  const value = (block.wire ?? block.residue)?.value;
  return !isObject(value) || Object.keys(value).length <= 1;
}

const answers = (turn: Turn | undefined): boolean =>
  turn?.role === 'user' && turn.blocks.some(isClientResult);

/** Neighbouring contents with results as one; the same list if there are none. */
function joinedResults(turns: readonly Turn[], note: (what: string) => void): readonly Turn[] {
  if (!turns.some((turn, i) => answers(turn) && answers(turns[i + 1]))) return turns;
  note('results of one round in one content');
  const out: Turn[] = [];
  for (let at = 0; at < turns.length; ) {
    let end = at + 1;
    while (answers(turns[at]) && answers(turns[end])) end++;
    const first = turns[at]!;
    const blocks = end === at + 1 ? undefined : turns.slice(at, end).flatMap((one) => one.blocks);
    out.push(blocks === undefined ? first : editNode(first, { blocks }));
    at = end;
  }
  return out;
}

/** Results in the order of the calls before them; the same list if they are. */
function inOrder(turns: readonly Turn[], note: (what: string) => void): readonly Turn[] {
  let places = new Map<string, number>();
  let moved = false;
  const ordered = mapUnchanged(turns, (turn) => {
    if (turn.role === 'assistant') {
      places = new Map();
      for (const block of turn.blocks) {
        if (isClientCall(block)) places.set(block.id, places.size);
      }
      return turn;
    }
    const placeOf = ({ callId }: ToolResultBlock) => places.get(callId) ?? Number.MAX_SAFE_INTEGER;
    const results = turn.blocks.filter(isClientResult);
    const sorted = results.toSorted((a, b) => placeOf(a) - placeOf(b));
    if (sorted.every((block, i) => block === results[i])) return turn;
    moved = true;
    let next = 0;
    const blocks = turn.blocks.map((block) => (isClientResult(block) ? sorted[next++]! : block));
    return editNode(turn, { blocks });
  });
  if (moved) note('results in the order of their calls');
  return ordered;
}
