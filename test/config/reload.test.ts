/** Reload and watch: a running gateway loads a changed file, and keeps its configuration when the file is broken. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../../src/config/config.ts';
import { type LoadOptions, loadConfig } from '../../src/config/load.ts';
import { type LiveConfig, liveConfig, type ReloadResult } from '../../src/config/reload.ts';
import { until } from '../support/until.ts';
import { config, env, PROVIDER } from './support.ts';

let folder: string;
let file: string;
let live: LiveConfig;
let options: LoadOptions;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hopgate-reload-'));
  file = join(folder, 'hopgate.yaml');
  writeFileSync(file, PROVIDER);
  options = { path: file, environment: env() };
  live = liveConfig(config(await loadConfig(options)), options);
});

afterEach(() => {
  live.close();
  rmSync(folder, { recursive: true });
});

describe('reload', () => {
  test('a valid file takes effect and subscribers are called, until they unsubscribe', async () => {
    const seen: number[] = [];
    const leave = live.subscribe((next) => seen.push(next.workers));
    writeFileSync(file, `${PROVIDER}workers: 3\n`);
    expect(await live.reload()).toMatchObject({ ok: true, restart: ['workers'] });
    expect(live.current.workers).toBe(3);
    leave();
    await live.reload();
    expect(seen).toEqual([3]);
  });

  test.each([
    ['broken', 'providers: ['],
    ['wrong', `${PROVIDER}wrkers: 3`],
    ['empty, as it is while an editor writes it', ''],
    ['without providers', 'workers: 2'],
  ])('the old configuration stays when the new one is %s', async (_, text) => {
    const before = live.current;
    let told = 0;
    live.subscribe(() => told++);
    writeFileSync(file, text);
    const result = await live.reload();
    expect(result.ok).toBe(false);
    if (!result.ok) expect(result.problems.length).toBeGreaterThan(0);
    expect(live.current).toBe(before);
    expect(told).toBe(0);
  });

  test('the old configuration stays when the file is gone', async () => {
    const before = live.current;
    rmSync(file);
    expect((await live.reload()).ok).toBe(false);
    expect(live.current).toBe(before);
    writeFileSync(file, PROVIDER);
  });

  test('changes that need a restart are named, compared with the start of the process', async () => {
    writeFileSync(file, `${PROVIDER}listen: 127.0.0.1:9\nmemory: { path: /x.db }\n`);
    await live.reload();
    expect(await live.reload()).toMatchObject({ restart: ['listen', 'memory.path'] });
  });

  const listenOn = (port: number) => (given: Config) => ({
    ...given,
    listen: { ...given.listen, port },
  });
  test.each<
    [flag: string, withFlags: (given: Config) => Config, change: string, restart: readonly string[]]
  >([
    ['--port', listenOn(9), 'retry: { attempts: 2 }', []],
    ['--port', listenOn(9), 'listen: 127.0.0.1:7', []],
    ['--port', listenOn(9), 'listen: 0.0.0.0:7\nauth: { keys: [a-key-of-the-door] }', ['listen']],
    ['--workers', (given) => ({ ...given, workers: 2 }), 'workers: 3', []],
  ])(
    'with %s, a change of what it sets needs no restart, and another one does (%#)',
    async (_, withFlags, change, restart) => {
      const initial = withFlags(config(await loadConfig(options)));
      const flagged = liveConfig(initial, options, undefined, withFlags);
      writeFileSync(file, `${PROVIDER}${change}\n`);
      expect(await flagged.reload()).toMatchObject({ ok: true, restart });
      flagged.close();
    },
  );
});

describe('watch', () => {
  test('a change before the watch begins is not missed', async () => {
    writeFileSync(file, `${PROVIDER}workers: 2\n`);
    const results: ReloadResult[] = [];
    live.watch((result) => results.push(result), { debounceMs: 10, pollMs: 1_000_000 });
    await until(() => results.length > 0);
    expect(live.current.workers).toBe(2);
  });

  test('a watch that begins after the end watches nothing', async () => {
    live.close();
    live.watch(() => undefined, { debounceMs: 10, pollMs: 20 });
    writeFileSync(file, `${PROVIDER}workers: 2\n`);
    await Bun.sleep(100);
    expect(live.current.workers).toBe(1);
  });

  test('a replaced file is noticed once', async () => {
    const results: ReloadResult[] = [];
    live.watch((result) => results.push(result), { debounceMs: 30 });
    writeFileSync(join(folder, 'new'), `${PROVIDER}workers: 4\n`);
    renameSync(join(folder, 'new'), file);
    await until(() => results.length > 0);
    expect(live.current.workers).toBe(4);
    await Bun.sleep(100);
    expect(results).toHaveLength(1);
  });

  test('a file written in place is noticed, and a broken one reported', async () => {
    const results: ReloadResult[] = [];
    live.watch((result) => results.push(result), { debounceMs: 30 });
    writeFileSync(file, 'providers: [');
    await until(() => results.length > 0);
    expect(results[0]).toMatchObject({ ok: false, file });
    writeFileSync(file, `${PROVIDER}workers: 5\n`);
    await until(() => live.current.workers === 5);
    expect(live.current.workers).toBe(5);
  });

  test('other files in the folder and a rewrite with the same content cause no reload', async () => {
    const results: ReloadResult[] = [];
    live.watch((result) => results.push(result), { debounceMs: 10 });
    writeFileSync(join(folder, 'other.txt'), 'x');
    writeFileSync(file, PROVIDER);
    await Bun.sleep(150);
    expect(results).toEqual([]);
  });

  test('another file that is written all the time does not hide a change', async () => {
    live.watch(() => undefined, { debounceMs: 150 });
    const writing = setInterval(() => appendFileSync(join(folder, 'gateway.log'), 'x'), 5);
    try {
      writeFileSync(file, `${PROVIDER}workers: 6\n`);
      await until(() => live.current.workers === 6);
    } finally {
      clearInterval(writing);
    }
  });

  test('a file that is written all the time is still reloaded', async () => {
    live.watch(() => undefined, { debounceMs: 150 });
    const writing = setInterval(() => writeFileSync(file, `${PROVIDER}workers: 6\n`), 5);
    try {
      await until(() => live.current.workers === 6);
    } finally {
      clearInterval(writing);
    }
  });

  test('a folder that is removed and created again is still watched', async () => {
    const results: ReloadResult[] = [];
    live.watch((result) => results.push(result), { debounceMs: 10, pollMs: 20 });
    rmSync(folder, { recursive: true });
    await until(() => results.some(({ ok }) => !ok));
    mkdirSync(folder);
    writeFileSync(file, `${PROVIDER}workers: 7\n`);
    await until(() => live.current.workers === 7);
    writeFileSync(file, `${PROVIDER}workers: 8\n`);
    await until(() => live.current.workers === 8);
  });

  test.each(['elsewhere', '.'])(
    'a change behind a link into %s is seen by the poll',
    async (to) => {
      const elsewhere = join(folder, to);
      mkdirSync(elsewhere, { recursive: true });
      writeFileSync(join(elsewhere, 'real.yaml'), PROVIDER);
      unlinkSync(file);
      symlinkSync(join(elsewhere, 'real.yaml'), file);
      live.watch(() => undefined, { debounceMs: 10, pollMs: 20 });
      writeFileSync(join(elsewhere, 'real.yaml'), `${PROVIDER}workers: 9\n`);
      await until(() => live.current.workers === 9);
    },
  );

  test('the swapped link of a ConfigMap is seen at once, though the file keeps its name', async () => {
    for (const [version, workers] of [
      ['..one', 1],
      ['..two', 10],
    ] as const) {
      mkdirSync(join(folder, version));
      writeFileSync(join(folder, version, 'h.yaml'), `${PROVIDER}workers: ${workers}\n`);
    }
    symlinkSync('..one', join(folder, '..data'));
    unlinkSync(file);
    symlinkSync('..data/h.yaml', file);
    // No look by the clock helps here.
    live.watch(() => undefined, { debounceMs: 10, pollMs: 1_000_000 });
    await Bun.sleep(50);
    symlinkSync('..two', join(folder, '..data_tmp'));
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
    await until(() => live.current.workers === 10);
  });
});
