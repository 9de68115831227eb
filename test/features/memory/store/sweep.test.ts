/** What SQLite does at once is small: removing events, which are overwritten, merging their index, giving pages back. */

import { Database } from 'bun:sqlite';
import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CheckedEvent, DEFAULT_LIMITS } from '../../../../src/features/memory/event.ts';
import { lookedUpTerms } from '../../../../src/features/memory/ranking/known-terms.ts';
import { readQuestion } from '../../../../src/features/memory/ranking/question.ts';
import { MemoryStore } from '../../../../src/features/memory/store/memory-store.ts';
import { inFile } from '../../../../src/features/memory/store/own-memory.ts';

const folder = mkdtempSync(join(tmpdir(), 'hopgate-sweep-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function openStore(path: string, limits: Partial<typeof DEFAULT_LIMITS> = {}) {
  const given = { limits: { ...DEFAULT_LIMITS, ...limits }, dedupeMs: 1000 };
  const store = new MemoryStore({ ...inFile(path).open(), ...given });
  await store.terms.prepare!();
  return store;
}

test('two hundred events are not removed in one go', async () => {
  const store = await openStore(join(folder, 'm.db'));
  const tags = Array.from({ length: 32 }, (_, i) => `tag ${i}`);
  const event = { time: 0, text: 'words', source: '', tags, importance: 0.5 };
  await store.add('s', Array(200).fill(event));
  expect((await store.erase('s'))?.events).toBe(200);
  let steps = 0;
  while (await store.sweep()) steps++;
  expect(steps).toBeGreaterThanOrEqual(20);
  store.db.close();
});

test('nothing is merged within a write, and the index stays merged', async () => {
  const path = join(folder, 'merged.db');
  const store = await openStore(path);
  for (let n = 0; n < 400; n++) {
    await store.add('s', [{ time: n, text: `word ${n}`, source: '', tags: [], importance: 0.5 }]);
  }
  const db = new Database(path, { readonly: true });
  const value = (sql: string) => db.query(sql).values()[0]![0];
  expect(value("SELECT v FROM words_config WHERE k = 'automerge'")).toBe(0);
  expect(value('SELECT count(DISTINCT segid) FROM words_idx')).toBeLessThan(100);
  db.close();
  store.db.close();
});

test('what a large write adds is merged after it', async () => {
  const path = join(folder, 'imported.db');
  const store = await openStore(path);
  for (let n = 0; n < 12; n++)
    await store.add(
      's',
      Array.from({ length: 300 }, () => wordy(n)),
    );
  const db = new Database(path, { readonly: true });
  const parts = db.query<{ n: number }, []>('SELECT count(DISTINCT segid) AS n FROM words_idx');
  expect(parts.get()!.n).toBeLessThanOrEqual(6);
  db.close();
  store.db.close();
});

test('a count that is kept is at most a twentieth off', async () => {
  const store = await openStore(join(folder, 'counts.db'));
  const question = readQuestion('boat', 0);
  const asked = { space: 's', question, lookedUp: lookedUpTerms(question), near: [] };
  let boats = 0;
  for (const more of [90, 30, 4, 4, 40, 200, 11]) {
    await store.add(
      's',
      Array.from({ length: more }, () => ({ ...wordy(1), text: 'a boat' })),
    );
    boats += more;
    const counted = (await store.terms.find(asked))!.eventCounts.get('boat')!;
    expect(counted).toBeLessThanOrEqual(boats);
    expect(counted).toBeGreaterThanOrEqual(boats * 0.95);
  }
  store.db.close();
});

test('a transaction that cuts the index into thousands of parts does not fill it', async () => {
  const store = await openStore(join(folder, 'many.db'), { events: 1e6, bytes: 1e9 });
  for (let n = 0; n < 30; n++) await store.add('t', [wordy(n)]);
  // Each event of a turn that is made anew removes an older one, and begins a part of its own.
  const captured = Array.from({ length: 4500 }, (_, n) => ({
    space: 's',
    began: Date.now(),
    event: { ...wordy(n), id: `mem_${n}` },
    turn: { name: `turn ${n >> 1}`, isGiven: true, prints: [] },
  }));
  // SQLite takes no more than 2,000 parts.
  expect(await store.capture(captured)).toEqual(captured.map(() => 'stored'));
  store.db.close();
}, 60_000);

const wordy = (n: number): CheckedEvent => ({
  time: n,
  text: `word${n} alpha${n % 97} beta${(n * 31) % 1013} gamma${n}`,
  source: '',
  tags: [],
  importance: 0.5,
});

/** Adds a space of so many events, removes it, and counts the steps that tidy the index. */
async function tidyingSteps(events: number): Promise<number> {
  const path = join(folder, `dead-${events}.db`);
  const store = await openStore(path, { events: 1e6 });
  const text = (n: number) => Array.from({ length: 30 }, (_, i) => `w${(n * 31 + i * 7) % 4001}`);
  const groups = Array.from({ length: events / 100 }, (_, at) => ({
    space: 's',
    owner: undefined,
    turn: undefined,
    events: Array.from({ length: 100 }, (_, i) => at * 100 + i).map((n) =>
      store.sealed.sealed('s', { ...wordy(n), text: text(n).join(' ') }),
    ),
  }));
  await store.writing(['s'], (write) => write.put('add', groups));
  await store.add('t', [wordy(0)]);
  await store.erase('s');
  let steps = 0;
  do {
    while (await store.sweep());
    for (let first = true; await store.terms.tidy!(first); first = false) steps++;
  } while (!(await store.isSwept()));
  const db = new Database(path, { readonly: true });
  expect(db.query('SELECT count(*) FROM memory_events').values()).toEqual([[1]]);
  expect(db.query('SELECT count(*) FROM memory_spaces').values()).toEqual([[1]]);
  expect(db.query("SELECT term FROM vocabulary WHERE term LIKE '%:w4%'").values()).toEqual([]);
  db.close();
  store.db.close();
  return steps;
}

test('a large erasure is not one step of the index: the more is dead, the more steps', async () => {
  const few = await tidyingSteps(1000);
  expect(await tidyingSteps(12_000)).toBeGreaterThan(few + 5);
}, 60_000);

test('pages are given back some at a time', async () => {
  const store = await openStore(join(folder, 'v.db'));
  const event = { time: 0, text: 'x'.repeat(8000), source: '', tags: [], importance: 0.5 };
  await store.add('s', Array(400).fill(event));
  await store.erase('s');
  do while (await store.sweep());
  while (!(await store.isSwept()));
  let steps = 0;
  while (await store.terms.vacuum!()) steps++;
  expect(steps).toBeGreaterThan(2);
  store.db.close();
});
