/** The watch of an engine that answers pings and serves nothing: it is told once, and asked less and less often. */

import { afterEach, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EngineAway, type EngineState } from '../../../src/state/engines/engine.ts';
import { EngineWatch } from '../../../src/state/engines/watch.ts';
import { until } from '../../support/until.ts';

const LONG = 5000;
const opened: EngineWatch[] = [];
afterEach(() => {
  for (const one of opened.splice(0)) one.close();
});

function watching(steadyMs: number) {
  const told: EngineState['status'][] = [];
  let pings = 0;
  const watch = new EngineWatch({
    name: 'database',
    ping: async () => {
      pings++;
    },
    isAway: () => true,
    onChange: ({ status }) => told.push(status),
    pingMs: 1,
    steadyMs,
  });
  opened.push(watch);
  const refused = () =>
    watch.use(LONG, () => Promise.reject(new Error('full'))).catch((thrown: unknown) => thrown);
  const served = () => watch.use(LONG, async () => {});
  return { watch, told, refused, served, pings: () => pings };
}

test('an engine that answers pings and refuses every call is told as away twice at most, however often', async () => {
  const { watch, told, refused, served, pings } = watching(LONG);
  await served();
  for (let i = 0; i < 8; i++) {
    expect(await refused()).toBeInstanceOf(EngineAway);
    await until(() => watch.state.status === 'up');
  }
  expect(pings()).toBe(8);
  expect(told).toEqual(['up', 'down', 'up', 'down']);
});

test('one that serves again after that is told as back once it has stayed', async () => {
  const { watch, told, refused, served } = watching(50);
  await served();
  await refused();
  await until(() => watch.state.status === 'up');
  await refused();
  await until(() => told.length === 5);
  expect(told).toEqual(['up', 'down', 'up', 'down', 'up']);
  await served();
});

test('the state is always that of now, also of an engine of which nothing is told', async () => {
  const { watch, refused, served } = watching(LONG);
  await served();
  for (let i = 0; i < 3; i++) {
    await refused();
    expect(watch.state).toMatchObject({ status: 'down', message: 'full' });
    await until(() => watch.state.status === 'up');
    expect(watch.state.message).toBeUndefined();
  }
});

const NO_PORT = 1;
test('a cache whose client has given up is away for the reason of its connection, in the compiled program too', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hopgate-valkey-'));
  const entry = join(folder, 'ask.ts');
  const client = import.meta.resolve('../../../src/state/engines/valkey.ts').replace('file://', '');
  writeFileSync(
    entry,
    `import { ValkeyCache } from ${JSON.stringify(client)};
     const cache = new ValkeyCache({ form: 'single', nodes: [{ host: '127.0.0.1', port: ${NO_PORT} }], db: 0, tls: false } as never, () => {});
     await cache.publish('c', 'm', 5000).catch(() => {});
     console.log(JSON.stringify(cache.state));
     process.exit(0);`,
  );
  // As build.ts shortens names.
  const minify = { whitespace: true, syntax: true, identifiers: true, keepNames: true };
  const built = await Bun.build({ entrypoints: [entry], target: 'bun', outdir: folder, minify });
  expect(built.success).toBe(true);
  const { stdout } = Bun.spawnSync([process.execPath, join(folder, 'ask.js')]);
  const { status, message } = JSON.parse(stdout.toString()) as EngineState;
  expect([status, message]).toEqual(['down', expect.stringContaining('ECONNREFUSED')]);
  rmSync(folder, { recursive: true, force: true });
});
