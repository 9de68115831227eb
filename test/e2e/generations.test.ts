/** Budgets, slots and spend while one program follows another: a restart without a gap, and processes that are killed. */

import { Database } from 'bun:sqlite';
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { UsageReport } from '../../src/limits/usage-report.ts';
import { type Gateway, startGateway } from '../support/binary.ts';
import { until } from '../support/until.ts';

setDefaultTimeout(120_000);

const KEY = 'key-of-the-build-server';
const linux = process.platform === 'linux';
// No socket is there: only the presence of a supervisor matters.
const SUPERVISED = { NOTIFY_SOCKET: '/nowhere/notify' };

/** A vendor that answers at once, or, to the model `held`, begins a stream and ends it when it is told to. */
function startVendor() {
  let requests = 0;
  let release = Promise.withResolvers<void>();
  const event = (delta: object, finish: string | null) =>
    `data: ${JSON.stringify({
      id: 'c1',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm1',
      choices: [{ index: 0, delta, finish_reason: finish }],
    })}\n\n`;
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const { model } = (await request.json()) as { model: string };
      requests++;
      const { promise } = release;
      const body = async function* () {
        yield event({ role: 'assistant', content: 'hello' }, null);
        if (model === 'held') await promise;
        yield `${event({}, 'stop')}data: [DONE]\n\n`;
      };
      return new Response(body(), { headers: { 'content-type': 'text/event-stream' } });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    get requests() {
      return requests;
    },
    release() {
      release.resolve();
      release = Promise.withResolvers<void>();
    },
    async stop() {
      release.resolve();
      await server.stop(true);
    },
  };
}

let vendor: ReturnType<typeof startVendor>;
let state: string;
const gateways: Gateway[] = [];
const heirs: number[] = [];

beforeEach(() => {
  vendor = startVendor();
  state = mkdtempSync(join(tmpdir(), 'hopgate-generations-'));
});
afterEach(async () => {
  for (const pid of heirs.splice(0)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It ended by itself.
    }
  }
  for (const gateway of gateways.splice(0)) {
    gateway.signal('SIGKILL');
    await gateway.stop();
  }
  await vendor.stop();
  rmSync(state, { recursive: true, force: true });
});

/** Each request costs one dollar. */
async function start(usd: number, workers = 1, concurrent?: number): Promise<Gateway> {
  const key = {
    name: 'ci',
    key: KEY,
    budgets: [{ name: 'all', usd, per: 'total' }],
    ...(concurrent !== undefined && { limits: { concurrent } }),
  };
  const gateway = await startGateway(
    {
      workers,
      providers: {
        vendor: {
          protocol: 'openai-chat',
          base_url: vendor.url,
          models: ['m1', 'held'],
          prices: { '*': { input: 0, output: 0, request: 1000 } },
        },
      },
      samples: { mode: 'off' },
      auth: { keys: [key] },
    },
    { env: { ...SUPERVISED, HOPGATE_HOME: state } },
  );
  gateways.push(gateway);
  return gateway;
}

const headers = { authorization: `Bearer ${KEY}`, connection: 'close' };

const post = ({ url }: Gateway, model: string) =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'hi' }] }),
  });

/** How many of so many requests, all at once, get through. */
async function passed(gateway: Gateway, asked: number): Promise<number> {
  const answers = await Promise.all(
    Array.from({ length: asked }, async () => {
      const answer = await post(gateway, 'm1');
      const text = await answer.text();
      if (!answer.ok) expect(text).toMatch(/is used up|has too little left for this request/);
      return answer.ok;
    }),
  );
  return answers.filter((ok) => ok).length;
}

/** A stream that is held, with its first event read. */
async function held(gateway: Gateway) {
  const answer = await post(gateway, 'held');
  expect(answer.status).toBe(200);
  const reader = answer.body!.getReader();
  await reader.read();
  return {
    async end() {
      while (!(await reader.read()).done);
    },
  };
}

const spent = async ({ url }: Gateway) => {
  const report = (await (await fetch(`${url}/v1/usage`, { headers })).json()) as UsageReport;
  return report.budgets[0]!.spent_usd;
};

/** Rows of tries and tries that run, of the file. */
function rows(): { done: number; broken: number; running: number; usd: number } {
  const path = join(state, 'state', 'spend.db');
  const none = { done: 0, broken: 0, running: 0, usd: 0 };
  if (!existsSync(path)) return none;
  const db = new Database(path, { readonly: true });
  try {
    db.run('PRAGMA busy_timeout = 5000');
    // The file is there a moment before its tables.
    if (db.query("SELECT 1 FROM sqlite_master WHERE name = 'spend_open'").get() === null)
      return none;
    return db
      .query<ReturnType<typeof rows>, []>(
        `SELECT coalesce(sum(ended = 'done'), 0) AS done, coalesce(sum(ended <> 'done'), 0) AS broken,
          (SELECT count(*) FROM spend_open) AS running,
          coalesce(sum(cost), 0) / 1e9 AS usd FROM spend`,
      )
      .get()!;
  } finally {
    db.close();
  }
}

async function successorOf(gateway: Gateway): Promise<number> {
  gateway.signal('SIGUSR2');
  const line = await until(() => gateway.logs().find(({ event }) => event === 'server.succeeded'));
  heirs.push(line.pid as number);
  return line.pid as number;
}

