/** Moving stored responses between a file and a real Postgres, both ways: all of it, once, and nothing that was removed. */

import { Database } from 'bun:sqlite';
import { beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RESPONSES, ResponseStore } from '../../../src/features/response-store/index.ts';
import { responsesMove } from '../../../src/features/response-store/move.ts';
import type { StoredResponse } from '../../../src/features/response-store/stored-response.ts';
import type { Sql } from '../../../src/state/engines/engine.ts';
import type { PostgresDatabase } from '../../../src/state/engines/postgres.ts';
import { nameHash, ReplicaErasures } from '../../../src/state/erasures.ts';
import type { MoveDirection } from '../../../src/state/move/paged-move.ts';
import { openPostgres } from '../../../src/state/sql/postgres.ts';
import { textSeal } from '../../../src/state/text-seal.ts';
import { HAS_BOUNCER, HAS_POSTGRES, startBouncer } from '../../support/engines/database-servers.ts';
import { countsOf, cutAt, dumpOf, filesIn, moveSetup } from '../../support/moves.ts';
import { oldFile } from '../../support/old-responses.ts';
import { databaseOn } from '../../support/replica-responses.ts';
import { conversation, fileStore, itemText, storedRow } from '../../support/stored-rows.ts';

const SECRET = 'a secret of the tests, long enough to seal texts';
const LONG = 20_000;

