/** The final check: adds a result to each call that still has none. No history is known that needs it. */

import { editNode } from '../../../conversation/edit.ts';
import type { Notes } from '../../../conversation/notes.ts';
import type { Block, ToolCallBlock, Turn } from '../../../conversation/types.ts';
import { missingResult } from '../replacements.ts';
import type { PairingRules } from '../rules.ts';
import { isAside, runsOf, type TurnRun } from './runs.ts';

/**
 * Reads only the turns that will be sent and is independent of the two passes: if a change breaks them, no
 * call goes out unanswered. Its repairs have their own note, so that operators see which layer made them.
 * @param isCall whether a call needs a result
 */
export function sanityPass(
  turns: readonly Turn[],
  rules: PairingRules,
  isCall: (block: ToolCallBlock, turn: Turn) => boolean,
  notes: Notes,
): readonly Turn[] {
  const runs = runsOf(turns, rules);
  const lacking = new Map<number, Block[]>();
  const last = rules.results === 'after' ? lastResultTurns(turns) : undefined;
  for (const run of runs) {
    if (run.side !== 'assistant') continue;
    const calls = turns
      .slice(run.from, run.to)
      .flatMap((turn) =>
        turn.blocks.filter(
          (block): block is ToolCallBlock => block.type === 'tool-call' && isCall(block, turn),
        ),
      );
    if (calls.length === 0) continue;
    const answered = last === undefined ? answeredIds(turns, runs, run, rules) : undefined;
    const open = calls.filter(({ id }) =>
      answered === undefined ? (last?.get(id) ?? -1) < run.to : !answered.has(id),
    );
    if (open.length === 0) continue;
    for (const call of open) {
      notes.add('pairing_sanity_repaired', `${rules.where}/${run.to}`, call.id);
    }
    lacking.set(
      run.to,
      open.map((call) => missingResult(call, call.id)),
    );
  }
  return lacking.size === 0 ? turns : insertResults(turns, lacking, rules);
}

/** The last turn with a result, by call id: Responses accepts a result anywhere after its call. */
function lastResultTurns(turns: readonly Turn[]): ReadonlyMap<string, number> {
  const last = new Map<string, number>();
  turns.forEach((turn, at) => {
    for (const block of turn.blocks) if (block.type === 'tool-result') last.set(block.callId, at);
  });
  return last;
}

/** Ids that are answered at the start of the next input, where the other protocols expect results. */
function answeredIds(
  turns: readonly Turn[],
  runs: readonly TurnRun[],
  run: TurnRun,
  rules: PairingRules,
): ReadonlySet<string> {
  const ids = new Set<string>();
  const next = runs[run.index + 1];
  if (next?.side !== 'input') return ids;
  for (let i = run.to; i < next.to; i++) {
    if (isAside(turns[i]!, rules)) continue;
    for (const block of turns[i]!.blocks) {
      if (block.type === 'tool-result') ids.add(block.callId);
      else if (rules.sameProtocol) return ids;
    }
  }
  return ids;
}

function insertResults(
  turns: readonly Turn[],
  lacking: ReadonlyMap<number, readonly Block[]>,
  rules: PairingRules,
): readonly Turn[] {
  const out: Turn[] = [];
  for (let i = 0; i <= turns.length; i++) {
    const turn = turns[i];
    const results = lacking.get(i);
    if (results === undefined) {
      if (turn !== undefined) out.push(turn);
      continue;
    }
    if (rules.resultsShareTurns && turn?.role === 'user') {
      out.push(editNode(turn, { blocks: [...results, ...turn.blocks] }));
      continue;
    }
    if (rules.resultsShareTurns) out.push({ role: 'user', blocks: results });
    else for (const result of results) out.push({ role: 'user', blocks: [result] });
    if (turn !== undefined) out.push(turn);
  }
  return out;
}
