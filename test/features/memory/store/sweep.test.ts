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

test('a transaction that cuts the index into thousands of parts does not fill it', () => {
  const limits = () => ({ ...DEFAULT_LIMITS, events: 1e6, bytes: 1e9 });
  const store = openMemoryStore({ path: join(folder, 'many.db'), limits });
  for (let n = 0; n < 30; n++) store.add('t', [wordy(n)]);
  // Each event of a turn that is made anew removes an older one, and begins a part of its own.
  const captured = Array.from({ length: 4500 }, (_, n) => ({
    space: 's',
    began: 1e9,
    event: wordy(n),
    turn: { name: `turn ${n >> 1}`, isGiven: true, prints: [] },
  }));
  // SQLite takes no more than 2,000 parts.
  expect(store.capture(captured, 1000)).toMatchObject({ stored: 4500 });
  store.close();
}, 60_000);

const wordy = (n: number) => ({
  time: n,
  text: `word${n} alpha${n % 97} beta${(n * 31) % 1013} gamma${n}`,
  source: '',
  tags: [],
  importance: 0.5,
});

/** Adds a space of so many events, removes it, and counts the steps that tidy the index. */
function tidyingSteps(events: number): number {
  const path = join(folder, `dead-${events}.db`);
  const store = openMemoryStore({ path, limits: () => ({ ...DEFAULT_LIMITS, events: 1e6 }) });
  const text = (n: number) => Array.from({ length: 30 }, (_, i) => `w${(n * 31 + i * 7) % 4001}`);
  store.inOne(() => {
    for (let n = 0; n < events; n += 100) {
      store.add(
        's',
        Array.from({ length: 100 }, (_, i) => ({ ...wordy(n + i), text: text(n + i).join(' ') })),
      );
    }
  });
  store.add('t', [wordy(0)]);
  store.forget('s', 1);
  let steps = 0;
  do {
    while (store.sweep());
    for (let first = true; store.termIndex.tidy(first); first = false) steps++;
  } while (!store.isSwept());
  const db = new Database(path, { readonly: true });
  expect(db.query('SELECT count(*) FROM events').values()).toEqual([[1]]);
  expect(db.query('SELECT count(*) FROM spaces').values()).toEqual([[1]]);
  expect(db.query("SELECT term FROM vocabulary WHERE term LIKE '%:w4%'").values()).toEqual([]);
  db.close();
  store.close();
  return steps;
}

test('a large erasure is not one step of the index: the more is dead, the more steps', () => {
  const few = tidyingSteps(1000);
  expect(tidyingSteps(12_000)).toBeGreaterThan(few + 5);
}, 60_000);

test('pages are given back some at a time', () => {
  const store = openMemoryStore({ path: join(folder, 'v.db'), limits: () => DEFAULT_LIMITS });
  const event = { time: 0, text: 'x'.repeat(8000), source: '', tags: [], importance: 0.5 };
  store.add('s', Array(400).fill(event));
  store.forget('s', 1);
  do while (store.sweep());
  while (!store.isSwept());
  let steps = 0;
  while (store.vacuum()) steps++;
  expect(steps).toBeGreaterThan(2);
  store.close();
});
