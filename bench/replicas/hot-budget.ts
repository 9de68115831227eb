/** Draws of one budget's row a second, by one and several processes: `bun bench/replicas/hot-budget.ts`. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Secret } from '../../src/config/secret.ts';
import { DatabaseBank } from '../../src/limits/database-bank.ts';
import { PostgresDatabase } from '../../src/state/engines/postgres.ts';
import { type DatabaseServer, startPostgres } from '../../test/support/engines/database-servers.ts';
import { percentile } from '../statistics.ts';

const SECONDS = 4;
const GOAL = 1000;
const DEADLINE_MS = 10_000;
const AMOUNT = Number.MAX_SAFE_INTEGER;

/** Milliseconds of each draw. */
type Times = readonly number[];

/** One process: settles what it drew, and draws again, one after the other as a replica does. */
async function draw(url: string): Promise<Times> {
  const database = new PostgresDatabase({ url: new Secret(url) }, () => {});
  const bank = new DatabaseBank({ database, deadlineMs: DEADLINE_MS });
  const session = crypto.randomUUID();
  const place = { law: 'budget:hot', start: 0, keepUntil: AMOUNT };
  const want = [{ ...place, most: AMOUNT, need: 1000, ahead: 8000 }];
  const settled = [{ ...place, used: 9000, freed: 0 }];
  let number = 0;
  const own = { session, settled, wanted: want, closes: false };
  await bank.draw({ ...own, number: ++number, settled: [] });
  const times: number[] = [];
  const end = performance.now() + SECONDS * 1000;
  for (let now = performance.now(); now < end; ) {
    await bank.draw({ ...own, number: ++number });
    const then = performance.now();
    times.push(then - now);
    now = then;
  }
  await bank.draw({ ...own, number: ++number, wanted: [], closes: true });
  await database.close();
  return times;
}

async function drawBy(processes: number, server: DatabaseServer): Promise<void> {
  const before = serverCpu(server);
  let clientCpu = 0;
  const all = await Promise.all(
    Array.from({ length: processes }, async () => {
      const command = [process.execPath, import.meta.path, server.url];
      const child = Bun.spawn(command, { stdout: 'pipe' });
      const times = (await new Response(child.stdout).json()) as Times;
      await child.exited;
      clientCpu += Number(child.resourceUsage()!.cpuTime.total);
      return times;
    }),
  );
  const times = all.flat().sort((a, b) => a - b);
  const rate = Math.round(times.length / SECONDS);
  const [p50, p99] = [0.5, 0.99].map((part) => percentile(times, part).toFixed(2));
  const cpu = Math.round((serverCpu(server) - before) / times.length);
  const own = Math.round(clientCpu / times.length);
  console.log(
    `  ${processes} processes: ${rate} draws/s (goal ${GOAL}), a draw p50 ${p50} ms, p99 ${p99} ms; CPU a draw: Postgres ${cpu} µs, clients ${own} µs, their start included`,
  );
}

/** Microseconds of CPU of the server so far, its ended backends included; /proc counts in hundredths of a second. */
function serverCpu({ folder }: DatabaseServer): number {
  const pid = readFileSync(join(folder, 'data/postmaster.pid'), 'utf8').split('\n')[0]!;
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * 10_000;
}

const [, , url] = process.argv;
if (url !== undefined) {
  console.log(JSON.stringify(await draw(url)));
} else {
  for (const sync of ['off', 'on']) {
    const server = await startPostgres(undefined, { fsync: sync, full_page_writes: sync });
    console.log(`fsync ${sync}`);
    for (const processes of [1, 3, 8]) await drawBy(processes, server);
    const database = new PostgresDatabase({ url: new Secret(server.url) }, () => {});
    const [row] = await database.query(
      'SELECT spent % 9000 AS rest, held FROM hopgate.windows',
      [],
      DEADLINE_MS,
    );
    // Each draw settles what the one before it was granted: nothing may be left.
    console.log('  afterwards:', JSON.stringify(row));
    await database.close();
    await server.stop();
  }
}
