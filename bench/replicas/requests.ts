/** The cost of shared state per request: trips, delays and CPU, beside a gateway without engines: `bun bench/replicas/requests.ts`. */

import { startGateway } from '../../test/support/binary.ts';
import { startCache } from '../../test/support/engines/cache-servers.ts';
import { startPostgres } from '../../test/support/engines/database-servers.ts';
import { startFaultProxy } from '../../test/support/engines/fault-proxy.ts';
import { oneVendor } from '../one-vendor.ts';
import { cpuBetween, cpuSample } from '../process-usage.ts';
import { percentile } from '../statistics.ts';

const REQUESTS = 10_000;
const CONNECTIONS = 8;
const KEY = 'key-of-the-bench';
const ADMIN = 'admin-key-of-the-bench';
const REPLY = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Fine.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
};

const [cache, database] = await Promise.all([startCache(), startPostgres()]);
const cacheProxy = await startFaultProxy(cache.port);
const databaseProxy = await startFaultProxy(database.port);
const vendor = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => Response.json(REPLY) });

type Form = 'embedded' | 'budgets' | 'budgets and rates';

function start(form: Form) {
  const engines = {
    cache: `redis://127.0.0.1:${cacheProxy.port}`,
    database: database.url.replace(`:${database.port}/`, `:${databaseProxy.port}/`),
  };
  return startGateway(
    {
      providers: oneVendor(vendor.port!),
      samples: { mode: 'off' },
      auth: {
        admin_keys: [ADMIN],
        keys: [
          {
            name: 'bench',
            key: KEY,
            budgets: [{ name: 'plenty', usd: 100_000, per: 'month' }],
            ...(form === 'budgets and rates' && {
              limits: { requests_per_minute: 10_000_000, concurrent: 100_000 },
            }),
          },
        ],
      },
      ...(form !== 'embedded' && { engines }),
    },
    { patience: 60_000 },
  );
}
type Gateway = Awaited<ReturnType<typeof start>>;

async function ask({ url }: Gateway): Promise<number> {
  const began = performance.now();
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}` },
    body: JSON.stringify({ model: 'm1', messages: [{ role: 'user', content: 'hi' }] }),
  });
  await answer.arrayBuffer();
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return performance.now() - began;
}

/** Over all gateways in turn. @returns milliseconds of each request, ascending */
async function askMany(gateways: readonly Gateway[], count: number): Promise<readonly number[]> {
  const times: number[] = [];
  let next = 0;
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      while (next < count) times.push(await ask(gateways[next++ % gateways.length]!));
    }),
  );
  return times.sort((a, b) => a - b);
}

async function tripsOf(gateway: Gateway): Promise<Record<string, number>> {
  const answer = await fetch(`${gateway.url}/health/engines`, {
    headers: { authorization: `Bearer ${ADMIN}` },
  });
  if (!answer.ok) throw new Error(`/health/engines: status ${answer.status}`);
  const { engines = {} } = (await answer.json()) as { engines?: Record<string, { trips: number }> };
  return Object.fromEntries(Object.entries(engines).map(([name, { trips }]) => [name, trips]));
}

async function measure(form: Form, replicas: number, delayMs: number): Promise<void> {
  cacheProxy.delayMs = delayMs / 2;
  databaseProxy.delayMs = delayMs / 2;
  const gateways = await Promise.all(Array.from({ length: replicas }, () => start(form)));
  await askMany(gateways, 2000);
  const before = await Promise.all(gateways.map(tripsOf));
  const cpu = gateways.map(({ pid }) => cpuSample(pid));
  const began = performance.now();
  const times = await askMany(gateways, REQUESTS);
  const seconds = (performance.now() - began) / 1000;
  const spent = gateways.reduce(
    (sum, { pid }, i) => sum + cpuBetween(cpu[i]!, cpuSample(pid)) / 1000,
    0,
  );
  const after = await Promise.all(gateways.map(tripsOf));
  const trips = ['cache', 'database'].map((name) => {
    const count = after.reduce(
      (sum, one, i) => sum + (one[name] ?? 0) - (before[i]![name] ?? 0),
      0,
    );
    return `${name} ${count}`;
  });
  const [p50, p99] = [0.5, 0.99].map((part) => percentile(times, part).toFixed(2));
  console.log(
    `${form}, ${replicas} × gateway, engines ${delayMs} ms away: p50 ${p50} ms, p99 ${p99} ms, ${Math.round(REQUESTS / seconds)} requests/s, CPU a request ${Math.round(spent / REQUESTS)} µs; trips for ${REQUESTS} requests: ${trips.join(', ')}`,
  );
  for (const one of gateways) await one.stop();
}

try {
  for (const delayMs of [0, 1]) {
    for (const form of ['embedded', 'budgets', 'budgets and rates'] as const) {
      await measure(form, 1, delayMs);
    }
  }
  await measure('embedded', 3, 0);
  await measure('budgets', 3, 0);
} finally {
  await vendor.stop(true);
  cacheProxy.close();
  databaseProxy.close();
  await Promise.all([cache.stop(), database.stop()]);
}
