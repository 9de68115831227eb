/** What a running gateway and `hopgate doctor` say of shared engines: state, log, metric, and never a password. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { hostname } from 'node:os';
import { version } from '../../../src/cli/commands/version.ts';
import { Secret } from '../../../src/config/secret.ts';
import { PostgresDatabase } from '../../../src/state/engines/postgres.ts';
import { Replicas } from '../../../src/state/engines/replicas.ts';
import { createWorld } from '../../cli/world.ts';
import { startGateway } from '../../support/binary.ts';
import { HAS_CACHE, startCache } from '../../support/engines/cache-servers.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  newDatabase,
  startPostgres,
} from '../../support/engines/database-servers.ts';
import { freePort, type Server } from '../../support/engines/processes.ts';
import { startInProcess } from '../../support/in-process.ts';
import { until } from '../../support/until.ts';

const PASSWORD = 'a-long-password';
const provider = { protocol: 'openai-chat', base_url: 'http://127.0.0.1:1/v1' };

test('without engines there is nothing to tell, and nothing in the metrics', async () => {
  const gateway = await startInProcess({ providers: { p: provider } });
  const health = await fetch(`${gateway.url}/health/engines`);
  expect(await health.json()).toEqual({ engines: {} });
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  expect(metrics).not.toMatch(/^hopgate_engine/m);
  await gateway.stop();
});

test('engines that are away keep no gateway from being ready, and status lists them', async () => {
  const cache = `redis://:${PASSWORD}@127.0.0.1:${await freePort()}`;
  const database = `postgres://u:${PASSWORD}@127.0.0.1:${await freePort()}/db`;
  const gateway = await startInProcess({
    providers: { p: provider },
    engines: { cache, database },
  });
  expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
  const { engines } = (await (await fetch(`${gateway.url}/health/engines`)).json()) as {
    engines: Record<string, object>;
  };
  expect(Object.keys(engines)).toEqual(['cache', 'database']);
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  expect(metrics).toContain('hopgate_engine_up{engine="cache"} 0');

  const world = createWorld();
  world.fetch = fetch;
  const listen = new URL(gateway.url).host;
  const file = world.write(
    'hopgate.yaml',
    JSON.stringify({ listen, providers: { p: provider }, engines: { cache, database } }),
  );
  const status = await world.run(['status', '--config', file]);
  expect(status.out).toMatch(/^cache +(connecting|down) /m);
  expect(status.out).toMatch(/^database +(connecting|down) /m);
  expect(status.out).not.toContain(PASSWORD);
  const json = await world.run(['status', '--config', file, '--json']);
  const told = JSON.parse(json.out) as { engines: { engine: string; state: string }[] };
  expect(told.engines.map(({ engine, state }) => [engine, state !== 'up'])).toEqual([
    ['cache', true],
    ['database', true],
  ]);
  world.remove();
  await gateway.stop();
});

describe.skipIf(!HAS_CACHE || !HAS_POSTGRES)('doctor', () => {
  let cache: Server;
  let database: DatabaseServer;
  beforeAll(async () => {
    [cache, database] = await Promise.all([
      startCache(['--maxmemory-policy', 'volatile-lru']),
      startPostgres(),
    ]);
  });
  afterAll(() => Promise.all([cache.stop(), database.stop()]));

  async function doctor(engines: object) {
    const world = createWorld();
    const path = world.write(
      'hopgate.yaml',
      JSON.stringify({ providers: { p: provider }, engines }),
    );
    const ran = await world.run(['doctor', '--config', path, '--no-completion', '--json']);
    world.remove();
    const { findings } = JSON.parse(ran.out) as {
      findings: { about: string; status: string; message: string }[];
    };
    expect(ran.out + ran.err).not.toContain(PASSWORD);
    return findings.filter(({ about }) => about.startsWith('engine '));
  }

  test('looks at each engine', async () => {
    const found = await doctor({
      cache: `redis://127.0.0.1:${cache.port}`,
      database: database.url,
    });
    expect(found.map(({ about, status }) => [about, status])).toEqual([
      ...Array.from({ length: 6 }, () => ['engine cache', 'ok']),
      ...Array.from({ length: 4 }, () => ['engine database', 'ok']),
    ]);
    expect(found.find(({ message }) => /^(Redis|Valkey) \d/.test(message))).toBeDefined();
  });

  test('warns of an object store without a database: nothing would be stored in it', async () => {
    const found = await doctor({
      objects: `s3://key:secret@bucket?region=r&endpoint=http://127.0.0.1:${await freePort()}`,
    });
    expect(found.find(({ status }) => status === 'warn')?.message).toContain('without a database');
  });

  test('fails for one that cannot be reached, and for a wrong password', async () => {
    const locked = await startCache(['--requirepass', 'another']);
    const found = await doctor({
      cache: `redis://:${PASSWORD}@127.0.0.1:${locked.port}`,
      database: `postgres://hopgate:${PASSWORD}@127.0.0.1:${await freePort()}/db`,
    });
    await locked.stop();
    expect(found.map(({ about, status }) => [about, status])).toContainEqual([
      'engine database',
      'fail',
    ]);
    expect(found.filter(({ about }) => about === 'engine cache').map((one) => one.status)).toEqual([
      'fail',
    ]);
  });
});

describe.skipIf(!HAS_POSTGRES)('the replicas that run', () => {
  let database: DatabaseServer;
  beforeAll(async () => {
    database = await startPostgres();
  });
  afterAll(() => database.stop());

  test('status lists them, doctor says whether they have the configuration of its file', async () => {
    const config = {
      providers: { p: provider },
      engines: { database: database.url },
      budgets: [{ name: 'b', keys: {}, usd: 3, per: 'day' }],
    };
    const gateway = await startInProcess(config);
    const health = async () =>
      (await (await fetch(`${gateway.url}/health/engines`)).json()) as {
        replicas: { id: string; own: boolean; config: string }[];
        keys: { source: string };
      };
    const { replicas, keys } = await health();
    const [{ id, own: isOwn, config: digest } = { id: '', own: false, config: '' }] = replicas;
    expect([replicas.length, isOwn, digest]).toEqual([1, true, expect.stringMatching(/^\w{12}$/)]);
    // Without keys at all, nobody reads them.
    expect(keys.source).toBe('none');
    expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);

    const world = createWorld();
    world.fetch = fetch;
    const listen = new URL(gateway.url).host;
    const file = world.write('hopgate.yaml', JSON.stringify({ ...config, listen }));
    const status = await world.run(['status', '--config', file, '--json']);
    const listed = JSON.parse(status.out) as { replicas: { id: string }[] };
    expect(listed.replicas.map((one) => one.id)).toEqual([id]);
    const table = await world.run(['status', '--config', file]);
    expect(table.out).toContain(digest);
    expect(table.out).toMatch(new RegExp(`^\\S+ +${process.pid} .* ${digest} .*Z$`, 'm'));
    expect(table.out).toMatch(/^database +(connecting|up) /m);
    await gateway.stop();

    const findingsFor = async (more: object) => {
      const own = world.write('own.yaml', JSON.stringify({ ...config, ...more }));
      const ran = await world.run(['doctor', '--config', own, '--no-completion', '--json']);
      const { findings } = JSON.parse(ran.out) as { findings: { about: string; status: string }[] };
      return findings.filter(({ about }) => about === 'replicas').map((one) => one.status);
    };
    expect(await findingsFor({})).toEqual([]);
    const client = new PostgresDatabase({ url: new Secret(database.url) }, () => {});
    const own = { id: 'r', host: 'h', version: version.version, started: 1 };
    const running = new Replicas({
      database: client,
      own: () => ({ ...own, config: digest }),
      onDiffers: () => {},
    });
    await running.heartbeat();
    expect(await findingsFor({})).toEqual(['ok']);
    expect(await findingsFor({ budgets: [] })).toEqual(['warn']);
    await client.close();
    world.remove();
  });

  test('status tells replicas of one host apart; one of an older version has its host alone', async () => {
    const { url, database: client } = await newDatabase(database);
    const config = { providers: { p: provider }, engines: { database: url } };
    const facts = { host: 'gw-1', version: '1', config: 'digest', started: 1_790_000_000_123 };
    const others = [
      { ...facts, id: 'a', port: 5520, pid: 4711 },
      { ...facts, id: 'b', port: 5520, pid: 4712 },
      { ...facts, id: 'c', port: 5521, pid: 4713 },
    ].map((own) => new Replicas({ database: client, own: () => own, onDiffers: () => {} }));
    for (const one of others) await one.heartbeat();
    // As a version does that knows neither of the new columns.
    await client.query(
      "INSERT INTO hopgate.replicas VALUES ('old', 'gw-1', '1', 'digest', $1, clock_timestamp())",
      [facts.started],
      5000,
    );
    const gateway = await startGateway(config);
    const world = createWorld();
    world.fetch = fetch;
    const file = world.write(
      'hopgate.yaml',
      JSON.stringify({ ...config, listen: new URL(gateway.url).host }),
    );
    const rows = async () => {
      const { out } = await world.run(['status', '--config', file]);
      const lines = out.split('\n').filter((line) => /^(REPLICA|gw-1)/.test(line));
      return lines.map((line) => line.split(/ {2,}/));
    };
    await until(async () => (await rows()).length === 5);
    expect(await rows()).toEqual([
      ['REPLICA', 'PID', 'VERSION', 'CONFIGURATION', 'STARTED'],
      ['gw-1:5520', '4711', '1', 'digest', '2026-09-21T14:13:20Z'],
      ['gw-1:5520', '4712', '1', 'digest', '2026-09-21T14:13:20Z'],
      ['gw-1:5521', '4713', '1', 'digest', '2026-09-21T14:13:20Z'],
      ['gw-1', '1', 'digest', '2026-09-21T14:13:20Z'],
    ]);
    const own = (await world.run(['status', '--config', file, '--json'])).out;
    expect(JSON.parse(own).replicas[0]).toMatchObject({ host: hostname(), pid: gateway.pid });
    world.remove();
    await gateway.stop();
    await client.close();
  }, 180_000);

  test('commands work on the keys of all replicas, and those of a file are moved once', async () => {
    const world = createWorld();
    const alone = world.write('alone.yaml', JSON.stringify({ providers: { p: provider } }));
    const shared = world.write(
      'shared.yaml',
      JSON.stringify({ providers: { p: provider }, engines: { database: database.url } }),
    );
    const move = async (config: string) => {
      const ran = await world.run([
        ...['state', 'move', '--to', 'engines', '--only', 'keys'],
        ...['--config', config],
      ]);
      return { code: ran.code, row: ran.out.split('\n')[1]?.split(/ +/) };
    };
    const old = await world.run(['keys', 'create', 'old', '--config', alone]);
    expect((await move(alone)).code).toBe(1);
    const made = await world.run(['keys', 'create', 'new', '--config', shared]);
    expect(made.out.trim()).toMatch(/^hk_\w{22}_\w{44}$/);
    expect(await move(shared)).toEqual({ code: 0, row: ['keys', '1', '0', '1', '0'] });
    expect(await move(shared)).toEqual({ code: 0, row: ['keys', '1', '1', '0', '0'] });
    const listed = await world.run(['keys', 'list', '--config', shared]);
    expect(listed.out).toContain(old.out.slice(0, 25));
    expect(listed.out).toContain(made.out.slice(0, 25));
    const verified = await world.run(['audit', 'verify', '--config', shared]);
    expect(verified.out).toStartWith('2 entries, intact.');
    world.remove();
  });
});