describe.skipIf(!HAS_POSTGRES)('responses that are moved', () => {
  const setup = moveSetup();
  let database: PostgresDatabase;
  let folder: string;
  let path: string;
  beforeEach(async () => {
    database = await setup.emptyDatabase();
    folder = setup.newFolder();
    path = join(folder, 'state', 'responses.db');
  });

  const move = (to: MoveDirection, through: Sql = database, at = path, secret = SECRET) =>
    responsesMove({ database: through, seal: textSeal([secret]), path: at, to });
  const copy = (to: MoveDirection, through?: Sql, at?: string) =>
    move(to, through, at).copy(() => {});
  /** Uses the file as a gateway does. */
  async function inFile<T>(use: (store: ResponseStore) => T | Promise<T>, at = path): Promise<T> {
    const store = fileStore(at);
    try {
      return await use(store);
    } finally {
      await store.close();
    }
  }
  const engineStore = (secret: string) =>
    new ResponseStore({
      database: () => openPostgres(database, RESPONSES),
      others: true,
      seal: textSeal([secret]),
    });
  async function inEngines<T>(use: (store: ResponseStore) => Promise<T>): Promise<T> {
    const store = engineStore(SECRET);
    try {
      return await use(store);
    } finally {
      await store.close();
    }
  }
  const keep = (...rows: readonly StoredResponse[]) =>
    inFile((store) => {
      for (const row of rows) store.put(row);
    });
  const many = (count: number, name = 'r') =>
    Array.from({ length: count }, (_, at) =>
      storedRow(`${name}${at}`, at % 3 === 0 ? undefined : `${name}${at - 1}`),
    );
  const counts = (to: MoveDirection, at = path) => countsOf(move(to, database, at));
  const NOTHING = { items: 0, missing: 0, conflicts: 0 };

  test('conversations and items of the file are found in the engines, by their owners alone', async () => {
    await keep(
      storedRow('a1'),
      storedRow('a2', 'a1', { keeper: 'vendor', space: nameHash('ann') }),
      storedRow('b1', undefined, { owner: 'bob' }),
    );
    expect(await counts('engines')).toEqual({ items: 3, missing: 3, conflicts: 0 });
    expect(await copy('engines')).toBe(3);
    expect(await counts('engines')).toEqual({ items: 3, missing: 0, conflicts: 0 });
    await inEngines(async (store) => {
      expect(await conversation(store, 'a2')).toEqual(['in a1', 'to a1', 'in a2', 'to a2']);
      expect(await itemText(store, 'msg_a1')).toBe('to a1');
      expect(await conversation(store, 'b1')).toBe('missing b1');
      expect(await conversation(store, 'b1', 'bob')).toEqual(['in b1', 'to b1']);
      expect(await conversation(store, 'a1', 'bob')).toBe('missing a1');
      const reads = await store.fetch({ responses: ['a2'] }, '');
      const { began: _, ...found } = reads.get('a2', '')!;
      expect(found).toEqual(
        storedRow('a2', 'a1', { keeper: 'vendor', space: nameHash('ann') }) as typeof found,
      );
    });
  });

  test('a second copy writes nothing, and a third only what came in between', async () => {
    await keep(...many(7));
    expect(await copy('engines')).toBe(7);
    const before = await dumpOf(database);
    expect(await copy('engines')).toBe(0);
    expect(await dumpOf(database)).toBe(before);
    await keep(storedRow('later', 'r6'));
    expect(await counts('engines')).toEqual({ items: 8, missing: 1, conflicts: 0 });
    expect(await copy('engines')).toBe(1);
    await inEngines(async (store) => {
      expect(await conversation(store, 'later')).toEqual([
        'in r6',
        'to r6',
        'in later',
        'to later',
      ]);
    });
  });

  test('a comparison makes no file and no table, and leaves all bytes as they are', async () => {
    expect(await counts('engines')).toEqual(NOTHING);
    expect(await counts('embedded')).toEqual(NOTHING);
    expect(existsSync(join(folder, 'state'))).toBe(false);
    await keep(...many(3));
    const before = [filesIn(folder), await dumpOf(database)];
    await counts('engines');
    await counts('embedded');
    expect([filesIn(folder), await dumpOf(database)]).toEqual(before);
    expect(before[1]).toBe('');
    // While a gateway has the file open, too.
    await inFile(async (store) => {
      store.put(storedRow('open'));
      await store.flush();
      const open = filesIn(folder);
      expect(await counts('engines')).toEqual({ items: 4, missing: 4, conflicts: 0 });
      expect(filesIn(folder)).toEqual(open);
    });
  });

  test('a copy changes nothing in the file', async () => {
    await keep(...many(5));
    const before = filesIn(folder);
    await copy('engines');
    expect(filesIn(folder)).toEqual(before);
  });

  for (const when of ['before', 'after'] as const) {
    test(`a copy that is cut ${when} the end of a batch goes on where it was, and writes each once`, async () => {
      await keep(...many(150));
      // The first three make the tables; this is the second of three batches.
      const cut = cutAt(database, 5, when);
      await expect(copy('engines', cut)).rejects.toThrow('cut');
      const { missing } = await counts('engines');
      expect(missing).toBe(when === 'before' ? 86 : 22);
      expect(await copy('engines')).toBe(missing);
      expect(await counts('engines')).toEqual({ items: 150, missing: 0, conflicts: 0 });
      const [row] = await database.query<{ n: number }>(
        'SELECT count(*) AS n FROM hopgate.responses',
        [],
        LONG,
      );
      expect(row!.n).toBe(150);
    });
  }

  test('what was deleted in the engines between two copies does not come back', async () => {
    await keep(storedRow('one'), storedRow('two'));
    await copy('engines');
    await inEngines(async (store) => {
      expect(await store.delete('one', '')).toBe(true);
    });
    const { missing, notes } = await move('engines').compare();
    expect(missing).toBe(0);
    expect(notes).toEqual(['1 were removed there, and are not copied again.']);
    expect(await copy('engines')).toBe(0);
    // Also when the deletion itself is forgotten, and when it went by the limits.
    await database.query('DELETE FROM hopgate.response_deletions', [], LONG);
    await database.query("DELETE FROM hopgate.responses WHERE id = 'two'", [], LONG);
    expect(await copy('engines')).toBe(0);
    await inEngines(async (store) => {
      expect(await conversation(store, 'one')).toBe('missing one');
    });
  });

  test('what was made with a space does not come after the space was erased in the engines', async () => {
    const erasures = new ReplicaErasures({
      database,
      cache: undefined,
      positionPath: join(folder, 'erasures.json'),
      onProblem() {},
    });
    const now = Math.floor(Date.now() / 1000);
    await keep(
      storedRow('of-ann', undefined, { space: nameHash('ann'), created: now }),
      storedRow('of-bea', undefined, { space: nameHash('bea'), created: now }),
    );
    await erasures.note('ann');
    const { missing, notes } = await move('engines').compare();
    expect(missing).toBe(1);
    expect(notes).toEqual(['1 are not copied: their memory space was erased there.']);
    expect(await copy('engines')).toBe(1);
    expect(await dumpOf(database)).not.toContain('of-ann');
    await erasures.close();
  });

  test('what came back into a new file and was removed there is counted once', async () => {
    await keep(storedRow('one'), storedRow('two'));
    await copy('engines');
    rmSync(join(folder, 'state'), { recursive: true });
    expect(await copy('embedded')).toBe(2);
    await inFile((store) => store.delete('one', ''));
    expect((await move('engines').compare()).notes!.join()).toStartWith(
      '1 that were on both sides',
    );
  });

  test('what was removed on this machine after a copy is told, and stays where it is', async () => {
    await keep(storedRow('one'), storedRow('two'));
    await copy('engines');
    await inFile((store) => store.delete('one', ''));
    const { items, missing, notes } = await move('engines').compare();
    expect([items, missing]).toEqual([1, 0]);
    expect(notes).toEqual([
      '1 that were on both sides are not on this machine any more, but still there: delete there what must not stay.',
    ]);
    expect(await copy('engines')).toBe(0);
  });

  test('texts are sealed in the table', async () => {
    await keep(storedRow('secret-words'));
    await copy('engines');
    const all = await dumpOf(database);
    expect(all).toContain('secret-words');
    expect(all).not.toContain('in secret-words');
    expect(all).not.toContain('to secret-words');
  });

  test('a conversation is pruned when it would have been pruned here, and is kept whole', async () => {
    const old = Date.now() - 20 * 86_400_000;
    await keep(...many(3));
    const file = new Database(path);
    file.run('UPDATE response_threads SET used = ?', [old]);
    file.close();
    await copy('engines');
    const threads = await database.query<{ used: number }>(
      'SELECT extract(epoch FROM used)::float8 * 1000 AS used FROM hopgate.response_threads',
      [],
      LONG,
    );
    expect(threads).toHaveLength(1);
    expect(Math.abs(threads[0]!.used - old)).toBeLessThan(60_000);
    // And back into an empty file.
    const other = join(folder, 'other', 'responses.db');
    expect(await copy('embedded', database, other)).toBe(3);
    const back = new Database(other, { readonly: true });
    const rows = back
      .query(
        'SELECT used, count(*) AS rows FROM response_threads t JOIN responses r ON r.thread = t.id GROUP BY t.id',
      )
      .all() as {
      used: number;
      rows: number;
    }[];
    back.close();
    expect(rows).toHaveLength(1);
    expect(rows[0]!.rows).toBe(3);
    expect(Math.abs(rows[0]!.used - old)).toBeLessThan(60_000);
  });

  test('the way back gives the file what the engines have, once, and what was deleted here does not come again', async () => {
    await inEngines(async (store) => {
      for (const row of many(4)) store.put(row);
      store.put(storedRow('of-bob', undefined, { owner: 'bob', space: nameHash('bob') }));
    });
    expect(await counts('embedded')).toEqual({ items: 5, missing: 5, conflicts: 0 });
    expect(existsSync(path)).toBe(false);
    expect(await copy('embedded')).toBe(5);
    expect(await counts('embedded')).toEqual({ items: 5, missing: 0, conflicts: 0 });
    await inFile(async (store) => {
      expect(await conversation(store, 'r2')).toHaveLength(6);
      expect(await itemText(store, 'msg_r1')).toBe('to r1');
      expect(await conversation(store, 'of-bob')).toBe('missing of-bob');
      expect(await conversation(store, 'of-bob', 'bob')).toEqual(['in of-bob', 'to of-bob']);
      await store.delete('r3', '');
      await store.eraseSpace('bob');
    });
    expect(await copy('embedded')).toBe(0);
    const { missing, notes } = await move('embedded').compare();
    expect(missing).toBe(0);
    expect(notes?.[0]).toBe('2 were removed on this machine, and are not copied again.');
  });

  test('the way back tells of what the old file still has although it was deleted in the engines', async () => {
    await keep(storedRow('one'), storedRow('two'));
    await copy('engines');
    await inEngines(async (store) => {
      await store.delete('one', '');
    });
    const { missing, notes } = await move('embedded').compare();
    expect(missing).toBe(0);
    expect(notes).toEqual([
      `1 of the file of this machine were removed in the engines: put ${path} away before the copy, so that they do not come back.`,
    ]);
  });

  test('two machines add what they have, and a conversation goes on over both', async () => {
    await keep(storedRow('one'));
    await copy('engines');
    const other = join(folder, 'other', 'responses.db');
    await copy('embedded', database, other);
    await inFile((store) => store.put(storedRow('two', 'one')), other);
    await inFile((store) => store.put(storedRow('three')), other);
    expect(await copy('engines', database, other)).toBe(2);
    await inEngines(async (store) => {
      expect(await conversation(store, 'two')).toEqual(['in one', 'to one', 'in two', 'to two']);
    });
    const [row] = await database.query<{ n: number }>(
      "SELECT count(DISTINCT thread) AS n FROM hopgate.responses WHERE id IN ('one', 'two')",
      [],
      LONG,
    );
    expect(row!.n).toBe(1);
  });

  test('rows that were sealed with another secret are told and keep none of the others back', async () => {
    await inEngines(async (store) => store.put(storedRow('mine')));
    const other = engineStore('another secret, as long as the first');
    other.put(storedRow('aaa'));
    await other.close();
    await expect(copy('embedded')).rejects.toThrow(
      '1 cannot be opened: is the secret that sealed them in engines.seal?',
    );
    await inFile(async (store) => {
      expect(await conversation(store, 'mine')).toEqual(['in mine', 'to mine']);
    });
  });

  test('an id that the database cannot hold keeps none of the others back', async () => {
    await keep(
      storedRow('one'),
      storedRow('x'.repeat(600)),
      storedRow('nul\0'),
      storedRow('two', 'one'),
    );
    expect(await copy('engines')).toBe(2);
    const { items, missing, notes } = await move('engines').compare();
    expect([items, missing, notes]).toEqual([2, 0, ['2 have ids that the database cannot hold.']]);
  });

  test.skipIf(!HAS_BOUNCER)('a copy goes through PgBouncer', async () => {
    const bouncer = await startBouncer(setup.server);
    const pooled = databaseOn(bouncer.port);
    await keep(...many(70));
    expect(await copy('engines', pooled)).toBe(70);
    expect((await move('engines', pooled).compare()).missing).toBe(0);
    expect(await copy('embedded', pooled, join(folder, 'other.db'))).toBe(70);
    await pooled.close();
    await bouncer.stop();
  });

  test('a file of a newer version, and one that is no database, are refused with their names', async () => {
    await keep(storedRow('one'));
    const file = new Database(path);
    file.run('PRAGMA user_version = 99');
    file.close();
    await expect(move('engines').compare()).rejects.toThrow(
      `${path} cannot be read: a newer version of hopgate made it (schema 99, this one knows 4)`,
    );
    const broken = join(folder, 'broken.db');
    writeFileSync(
      broken,
      'this is no database at all, but it is long enough to look like one'.repeat(20),
    );
    await expect(move('engines', database, broken).compare()).rejects.toThrow(
      `${broken} cannot be read: file is not a database`,
    );
  });

  test('a file of version 3 is moved, and stays as it is', async () => {
    oldFile(path);
    const before = filesIn(folder);
    expect(await copy('engines')).toBe(5);
    expect(filesIn(folder)).toEqual(before);
    await inEngines(async (store) => {
      expect(await conversation(store, 'resp_b')).toEqual([
        'in resp_a',
        'to resp_a',
        'in resp_b',
        'to resp_b',
      ]);
    });
  });
});
