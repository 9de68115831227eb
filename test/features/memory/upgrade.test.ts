/** Memories of the version before there were digests: opened, found in, and given digests as they are found. */

import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { MEMORY_TABLES } from '../../../src/features/memory/shared/tables.ts';
import { prepared } from '../../../src/state/sql/migrations.ts';
import { HAS_POSTGRES } from '../../support/engines/database-servers.ts';
import { until } from '../../support/until.ts';
import { inList, memories } from './support.ts';

const EVENTS = Array.from({ length: 40 }, (_, at) => ({
  text: at === 7 ? 'The boat is called Albatross.' : `The boat trip of day ${at} was calm.`,
  source: 'Ann',
  time: at * 60_000,
}));

describe('a file without digests', () => {
  const files = memories();
  const digests = (path: string) => {
    const db = new Database(path, { readonly: true });
    const { n } = db.query('SELECT count(*) AS n FROM digests').get() as { n: number };
    db.close();
    return n;
  };

  test('answers as one with digests, keeps a backup, and makes those that a question needs', async () => {
    const path = files.path();
    const before = files.open({ path });
    await before.book.add('s', EVENTS, inList);
    const expected = await before.memory.recall('s', { query: 'Albatross boat' });
    await before.memory.close();
    // What the migration adds is all that differs.
    const db = new Database(path);
    db.run('DROP TABLE digests');
    db.run('DROP TRIGGER digest_gone');
    db.run('DROP INDEX events_turn');
    db.run('ALTER TABLE events DROP COLUMN turn');
    db.run('PRAGMA user_version = 1');
    db.close();
    const after = files.open({ path });
    const found = await after.memory.recall('s', { query: 'Albatross boat' });
    expect(found.map(({ id, score }) => [id, score > 0])).toEqual(
      expected.map(({ id }) => [id, true]),
    );
    expect(digests(path)).toBe(EVENTS.length);
    expect(await Bun.file(`${path}.v1.backup`).exists()).toBe(true);
    expect(after.watch.problems).toEqual([]);
    await after.memory.erase('s');
    expect(digests(path)).toBe(0);
  });
});

describe.skipIf(!HAS_POSTGRES)('a database without digests', () => {
  const files = memories('shared');

  test('answers as one with digests, and gets them', async () => {
    const path = files.path();
    await prepared(files.database(path), 'memory', MEMORY_TABLES.slice(0, 1))();
    const given = EVENTS.map(({ text, source, time }, at) => ({
      space: 's',
      id: `mem_${at}`,
      time,
      body: Buffer.from(`\0${JSON.stringify({ text, source, tags: [] })}`).toString('base64'),
      tags: [],
      importance: 0.5,
      print: String(at),
      bytes: text.length,
      length: 7,
      terms: ['boat', ...(at === 7 ? ['albatross'] : [])],
    }));
    await files
      .database(path)
      .query(
        'SELECT hopgate.memory_put($1, $2, 100, 100000, 0, 0)',
        ['add', JSON.stringify(given)],
        5000,
      );
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
