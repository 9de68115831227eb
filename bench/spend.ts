/** Measures the journal of spend: the cost of a try, 10,000 tries that end at once, and totals over a million rows. */

import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { modelPrice } from '../src/config/sections/prices.ts';
import { WITHOUT_KEY } from '../src/keys/principal.ts';
import { SpendAccounts } from '../src/money/accounts.ts';
import { OutputEstimate } from '../src/money/estimate.ts';
import { FreeSearches } from '../src/money/free-searches.ts';
import { PriceBook } from '../src/money/price.ts';
import { spendPage } from '../src/money/rows.ts';
import type { SpendRow } from '../src/money/schema.ts';
import { readUsageQuery, usageBy } from '../src/money/usage.ts';
import { openedSpend } from '../test/support/spend-rows.ts';
import { benchKeys, spendRows } from './spend-rows.ts';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const KEYS = Number(process.argv[3] ?? 200);
const dir = mkdtempSync(join(tmpdir(), 'hopgate-spend-'));
const path = join(dir, 'spend.db');
const journal = openedSpend(path);

const now = Date.now();
const rowAt = spendRows(ROWS, benchKeys(KEYS), now);

/** The longest turn of the event loop while `work` ran, in milliseconds, by the clock and by CPU of its thread. */
async function longestTurn(work: () => Promise<void>) {
  let longest = 0;
  let cpu = 0;
  let last = performance.now();
  let lastCpu = process.threadCpuUsage();
  let running = true;
  const look = () => {
    const at = performance.now();
    const used = process.threadCpuUsage(lastCpu);
    longest = Math.max(longest, at - last);
    cpu = Math.max(cpu, (used.user + used.system) / 1000);
    last = at;
    lastCpu = process.threadCpuUsage();
    if (running) setImmediate(look);
  };
  setImmediate(look);
  const began = performance.now();
  await work();
  const total = performance.now() - began;
  running = false;
  return { longest, cpu, total };
}

const spend = (row: SpendRow) => journal.end(journal.begin({ reservedRow: () => row }), row);
const round = (ms: number) => Math.round(ms * 100) / 100;

// Rows of one key as a busy gateway has them, with and without sessions; in rounds, since the machine is shared.
{
  const ROUNDS = 7;
  const MANY = 20_000;
  const costs = new Map<number, number[]>([0, 50, 2000].map((sessions) => [sessions, []]));
  for (let at = 0; at < ROUNDS; at++) {
    for (const [sessions, found] of costs) {
      const before = process.cpuUsage();
      for (let i = 0; i < MANY; i++) {
        const session = sessions === 0 ? undefined : `busy-${(i * 7919) % sessions}`;
        spend({ ...rowAt(ROWS - 1), request: `req_${at}_${i}`, session });
        if (i % 200 === 199) await journal.flush();
      }
      const { user, system } = process.cpuUsage(before);
      found.push((user + system) / MANY);
    }
  }
  for (const [sessions, found] of costs) {
    const median = found.toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)]!;
    console.log(`a row of one key and ${sessions} sessions: ${round(median)} µs of CPU`);
  }
}

// 10,000 streams that have run for a while, and end in one turn.
{
  const places = Array.from({ length: 10_000 }, (_, i) =>
    journal.begin({ reservedRow: () => rowAt(ROWS - 1 - (i % ROWS)) }),
  );
  await Bun.sleep(300);
  await journal.flush();
  const rows = places.map((_, i) => rowAt(ROWS - 1 - (i % ROWS)));
  const { longest, cpu, total } = await longestTurn(async () => {
    for (const [i, place] of places.entries()) {
      journal.end(place, rows[i]!);
      // Streams end in many turns; a socket's turn holds some dozens.
      if (i % 50 === 49) await new Promise((resolve) => setImmediate(resolve));
    }
    await journal.flush();
  });
  console.log(
    `10,000 tries end at once: longest turn ${round(longest)} ms (${round(cpu)} ms of CPU), all in ${round(total)} ms`,
  );
}

