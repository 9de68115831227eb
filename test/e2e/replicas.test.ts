/** Three replicas of the program on one cache and one Postgres: limits exact, budgets kept, through kills and frozen servers. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { Secret } from '../../src/config/secret.ts';
import { PostgresDatabase } from '../../src/state/engines/postgres.ts';
import { binary, type Gateway, startGateway } from '../support/binary.ts';
import { HAS_CACHE, startCache } from '../support/engines/cache-servers.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  startPostgres,
} from '../support/engines/database-servers.ts';
import type { Server } from '../support/engines/processes.ts';
import { until } from '../support/until.ts';

const REPLICAS = 3;
const NANO = 1e9;
const REPLY = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm1',
  data: [{ object: 'embedding', index: 0, embedding: [1] }],
  choices: [{ index: 0, message: { role: 'assistant', content: 'Fine.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
};

const CHAT = '/v1/chat/completions';
const OPERATOR = 'key-of-operator';

describe.skipIf(!HAS_CACHE || !HAS_POSTGRES)('three replicas', () => {
  let cache: Server;
  let database: DatabaseServer;
  let reader: PostgresDatabase;
  let vendor: ReturnType<typeof Bun.serve>;
  let billed = 0;
  let delayMs = 0;
  const running = new Set<Gateway>();

  beforeAll(async () => {
    [cache, database] = await Promise.all([startCache(), startPostgres(), binary()]);
    reader = new PostgresDatabase({ url: new Secret(database.url) }, () => {});
    vendor = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      idleTimeout: 0,
      async fetch() {
        billed++;
        if (delayMs > 0) await Bun.sleep(delayMs);
        return Response.json(REPLY);
      },
    });
  });
  afterAll(async () => {
    for (const one of running) await one.stop();
    await vendor.stop(true);
    await reader.close();
    await Promise.all([cache.stop(), database.stop()]);
  });

  /** Each request costs one dollar. */
  async function start(keys: readonly object[], onError = 'local'): Promise<readonly Gateway[]> {
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
      samples: { mode: 'off' },
      retry: { attempts: 1, base_delay: 0.02 },
      auth: { keys, admin_keys: [OPERATOR] },
      engines: {
        cache: `redis://127.0.0.1:${cache.port}`,
        database: database.url,
        on_error: onError,
      },
    };
    const replicas = await Promise.all(
      Array.from({ length: REPLICAS }, () => startGateway(config, { patience: 60_000 })),
    );
    for (const one of replicas) running.add(one);
    return replicas;
  }
  async function stop(replicas: readonly Gateway[]): Promise<void> {
    await Promise.all(replicas.map((one) => one.stop()));
    for (const one of replicas) running.delete(one);
  }

  async function ask({ url }: Gateway, key: string, path = CHAT): Promise<Response> {
    const answer = await fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, connection: 'close' },
      body: JSON.stringify({
        model: 'm1',
        ...(path === CHAT ? { messages: [{ role: 'user', content: 'hi' }] } : { input: 'hi' }),
      }),
    });
    await answer.arrayBuffer();
    return answer;
  }
  /** One after the other goes to the next replica, as behind a load balancer. */
  const askAll = (replicas: readonly Gateway[], key: string, count: number, path = CHAT) =>
    Promise.all(
      Array.from({ length: count }, (_, i) =>
        ask(replicas[i % replicas.length]!, key, path).catch(() => undefined),
      ),
    );
  const passed = (answers: readonly (Response | undefined)[]) =>
    answers.filter((one) => one?.ok).length;
  const counted = async (law: string) => {
    const [row] = await reader.query<{ spent: number; held: number }>(
      'SELECT sum(spent)::bigint AS spent, sum(held)::bigint AS held FROM hopgate.windows WHERE law LIKE $1',
      [law],
      10_000,
    );
    return row!;
  };
  const engineState = async ({ url }: Gateway, engine: string) => {
    const headers = { authorization: `Bearer ${OPERATOR}` };
    const answer = await fetch(`${url}/health/engines`, { headers });
    const { engines } = (await answer.json()) as { engines: Record<string, { state: string }> };
    return engines[engine]!.state;
  };

  test('a rate and concurrent requests hold over all of them together', async () => {
    const keys = [
      { name: 'rated', key: 'key-of-rated', limits: { requests_per_minute: 12 } },
      { name: 'few', key: 'key-of-few', limits: { concurrent: 4 } },
    ];
    // Where a busy machine makes the cache late, nothing is admitted without it.
    const replicas = await start(keys, 'closed');
    const began = performance.now();
    let admitted = 0;
    const refused = await until(async () => {
      const answers = await askAll(replicas, 'key-of-rated', 60);
      admitted += passed(answers);
      return admitted >= 12 && answers.find((one) => one?.status === 429);
    });
    const refills = Math.floor(((performance.now() - began) * 12) / 60_000);
    expect(admitted).toBeLessThanOrEqual(12 + refills);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);

    delayMs = 1000;
    const before = billed;
    const streams = await askAll(replicas, 'key-of-few', 30);
    delayMs = 0;
    expect(passed(streams)).toBeGreaterThan(0);
    expect(billed - before).toBeLessThanOrEqual(4);
    expect(passed(streams)).toBe(billed - before);
    // They are free again, on every replica.
    await until(async () => passed(await askAll(replicas, 'key-of-few', 3)) === 3);
    await stop(replicas);
  });

  test.each([CHAT, '/v1/embeddings'])(
    'a budget is never exceeded, and what a killed replica held is never free (%s)',
    async (path) => {
      const key = `key-of-buyer-at-${path}`;
      const law = `${path.split('/').at(-1)}-forty`;
      const replicas = await start([
        { name: 'buyer', key, budgets: [{ name: law, usd: 40, per: 'total' }] },
      ]);
      billed = 0;
      delayMs = 20;
      let over = false;
      let looks = true;
      const looking = (async () => {
        while (looks) {
          // The tables are made with the first draw.
          const found = await counted(`%${law}`).catch(() => undefined);
          if (found !== undefined && found.spent + found.held > 40 * NANO) over = true;
          await Bun.sleep(10);
        }
      })();
      await until(async () => passed(await askAll(replicas, key, 6, path)) > 0);
      const asking = askAll(replicas, key, 30, path);
      await Bun.sleep(10);
      const [dying, ...living] = replicas;
      dying!.signal('SIGKILL');
      await asking;
      // The rest ask until nothing is left for them.
      for (let none = 0; none < 3; )
        none = passed(await askAll(living, key, 6, path)) === 0 ? none + 1 : 0;
      delayMs = 0;
      looks = false;
      await looking;
      expect(over).toBe(false);
      expect(billed).toBeLessThanOrEqual(40);
      expect(billed).toBeGreaterThan(10);
      const last = await ask(living[0]!, key, path);
      expect(last.status).toBe(429);
      await stop(replicas);
      const { spent, held } = await counted(`%${law}`);
      // Beside what was spent, only the lease of the dead one is left.
      expect(spent + held).toBeLessThanOrEqual(40 * NANO);
      expect(spent + held).toBeGreaterThanOrEqual(billed * NANO);
    },
  );

  test('a frozen cache or database holds no request for ever; it is told once and heals', async () => {
    const limited = {
      name: 'limited',
      key: 'key-of-limited',
      limits: { requests_per_minute: 6000 },
    };
    const buyer = {
      name: 'rich',
      key: 'key-of-rich',
      budgets: [{ name: 'plenty', usd: 100_000, per: 'total' }],
    };
    const replicas = await start([limited, buyer]);
    await askAll(replicas, limited.key, 6);
    await askAll(replicas, buyer.key, 6);
    cache.freeze();
    const frozen = await askAll(replicas, limited.key, 60);
    expect(passed(frozen)).toBe(60);
    // Only who asks the cache learns of it: leases are taken ahead.
    await until(async () => {
      await askAll(replicas, limited.key, 30);
      const states = await Promise.all(replicas.map((one) => engineState(one, 'cache')));
      return states.every((state) => state === 'down');
    });
    for (const { url } of replicas) expect((await fetch(`${url}/readyz`)).status).toBe(200);
    cache.thaw();
    await until(async () => (await engineState(replicas[0]!, 'cache')) === 'up');

    database.freeze();
    const paid = await askAll(replicas, buyer.key, 12);
    expect(paid.every((one) => one !== undefined && (one.ok || one.status === 503))).toBe(true);
    expect(passed(paid)).toBeGreaterThan(0);
    database.thaw();
    await until(async () => (await ask(replicas[0]!, buyer.key)).ok);
    const away = replicas[0]!.logs().filter(({ event }) => event === 'engine.away');
    expect(away.filter(({ engine }) => engine === 'cache')).toHaveLength(1);
    await until(() => replicas[0]!.logs().some(({ event }) => event === 'engine.back'));
    await stop(replicas);
  });
});
