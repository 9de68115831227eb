/** Memories of versions before: nothing of them is lost, and they answer as they did. */

import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { embedder } from '../../../src/features/memory/store/embedder.ts';
import { MEMORY_SCHEMA } from '../../../src/features/memory/store/schema.ts';
import { prepared } from '../../../src/state/sql/migrations.ts';
import type { SqlValue } from '../../../src/state/sql/sql.ts';
import { openSqlite } from '../../../src/state/sql/sqlite.ts';
import { HAS_POSTGRES } from '../../support/engines/database-servers.ts';
import { copyOldFile } from '../../support/old-files.ts';
import { until } from '../../support/until.ts';
import { memories } from './support.ts';

/** As in the files. */
const BEGAN = Date.parse('2026-11-01T12:00:00Z');
const NOW = BEGAN + 86_400_000;

function rowsOf(path: string, sql: string): readonly Record<string, unknown>[] {
  const db = new Database(path, { readonly: true });
  const rows = db.query<Record<string, unknown>, []>(sql).all();
  db.close();
  return rows;
}

const EVENTS = Array.from({ length: 40 }, (_, at) => ({
  text: at === 7 ? 'The boat is called Albatross.' : `The boat trip of day ${at} was calm.`,
  source: 'Ann',
  time: at * 60_000,
}));

/** It has 27 events of ann, one of bob, and vectors of all. */
describe('a file of version 1', () => {
  const events = 27;
  const files = memories();
  const vectors = embedder({
    name: 'p/m',
    model: 'm',
    timeoutMs: 10_000,
    onFailure() {},
    post: async ({ input }) => {
      const texts = input as readonly string[];
      // All events have theirs.
      expect(texts).toEqual([expect.not.stringContaining('boat trip')]);
      const sign = (text: string) => (/Albatross|ship/.test(text) ? 1 : -1);
      const valueAt = (text: string, i: number) => sign(text) * (i % 2 ? 1 : 0.5) + i / 100;
      const vector = (text: string) => Array.from({ length: 64 }, (_, i) => valueAt(text, i));
      return { data: texts.map((text) => ({ embedding: vector(text) })) };
    },
  });
  function opened() {
    const path = files.path();
    mkdirSync(dirname(path), { recursive: true });
    copyOldFile('memory-1', path);
    return { path, ...files.open({ path, embedder: vectors, now: () => NOW }) };
  }

  test('has all its events, finds as before, and takes new ones', async () => {
    const { path, memory, book, watch, texts } = opened();
    expect(await book.spaces('', 10)).toEqual([
      { space: 'ann', events, waiting: 0 },
      { space: 'bob', events: 1, waiting: 0 },
    ]);
    const { events: all } = await book.list('ann', { limit: 100, order: 'asc' });
    expect(all.slice(0, 2)).toEqual([
      {
        id: 'mem_a0',
        time: BEGAN + 60_000,
        text: 'The boat is called Albatross.',
        source: 'Ann',
        tags: ['sea', '船'],
        importance: 0.9,
      },
      expect.objectContaining({ id: 'mem_a1', text: 'The boat trip of day 0 was calm.', tags: [] }),
    ]);
    expect((await book.get('ann', 'mem_a26'))!.text).toBe(
      'A “quoted” text\nwith two lines, a \\ and a \u0001 mark 🎂.',
    );
    const tagged = await book.list('ann', { limit: 9, order: 'asc', tag: '船' });
    expect(tagged.events.map(({ id }) => id)).toEqual(['mem_a0']);
    // In the order of the version that wrote the file; the events around a hit count for more since then.
    const found = await memory.recall('ann', { query: 'what is the boat called?', limit: 3 });
    expect(found.map(({ id }) => id)).toEqual(['mem_a0', 'mem_a1', 'mem_a2']);
    expect(found[0]!.score).toBe(0.6966);
    expect((await memory.recall('ann', { query: '过敏' }))[0]!.text).toBe('我对花生过敏。');
    expect(watch.problems).toEqual([]);
    expect(await Bun.file(`${path}.v1.backup`).exists()).toBe(true);
    // An erased space does not come back, and a turn takes the place of what it was before.
    await memory.capture('gone', [{ text: 'late' }], BEGAN);
    const turn = { name: 'turn 1', isGiven: true };
    await memory.capture('ann', [{ text: 'I moved to Oslo.', source: 'Ann' }], undefined, turn);
    expect(await texts('gone')).toEqual([]);
    expect((await texts('ann')).filter((text) => text.startsWith('I moved'))).toEqual([
      'I moved to Oslo.',
    ]);
    expect(await memory.erase('ann')).toBe(events + 1);
    expect(await book.spaces('', 10)).toEqual([{ space: 'bob', events: 1, waiting: 0 }]);
  });

  test('what a move wrote into it is known, and its digests are made as they are found', async () => {
    const { path, memory, watch } = opened();
    const digests = () => rowsOf(path, 'SELECT count(digest) AS n FROM memory_events')[0]!.n;
    await memory.recall('ann', { query: 'boat', limit: 30 });
    await until(() => digests() === events);
    expect(rowsOf(path, 'SELECT kind, id, form, origin FROM moved_items')).toEqual([
      { kind: 'memory', id: 'mem_b0', form: 'as it was moved', origin: '' },
    ]);
    const sums = `SELECT (SELECT bytes FROM memory_total) AS bytes, (SELECT sum(bytes) FROM memory_events) AS held`;
    const [{ bytes, held }] = rowsOf(path, sums) as [{ bytes: number; held: number }];
    expect(bytes).toBe(held);
    // What its process did not finish is swept.
    await until(
      () => rowsOf(path, 'SELECT count(*) AS n FROM memory_spaces WHERE name IS NULL')[0]!.n === 0,
    );
    expect(watch.problems).toEqual([]);
  });
});