{
  const began = performance.now();
  for (let i = 0; i < ROWS; i += 2000) {
    for (let n = i; n < Math.min(ROWS, i + 2000); n++) spend(rowAt(n));
    await journal.flush();
  }
  const each = ((performance.now() - began) / ROWS) * 1000;
  console.log(`${ROWS} rows: ${round(each)} µs each, ${round(statSync(path).size / 2 ** 20)} MB`);
}

const ask = async (parameters: Record<string, string>) => {
  const query = readUsageQuery((name) => parameters[name], now + 1);
  const times: number[] = [];
  let groups = 0;
  for (let i = 0; i < 7; i++) {
    const began = performance.now();
    groups = await journal.read(async (reader) => (await usageBy(reader, query)).length);
    times.push(performance.now() - began);
  }
  const shown = Object.entries(parameters).map(([name, value]) => `${name}=${value}`);
  console.log(
    `usage ${shown.join(' ')}: ${round(times[0]!)} ms first, ${round(times.toSorted((a, b) => a - b)[3]!)} ms median, ${groups} groups`,
  );
};
await ask({ by: 'key' });
await ask({ by: 'model' });
await ask({ by: 'target', step: 'day' });
await ask({ by: 'label.team', step: 'day' });
await ask({ by: 'label.team', step: 'hour', from: '7d' });
await ask({ by: 'session' });
await ask({ by: 'session', limit: '100' });
await ask({ by: 'session', step: 'day', top: '7' });
await ask({ by: 'key', step: 'day', top: '7' });
await ask({ by: 'key', step: 'hour', top: '7', from: '7d' });
{
  const query = {
    from: 0,
    to: Number.MAX_SAFE_INTEGER,
    before: Number.MAX_SAFE_INTEGER,
    limit: 100,
  };
  const page = await longestTurn(async () => {
    await journal.read((reader) => spendPage(reader, { ...query, filters: {} }));
  });
  const none = await longestTurn(async () => {
    await journal.read((reader) => spendPage(reader, { ...query, filters: { key: 'nothing' } }));
  });
  console.log(`a page of rows: ${round(page.total)} ms`);
  console.log(
    `a filter that fits no row: ${round(none.total)} ms, longest turn ${round(none.longest)} ms`,
  );
}

// One try through its account: price, cost, row and totals.
{
  const book = new PriceBook({
    providers: { vendor: { prices: [modelPrice('*', { input: 3, output: 15 })] } },
  });
  const accounts = new SpendAccounts({
    journal,
    prices: () => book,
    unpriced: () => 'count',
    estimate: new OutputEstimate(),
    freeSearches: new FreeSearches(),
    guard: () => undefined,
    onCost: () => {},
  });
  const target = { provider: 'vendor', model: 'm', protocol: 'openai-chat', profile: {} } as never;
  const start = {
    target,
    model: 'm',
    upstreamKey: undefined,
    hop: 1,
    attempt: 1,
    stream: true,
    inputTokens: 1000,
    maxOutputTokens: 100,
    serviceTier: undefined,
  };
  const usage = { input: 1000, output: 100 };
  const TRIES = 200_000;
  const cpu = process.cpuUsage();
  for (let i = 0; i < TRIES; i++) {
    const account = accounts.open({
      principal: WITHOUT_KEY,
      request: 'req_1790000000000_abcdef',
      model: 'm',
      session: undefined,
      client: 'openai-chat bench',
      stream: true,
      trace: undefined,
    });
    const opened = account instanceof Promise ? await account : account;
    const begun = opened.beginTry(start);
    const one = begun instanceof Promise ? await begun : begun;
    one.answered(200);
    one.end({ ended: 'done', usage, final: true, content: true, bytes: 20_000 });
    opened.end('cut');
    if (i % 200 === 199) await journal.flush();
  }
  const { user, system } = process.cpuUsage(cpu);
  console.log(`a try with its row: ${round((user + system) / TRIES)} µs of CPU`);
}
await journal.close();
rmSync(dir, { recursive: true, force: true });
