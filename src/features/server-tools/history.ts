/** Restores the history for the upstream: hidden hops come back, shown calls become calls and results. */

import { mapUnchanged } from '../../conversation/edit.ts';
import type { Block, ToolCallBlock, Turn } from '../../conversation/types.ts';
import { type ExpandContext, expandShownCalls, withoutMintedCitations } from './history-blocks.ts';
import { callKey, type HopEntry, type HopLedger, textKeys, textOf } from './hop-ledger.ts';
import { isNative } from './offer.ts';

export interface HistoryContext extends ExpandContext {
  readonly ledger: HopLedger;
  readonly owner: string;
}

/** Turns that came from the ledger: they are complete and need no further look. */
const restored = new WeakSet<Turn>();

/**
 * The history with every call that this gateway ran, in the order in which the upstream saw them. The
 * same list where there are none. An answer that no ledger entry matches stays as the client sent it,
 * which is always a valid conversation.
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
    const restoredRun = restoreRun(run, turns[at - 1], context);
    if (out === undefined && restoredRun !== run) out = turns.slice(0, at);
    out?.push(...restoredRun);
    at = end;
  }
  return out ?? turns;
}

/** Restores one answer: a run of assistant turns, since Responses spreads an answer over many items. */
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
  const own = mapUnchanged(run, (turn) => expandShownCalls(turn, context));
  return mapUnchanged(own, withoutMintedCitations);
}

/** The keys by which {@link restoreHistory} looks the answers of a history up. */
export function historyKeys(turns: readonly Turn[], owner: string): readonly string[] {
  const keys: string[] = [];
  let run: Turn[] = [];
  let before: Turn | undefined;
  for (const [at, turn] of turns.entries()) {
    if (turn.role !== 'assistant') continue;
    if (run.length === 0) before = turns[at - 1];
    run.push(turn);
    if (turns[at + 1]?.role === 'assistant') continue;
    keys.push(...keysOf(run, before, owner).keys);
    run = [];
  }
  return keys;
}

interface AnswerKeys {
  /** In the order in which they are looked up. */
  readonly keys: readonly string[];
  /** The ids of the client's own calls. */
  readonly clientIds: readonly string[];
}

/** The keys of one answer, a run of assistant turns. */
function keysOf(run: readonly Turn[], before: Turn | undefined, owner: string): AnswerKeys {
  const clientIds: string[] = [];
  const shownIds: string[] = [];
  let text = '';
  for (const turn of run) {
    text += textOf({ ...turn, blocks: turn.blocks.filter(isVisibleText) });
    for (const block of turn.blocks) {
      if (block.type === 'tool-call') (block.by === 'client' ? clientIds : shownIds).push(block.id);
    }
  }
  const textBefore = textOf(before);
  const ids = [...clientIds, ...shownIds].map((id) => callKey(owner, id, text, textBefore));
  const keys = clientIds.length > 0 ? ids : [...ids, ...textKeys(owner, text, textBefore)];
  return { keys, clientIds };
}

function findEntry(
  run: readonly Turn[],
  before: Turn | undefined,
  { ledger, owner, registry, target, declared }: HistoryContext,
): HopEntry | undefined {
  const { keys, clientIds } = keysOf(run, before, owner);
  const entry = keys.length === 0 ? undefined : ledger.find(keys);
  if (entry === undefined) return undefined;
  // The client's calls must be those of the entry: none unknown, and not all of them gone.
  const calls = new Set(entry.clientCalls);
  if (clientIds.some((id) => !calls.has(id)) || (calls.size > 0 && clientIds.length === 0))
    return undefined;
  // A vendor that searches by itself would take a function call of that name for its own.
  const native = entry.turns.some((turn) =>
    turn.blocks.some((block) => {
      const hosted = block.type === 'tool-call' ? registry.named(block.name)?.hosted : undefined;
      return hosted !== undefined && isNative(hosted, target, declared);
    }),
  );
  return native ? undefined : entry;
}

const isVisibleText = (block: Block) => block.type === 'text' || block.type === 'refusal';
const isCall = (block: Block): block is ToolCallBlock => block.type === 'tool-call';

/**
 * The reasoning of the last turn is the client's to send back: where it sends none, none is added.
 * Reasoning before server calls stays: the upstream saw it within the exchange.
 */
function fitReasoning(turns: readonly Turn[], run: readonly Turn[]): readonly Turn[] {
  const last = turns.at(-1);
  if (last?.role !== 'assistant' || last.blocks.some(isCall)) return turns;
  if (run.some((turn) => turn.blocks.some((block) => block.type === 'reasoning'))) return turns;
  const blocks = last.blocks.filter((block) => block.type !== 'reasoning');
  if (blocks.length === last.blocks.length) return turns;
  return [...turns.slice(0, -1), { ...last, blocks }];
}