test('a file of version 1 gets the tables of a new one', () => {
  const files = memories();
  const [old, anew] = [files.path(), files.path()];
  mkdirSync(dirname(old), { recursive: true });
  copyOldFile('memory-1', old);
  const tables = [old, anew].map((path) => {
    openSqlite(MEMORY_SCHEMA, { path }).close();
    return rowsOf(
      path,
      `SELECT t.name, c.name AS column, c.type, c.pk FROM sqlite_master t JOIN pragma_table_info(t.name) c
         WHERE t.name NOT LIKE 'sqlite_%' ORDER BY 1, c.cid`,
    );
  });
  expect(tables[0]!.length).toBeGreaterThan(40);
  expect(tables[0]).toEqual(tables[1]!);
});

describe.skipIf(!HAS_POSTGRES)('a database without digests', () => {
  const files = memories('shared');

  test('answers as one with digests, and gets them', async () => {
    const path = files.path();
    await prepared(files.database(path), 'memory', MEMORY_SCHEMA.postgres.slice(0, 1))();
    const query = (sql: string, values: readonly SqlValue[] = []) =>
      files.database(path).query<{ id: number }>(sql, values, 5000);
    const bytes = EVENTS.reduce((sum, { text }) => sum + text.length, 0);
    const [space] = await query(
      "INSERT INTO hopgate.memory_spaces (name, events, bytes, length) VALUES ('s', $1, $2, $3) RETURNING id",
      [EVENTS.length, bytes, 7 * EVENTS.length],
    );
    const { id } = space!;
    for (const [at, { text, source, time }] of EVENTS.entries()) {
      const body = Buffer.from(`\0${JSON.stringify({ text, source, tags: [] })}`);
      const terms = ['boat', ...(at === 7 ? ['albatross'] : [])].map((term) => `${id}:${term}`);
      await query(
        `INSERT INTO hopgate.memory_events
            (space, id, time, body, tags, importance, print, bytes, length, terms)
          VALUES ($1, $2, $3, $4, '{}', 0.5, $5, $6, 7, string_to_array($7, ' '))`,
        [id, `mem_${at}`, time, body, String(at), text.length, terms.join(' ')],
      );
    }
    await query("INSERT INTO hopgate.memory_terms VALUES ($1, 'boat', $2), ($1, 'albatross', 1)", [
      id,
      EVENTS.length,
    ]);
    await query('UPDATE hopgate.memory_total SET bytes = $1', [bytes]);
    const { recalled, watch } = files.open({ path });
    expect((await recalled('s', 'Albatross boat'))[0]).toBe('The boat is called Albatross.');
    expect(watch.problems).toEqual([]);
    await until(async () => {
      const [row] = await files
        .database(path)
        .query<{ n: number }>('SELECT count(digest) AS n FROM hopgate.memory_events', [], 5000);
      return row!.n === EVENTS.length;
    });
    expect((await recalled('s', 'Albatross boat'))[0]).toBe('The boat is called Albatross.');
  });
});
