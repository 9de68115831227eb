/** Three replicas of the program on one Postgres: what they have booked is what the vendor bills, whatever breaks. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PostgresDatabase } from '../../src/state/engines/postgres.ts';
import { billFor, PRICE } from '../money/vendor.ts';
import { HAS_CACHE, startCache } from '../support/engines/cache-servers.ts';
import {
  type DatabaseServer,
  HAS_BOUNCER,
  HAS_POSTGRES,
  newDatabase,
  startBouncer,
  startPostgres,
} from '../support/engines/database-servers.ts';
import { startFaultProxy } from '../support/engines/fault-proxy.ts';
import type { Server } from '../support/engines/processes.ts';
import {
  type FakeProtocol,
  type FakeUpstream,
  refuse,
  say,
  startFakeUpstream,
} from '../support/fake-upstream/index.ts';
import { binary, type Gateway, startOneGateway } from '../support/gateway-process.ts';
import { until } from '../support/until.ts';

const REPLICAS = 3;
const LONG = 20_000;
const DOLLAR = 1e9;
const KEY = 'key-of-the-buyer';
const CAPPED = 'key-of-the-capped';
const ADMIN = 'key-of-the-admin';
const PROTOCOLS: readonly FakeProtocol[] = [
  'openai-chat',
  'openai-responses',
  'anthropic-messages',
  'google-gemini',
];

/** How a model ends its answers, and what the vendor bills for one, in nano-USD. */
const MODELS = ['counted', 'flat', 'slow', 'broken', 'flaky'] as const;
type Model = (typeof MODELS)[number];

interface Ask {
  readonly client: FakeProtocol;
  readonly upstream: FakeProtocol;
  readonly model: Model;
  readonly stream: boolean;
  readonly key?: string;
  /** The client goes away after the first bytes; a promise: when it resolves. */
  readonly leave?: Promise<void>;
}

interface Asked {
  readonly ok: boolean;
  readonly status: number;
  /** The gateway's id of it. */
  readonly request: string;
}

