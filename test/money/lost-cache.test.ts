/** What a lost prompt cache cost: in the log line of the exchange, and in the report of usage. */

import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Usage } from '../../src/conversation/usage.ts';
import { PicoRates } from '../../src/money/cost.ts';
import { LastPrompts } from '../../src/money/lost-cache.ts';
import { FileReader } from '../../src/money/reader.ts';
import { lostCosts, savedCosts } from '../../src/money/row-reports.ts';
import type { SpendRow, SpendTokens } from '../../src/money/schema.ts';
import { readUsageQuery, usageBy } from '../../src/money/usage.ts';
import { logExchange } from '../../src/telemetry/exchange.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { openedSpend, spendRow } from '../support/spend-rows.ts';

/** USD per million. */
const RATES = new PicoRates({
  input: 3,
  output: 15,
  cached: 0.3,
  cacheWrite: 3.75,
  cacheWrite1h: 6,
  reasoning: 15,
  search: 0,
  request: 0,
});

const asked = (first: string, sessionId = '') => ({
  sessionId,
  protocol: { name: 'openai-chat' },
  body: Buffer.from(JSON.stringify({ messages: [{ role: 'user', content: first }] })),
});

const usage = (input: number, cacheRead: number, cacheWrite = 0): Usage => ({
  input,
  output: 1,
  cacheRead,
  cacheWrite,
});

test('what the last prompt left and this one did not read, by what was paid for it', () => {
  const prompts = new LastPrompts();
  const lost = (first: string, of: Usage, target = 'a/m', key = 'k') =>
    prompts.lost(asked(first), key, target, of, RATES);
  expect(lost('one', usage(20_000, 0))).toBeUndefined();
  expect(lost('one', usage(1000, 20_000))).toBeUndefined();
  expect(lost('one', usage(22_000, 0))).toEqual({
    tokens: 21_000,
    nanoUsd: 21_000 * (3000 - 300),
  });
  // Written anew.
  expect(lost('one', usage(0, 0, 23_000))).toEqual({
    tokens: 22_000,
    nanoUsd: 22_000 * (3750 - 300),
  });
  // Steps of a cache, another conversation, target or key, and a prompt that was made shorter.
  expect(lost('one', usage(2000, 22_000))).toBeUndefined();
  expect(lost('two', usage(30_000, 0))).toBeUndefined();
  expect(lost('one', usage(30_000, 0), 'b/m')).toBeUndefined();
  expect(lost('one', usage(30_000, 0), 'a/m', 'other')).toBeUndefined();
  expect(lost('one', usage(9000, 0))).toBeUndefined();
});

test('nothing is said where the vendor reports nothing of a cache', () => {
  const prompts = new LastPrompts();
  const plain = { input: 20_000, output: 1 };
  expect(prompts.lost(asked('one'), 'k', 'a/m', plain, RATES)).toBeUndefined();
  expect(prompts.lost(asked('one'), 'k', 'a/m', plain, RATES)).toBeUndefined();
});

test('the log line of the exchange has it', () => {
  const lines: string[] = [];
  const log = createLog({ format: 'json', write: (line) => lines.push(line) });
  const record = {
    id: 'req_1',
    protocol: 'openai-chat',
    status: 200,
    stream: false,
    timings: { total: 1 },
  };
  logExchange(log, { ...record, lost: { tokens: 21_000, nanoUsd: 56_700_000 } });
  logExchange(log, record);
  expect(JSON.parse(lines[0]!)).toMatchObject({ cache_lost: 21_000, cache_lost_usd: 0.0567 });
  expect(lines[1]).not.toContain('cache_lost');
});

const PRICE = JSON.stringify({ input: 3, output: 15, cached: 0.3, cache_write: 3.75 });

function row(time: number, tokens: Partial<SpendTokens>, more: Partial<SpendRow> = {}): SpendRow {
  return spendRow({
    ...tokens,
    request: `req_${time}`,
    time,
    key: 'k',
    labels: '{"team":"a"}',
    session: 's',
    target: 'p/m',
    cost: 1,
    price: PRICE,
    ...more,
  });
}

test('the report: by key, target and label, with and without steps', async () => {
  const home = mkdtempSync(join(tmpdir(), 'lost-'));
  const path = join(home, 'spend.db');
  const journal = openedSpend(path);
  const now = Date.now();
  const at = (seconds: number) => now - 600_000 + seconds * 1000;
  const rows = [
    row(at(0), { input: 20_000 }),
    row(at(20), { input: 1000, cache_read: 20_000 }),
    // Lost: 21,000 tokens.
    row(at(40), { input: 22_000 }),
    // Another session, a longer pause, a shorter prompt, no session: nothing is known to be lost.
    row(at(50), { input: 50_000 }, { session: 'other' }),
    row(at(400), { input: 60_000 }, { session: 'other' }),
    row(at(410), { input: 30_000 }, { session: 'other' }),
    row(at(420), { input: 50_000 }, { session: undefined }),
    row(at(430), { input: 50_000, cache_write: 4000 }, { session: undefined }),
  ];
  for (const one of rows) journal.end(journal.begin({ reservedRow: () => one }), one);
  await journal.close();
  const reader = new FileReader(path);
  const expected = 21_000 * (3000 - 300);
  // The discount of what was read, less the surcharge of what was written.
  const expectedSaved = 20_000 * (3000 - 300) - 4000 * (3750 - 3000);
  for (const by of ['key', 'target', 'label.team']) {
    for (const step of [undefined, 'hour']) {
      const asks: Record<string, string | undefined> = { by, step, from: '24h' };
      const query = readUsageQuery((name) => asks[name], now + 1);
      const groups = await usageBy(reader, query);
      const { total, groups: lost } = await lostCosts(reader, query, groups);
      expect(total).toBe(expected);
      expect(lost.reduce<number>((sum, one) => sum + one!, 0)).toBe(expected);
      const saved = await savedCosts(reader, query, groups);
      expect(saved.total).toBe(expectedSaved);
      expect(saved.groups.reduce<number>((sum, one) => sum + one!, 0)).toBe(expectedSaved);
    }
  }
  reader.close();
  rmSync(home, { recursive: true });
});
