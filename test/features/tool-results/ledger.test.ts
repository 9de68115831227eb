/** The ledger of short results: bounded, stored over restarts, and never fatal. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  memoryShortResultLedger,
  openShortResultLedger,
} from '../../../src/features/tool-results/index.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hopgate-short-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));
const path = () => join(folder, 'state', 'short.db');

describe('in memory', () => {
  test('the least recently used entry goes first', () => {
    const ledger = memoryShortResultLedger(2);
    ledger.put('a', 1);
    ledger.put('b', 2);
    expect(ledger.limitOf('a')).toBe(1);
    ledger.put('c', 3);
    expect([ledger.limitOf('a'), ledger.limitOf('b'), ledger.limitOf('c')]).toEqual([
      1,
      undefined,
      3,
    ]);
  });
});

describe('in a file', () => {
  test('entries survive a restart, and only the owner can read the file', () => {
    const first = openShortResultLedger({ path: path() });
    first.put('a', 8192);
    first.put('b', 0);
    first.put('a', 4096);
    first.close();
    expect(statSync(path()).mode & 0o077).toBe(0);
    const second = openShortResultLedger({ path: path() });
    expect([second.limitOf('a'), second.limitOf('b'), second.limitOf('c')]).toEqual([
      4096,
      0,
      undefined,
    ]);
    second.close();
  });

  test('a timer writes entries without a close', async () => {
    const first = openShortResultLedger({ path: path(), flushAfter: 5 });
    first.put('a', 1);
    await Bun.sleep(60);
    const second = openShortResultLedger({ path: path() });
    expect(second.limitOf('a')).toBe(1);
    second.close();
    first.close();
  });

  test('the file stays within its limit, and recently used entries stay', () => {
    let now = 1000;
    const write = (...keys: string[]) => {
      const ledger = openShortResultLedger({ path: path(), rows: 3, now: () => now++ });
      for (const key of keys) ledger.put(key, 1);
      ledger.close();
    };
    write('a');
    write('b');
    write('c');
    write('a');
    write('d');
    const ledger = openShortResultLedger({ path: path(), rows: 3 });
    expect(['a', 'b', 'c', 'd'].map((key) => ledger.limitOf(key))).toEqual([1, undefined, 1, 1]);
    ledger.close();
  });

  test('a file that is not a database is reported once, and memory is used', () => {
    writeFileSync(join(folder, 'junk.db'), 'this is no database, and long enough to be told apart');
    const reported: string[] = [];
    const ledger = openShortResultLedger({
      path: join(folder, 'junk.db'),
      warn: (m) => reported.push(m),
    });
    ledger.put('a', 5);
    expect(ledger.limitOf('a')).toBe(5);
    ledger.close();
    expect(reported.length).toBe(1);
    expect(reported[0]).toContain('keeping it in memory');
  });

  test('after close, nothing is stored and nothing throws', () => {
    const ledger = openShortResultLedger({ path: path() });
    ledger.close();
    ledger.put('a', 1);
    ledger.close();
    expect(ledger.limitOf('a')).toBeUndefined();
  });
});