describe.skipIf(!HAS_CACHE || !HAS_POSTGRES)('the bill of three replicas', () => {
  let cache: Server;
  let server: DatabaseServer;
  let vendor: FakeUpstream;
  let bill: { nano: number; tries: number };
  const closing: (() => unknown)[] = [];
  const running = new Set<Gateway>();

  beforeAll(async () => {
    [cache, server, vendor] = await Promise.all([
      startCache(),
      startPostgres(),
      startFakeUpstream(),
      binary(),
    ]);
  });
  afterEach(async () => {
    await stop([...running]);
    for (const close of closing.splice(0).toReversed()) await close();
  });
  afterAll(async () => {
    await vendor.stop();
    await Promise.all([cache.stop(), server.stop()]);
  });

  /** The vendor's own book: it notes what it bills before it says a word. */
  function openBook(): void {
    vendor.clear();
    bill = { nano: 0, tries: 0 };
    const failed = new Set<string>();
    vendor.answerWith(({ body }, n) => {
      bill.tries++;
      const model = String(body.model) as Model;
      const text = 'several words of text '.repeat(10);
      if (model === 'flaky' && !failed.has(JSON.stringify(body))) {
        failed.add(JSON.stringify(body));
        return refuse(500);
      }
      if (model === 'counted') {
        const usage = { input: 100 + (n % 37), cached: n % 50, output: 20 + (n % 11) };
        bill.nano += billFor({ ...usage, reasoning: 0 });
        return say(text, { usage });
      }
      bill.nano += DOLLAR;
      if (model === 'slow') return say(text, { delivery: { cut: { at: 0.6, by: 'hang' } } });
      if (model === 'broken') return say(text, { delivery: { cut: { at: 0.6, by: 'reset' } } });
      return say(text);
    });
  }

  const configOf = (database: string) => {
    const flat = { input: 0, output: 0, request: 1000 };
    const provider = (protocol: FakeProtocol) => ({
      protocol,
      base_url: vendor.baseUrl(protocol),
      keys: ['sk-upstream'],
      models: ['*'],
      prices: { counted: PRICE, flat, slow: flat, broken: flat, flaky: flat },
    });
    return {
      providers: Object.fromEntries(PROTOCOLS.map((name) => [name, provider(name)])),
      samples: { mode: 'off' },
      retry: { attempts: 2, base_delay: 0.02 },
      auth: {
        admin_keys: [ADMIN],
        keys: [
          { name: 'buyer', key: KEY },
          {
            name: 'capped',
            key: CAPPED,
            budgets: [{ name: 'plenty', usd: 1_000_000, per: 'total' }],
          },
        ],
      },
      engines: { cache: `redis://127.0.0.1:${cache.port}`, database },
    };
  };

  /** Replicas on a new database. @param urlOf another way to it */
  async function start(urlOf: (url: string) => string | Promise<string> = (url) => url) {
    openBook();
    const { url, database } = await newDatabase(server);
    closing.push(() => database.close());
    const config = configOf(await urlOf(url));
    const replicas = await Promise.all(
      Array.from({ length: REPLICAS }, () => startOneGateway(config, { patience: 60_000 })),
    );
    for (const one of replicas) running.add(one);
    // The tables are there before anything breaks.
    await until(async () => (await usageOf(replicas[0]!)) !== undefined);
    return { replicas, database, config };
  }
  async function stop(replicas: readonly Gateway[]): Promise<void> {
    await Promise.all(replicas.map((one) => one.stop()));
    for (const one of replicas) running.delete(one);
  }

  /** @param began the first bytes are there */
  async function ask({ url }: Gateway, wanted: Ask, began?: () => void): Promise<Asked> {
    const { key = KEY, leave } = wanted;
    const { path, body } = requestOf(wanted);
    const gone = new AbortController();
    const answer = await fetch(url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'anthropic-version': '2023-06-01',
        connection: 'close',
      },
      body: JSON.stringify(body),
      signal: gone.signal,
    });
    const { ok, status } = answer;
    const request = answer.headers.get('x-hopgate-request-id')!;
    try {
      if (leave === undefined) await answer.arrayBuffer();
      else {
        const reader = answer.body!.getReader();
        await reader.read();
        began?.();
        await leave;
        gone.abort();
        // A body that nobody holds is given up when the memory is cleaned.
        await reader.cancel();
      }
    } catch {
      // Cut by the vendor, or left.
    }
    return { ok, status, request };
  }
  /** One after the other goes to the next replica, as behind a load balancer; some at a time. */
  async function askAll(replicas: readonly Gateway[], wanted: readonly Ask[]) {
    const answers: (Asked | undefined)[] = [];
    let next = 0;
    const worker = async () => {
      for (let at = next++; at < wanted.length; at = next++) {
        answers[at] = await ask(replicas[at % replicas.length]!, wanted[at]!).catch(
          () => undefined,
        );
      }
    };
    await Promise.all(Array.from({ length: 6 }, worker));
    return answers;
  }

  async function usageOf({ url }: Gateway) {
    const answer = await fetch(`${url}/admin/v1/usage?by=key`, {
      headers: { authorization: `Bearer ${ADMIN}` },
    });
    if (!answer.ok) return undefined;
    const { data } = (await answer.json()) as { data: { tries: number; cost_usd: number }[] };
    return {
      tries: data.reduce((sum, { tries }) => sum + tries, 0),
      nano: Math.round(data.reduce((sum, { cost_usd }) => sum + cost_usd, 0) * 1e9),
    };
  }
  const reportStatus = async ({ url }: Gateway) =>
    (await fetch(`${url}/admin/v1/usage`, { headers: { authorization: `Bearer ${ADMIN}` } }))
      .status;
  async function booked(database: PostgresDatabase) {
    const [row] = await database.query<{ nano: number; tries: number }>(
      `SELECT coalesce(sum(cost), 0)::bigint AS nano, count(*) AS tries FROM hopgate.spend_rows`,
      [],
      LONG,
    );
    return row!;
  }
  /** Rows, totals and every replica say what the vendor says; also when all have stopped, and nothing comes any more. */
  async function expectBill(
    database: PostgresDatabase,
    replicas: readonly Gateway[],
    expected = bill,
  ) {
    await until(
      async () => ((await booked(database).catch(() => undefined))?.tries ?? 0) >= expected.tries,
      () => JSON.stringify(expected),
    );
    for (const one of replicas) {
      const found = await until(() => usageOf(one));
      expect(found).toEqual(expected);
    }
    await stop(replicas);
    expect(await booked(database)).toEqual(expected);
    for (const span of [0, 1, 2]) {
      const totals = await database.query(
        `SELECT sum(cost)::bigint AS nano, sum(tries)::bigint AS tries FROM hopgate.spend_totals WHERE span = $1`,
        [span],
        LONG,
      );
      expect(totals).toEqual([expected]);
    }
    const [open] = await database.query('SELECT count(*) AS n FROM hopgate.spend_open', [], LONG);
    expect(open).toEqual({ n: 0 });
  }
  const mixed = (count: number): readonly Ask[] =>
    Array.from({ length: count }, (_, i) => ({
      client: PROTOCOLS[i % 4]!,
      upstream: PROTOCOLS[(i >> 2) % 4]!,
      model: i % 5 === 0 ? 'counted' : 'flat',
      stream: i % 3 === 0,
    }));

  test('every pair of protocols, whole and streamed, left, cut and retried, is billed to the nano', async () => {
    const { replicas, database } = await start();
    await expectMixedTraffic(database, replicas);
  }, 120_000);

  async function expectMixedTraffic(database: PostgresDatabase, replicas: readonly Gateway[]) {
    const pairs = PROTOCOLS.flatMap((client) =>
      PROTOCOLS.map((upstream) => ({ client, upstream }) as const),
    );
    const left = { stream: true, model: 'slow', leave: Promise.resolve() } as const;
    const wanted: readonly Ask[] = pairs.flatMap((pair, i) => [
      { ...pair, model: 'counted', stream: true },
      { ...pair, model: 'counted', stream: false, key: CAPPED },
      { ...pair, model: 'flaky', stream: i % 2 === 0 },
      { ...pair, model: 'broken', stream: true, key: CAPPED },
      { ...pair, ...left },
      { ...pair, ...left, key: CAPPED },
    ]);
    const answers = await askAll(replicas, wanted);
    expectAnswered(answers);
    expect(vendor.refusals).toEqual([]);
    await expectBill(database, replicas);
    // The counter of the budget is the sum of its key's rows, and nothing is held.
    const [counter] = await database.query<{ spent: number; held: number }>(
      'SELECT sum(spent)::bigint AS spent, sum(held)::bigint AS held FROM hopgate.windows',
      [],
      LONG,
    );
    const [capped] = await database.query<{ spent: number }>(
      "SELECT sum(cost)::bigint AS spent FROM hopgate.spend_rows WHERE key = 'capped'",
      [],
      LONG,
    );
    expect(capped!.spent).toBeGreaterThan(32 * DOLLAR);
    expect(counter).toEqual({ spent: capped!.spent, held: 0 });
  }

  test('a replica that is killed and starts again on its folder has lost nothing but what had just begun', async () => {
    const { replicas, database, config } = await start();
    const [dying, ...living] = replicas;
    const before = await askAll(replicas, mixed(30));
    const leaving = Promise.withResolvers<void>();
    const streamOn = (one: Gateway, began: () => void = () => {}) =>
      ask(one, { ...SLOW, leave: leaving.promise }, began).catch(() => undefined);
    const long = replicas.flatMap((one) => [streamOn(one), streamOn(one)]);
    await until(
      async () => (await openTries(database)).length === long.length,
      () => JSON.stringify(bill),
    );
    await until(async () => (await booked(database)).tries === before.length);

    // It is in the middle of these.
    const burst = 8;
    let begun = 0;
    const cut = Array.from({ length: burst }, () => streamOn(dying!, () => begun++));
    await until(() => begun === burst);
    const meanwhile = askAll(living, mixed(60));
    dying!.signal('SIGKILL');
    await dying!.exited;
    running.delete(dying!);
    closing.push(() => dying!.stop());
    const others = await meanwhile;
    expectAnswered([...before, ...others]);

    const next = await startOneGateway(config, {
      patience: 60_000,
      env: { HOPGATE_HOME: join(dying!.home, 'state') },
    });
    running.add(next);
    await until(
      async () =>
        (await waitingOf(dying!, database)) === 0 &&
        (await openTries(database)).every(({ writer }) => !writer.startsWith(`${dying!.pid}-`)),
    );
    leaving.resolve();
    await Promise.all([...long, ...cut]);
    const after = await askAll([next, ...living], mixed(30));
    await until(async () => (await openTries(database)).length === 0);
    // A report sends what waits.
    for (const one of [next, ...living]) await usageOf(one);

    const rows = await database.query<{ request: string; ended: string; n: number }>(
      'SELECT request, min(ended) AS ended, count(*) AS n FROM hopgate.spend_rows GROUP BY 1',
      [],
      LONG,
    );
    const found = new Map(rows.map(({ request, ...row }) => [request, row]));
    for (const one of [...before, ...others, ...after]) {
      expect(found.get(one!.request)).toEqual({ ended: 'done', n: 1 });
    }
    // As reserved, by the next process of its folder.
    expect(rows.filter(({ ended }) => ended === 'cut').length).toBeGreaterThanOrEqual(2);
    const missing = bill.tries - (await booked(database)).tries;
    expect(missing).toBeGreaterThanOrEqual(0);
    expect(missing).toBeLessThanOrEqual(burst);
    const expected = { tries: bill.tries - missing, nano: bill.nano - missing * DOLLAR };
    await expectBill(database, [next, ...living], expected);
  }, 120_000);

  test('a database that is frozen for a while holds up no answer, and has every row once when it goes on', async () => {
    const { replicas, database } = await start();
    expectAnswered(await askAll(replicas, mixed(30)));
    server.freeze();
    // Batches are under way when it stops, and others are tried against it.
    expectAnswered(await askAll(replicas, mixed(60)));
    await until(async () => (await reportStatus(replicas[0]!)) === 503);
    expectAnswered(await askAll(replicas, mixed(60)));
    server.thaw();
    expectAnswered(await askAll(replicas, mixed(30)));
    await expectBill(database, replicas);
  }, 120_000);

  test('a database that is killed in the middle of batches, again and again, has every row once when it is back', async () => {
    const { replicas, database } = await start();
    for (let round = 0; round < 3; round++) {
      const asking = askAll(replicas, mixed(90));
      const before = bill.tries;
      await until(() => bill.tries >= before + 40);
      await server.kill();
      expectAnswered(await asking);
      expectAnswered(await askAll(replicas, mixed(30)));
      await server.restart();
    }
    await expectBill(database, replicas);
  }, 120_000);

  test('rows whose answers are lost are sent again, and count once', async () => {
    const proxy = await startFaultProxy(server.port);
    closing.push(() => proxy.close());
    const { replicas, database } = await start((url) => through(url, proxy.port));
    expectAnswered(await askAll(replicas, mixed(30)));
    for (const one of replicas) await usageOf(one);
    proxy.loseAnswers = true;
    expectAnswered(await askAll(replicas, mixed(60)));
    await until(async () => (await reportStatus(replicas[0]!)) === 503);
    const waiting = () => Promise.all(replicas.map((one) => waitingOf(one, database)));
    expect((await waiting()).every((entries) => entries > 0)).toBe(true);
    proxy.loseAnswers = false;
    proxy.cut();
    await until(async () => (await waiting()).every((entries) => entries === 0));
    await expectBill(database, replicas);
  }, 120_000);

  test.skipIf(!HAS_BOUNCER)(
    'through a pooler that lends connections by transaction, also one that is killed, the bill is the same',
    async () => {
      const bouncer = await startBouncer(server);
      closing.push(() => bouncer.stop());
      const { replicas, database } = await start((url) => through(url, bouncer.port));
      const asking = askAll(replicas, mixed(90));
      await until(() => bill.tries >= 40);
      await bouncer.kill();
      expectAnswered(await asking);
      await bouncer.restart();
      // Every replica reads and draws through it again.
      for (const one of replicas) {
        await until(() => usageOf(one));
        await until(async () => (await ask(one, CAPPED_FLAT)).ok);
      }
      await expectMixedTraffic(database, replicas);
    },
    120_000,
  );

  const openTries = (database: PostgresDatabase) =>
    database.query<{ writer: string }>('SELECT writer, n FROM hopgate.spend_open', [], LONG);
});

