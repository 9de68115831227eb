/** First pass of pairing: indexes all calls and results of a history and pairs them. */

import type { Block, ToolCallBlock, ToolResultBlock, Turn } from '../../../conversation/types.ts';
import type { Steps } from '../../../lib/loop/steps.ts';
import { RUNS_A_STEP, type TurnRun } from './runs.ts';

export interface IndexedCall {
  readonly block: ToolCallBlock;
  readonly run: number;
  /** The number of the block in the history, which gives the order. */
  readonly position: number;
  /** How many calls before it have the same id. */
  readonly ordinal: number;
  result?: IndexedResult;
}

export interface IndexedResult {
  readonly block: ToolResultBlock;
  readonly run: number;
  readonly position: number;
  /** Whether it stands inside an assistant turn. */
  readonly inline: boolean;
  /** Its turn, if it is the only block there. */
  readonly alone: Turn | undefined;
  call?: IndexedCall;
}

export interface CallTable {
  readonly calls: readonly IndexedCall[];
  readonly results: readonly IndexedResult[];
  readonly callOf: ReadonlyMap<Block, IndexedCall>;
  readonly resultOf: ReadonlyMap<Block, IndexedResult>;
}

/**
 * Indexes calls and results, then pairs them. Pairs are decided after the whole history is indexed, so a
 * result before its call is found too.
 * @param concerns whether to index a block; not for the vendor's own tools and Chat's legacy `function_call`
 */
export function* indexCalls(
  turns: readonly Turn[],
  runs: readonly TurnRun[],
  concerns: (block: ToolCallBlock | ToolResultBlock, turn: Turn) => boolean,
): Steps<CallTable> {
  const calls: IndexedCall[] = [];
  const results: IndexedResult[] = [];
  const callOf = new Map<Block, IndexedCall>();
  const resultOf = new Map<Block, IndexedResult>();
  const groups = new Map<string, IdGroup>();
  const groupOf = (id: string): IdGroup => {
    let group = groups.get(id);
    if (group === undefined) {
      group = { calls: [], results: [] };
      groups.set(id, group);
    }
    return group;
  };
  let position = 0;
  for (const run of runs) {
    if (run.index % RUNS_A_STEP === RUNS_A_STEP - 1) yield;
    for (let i = run.from; i < run.to; i++) {
      const turn = turns[i]!;
      for (const block of turn.blocks) {
        position++;
        if (block.type === 'tool-call') {
          if (!concerns(block, turn)) continue;
          const group = groupOf(block.id);
          const call: IndexedCall = {
            block,
            run: run.index,
            position,
            ordinal: group.calls.length,
          };
          group.calls.push(call);
          calls.push(call);
          callOf.set(block, call);
        } else if (block.type === 'tool-result') {
          if (!concerns(block, turn)) continue;
          const inline = run.side === 'assistant';
          const alone = turn.blocks.length === 1 ? turn : undefined;
          const result: IndexedResult = { block, run: run.index, position, inline, alone };
          groupOf(block.callId).results.push(result);
          results.push(result);
          resultOf.set(block, result);
        }
      }
    }
  }
  yield;
  for (const group of groups.values()) pairGroup(group);
  return { calls, results, callOf, resultOf };
}

interface IdGroup {
  readonly calls: IndexedCall[];
  readonly results: IndexedResult[];
}

/**
 * Pairs calls and results of one id. A call takes the first free result of the input that follows it, else
 * one inside its own turn, else a later one, else an earlier one. If several calls share an id, a later
 * result before the next such call is preferred: ids that restart in every round mean the nearest call.
 * Each preference walks both lists once.
 */
function pairGroup({ calls, results }: IdGroup): void {
  if (calls.length === 0 || results.length === 0) return;
  if (calls.length === 1 && results.length === 1) {
    link(calls[0]!, results[0]!);
    return;
  }
  const following = byRun(results, false);
  takeFrom(calls, (call) => following.get(call.run + 1));
  const inside = byRun(results, true);
  takeFrom(calls, (call) => inside.get(call.run));
  takeBehind(calls, results, (at) => calls[at + 1]?.position ?? Number.POSITIVE_INFINITY);
  takeBehind(calls, results, () => Number.POSITIVE_INFINITY);
  const rest = new ResultQueue(results);
  takeFrom(calls, () => rest);
}

/** Results in order; skips those that are paired already. */
class ResultQueue {
  #at = 0;

  constructor(private readonly results: readonly IndexedResult[]) {}

  next(): IndexedResult | undefined {
    while (this.results[this.#at]?.call !== undefined) this.#at++;
    return this.results[this.#at];
  }
}

function byRun(
  results: readonly IndexedResult[],
  inline: boolean,
): ReadonlyMap<number, ResultQueue> {
  const lists = new Map<number, IndexedResult[]>();
  for (const result of results) {
    if (result.inline !== inline) continue;
    const list = lists.get(result.run);
    if (list === undefined) lists.set(result.run, [result]);
    else list.push(result);
  }
  return new Map([...lists].map(([run, list]) => [run, new ResultQueue(list)]));
}

/** Gives each call without a result the next one of its queue. */
function takeFrom(
  calls: readonly IndexedCall[],
  queueOf: (call: IndexedCall) => ResultQueue | undefined,
): void {
  for (const call of calls) {
    if (call.result !== undefined) continue;
    const found = queueOf(call)?.next();
    if (found !== undefined) link(call, found);
  }
}

/** Gives each call without a result the first free one after it and before `limit`. */
function takeBehind(
  calls: readonly IndexedCall[],
  results: readonly IndexedResult[],
  limit: (at: number) => number,
): void {
  let at = 0;
  for (let i = 0; i < calls.length; i++) {
    const call = calls[i]!;
    if (call.result !== undefined) continue;
    // Results before this call are before the next one, too.
    while (at < results.length) {
      const { position, call: taken } = results[at]!;
      if (taken === undefined && position > call.position) break;
      at++;
    }
    const found = results[at];
    if (found !== undefined && found.position < limit(i)) link(call, found);
  }
}

function link(call: IndexedCall, result: IndexedResult): void {
  call.result = result;
  result.call = call;
}
