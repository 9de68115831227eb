/** Descriptions on disk: stored over restarts, bounded, shared between processes, and never fatal. */

import { afterEach, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type DescriptionStoreOptions,
  openDescriptionStore,
} from '../../../src/features/vision/description-store.ts';

const dirs: string[] = [];
const newPath = () => {
  const dir = mkdtempSync(join(tmpdir(), 'hopgate-vision-'));
  dirs.push(dir);
  return join(dir, 'state', 'vision.db');
};
const open: { close(): void }[] = [];
const store = (options: DescriptionStoreOptions) => {
  const made = openDescriptionStore(options);
  open.push(made);
  return made;
};
afterEach(() => {
  for (const one of open.splice(0)) one.close();
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true, force: true });
});

describe('descriptions', () => {
  test('survive a restart, in a file that only its owner may read', () => {
    const path = newPath();
    const first = store({ path });
    expect(first.get('k')).toBeUndefined();
    expect(first.put('k', 'a cat')).toBe('a cat');
    first.close();
    expect(store({ path }).get('k')).toBe('a cat');
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test('never change once they are stored, by any process', () => {
    const path = newPath();
    const [one, two] = [store({ path }), store({ path })];
    expect(one.put('k', 'first')).toBe('first');
    expect(two.put('k', 'second')).toBe('first');
    expect([one.get('k'), two.get('k')]).toEqual(['first', 'first']);
    const memory = store({});
    memory.put('k', 'first');
    expect(memory.put('k', 'second')).toBe('first');
  });

  test('are removed least recently used first, in the file and in memory', () => {
    let now = 1_000_000_000_000;
    const path = newPath();
    const day = 25 * 3_600_000;
    const storedFields = () => {
      const fresh = store({ path, now: () => now });
      return ['a', 'b', 'c', 'd'].filter((key) => fresh.get(key) !== undefined);
    };
    const file = store({ path, rows: 3, memoryRows: 1, now: () => now });
    for (const key of ['a', 'b', 'c']) {
      file.put(key, key);
      now += 1;
    }
    now += day;
    expect(file.get('a')).toBe('a');
    file.put('d', 'd');
    expect(storedFields()).toEqual(['a', 'c', 'd']);
    const memory = store({ memoryRows: 2 });
    for (const key of ['a', 'b']) memory.put(key, key);
    memory.get('a');
    memory.put('c', 'c');
    expect(['a', 'b', 'c'].map((key) => memory.get(key))).toEqual(['a', undefined, 'c']);
  });

  test('an invalid file is left unchanged, and memory is used', () => {
    const path = newPath();
    store({ path }).close();
    writeFileSync(
      path,
      'this is no database, but it is long enough to be taken for one '.repeat(20),
    );
    const warnings: string[] = [];
    const broken = store({ path, warn: (message) => warnings.push(message) });
    expect(broken.persistent).toBe(false);
    expect(warnings).toHaveLength(1);
    broken.put('k', 'text');
    expect(broken.get('k')).toBe('text');
  });

  test('a directory that cannot be created is no error either', () => {
    const warnings: string[] = [];
    const broken = store({ path: '/proc/nowhere/x.db', warn: (message) => warnings.push(message) });
    expect([broken.persistent, warnings.length]).toEqual([false, 1]);
  });
});
