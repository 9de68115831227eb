/** Two versions of the program side by side on the same engines: this one over the tables of a next one, and an older one beside this one. */

import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from 'bun:test';
import { Secret } from '../../src/config/secret.ts';
import { PostgresDatabase } from '../../src/state/engines/postgres.ts';
import { binary, type Gateway, startGateway } from '../support/binary.ts';
import { cacheCommand, HAS_CACHE, startCache } from '../support/engines/cache-servers.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  newDatabase,
  startPostgres,
} from '../support/engines/database-servers.ts';
import {
  HAS_OBJECTS,
  OBJECTS_KEY,
  OBJECTS_SECRET,
  type ObjectServer,
  startObjects,
} from '../support/engines/object-servers.ts';
import type { Server } from '../support/engines/processes.ts';
import { olderBinary, olderCommit } from '../support/older-version.ts';
import { until } from '../support/until.ts';

setDefaultTimeout(180_000);

const ADMIN = 'an-admin-key-of-tests';
const BUYER = 'key-of-the-buyer';
const DOLLARS = 12;
const LONG = 10_000;
const REPLY = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Fine.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
};
const OLDER = olderCommit();
if (OLDER === undefined) console.warn('skipped: the history of this clone has no older version');

describe.skipIf(!HAS_CACHE || !HAS_POSTGRES)('two versions at once', () => {
  let cache: Server;
  let server: DatabaseServer;
  let objects: ObjectServer | undefined;
  let vendor: ReturnType<typeof Bun.serve>;
  let billed = 0;
  let url = '';
  let reader: PostgresDatabase;
  const running = new Set<Gateway>();

  beforeAll(async () => {
    [cache, server, objects] = await Promise.all([
      startCache(),
      startPostgres(),
      HAS_OBJECTS ? startObjects() : undefined,
      binary(),
    ]);
    vendor = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch() {
        billed++;
        return Response.json(REPLY);
      },
    });
  });
  afterEach(async () => {
    for (const one of running) await one.stop();
    running.clear();
    await reader.close();
  });
  afterAll(async () => {
    await vendor.stop(true);
    await Promise.all([cache.stop(), server.stop(), objects?.stop()]);
  });

  async function empty(): Promise<void> {
    const made = await newDatabase(server);
    await made.database.close();
    url = made.url;
    reader = new PostgresDatabase({ url: new Secret(url) }, () => {});
    cacheCommand(cache.port, 'FLUSHALL');
    billed = 0;
  }
  async function start(program?: string): Promise<Gateway> {
    const config = {
      providers: {
        vendor: {
          protocol: 'openai-chat',
          base_url: `http://127.0.0.1:${vendor.port}/v1`,
          keys: ['sk-upstream'],
          models: ['m1'],
          prices: { m1: { input: 0, output: 0, request: 1000 } },
        },
      },
      samples: { mode: 'all' },
      auth: {
        admin_keys: [ADMIN],
        keys: [
          { name: 'ann', key: 'key-of-ann', sees: 'all', limits: { requests_per_minute: 10_000 } },
          { name: 'buyer', key: BUYER, budgets: [{ name: 'few', usd: DOLLARS, per: 'total' }] },
        ],
      },
      engines: {
        cache: `redis://127.0.0.1:${cache.port}`,
        database: url,
        ...(objects !== undefined && {
          objects: `s3://${OBJECTS_KEY}:${OBJECTS_SECRET}@${objects.bucket}/prod?region=us-east-1&endpoint=${objects.endpoint}`,
        }),
      },
    };
    const options = { patience: 60_000, ...(program !== undefined && { program }) };
    const gateway = await startGateway(config, options);
    running.add(gateway);
    return gateway;
  }

  async function ask(
    { url: origin }: Gateway,
    path: string,
    { key = 'key-of-ann', body }: { readonly key?: string; readonly body?: object } = {},
  ) {
    const answer = await fetch(`${origin}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${key}`, connection: 'close' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, text, body: JSON.parse(text) as Record<string, unknown> };
  }
  const chat = (gateway: Gateway, key: string, more: object = {}) =>
    ask(gateway, '/v1/chat/completions', {
      key,
      body: { model: 'm1', messages: [{ role: 'user', content: 'hi' }], ...more },
    });
  const versions = () =>
    reader.query<{ room: string; version: number }>(
      'SELECT room, version FROM hopgate.versions ORDER BY room',
      [],
      LONG,
    );

  /** What one writes, the other must find: in every room of the tables, and in the cache. */
  async function work(writer: Gateway, other: Gateway, name: string): Promise<void> {
    const made = await ask(writer, '/admin/v1/keys', { key: ADMIN, body: { name } });
    expect([made.status, made.text]).toEqual([201, expect.any(String)]);
    const key = String(made.body.key);
    await until(async () => (await chat(other, key)).status === 200);

    const stored = await ask(writer, '/v1/responses', { body: { model: 'm1', input: name } });
    expect([stored.status, stored.text]).toEqual([200, expect.any(String)]);
    const next = { model: 'm1', input: 'go on', previous_response_id: stored.body.id };
    // On a busy machine it may be written after the answer.
    await until(async () => (await ask(other, '/v1/responses', { body: next })).status === 200);

    const memory = { space: name, recall: 'always', capture: true };
    expect((await chat(writer, 'key-of-ann', { hopgate: { memory } })).status).toBe(200);
    const events = `/v1/memory/${name}/events`;
    await until(async () => (await ask(other, events)).text.includes('Fine.'));
    await until(async () => (await ask(other, '/admin/v1/spend', { key: ADMIN })).status === 200);

    if (objects === undefined) return;
    await until(async () => {
      // The table is made with the first upload.
      const [table] = await reader.query<{ there: boolean }>(
        "SELECT to_regclass('hopgate.samples') IS NOT NULL AS there",
        [],
        LONG,
      );
      if (table?.there !== true) return false;
      const rows = await reader.query<{ count: number }>(
        'SELECT count(*) AS count FROM hopgate.samples',
        [],
        LONG,
      );
      return rows[0]!.count > 0;
    });
  }
  /** Each request costs a dollar. */
  async function spendAll(gateways: readonly Gateway[], left = DOLLARS): Promise<void> {
    const before = billed;
    let passed = 0;
    let refusing = 0;
    // One after the other: versions before this one may split the last dollar while all of them are asked at once.
    for (let round = 0; passed < left || refusing < gateways.length; round++) {
      const asked = gateways[round % gateways.length]!;
      const answers = await Promise.all(Array.from({ length: 3 }, () => chat(asked, BUYER)));
      for (const { status } of answers) expect([200, 429]).toContain(status);
      const through = answers.filter(({ status }) => status === 200).length;
      passed += through;
      refusing = through === 0 ? refusing + 1 : 0;
      if (through === 0) await Bun.sleep(20);
    }
    expect(passed).toBe(left);
    expect(billed - before).toBe(left);
  }
  /** Of the state: refused requests and a machine that is too busy are none. */
  const complaints = (gateway: Gateway) =>
    gateway
      .logs()
      .filter(({ level }) => level === 'error' || level === 'warn')
      .filter(({ event }) => !/^(exchange|budget\..*|engine\..*)$/.test(String(event)))
      .map(({ event, message }) => `${event}: ${message}`);

  test('this version serves over tables that a next one has added to, and leaves them as they are', async () => {
    await empty();
    const early = await start();
    await work(early, early, 'before');
    expect((await chat(early, BUYER)).status).toBe(200);
    // As a next version does it: beside a replica that runs.
    const tables = await reader.query<{ name: string }>(
      `SELECT relname AS name FROM pg_class WHERE relnamespace = 'hopgate'::regnamespace
         AND relkind IN ('r', 'p') AND NOT relispartition AND relname <> 'versions'`,
      [],
      LONG,
    );
    expect(tables.length).toBeGreaterThan(15);
    for (const { name } of tables) {
      await reader.query(
        `ALTER TABLE hopgate.${name} ADD COLUMN of_next text NOT NULL DEFAULT 'next', ADD COLUMN may_be int`,
        [],
        LONG,
      );
    }
    await reader.query('CREATE TABLE hopgate.of_next (id int PRIMARY KEY)', [], LONG);
    await reader.query('UPDATE hopgate.versions SET version = version + 7', [], LONG);
    const next = await versions();
    expect(next.map(({ room }) => room)).toEqual(
      expect.arrayContaining(['keys', 'limits', 'memory', 'replicas', 'responses', 'spend']),
    );

    const late = await start();
    await work(early, late, 'early');
    await work(late, early, 'late');
    await spendAll([early, late], DOLLARS - 1);
    expect(await versions()).toEqual(next);
    const verified = await ask(late, '/admin/v1/audit', { key: ADMIN });
    expect(verified.status).toBe(200);
    expect([...complaints(early), ...complaints(late)]).toEqual([]);
  });

  test('values in the cache that are of no known form count as not there', async () => {
    await empty();
    const [one, two] = await Promise.all([start(), start()]);
    await work(one!, two!, 'known');
    const stored = await ask(one!, '/v1/responses', { body: { model: 'm1', input: 'first' } });
    const names = cacheCommand(cache.port, '--scan').split('\n').filter(Boolean);
    const texts = names.filter(
      (name) => cacheCommand(cache.port, 'TYPE', name).trim() === 'string',
    );
    expect(texts.length).toBeGreaterThan(0);
    for (const name of texts) cacheCommand(cache.port, 'SET', name, '{"form":99,"of":"next"}');
    const third = await start();
    const next = { model: 'm1', input: 'go on', previous_response_id: stored.body.id };
    await until(async () => (await ask(third, '/v1/responses', { body: next })).status === 200);
    await work(two!, third, 'unknown');
  });

  test.skipIf(OLDER === undefined)(
    'an older version and this one take over from each other, and one budget holds for both',
    async () => {
      await empty();
      const alone = await start();
      await work(alone, alone, 'newer-alone');
      expect((await chat(alone, BUYER)).status).toBe(200);
      const own = await versions();
      running.delete(alone);
      await alone.stop();
      await reader.close();
      await empty();
      const program = await olderBinary(OLDER!);
      const older = await start(program);
      await work(older, older, 'older-alone');
      expect((await chat(older, BUYER)).status).toBe(200);
      const before = await versions();
      const newer = await start();
      await work(older, newer, 'older-writes');
      await work(newer, older, 'newer-writes');
      await spendAll([older, newer], DOLLARS - 1);
      const after = await versions();
      // The newer one has brought every room to its own version; some changes of tables need no new one.
      expect(own.map(({ room }) => room)).toEqual(before.map(({ room }) => room));
      expect(after).toEqual(own);
      running.delete(newer);
      await newer.stop();
      // The upgrade is taken back.
      const again = await start(program);
      await work(again, older, 'older-again');
      expect((await chat(again, BUYER)).status).toBe(429);
      expect(await versions()).toEqual(after);
      expect([...complaints(older), ...complaints(again)]).toEqual([]);
    },
  );
});
