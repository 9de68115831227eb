/** Kills workers, processes, replicas and the database under load: every answered request is in the ledger once. `bun bench/soak.ts --minutes 10`. */

import { Database } from 'bun:sqlite';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startCache } from '../test/support/engines/cache-servers.ts';
import { newDatabase, startPostgres } from '../test/support/engines/database-servers.ts';
import { binary, type Gateway, startOneGateway } from '../test/support/gateway-process.ts';
import { until } from '../test/support/until.ts';
import { oneVendor } from './one-vendor.ts';

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '10' } } });
const END = Date.now() + Number(values.minutes) * 60_000;
const KEY = 'key-of-the-soak';
const ADMIN = 'key-of-the-admin';
const CLIENTS = 6;
const BETWEEN_KILLS_MS = 8000;
const REPLICAS = 2;
const WORKERS = 2;

const usage = { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 };
const base = { id: 'c', created: 1, model: 'm1' };
const WHOLE = {
  ...base,
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Fine.' }, finish_reason: 'stop' }],
  usage,
};
const chunk = (choices: unknown, more: object = {}) =>
  `data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', choices, ...more })}\n\n`;
const STREAM = [
  chunk([{ index: 0, delta: { role: 'assistant', content: 'Fine.' }, finish_reason: null }]),
  chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]),
  chunk([], { usage }),
  'data: [DONE]\n\n',
].join('');
const vendor = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const { stream } = (await request.json()) as { stream?: boolean };
    if (stream !== true) return Response.json(WHOLE);
    return new Response(STREAM, { headers: { 'content-type': 'text/event-stream' } });
  },
});

const configOf = (more: object) => ({
  providers: oneVendor(vendor.port!),
  samples: { mode: 'off' },
  auth: {
    admin_keys: [ADMIN],
    keys: [{ name: 'soak', key: KEY, budgets: [{ name: 'plenty', usd: 1e6, per: 'month' }] }],
  },
  ...more,
});

/** Processes that serve the same clients, what is killed of them, and the ledger that they keep. */
interface Setup {
  readonly name: string;
  readonly gateways: Gateway[];
  readonly answered: string[];
  readonly broken: Map<string, number>;
  readonly kills: Readonly<Record<string, () => Promise<void>>>;
  /** Request ids with the number of their rows. */
  ledger(): Promise<Map<string, number>>;
}

const count = (map: Map<string, number>, name: string) => map.set(name, (map.get(name) ?? 0) + 1);

async function ask(setup: Setup, n: number): Promise<void> {
  const { url } = setup.gateways[n % setup.gateways.length]!;
  try {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}` },
      body: JSON.stringify({
        model: 'm1',
        stream: n % 3 === 0,
        messages: [{ role: 'user', content: `hi ${n}` }],
      }),
    });
    const text = await answer.text();
    if (answer.ok) setup.answered.push(answer.headers.get('x-hopgate-request-id')!);
    else count(setup.broken, `${answer.status} ${JSON.parse(text).error?.code}`);
  } catch (thrown) {
    count(setup.broken, (thrown as { code?: string }).code ?? String(thrown));
    await Bun.sleep(50);
  }
}

/** Asks until the time is over. */
async function load(setup: Setup): Promise<void> {
  let next = 0;
  const client = async () => {
    while (Date.now() < END) await ask(setup, next++);
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
}

/** Kills one thing after the other, and starts it again. */
async function killAll({ name, kills }: Setup): Promise<void> {
  const names = Object.keys(kills);
  for (let i = 0; Date.now() + BETWEEN_KILLS_MS < END; i++) {
    await Bun.sleep(BETWEEN_KILLS_MS);
    const what = names[i % names.length]!;
    console.log(`${name}: kill ${what}`);
    await kills[what]!();
  }
}

/** Kills a whole process and starts the next one on the same folder. */
async function killProcess(gateways: Gateway[], at: number, config: object): Promise<void> {
  const old = gateways[at]!;
  old.signal('SIGKILL');
  await old.exited;
  gateways[at] = await startOneGateway(config, {
    patience: 60_000,
    env: { HOPGATE_HOME: stateOf(old) },
  });
  homes.set(gateways[at], stateOf(old));
}

/** The folders of state of processes that follow another. */
const homes = new Map<Gateway, string>();
const stateOf = (gateway: Gateway) => homes.get(gateway) ?? join(gateway.home, 'state');

const childrenOf = (pid: number) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);

async function embedded(): Promise<Setup> {
  const config = configOf({ workers: WORKERS });
  const gateways = [await startOneGateway(config, { patience: 60_000 })];
  return {
    name: 'embedded',
    gateways,
    answered: [],
    broken: new Map(),
    kills: {
      'a worker': async () => {
        process.kill(childrenOf(gateways[0]!.pid)[0]!, 'SIGKILL');
      },
      'the first process, with its keeper': () => killProcess(gateways, 0, config),
    },
    async ledger() {
      const home = stateOf(gateways[0]!);
      const db = new Database(join(home, 'state', 'spend.db'), { readonly: true });
      const rows = db
        .query<{ request: string; n: number }, []>(
          'SELECT request, count(*) AS n FROM spend GROUP BY 1',
        )
        .all();
      db.close();
      return new Map(rows.map(({ request, n }) => [request, n]));
    },
  };
}

async function replicated(): Promise<Setup> {
  const [cache, server] = await Promise.all([startCache(), startPostgres()]);
  const { url, database } = await newDatabase(server);
  const config = configOf({
    engines: { cache: `redis://127.0.0.1:${cache.port}`, database: url },
  });
  const gateways = await Promise.all(
    Array.from({ length: REPLICAS }, () => startOneGateway(config, { patience: 60_000 })),
  );
  return {
    name: 'replicas',
    gateways,
    answered: [],
    broken: new Map(),
    kills: {
      'a replica': () => killProcess(gateways, 0, config),
      'the database': async () => {
        await server.kill();
        await Bun.sleep(2000);
        await server.restart();
      },
      'the other replica': () => killProcess(gateways, 1, config),
    },
    async ledger() {
      const rows = await database.query<{ request: string; n: number }>(
        'SELECT request, count(*)::int AS n FROM hopgate.spend_rows GROUP BY 1',
        [],
        60_000,
      );
      return new Map(rows.map(({ request, n }) => [request, n]));
    },
  };
}

/** Waits until what waits is in the ledger, and compares. @returns whether all is there once */
async function compare(setup: Setup): Promise<boolean> {
  const missing = async () => {
    const found = await setup.ledger();
    return setup.answered.filter((request) => found.get(request) !== 1);
  };
  await until(async () => (await missing()).length === 0).catch(() => {});
  const wrong = await missing();
  const broken = [...setup.broken].map(([why, n]) => `${n} ${why}`).join(', ');
  console.log(
    `${setup.name}: ${setup.answered.length} answered, ${wrong.length} of them not once in the ledger; not answered: ${broken || 'none'}`,
  );
  for (const request of wrong.slice(0, 10)) console.log(`  ${request}`);
  return wrong.length === 0;
}

await binary();
const setups = await Promise.all([embedded(), replicated()]);
await Promise.all(setups.flatMap((setup) => [load(setup), killAll(setup)]));
const whole = await Promise.all(setups.map(compare));
await Promise.all(setups.flatMap(({ gateways }) => gateways.map((one) => one.stop())));
process.exit(whole.every(Boolean) ? 0 : 1);
