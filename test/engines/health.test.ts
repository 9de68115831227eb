/** What a running gateway and `hopgate doctor` say of shared engines: state, log, metric, and never a password. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { createWorld } from '../cli/world.ts';
import { HAS_CACHE, startCache } from '../support/engines/cache-servers.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  startPostgres,
} from '../support/engines/database-servers.ts';
import { freePort, type Server } from '../support/engines/processes.ts';
import { startInProcess } from '../support/in-process.ts';

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

test('engines that are away keep no gateway from being ready', async () => {
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
  await gateway.stop();
});

describe.skipIf(!HAS_CACHE || !HAS_POSTGRES)('doctor', () => {
  let cache: Server;
  let database: DatabaseServer;
  beforeAll(async () => {
    [cache, database] = await Promise.all([startCache(), startPostgres()]);
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
      ...Array.from({ length: 5 }, () => ['engine cache', 'ok']),
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