const through = (url: string, port: number) => {
  const other = new URL(url);
  other.port = `${port}`;
  return other.href;
};
const expectAnswered = (answers: readonly (Asked | undefined)[]) =>
  expect(answers.filter((one) => one?.ok !== true)).toEqual([]);

const SLOW = {
  client: 'anthropic-messages',
  upstream: 'openai-chat',
  model: 'slow',
  stream: true,
} as const;

const CAPPED_FLAT = {
  client: 'openai-chat',
  upstream: 'openai-chat',
  model: 'flat',
  stream: false,
  key: CAPPED,
} as const;

/** Entries in the journals of a replica that the database has not got, or not confirmed. */
async function waitingOf({ home }: Gateway, database: PostgresDatabase): Promise<number> {
  const folder = join(home, 'state', 'state', 'spend.journal-database');
  const marks = await database.query<{ writer: string; n: number }>(
    'SELECT writer, n FROM hopgate.spend_marks',
    [],
    LONG,
  );
  const through = new Map(marks.map(({ writer, n }) => [writer, n]));
  const last = new Map<string, number>();
  for (const name of readdirSync(folder).toSorted()) {
    const writer = name.split('.')[0]!;
    if (!name.endsWith('.journal')) continue;
    const numbers = readFileSync(join(folder, name), 'utf8')
      .split('\n')
      .map((line) => Number.parseInt(line, 10));
    last.set(writer, Math.max(last.get(writer) ?? 0, ...numbers.filter((n) => n > 0)));
  }
  return [...last].reduce(
    (sum, [writer, n]) => sum + Math.max(0, n - (through.get(writer) ?? 0)),
    0,
  );
}

const PATHS: Readonly<Record<FakeProtocol, string>> = {
  'openai-chat': '/v1/chat/completions',
  'openai-responses': '/v1/responses',
  'anthropic-messages': '/v1/messages',
  'google-gemini': '/v1beta/models',
};
let asked = 0;

function requestOf({ client, upstream, model: name, stream }: Ask) {
  const model = `${upstream}/${name}`;
  // Each is another one: the vendor knows a second try by it.
  const text = `Write something, number ${++asked}.`;
  const path = PATHS[client];
  if (client === 'google-gemini') {
    const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
    return {
      path: `${path}/${model}:${method}`,
      body: { contents: [{ role: 'user', parts: [{ text }] }] },
    };
  }
  if (client === 'openai-responses') return { path, body: { model, stream, input: text } };
  const messages = [{ role: 'user', content: text }];
  // Without it a Chat vendor counts nothing for the reader of a stream.
  const options =
    client === 'openai-chat' && stream ? { stream_options: { include_usage: true } } : {};
  return { path, body: { model, stream, messages, max_tokens: 1000, ...options } };
}
