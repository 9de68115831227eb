/** Moving the memory between a file and a real Postgres, both ways: all of it, once, and nothing that was erased. */

import { Database } from 'bun:sqlite';
import { beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DEFAULT_LIMITS } from '../../../src/features/memory/event.ts';
import { memoryMove } from '../../../src/features/memory/move.ts';
import { type Embedder, embedder } from '../../../src/features/memory/store/embedder.ts';
import { databaseMemory, embeddedMemory } from '../../../src/features/memory/store/own-memory.ts';
import type { Sql } from '../../../src/state/engines/engine.ts';
import type { PostgresDatabase } from '../../../src/state/engines/postgres.ts';
import type { MoveDirection } from '../../../src/state/move/paged-move.ts';
import { textSeal } from '../../../src/state/text-seal.ts';
import { HAS_POSTGRES } from '../../support/engines/database-servers.ts';
import { beforeNth, countsOf, cutAt, dumpOf, filesIn, moveSetup } from '../../support/moves.ts';
import { until } from '../../support/until.ts';
import { asked, inList, SECRET, watched } from './support.ts';

const LONG = 20_000;

describe.skipIf(!HAS_POSTGRES)('a memory that is moved', () => {
  const setup = moveSetup();
  let database: PostgresDatabase;
  let folder: string;
  let path: string;
  beforeEach(async () => {
    database = await setup.emptyDatabase();
    folder = setup.newFolder();
    path = join(folder, 'memory.db');
  });

  const move = (
    to: MoveDirection,
    through: Sql = database,
    at = path,
    limits: Partial<typeof DEFAULT_LIMITS> = {},
  ) =>
    memoryMove({
      database: through,
      seal: textSeal([SECRET]),
      limits: { ...DEFAULT_LIMITS, ...limits },
      path: at,
      to,
    });
  const copy = (to: MoveDirection, through?: Sql, at?: string) =>
    move(to, through, at).copy(() => {});
  const counts = (to: MoveDirection, at = path) => countsOf(move(to, database, at));
  type Memory = ReturnType<typeof asked>;
  const options = (vectors?: Embedder) => {
    const observer = watched();
    return { limits: DEFAULT_LIMITS, dedupeMs: 0, observer, ...(vectors && { embedder: vectors }) };
  };
  async function using<T>(
    memory: ReturnType<typeof embeddedMemory>,
    use: (memory: Memory) => Promise<T>,
  ): Promise<T> {
    try {
      return await use(asked(memory, watched()));
    } finally {
      await memory.close();
    }
  }
  /** As a gateway without engines uses it. */
  const here = <T>(use: (memory: Memory) => Promise<T>, vectors?: Embedder, at = path) =>
    using(embeddedMemory({ ...options(vectors), path: at }), use);
  /** As a gateway with engines uses it. */
  const there = <T>(use: (memory: Memory) => Promise<T>, vectors?: Embedder) =>
    using(databaseMemory({ ...options(vectors), database, seal: textSeal([SECRET]) }), use);
  const keep =
    (space: string, ...texts: readonly string[]) =>
    ({ book }: Memory) =>
      book.add(
        space,
        texts.map((text) => ({ text, source: 'Tom', tags: ['a tag'] })),
        inList,
      );
  const idOf = async ({ book }: Memory, space: string, text: string) => {
    const { events } = await book.list(space, { limit: 1000, order: 'asc' });
    return events.find((event) => event.text === text)!.id;
  };
  const listed = async ({ book }: Memory, space: string) =>
    (await book.list(space, { limit: 1000, order: 'asc' })).events;

  test('spaces and events of the file are recalled in the engines, each space by itself', async () => {
    const before = await here(async (memory) => {
      await keep('ann', 'Maya is allergic to peanuts', 'Maya lives in Lyon')(memory);
      await keep('bob', 'Bob likes peanuts')(memory);
      return [await listed(memory, 'ann'), await listed(memory, 'bob')];
    });
    expect(await counts('engines')).toEqual({ items: 3, missing: 3, conflicts: 0 });
    expect(await copy('engines')).toBe(3);
    expect(await counts('engines')).toEqual({ items: 3, missing: 0, conflicts: 0 });
    await there(async (memory) => {
      expect([await listed(memory, 'ann'), await listed(memory, 'bob')]).toEqual(before);
      expect((await memory.recalled('ann', 'peanuts'))[0]).toBe('Maya is allergic to peanuts');
      expect(await memory.recalled('bob', 'peanuts')).toEqual(['Bob likes peanuts']);
      expect(await memory.book.spaces('', 10)).toEqual([
        { space: 'ann', events: 2 },
        { space: 'bob', events: 1 },
      ]);
    });
  });

  test('a second copy writes nothing, and a third only what came in between', async () => {
    await here(keep('ann', 'one', 'two'));
    expect(await copy('engines')).toBe(2);
    const before = await dumpOf(database);
    expect(await copy('engines')).toBe(0);
    expect(await dumpOf(database)).toBe(before);
    await here(keep('ann', 'three'));
    expect(await counts('engines')).toEqual({ items: 3, missing: 1, conflicts: 0 });
    expect(await copy('engines')).toBe(1);
    await there(async (memory) => {
      expect(await memory.texts('ann')).toEqual(['one', 'two', 'three']);
    });
  });

  test('of an event that was changed after a copy the newer form stays, and two new forms are told', async () => {
    await here(keep('ann', 'changed here', 'changed there', 'changed on both', 'left alone'));
    await copy('engines');
    const change = (text: string, to: string) => async (memory: Memory) => {
      const id = await idOf(memory, 'ann', text);
      await memory.book.change('ann', id, { text: to });
    };
    await here(change('changed here', 'new from here'));
    await here(change('changed on both', 'new from here, too'));
    await there(change('changed there', 'new from there'));
    await there(change('changed on both', 'new from there, too'));
    expect(await counts('engines')).toEqual({ items: 4, missing: 1, conflicts: 1 });
    expect(await copy('engines')).toBe(1);
    expect(await counts('engines')).toEqual({ items: 4, missing: 0, conflicts: 1 });
    await there(async (memory) => {
      expect((await memory.texts('ann')).toSorted()).toEqual([
        'left alone',
        'new from here',
        'new from there',
        'new from there, too',
      ]);
      expect(await memory.recalled('ann', 'new from here')).toContain('new from here');
    });
  });

  test('a comparison makes no file and no table, and leaves all bytes as they are', async () => {
    const nothing = { items: 0, missing: 0, conflicts: 0 };
    expect(await counts('engines')).toEqual(nothing);
    expect(await counts('embedded')).toEqual(nothing);
    expect(existsSync(path)).toBe(false);
    await here(keep('ann', 'one', 'two'));
    const before = filesIn(folder);
    await counts('engines');
    await counts('embedded');
    expect(filesIn(folder)).toEqual(before);
    expect(await dumpOf(database)).toBe('');
    await copy('engines');
    expect(filesIn(folder)).toEqual(before);
  });

  for (const when of ['before', 'after'] as const) {
    test(`a copy that is cut ${when} the end of a batch goes on where it was, and writes each once`, async () => {
      const texts = Array.from({ length: 250 }, (_, at) => `event number ${at}`);
      await here(keep('ann', ...texts));
      // The first three make the tables; this is the second of three batches.
      await expect(copy('engines', cutAt(database, 5, when))).rejects.toThrow('cut');
      const { missing } = await counts('engines');
      expect(missing).toBe(when === 'before' ? 150 : 50);
      expect(await copy('engines')).toBe(missing);
      await there(async (memory) => {
        expect(await memory.texts('ann')).toEqual(texts);
      });
      const [row] = await database.query<{ bytes: number; sum: number }>(
        'SELECT (SELECT bytes FROM hopgate.memory_total) AS bytes, (SELECT sum(bytes) FROM hopgate.memory_events)::bigint AS sum',
        [],
        LONG,
      );
      expect(row!.bytes).toBe(row!.sum);
    });
  }

  test('a space that was erased in the engines after a copy does not come back, and what came later does', async () => {
    await here(keep('ann', 'private words'));
    await here(keep('bob', 'other words'));
    await copy('engines');
    await there((memory) => memory.memory.erase('ann'));
    const { missing, notes } = await move('engines').compare();
    expect(missing).toBe(0);
    expect(notes).toEqual(['1 were removed there, and are not copied again.']);
    expect(await copy('engines')).toBe(0);
    await there(async (memory) => {
      expect(await memory.texts('ann')).toEqual([]);
      expect(await memory.texts('bob')).toEqual(['other words']);
    });
    expect(await dumpOf(database)).not.toContain('private words');
    await Bun.sleep(20);
    await here(keep('ann', 'words of after'));
    expect(await copy('engines')).toBe(1);
    await there(async (memory) => {
      expect(await memory.texts('ann')).toEqual(['words of after']);
    });
  });

  test('a space that was erased in the engines is not brought by a machine that had never copied it', async () => {
    await here(keep('ann', 'private words'));
    await there((memory) => memory.memory.erase('ann'));
    const { missing, notes } = await move('engines').compare();
    expect(missing).toBe(0);
    expect(notes).toEqual(['1 are not copied: their space was erased there.']);
    expect(await copy('engines')).toBe(0);
  });

  test('a space that is erased in the engines in the middle of a copy leaves nothing there', async () => {
    await here(keep('ann', ...Array.from({ length: 250 }, (_, at) => `private words ${at}`)));
    await there(keep('bob', 'other words'));
    let erased: number | undefined;
    // The first three make the tables; one batch is written then.
    const busy = beforeNth(database, 5, async () => {
      erased = await there((memory) => memory.memory.erase('ann'));
    });
    expect(await copy('engines', busy)).toBe(100);
    expect(erased).toBe(100);
    await there(async (memory) => {
      expect(await memory.texts('ann')).toEqual([]);
      expect(await memory.texts('bob')).toEqual(['other words']);
    });
    expect(await copy('engines')).toBe(0);
  });

  test('two copies at once write each event once', async () => {
    const texts = Array.from({ length: 250 }, (_, at) => `event number ${at}`);
    await here(keep('ann', ...texts));
    await Promise.all([copy('engines'), copy('engines')]);
    await there(async (memory) => {
      expect(await memory.texts('ann')).toEqual(texts);
    });
    expect(await counts('engines')).toEqual({ items: 250, missing: 0, conflicts: 0 });
  });

  test('an event that was removed in the engines after a copy does not come back', async () => {
    await here(keep('ann', 'one', 'two'));
    await copy('engines');
    await there(async (memory) => {
      await memory.book.remove('ann', await idOf(memory, 'ann', 'one'));
    });
    expect(await counts('engines')).toEqual({ items: 2, missing: 0, conflicts: 0 });
    expect(await copy('engines')).toBe(0);
    await there(async (memory) => {
      expect(await memory.texts('ann')).toEqual(['two']);
    });
  });

  test('a space that was erased on this machine after a copy is told with its name, and stays where it is', async () => {
    await here(keep('ann', 'one', 'two'));
    await here(keep('bob', 'three'));
    await copy('engines');
    await here((memory) => memory.memory.erase('ann'));
    const { items, missing, notes } = await move('engines').compare();
    expect([items, missing]).toEqual([1, 0]);
    expect(notes).toEqual([
      '2 that were on both sides were removed on this machine, and are still there, in ann: delete there what must not stay.',
    ]);
    expect(await copy('engines')).toBe(0);
    await there((memory) => memory.memory.erase('ann'));
    expect((await move('engines').compare()).notes).toBeUndefined();
  });

  test('what came back into a new file and was removed there is counted once', async () => {
    await here(keep('ann', 'one', 'two'));
    await copy('engines');
    for (const file of readdirSync(folder)) rmSync(join(folder, file));
    expect(await copy('embedded')).toBe(2);
    await here(async (memory) => {
      await memory.book.remove('ann', await idOf(memory, 'ann', 'one'));
    });
    expect((await move('engines').compare()).notes!.join()).toStartWith(
      '1 that were on both sides',
    );
  });

  test('the way back gives the file what the engines have, once, and what was erased here does not come again', async () => {
    const before = await there(async (memory) => {
      await keep('ann', 'Maya is allergic to peanuts', 'Maya lives in Lyon')(memory);
      await keep('bob', 'Bob likes peanuts')(memory);
      return listed(memory, 'ann');
    });
    expect(await counts('embedded')).toEqual({ items: 3, missing: 3, conflicts: 0 });
    expect(existsSync(path)).toBe(false);
    expect(await copy('embedded')).toBe(3);
    expect(await counts('embedded')).toEqual({ items: 3, missing: 0, conflicts: 0 });
    expect(await copy('embedded')).toBe(0);
    await here(async (memory) => {
      expect(await listed(memory, 'ann')).toEqual(before);
      expect((await memory.recalled('ann', 'peanuts'))[0]).toBe('Maya is allergic to peanuts');
      expect(await memory.recalled('bob', 'peanuts')).toEqual(['Bob likes peanuts']);
      await memory.memory.erase('bob');
      await memory.book.remove('ann', before[1]!.id);
    });
    expect(await copy('embedded')).toBe(0);
    await here(async (memory) => {
      expect(await memory.texts('ann')).toEqual(['Maya is allergic to peanuts']);
      expect(await memory.texts('bob')).toEqual([]);
    });
    // And the engines are told of it.
    expect((await move('engines').compare()).notes).toEqual([
      '2 that were on both sides were removed on this machine, and are still there, in ann, bob: delete there what must not stay.',
    ]);
  });

  test('the way back tells of what the old file still has although it was erased in the engines', async () => {
    await here(keep('ann', 'one', 'two'));
    await copy('engines');
    await there((memory) => memory.memory.erase('ann'));
    const { items, missing, notes } = await move('embedded').compare();
    expect([items, missing]).toEqual([0, 0]);
    expect(notes).toEqual([
      `2 of the file of this machine were removed in the engines: put ${path} away before the copy, so that they do not come back.`,
    ]);
  });

  test('texts, tags and forms are sealed in the tables', async () => {
    await here(keep('ann', 'private words of Maya'));
    await copy('engines');
    const all = await dumpOf(database);
    for (const word of ['private', 'words', 'maya', 'Maya', 'a tag', 'Tom']) {
      expect(all).not.toContain(word);
    }
  });

  /** Vectors of two dimensions: fruit and not; it counts its calls. */
  function counting() {
    const asked: string[] = [];
    const made = embedder({
      name: 'p/two',
      model: 'two',
      dimensions: undefined,
      timeoutMs: 5000,
      onFailure() {},
      post: async (body) => {
        const input = body.input as readonly string[];
        asked.push(...input);
        return {
          data: input.map((text, index) => ({
            index,
            embedding: /apple|pear|fruit/.test(text) ? [1, 0.1] : [0.1, 1],
          })),
        };
      },
    });
    return { made, asked };
  }
  const withVectors = (sql: () => Promise<number>, count: number) =>
    until(async () => (await sql()) === count);
  const vectorsHere = async () => {
    const db = new Database(path, { readonly: true });
    const { n } = db.query('SELECT count(*) AS n FROM memory_vectors').get() as { n: number };
    db.close();
    return n;
  };
  const vectorsThere = async () => {
    const [row] = await database.query<{ n: number }>(
      'SELECT count(*) AS n FROM hopgate.memory_vectors',
      [],
      LONG,
    );
    return row!.n;
  };

  test('vectors come with their events, both ways, and are not asked for again', async () => {
    const first = counting();
    await here(async (memory) => {
      await keep('ann', 'an apple', 'a car', 'a pear')(memory);
      await withVectors(vectorsHere, 3);
    }, first.made);
    await copy('engines');
    expect(await vectorsThere()).toBe(3);
    const second = counting();
    await there(async (memory) => {
      expect(await memory.recalled('ann', 'fruit', 2)).toEqual(
        expect.arrayContaining(['an apple', 'a pear']),
      );
      await keep('ann', 'another pear')(memory);
      await withVectors(vectorsThere, 4);
    }, second.made);
    expect(second.asked.filter((text) => text.startsWith('Tom'))).toEqual(['Tom: another pear']);
    rmSync(path);
    await copy('embedded');
    expect(await vectorsHere()).toBe(4);
    const third = counting();
    await here(async (memory) => {
      expect(await memory.recalled('ann', 'fruit', 3)).toEqual(
        expect.arrayContaining(['an apple', 'a pear', 'another pear']),
      );
    }, third.made);
    expect(third.asked.filter((text) => text.startsWith('Tom'))).toEqual([]);
  });

  test('limits of the memory are told, and what is there stays', async () => {
    await here(keep('ann', 'one', 'two', 'three'));
    const small = move('engines', database, path, { events: 2 });
    await expect(small.copy(() => {})).rejects.toThrow('memory.limits.events');
    expect(await counts('engines')).toEqual({ items: 3, missing: 3, conflicts: 0 });
    expect(await copy('engines')).toBe(3);
  });

  test('two machines add what they have to one space', async () => {
    await here(keep('ann', 'from one'));
    const other = join(folder, 'other', 'memory.db');
    await here(keep('ann', 'from the other'), undefined, other);
    expect(await copy('engines')).toBe(1);
    expect(await copy('engines', database, other)).toBe(1);
    await there(async (memory) => {
      expect(await memory.texts('ann')).toEqual(['from one', 'from the other']);
    });
  });

  test('events that were sealed with another secret are told, and keep none of the others back', async () => {
    await there(keep('ann', 'mine'));
    const seal = textSeal(['another secret, as long as the first one']);
    await using(databaseMemory({ ...options(), database, seal }), keep('bea', 'hers'));
    const problem = '1 cannot be opened: is the secret that sealed them in engines.seal?';
    expect((await move('embedded').compare()).notes).toEqual([problem]);
    await expect(copy('embedded')).rejects.toThrow(problem);
    await here(async (memory) => {
      expect(await memory.texts('ann')).toEqual(['mine']);
    });
  });

  test('a file of a newer version, and one that is no database, are refused with their names', async () => {
    await here(keep('ann', 'one'));
    const file = new Database(path);
    file.run('PRAGMA user_version = 99');
    file.close();
    await expect(move('engines').compare()).rejects.toThrow(
      `${path} cannot be read: a newer version of hopgate made it (schema 99, this one knows 4)`,
    );
    const broken = join(folder, 'broken.db');
    writeFileSync(
      broken,
      'this is no database at all, but long enough to look like one'.repeat(20),
    );
    await expect(move('engines', database, broken).compare()).rejects.toThrow(
      `${broken} cannot be read: file is not a database`,
    );
  });
});
