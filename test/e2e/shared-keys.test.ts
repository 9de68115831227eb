/** Three replicas of the program whose keys are in Postgres: changes, revocation, commands, restarts, and a start without it. */

import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { binary, type Gateway, runBinary, startGateway } from '../support/binary.ts';
import { HAS_CACHE, startCache } from '../support/engines/cache-servers.ts';
import {
  type DatabaseServer,
  HAS_BOUNCER,
  startBouncer,
  startPostgres,
} from '../support/engines/database-servers.ts';
import type { Server } from '../support/engines/processes.ts';
import { until } from '../support/until.ts';

setDefaultTimeout(120_000);

const ADMIN = 'an-admin-key-of-tests';

describe.skipIf(!HAS_CACHE || !HAS_BOUNCER)('replicas with shared keys', () => {
  let cache: Server;
  let database: DatabaseServer;
  let bouncer: DatabaseServer;
  let folder: string;
  const running = new Set<Gateway>();

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'hopgate-shared-homes-'));
    [cache, database] = await Promise.all([startCache(), startPostgres(), binary()]);
    bouncer = await startBouncer(database);
  });
  afterEach(() => database.thaw());
  afterAll(async () => {
    for (const one of running) await one.stop();
    await Promise.all([cache.stop(), bouncer.stop(), database.stop()]);
    await rm(folder, { recursive: true, force: true });
  });

  const configOf = (more: object = {}) => ({
    providers: { demo: { protocol: 'openai-chat', base_url: 'demo:', models: ['demo'] } },
    samples: { mode: 'off' },
    auth: { admin_keys: [ADMIN] },
    engines: { cache: `redis://127.0.0.1:${cache.port}`, database: bouncer.url },
    ...more,
  });
  const homeOf = (name: string) => ({ HOPGATE_HOME: join(folder, name) });
  async function start(name: string, more: object = {}): Promise<Gateway> {
    const gateway = await startGateway(configOf(more), { patience: 60_000, env: homeOf(name) });
    running.add(gateway);
    return gateway;
  }
  async function stop(gateway: Gateway): Promise<void> {
    running.delete(gateway);
    await gateway.stop();
  }

  async function ask({ url }: Gateway, key: string): Promise<number> {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, connection: 'close' },
      body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'hi' }] }),
    });
    await answer.arrayBuffer();
    return answer.status;
  }
  const askAll = (replicas: readonly Gateway[], key: string) =>
    Promise.all(replicas.map((one) => ask(one, key)));
  async function admin(
    { url }: Gateway,
    method: string,
    path: string,
    body?: object,
    headers: Record<string, string> = {},
  ) {
    const answer = await fetch(`${url}/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${ADMIN}`, connection: 'close', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: the tests look at JSON of many shapes
    return { status: answer.status, body: (await answer.json()) as any };
  }
  async function health({ url }: Gateway) {
    const headers = { authorization: `Bearer ${ADMIN}` };
    const answer = await fetch(`${url}/health/engines`, { headers });
    // biome-ignore lint/suspicious/noExplicitAny: as above
    return (await answer.json()) as any;
  }
  const ready = async ({ url }: Gateway) => (await fetch(`${url}/readyz`)).status === 200;

  test('a key works and ends on all of them, whoever makes and revokes it, and the audit is one chain', async () => {
    const replicas = await Promise.all(['a', 'b', 'c'].map((name) => start(name)));
    const [a, b, c] = replicas as [Gateway, Gateway, Gateway];
    await until(async () => (await Promise.all(replicas.map(ready))).every(Boolean));

    const made = await Promise.all(
      Array.from({ length: 24 }, (_, n) =>
        admin(replicas[n % 3]!, 'POST', '/keys', { name: `k${n}` }, { 'idempotency-key': `i${n}` }),
      ),
    );
    expect(made.map(({ status }) => status)).toEqual(made.map(() => 201));
    const { id, key } = made[0]!.body;
    const again = { name: 'k0' };
    const marked = { 'idempotency-key': 'i0' };
    expect((await admin(a, 'POST', '/keys', again, marked)).body.key).toBe(key);
    expect((await admin(b, 'POST', '/keys', again, marked)).body.error.code).toBe('already_issued');
    // At once, on each.
    for (const { body } of made) expect(await askAll(replicas, body.key)).toEqual([200, 200, 200]);

    // Made on one, changed on another, ended on the third.
    const rotated = await admin(b, 'POST', `/keys/${id}/rotate`, { grace: 0 });
    await until(async () => (await askAll(replicas, key)).every((status) => status === 401));
    expect(await askAll(replicas, rotated.body.key)).toEqual([200, 200, 200]);
    await admin(c, 'DELETE', `/keys/${id}`);
    await until(async () =>
      (await askAll(replicas, rotated.body.key)).every((status) => status === 401),
    );

    for (const one of replicas) {
      const { body } = await admin(one, 'GET', '/audit/verify');
      expect(body).toMatchObject({ valid: true, entries: 26 });
    }
    await until(async () => (await health(a)).replicas.length === 3);
    expect((await health(a)).keys).toMatchObject({ source: 'database', keys: 24, entry: 26 });

    // The commands of a machine with the same configuration.
    const command = async (args: readonly string[], env: Record<string, string> = {}) =>
      runBinary([...args, '--config', b.configPath], { env: { ...homeOf('b'), ...env } });
    const byCommand = await command(['keys', 'create', 'by-command']);
    expect(await ask(a, byCommand.stdout.trim())).toBe(200);
    const byCommandId = byCommand.stdout.trim().slice(0, 25);
    expect((await command(['keys', 'revoke', byCommandId])).code).toBe(0);
    await until(async () =>
      (await askAll(replicas, byCommand.stdout.trim())).every((status) => status === 401),
    );
    expect((await command(['audit', 'verify'])).stdout).toMatch(/^28 entries, intact\./);
    const { body } = await admin(a, 'GET', '/audit?limit=1');
    expect(body.data[0]).toMatchObject({ action: 'key.revoke', target: byCommandId });
    await Promise.all(replicas.map(stop));
  });

  test('one whose configuration differs is told, and only that one', async () => {
    const [a, b] = await Promise.all([start('a'), start('b')]);
    await until(async () => (await health(a)).replicas.length === 2);
    const odd = await start('c', { budgets: [{ name: 'x', keys: {}, usd: 3, per: 'day' }] });
    const told = ({ logs }: Gateway) => logs().filter(({ event }) => event === 'config.differs');
    const [line] = await until(() => told(odd).length > 0 && told(odd));
    expect(line!.others).toHaveLength(2);
    expect([told(a), told(b)]).toEqual([[], []]);
    await Promise.all([a, b, odd].map(stop));
  });

  test('keys work through a frozen database and a restart without it; changes are refused until it is back', async () => {
    const [a, b] = await Promise.all([start('a'), start('b')]);
    const { body: kept } = await admin(a, 'POST', '/keys', { name: 'kept' });
    await until(async () => (await ask(b, kept.key)) === 200);

    database.freeze();
    const refused = await admin(a, 'POST', '/keys', { name: 'late' });
    expect([refused.status, refused.body.error.code]).toEqual([503, 'keys_unreadable']);
    expect(await askAll([a, b], kept.key)).toEqual([200, 200]);
    await stop(b);
    // It starts with what its machine knew.
    const restarted = await start('b');
    await until(() => ready(restarted));
    expect(await ask(restarted, kept.key)).toBe(200);
    await until(() => restarted.logs().some(({ event }) => event === 'keys.snapshot'));
    expect((await health(restarted)).keys.source).toBe('snapshot');
    // A machine that knows nothing takes no requests.
    const fresh = await start('fresh');
    expect(await ready(fresh)).toBe(false);

    database.thaw();
    await until(() => ready(fresh));
    expect(await ask(fresh, kept.key)).toBe(200);
    await until(async () => (await health(restarted)).keys.source === 'database');
    const told = restarted.logs().filter(({ event }) => event === 'keys.snapshot');
    expect(told).toHaveLength(1);
    const late = await until(async () => {
      const answer = await admin(a, 'POST', '/keys', { name: 'late' });
      return answer.status === 201 && answer.body;
    });
    expect(await askAll([a, restarted, fresh], late.key)).toEqual([200, 200, 200]);
    expect((await admin(fresh, 'GET', '/audit/verify')).body.valid).toBe(true);
    await Promise.all([a, restarted, fresh].map(stop));
  });

  test('keys of a machine go into the database with their secrets, once', async () => {
    const alone = await start('old', { engines: {} });
    const { body } = await admin(alone, 'POST', '/keys', { name: 'old', labels: { team: 'x' } });
    expect(await ask(alone, body.key)).toBe(200);
    await stop(alone);
    const shared = await start('old');
    await until(() => shared.logs().some(({ event, keys }) => event === 'keys.left' && keys === 1));
    expect(await ask(shared, body.key)).toBe(401);
    const options = { env: homeOf('old') };
    const only = ['--only', 'keys', '--json', '--config', shared.configPath];
    const args = ['state', 'move', '--to', 'engines', ...only];
    const moved = async () => JSON.parse((await runBinary(args, options)).stdout).state[0];
    expect(await moved()).toMatchObject({ name: 'keys', copied: 1 });
    expect(await ask(shared, body.key)).toBe(200);
    expect(await moved()).toMatchObject({ copied: 0, before: { items: 1, missing: 0 } });
    const { body: view } = await admin(shared, 'GET', `/keys/${body.id}`);
    expect(view).toMatchObject({ name: 'old', labels: { team: 'x' } });
    expect((await admin(shared, 'GET', '/audit/verify')).body.valid).toBe(true);
    await stop(shared);
  });
});
