/** Rows of a month of spend for benchmarks: sessions of twenty requests, by keys of which each uses every model. */

import type { SpendRow } from '../src/money/schema.ts';
import { NO_TOKENS } from '../src/money/schema.ts';
import { labelsText } from '../src/money/totals.ts';
import { NOTHING_ADDED } from '../test/support/spend-rows.ts';

const MONTH_MS = 30 * 86_400_000;
const MODELS = ['glm-4.7', 'qwen3-max', 'claude-sonnet-4-5', 'gpt-5', 'kimi-k2.5'];

export interface BenchKey {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** So many keys of ten teams. */
export const benchKeys = (count: number): readonly BenchKey[] =>
  Array.from({ length: count }, (_, n) => ({
    id: `key-${n}`,
    labels: { team: `team-${n % 10}` },
  }));

/** The i-th of `rows` rows, in the order of time; `time` left out: its place in the month that ends at `now`. */
export function spendRows(rows: number, keys: readonly BenchKey[], now: number) {
  return (i: number, time = now - MONTH_MS + Math.floor((i / rows) * MONTH_MS)): SpendRow => {
    const session = Math.floor(i / 20);
    // By sevenths, so that each key uses each model.
    const model = MODELS[Math.floor(session / 7) % MODELS.length]!;
    const { id, labels } = keys[(session * 7919) % keys.length]!;
    return {
      request: `req_${i}`,
      time,
      key: id,
      labels: labelsText(labels),
      session: `session-${session}`,
      client: 'openai-chat bench',
      model,
      target: `vendor/${model}`,
      upstream_key: 'key-123456',
      hop: 1,
      attempt: 1,
      status: 200,
      ended: 'done',
      ...NO_TOKENS,
      ...NOTHING_ADDED,
      input: 1000 + (i % 500),
      output: i % 300,
      cache_read: i % 2000,
      estimated: i % 50 === 0 ? 1 : 0,
      cost: 123_456 + i,
      price: '{"input":3,"output":15}',
      trace: undefined,
      requests: 1,
    };
  };
}
