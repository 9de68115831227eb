/** A hedge's two tries on the bill: the one that loses is charged once, for what the vendor had begun to count. */

import { Database } from 'bun:sqlite';
import { afterEach, describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { until } from '../support/until.ts';
import {
  billFor,
  type Counted,
  PRICE,
  type Script,
  startVendor,
  TOKENS_PER_WORD,
} from './vendor.ts';

const KEY = 'key-of-the-build-server';
const WORDS = 20;
const COUNTED: Counted = {
  input: 1234,
  cached: 1000,
  output: WORDS * TOKENS_PER_WORD,
  reasoning: 0,
};
const SAYS: Script = { ending: 'done', counted: COUNTED, words: WORDS };
/** Streams after which it is known what is usual. */
const USUAL = 20;

const opened: { stop(): unknown }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.stop();
});

const headers = {
  'x-api-key': KEY,
  'content-type': 'application/json',
  'anthropic-version': '2023-06-01',
};

/** Two vendors, the first of which is slow after the usual streams. */
async function world() {
  const slow = startVendor();
  const fast = startVendor();
  const provider = (url: string) => ({
    protocol: 'anthropic-messages',
    base_url: url,
    keys: ['k'],
    models: ['m'],
    prices: { m: PRICE },
  });
  const gateway = await startInProcess({
    providers: { slow: provider(slow.url), fast: provider(fast.url) },
    routes: [{ to: ['slow/m', 'fast/m'] }],
    retry: { attempts: 1, base_delay: 0, hedge: true },
    samples: { mode: 'off' },
    auth: { keys: [{ name: 'ci', key: KEY, budgets: [{ usd: 1000, per: 'total' }] }] },
  });
  opened.push(gateway, slow, fast);
  const ask = async () => {
    const answer = await fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers,
      body: JSON.stringify({
        model: 'm',
        stream: true,
        max_tokens: 1000,
        messages: [{ role: 'user', content: 'Write something.' }],
      }),
    });
    expect(await answer.text()).toContain('message_stop');
    return answer.headers;
  };
  slow.script(SAYS);
  fast.script(SAYS);
  for (let i = 0; i < USUAL; i++) await ask();
  return { slow, fast, gateway, ask };
}

const all = <T>({ home }: InProcess, sql: string): readonly T[] => {
  const path = join(home, 'state', 'spend.db');
  if (!existsSync(path)) return [];
  const db = new Database(path, { readonly: true });
  try {
    db.run('PRAGMA busy_timeout = 5000');
    // The file is there a moment before its tables.
    if (db.query("SELECT 1 FROM sqlite_master WHERE name = 'spend'").get() === null) return [];
    return db.query<T, []>(sql).all();
  } finally {
    db.close();
  }
};

describe('the try that loses', () => {
  test.each([
    ['was not answered: nothing', { ending: 'never-answers' }, 0, null],
    [
      'had begun to be answered: the prompt and the token that the vendor had counted',
      { ending: 'stalls', counted: COUNTED, words: 0 },
      billFor({ ...COUNTED, output: 1 }),
      200,
    ],
  ] as const)(
    '%s, in one row and once in totals and budgets',
    async (_what, script, cost, status) => {
      const { slow, fast, gateway, ask } = await world();
      slow.script(script);
      const told = await ask();
      expect(told.get('x-hopgate-target')).toBe('fast/m');
      expect([slow.requests, fast.requests]).toEqual([USUAL + 1, 1]);
      type Row = { target: string; status: number | null; ended: string; cost: number };
      const rows = await until(() => {
        const found = all<Row>(
          gateway,
          `SELECT target, status, ended, cost FROM spend WHERE request = '${told.get('x-hopgate-request-id')}' ORDER BY target`,
        );
        return found.length >= 2 ? found : undefined;
      });
      expect(rows).toMatchObject([
        { target: 'fast/m', status: 200, ended: 'done', cost: billFor(COUNTED) },
        { target: 'slow/m', status, ended: 'hedge_lost', cost },
      ]);
      // A second charge would come with the end of the cancelled connection.
      await Bun.sleep(300);
      const bill = billFor(COUNTED) * (USUAL + 1) + cost;
      expect(all(gateway, 'SELECT count(*) AS tries, sum(cost) AS cost FROM spend')).toEqual([
        { tries: USUAL + 2, cost: bill },
      ]);
      expect(
        all(gateway, 'SELECT sum(tries) AS tries, sum(cost) AS cost FROM totals WHERE span = 0'),
      ).toEqual([{ tries: USUAL + 2, cost: bill }]);
      const usage = await fetch(`${gateway.url}/v1/usage`, { headers });
      expect(await usage.json()).toMatchObject({
        budgets: [{ spent_usd: bill / 1e9, reserved_usd: 0 }],
        spent: { today: { requests: USUAL + 1, tries: USUAL + 2 } },
      });
    },
  );
});
