/** Measures spend in a shared Postgres: rows a second, the delay until another replica sees a row, totals over a million rows, and CPU of a try. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SpendJournal } from '../src/money/journal.ts';
import type { SpendRow } from '../src/money/schema.ts';
import { readUsageQuery, usageBy } from '../src/money/usage.ts';
import { newDatabase, startPostgres } from '../test/support/engines/database-servers.ts';
import { openedSpend } from '../test/support/spend-rows.ts';
import { benchKeys, spendRows } from './spend-rows.ts';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const KEYS = Number(process.argv[3] ?? 200);
const LONG = 60_000;
const now = Date.now();
const rowAt = spendRows(ROWS, benchKeys(KEYS), now);
const dir = mkdtempSync(join(tmpdir(), 'hopgate-shared-spend-'));
const round = (ms: number) => Math.round(ms * 100) / 100;
const at = (values: readonly number[], part: number) =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * part)]!;
const spend = (journal: SpendJournal, row: SpendRow) =>
  journal.end(journal.begin({ reservedRow: () => row }), row);

const server = await startPostgres();
const { database } = await newDatabase(server);
const replica = (name: string): SpendJournal =>
  openedSpend(join(dir, `${name}.db`), { database, replica: name });
const one = replica('one');
const two = replica('two');
await one.read(() => {});
one.open();
two.open();

// CPU of this process for a try, without and with the database; in rounds, since the machine is shared.
{
  const ROUNDS = 9;
  const MANY = 4000;
  const alone = openedSpend(join(dir, 'alone.db'));
  const forms = [
    { name: 'the file alone', journal: alone, settle: () => alone.flush(), found: [] as number[] },
    {
      name: 'the database',
      journal: one,
      settle: () => one.read(() => {}),
      found: [] as number[],
    },
  ];
  for (let i = 0; i < ROUNDS; i++) {
    for (const { journal, settle, found } of i % 2 === 0 ? forms : forms.toReversed()) {
      const before = process.cpuUsage();
      for (let n = 0; n < MANY; n++) {
        spend(journal, rowAt(n, now));
        if (n % 200 === 199) await journal.flush();
      }
      await settle();
      const { user, system } = process.cpuUsage(before);
      found.push((user + system) / MANY);
    }
  }
  for (const { name, found } of forms) {
    console.log(
      `a try with ${name}: ${round(at(found, 0.5))} µs of CPU (${round(at(found, 0))} to ${round(at(found, 1))})`,
    );
  }
  await alone.close();
}

// As the other replica would see it: by a question to the database.
{
  const delays: number[] = [];
  for (let i = 0; i < 60; i++) {
    const request = `seen-${i}`;
    const began = performance.now();
    spend(one, { ...rowAt(i, Date.now()), request });
    for (;;) {
      const found = await database.query(
        'SELECT 1 FROM hopgate.spend_rows WHERE time >= $1 AND request = $2',
        [now, request],
        LONG,
      );
      if (found.length > 0) break;
      await Bun.sleep(2);
    }
    delays.push(performance.now() - began);
  }
  console.log(
    `from the end of a try to its row in the database: ${round(at(delays, 0.5))} ms median, ${round(at(delays, 0.95))} ms p95`,
  );
}

{
  const began = performance.now();
  for (let i = 0; i < ROWS; i += 2000) {
    const journal = i % 4000 === 0 ? one : two;
    for (let n = i; n < Math.min(ROWS, i + 2000); n++) spend(journal, rowAt(n));
    await journal.flush();
  }
  const written = performance.now() - began;
  await Promise.all([one.read(() => {}), two.read(() => {})]);
  const sent = performance.now() - began;
  console.log(
    `${ROWS} rows of two replicas: written after ${round(written / 1000)} s, in the database after ${round(sent / 1000)} s: ${Math.round((ROWS / sent) * 1000)} rows/s`,
  );
  await database.query('ANALYZE', [], LONG);
}

for (const parameters of [
  { by: 'key' },
  { by: 'model' },
  { by: 'label.team', step: 'day' },
] as Record<string, string>[]) {
  const query = readUsageQuery((name) => parameters[name], now + 1);
  const times: number[] = [];
  let groups = 0;
  for (let i = 0; i < 31; i++) {
    const began = performance.now();
    groups = await two.read(async (reader) => (await usageBy(reader, query)).length);
    times.push(performance.now() - began);
  }
  const shown = Object.entries(parameters).map(([name, value]) => `${name}=${value}`);
  console.log(
    `usage ${shown.join(' ')}: ${round(times[0]!)} ms first, ${round(at(times, 0.5))} ms median, ${round(at(times, 0))} ms fastest, ${groups} groups`,
  );
}

await one.close();
await two.close();
await database.close();
await server.stop();
rmSync(dir, { recursive: true, force: true });