describe.skipIf(!linux)(
  `a restart without a gap${linux ? '' : ' [SKIPPED: needs a shared port of Linux]'}`,
  () => {
    test.each([1, 2])(
      'what the old program still holds counts in the new one; processes: %i',
      async (workers) => {
        const gateway = await start(10, workers);
        expect(await passed(gateway, 3)).toBe(3);
        const streams = [await held(gateway), await held(gateway)];
        await successorOf(gateway);
        // Five are left. What the old program gives back at its end may be among them.
        const through = await passed(gateway, 60);
        expect(through).toBeLessThanOrEqual(5);
        expect(through).toBeGreaterThan(0);
        vendor.release();
        for (const stream of streams) await stream.end();
        expect(await gateway.exited).toBe(0);
        expect(through + (await passed(gateway, 20))).toBe(5);
        expect(await spent(gateway)).toBe(10);
        expect(vendor.requests).toBe(10);
        await until(() => rows().done === 10);
        expect(rows()).toEqual({ done: 10, broken: 0, running: 0, usd: 10 });
      },
    );

    test('requests that never stop coming spend the budget once, to the cent', async () => {
      const gateway = await start(40);
      let stop = false;
      let through = 0;
      const askers = Array.from({ length: 8 }, async () => {
        while (!stop) {
          const answer = await post(gateway, 'm1');
          await answer.text();
          if (answer.ok) through++;
          await Bun.sleep(5);
        }
      });
      await until(() => through >= 5);
      await successorOf(gateway);
      expect(await gateway.exited).toBe(0);
      await until(() => through >= 40);
      await Bun.sleep(300);
      stop = true;
      await Promise.all(askers);
      expect(through).toBe(40);
      expect(vendor.requests).toBe(40);
      await until(() => rows().done === 40);
      expect(rows().usd).toBe(40);
    });

    test('streams of the old program hold their slots in the new one, until they end', async () => {
      // More money than all requests need that come to the old program meanwhile.
      const gateway = await start(1_000_000, 1, 3);
      const streams = [await held(gateway), await held(gateway)];
      await successorOf(gateway);
      await held(gateway);
      // For a moment the kernel still gives some connections to the old program.
      let refusals = 0;
      await until(async () => {
        const answer = await post(gateway, 'm1');
        await answer.text();
        refusals = answer.status === 429 ? refusals + 1 : 0;
        return refusals === 50;
      });
      vendor.release();
      for (const stream of streams) await stream.end();
      expect(await gateway.exited).toBe(0);
      await until(async () => {
        const answer = await post(gateway, 'm1');
        await answer.text();
        return answer.ok;
      });
    });

    test('the old program is killed: what it held counts as used, and its rows come by themselves', async () => {
      const gateway = await start(100);
      expect(await passed(gateway, 3)).toBe(3);
      await held(gateway);
      await held(gateway);
      await until(() => rows().running === 2);
      await successorOf(gateway);
      gateway.signal('SIGKILL');
      await gateway.exited;
      const through = await passed(gateway, 150);
      // Of what was in use, a part that was set aside may count as used: eight requests at most.
      expect(through).toBeLessThanOrEqual(95);
      expect(through).toBeGreaterThanOrEqual(87);
      await until(async () => {
        await spent(gateway);
        await (await post(gateway, 'm1')).text();
        return rows().broken === 2;
      });
      // Those that ended a moment ago are written together.
      await until(() => rows().running === 0 && rows().usd === vendor.requests);
      expect(rows().broken).toBe(2);
    });
  },
);

test.each([1, 2])('killed and started again; processes: %i', async (workers) => {
  const first = await start(100, workers);
  expect(await passed(first, 3)).toBe(3);
  await held(first);
  await held(first);
  // What ended is in the file, and what runs as it is reserved.
  await until(() => rows().done === 3 && rows().running === 2);
  first.signal('SIGKILL');
  await first.exited;
  const second = await start(100, workers);
  const through = await passed(second, 150);
  expect(through).toBeLessThanOrEqual(95);
  expect(through).toBeGreaterThanOrEqual(87);
  // A worker that outlives the first process finishes its streams.
  vendor.release();
  await until(
    () => rows().running === 0 && rows().usd === vendor.requests,
    () => JSON.stringify({ through, ...rows() }),
  );
  expect(vendor.requests).toBe(5 + through);
  const { done, broken } = rows();
  expect(done + broken).toBe(5 + through);
  if (workers === 1) expect(broken).toBe(2);
});

test.each([1, 2])(
  'killed under 200 streams: each is paid for once; processes: %i',
  async (workers) => {
    const first = await start(500, workers);
    expect(await passed(first, 3)).toBe(3);
    await Promise.all(Array.from({ length: 200 }, () => held(first)));
    await until(() => rows().done === 3 && rows().running === 200);
    first.signal('SIGKILL');
    await first.exited;
    const second = await start(500, workers);
    // A part that was set aside may count as used: eight requests at most.
    const used = await spent(second);
    expect(used).toBeGreaterThanOrEqual(203);
    expect(used).toBeLessThanOrEqual(211);
    // A worker that outlives the first process finishes its streams.
    vendor.release();
    await until(
      () => rows().running === 0,
      () => JSON.stringify(rows()),
    );
    const { done, broken, usd } = rows();
    expect([done + broken, usd, vendor.requests]).toEqual([203, 203, 203]);
    if (workers === 1) expect(broken).toBe(200);
  },
);
