/** What SQLite does at once is small: removing events, which are overwritten, merging their index, giving pages back. */

import { Database } from 'bun:sqlite';
import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEFAULT_LIMITS } from '../../../../src/features/memory/event.ts';
import { openMemoryStore } from '../../../../src/features/memory/store/memory-store.ts';

const folder = mkdtempSync(join(tmpdir(), 'hopgate-sweep-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('two hundred events are not removed in one go', () => {
  const store = openMemoryStore({ path: join(folder, 'm.db'), limits: () => DEFAULT_LIMITS });
  const tags = Array.from({ length: 32 }, (_, i) => `tag ${i}`);
  const event = { time: 0, text: 'words', source: '', tags, importance: 0.5 };
  store.add('s', Array(200).fill(event));
  expect(store.forget('s', 1)).toBe(200);
  let steps = 0;
  while (store.sweep()) steps++;
  expect(steps).toBeGreaterThanOrEqual(20);
  store.close();
});

test('nothing is merged within a write, and the index stays merged', () => {
  const path = join(folder, 'merged.db');
  const store = openMemoryStore({ path, limits: () => DEFAULT_LIMITS });
  for (let n = 0; n < 400; n++) {
    store.add('s', [{ time: n, text: `word ${n}`, source: '', tags: [], importance: 0.5 }]);
  }
  const db = new Database(path, { readonly: true });
  const value = (sql: string) => db.query(sql).values()[0]![0];
  expect(value("SELECT v FROM words_config WHERE k = 'automerge'")).toBe(0);
  expect(value('SELECT count(DISTINCT segid) FROM words_idx')).toBeLessThan(100);
  db.close();
  store.close();
});

test('pages are given back some at a time', () => {
  const store = openMemoryStore({ path: join(folder, 'v.db'), limits: () => DEFAULT_LIMITS });
  const event = { time: 0, text: 'x'.repeat(8000), source: '', tags: [], importance: 0.5 };
  store.add('s', Array(400).fill(event));
  store.forget('s', 1);
  while (store.sweep());
  let steps = 0;
  while (store.vacuum()) steps++;
  expect(steps).toBeGreaterThan(2);
  store.close();
});
