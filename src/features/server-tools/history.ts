/** Earlier answers as the upstream knows them: hidden hops come back, shown ones become calls and results. */

import { mapUnchanged } from '../../conversation/edit.ts';
import type { Notes } from '../../conversation/notes.ts';
import type { Target } from '../../conversation/target.ts';
import type { Block, ToolCallBlock, Turn } from '../../conversation/types.ts';
import type { Sources } from './citations/sources.ts';
import { expandShown, withoutMintedCitations } from './history-blocks.ts';
import { callKey, type HopEntry, type HopLedger, textKeys, textOf } from './ledger.ts';
import { isNative } from './offer.ts';
import type { ToolRegistry } from './registry.ts';

export interface HistoryContext {
  readonly ledger: HopLedger;
  readonly owner: string;
  readonly registry: ToolRegistry;
  readonly target: Target;
  /** Takes over what earlier searches found, so that numbers go on and old ones can be cited. */
  readonly sources: Sources;
  readonly notes: Notes;
}

/** Turns that came out of the ledger: they are whole, and never looked at again. */
const restored = new WeakSet<Turn>();

/**
 * The history with everything that this gateway ran in it, in the order in which the upstream saw it.
 * The same list where there is nothing of the kind. An answer that nobody remembers stays as the
 * client sent it, which is always a valid conversation.
 */
export function restoreHistory(turns: readonly Turn[], context: HistoryContext): readonly Turn[] {
  let out: Turn[] | undefined;
  let at = 0;
  while (at < turns.length) {
    const turn = turns[at]!;
    if (turn.role !== 'assistant' || restored.has(turn)) {
      out?.push(turn);
      at++;
      continue;
    }
    let end = at + 1;
    while (turns[end]?.role === 'assistant' && !restored.has(turns[end]!)) end++;
    const run = turns.slice(at, end);
    const known = restoreRun(run, turns[at - 1], context);
    if (out === undefined && known !== run) out = turns.slice(0, at);
    out?.push(...known);
    at = end;
  }
  return out ?? turns;
}

/** One answer: neighbouring assistant turns, which Responses spreads over many items. */
function restoreRun(
  run: readonly Turn[],
  before: Turn | undefined,
  context: HistoryContext,
): readonly Turn[] {
  const entry = context.ledger.empty ? undefined : findEntry(run, before, context);
  if (entry !== undefined) {
    context.notes.add('server_tool_history_restored', '/messages');
    context.sources.restore(entry.sources);
    const turns = fitReasoning(entry.turns, run);
    for (const turn of turns) restored.add(turn);
    return turns;
  }
  const own = mapUnchanged(run, (turn) => expandShown(turn, context));
  return mapUnchanged(own, withoutMintedCitations);
}

function findEntry(
  run: readonly Turn[],
  before: Turn | undefined,
  { ledger, owner, registry, target }: HistoryContext,
): HopEntry | undefined {
  const mine: string[] = [];
  const shown: string[] = [];
  let said = '';
  for (const turn of run) {
    said += textOf({ ...turn, blocks: turn.blocks.filter(isSaid) });
    for (const block of turn.blocks) {
      if (block.type === 'tool-call') (block.by === 'client' ? mine : shown).push(block.id);
    }
  }
  const prior = textOf(before);
  const ids = [...mine, ...shown].map((id) => callKey(owner, id, said, prior));
  const keys = mine.length > 0 ? ids : [...ids, ...textKeys(owner, said, prior)];
  const entry = keys.length === 0 ? undefined : ledger.find(keys);
  if (entry === undefined) return undefined;
  // Every call of the client's must be there again, and no call of its own come out of nowhere.
  const calls = new Set(entry.clientCalls);
  if (mine.some((id) => !calls.has(id)) || (calls.size > 0 && mine.length === 0)) return undefined;
  // A vendor that searches by itself would take calls of a function of that name for its own.
  const native = entry.turns.some((turn) =>
    turn.blocks.some((block) => {
      const hosted = block.type === 'tool-call' ? registry.named(block.name)?.hosted : undefined;
      return hosted !== undefined && isNative(hosted, target);
    }),
  );
  return native ? undefined : entry;
}

const isSaid = (block: Block) => block.type === 'text' || block.type === 'refusal';
const isCall = (block: Block): block is ToolCallBlock => block.type === 'tool-call';

/**
 * Reasoning behind the last word was for the client to keep: where it gives none back, none is added.
 * Reasoning that led to calls has been upstream in the very exchange, and stays.
 */
function fitReasoning(turns: readonly Turn[], run: readonly Turn[]): readonly Turn[] {
  const last = turns.at(-1);
  if (last?.role !== 'assistant' || last.blocks.some(isCall)) return turns;
  if (run.some((turn) => turn.blocks.some((block) => block.type === 'reasoning'))) return turns;
  const blocks = last.blocks.filter((block) => block.type !== 'reasoning');
  if (blocks.length === last.blocks.length) return turns;
  return [...turns.slice(0, -1), { ...last, blocks }];
}
