/** One SQL over both databases: what a room's statements may rely on, in a file and in a real Postgres. */

import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from 'bun:test';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSides } from '../../../src/state/move/sides.ts';
import { openPostgres } from '../../../src/state/sql/postgres.ts';
import {
  MAX_VALUES,
  placeholders,
  readBoolean,
  readJson,
  rowPlaceholders,
  type SqlDatabase,
  type SqlSchema,
} from '../../../src/state/sql/sql.ts';
import { openSqlite, openSqliteToRead } from '../../../src/state/sql/sqlite.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  newDatabase,
  startPostgres,
} from '../../support/engines/database-servers.ts';

setDefaultTimeout(60_000);

const TABLE = `
CREATE TABLE hopgate.notes (
  id bigint PRIMARY KEY, text text NOT NULL, weight double precision, done boolean NOT NULL, body bytea, facts json
);`;
const SCHEMA: SqlSchema = {
  room: 'notes',
  sqlite: { version: 1, create: TABLE },
  postgres: [TABLE],
};
const MORE = "ALTER TABLE hopgate.notes ADD COLUMN tag text NOT NULL DEFAULT 'none';";
const NEWER: SqlSchema = {
  room: 'notes',
  sqlite: { version: 2, create: TABLE + MORE, upgrades: { 1: MORE } },
  postgres: [TABLE, MORE],
};

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const one of cleanups.splice(0).reverse()) await one();
});
const newPath = () => {
  const folder = mkdtempSync(join(tmpdir(), 'hopgate-sql-'));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'notes.db');
};

let server: DatabaseServer | undefined;
beforeAll(async () => {
  if (HAS_POSTGRES) server = await startPostgres();
});
afterAll(() => server?.stop());

/** Opens connections to one new database. */
type Opener = (schema?: SqlSchema) => SqlDatabase;

async function inFile(): Promise<Opener> {
  const path = newPath();
  return (schema = SCHEMA) => {
    const opened = openSqlite(schema, { path });
    cleanups.push(() => opened.close());
    return opened;
  };
}

async function inPostgres(): Promise<Opener> {
  const { database } = await newDatabase(server!);
  cleanups.push(() => database.close());
  return (schema = SCHEMA) => openPostgres(database, schema);
}

const DRIVERS: readonly [string, boolean, () => Promise<Opener>][] = [
  ['SQLite', true, inFile],
  ['Postgres', HAS_POSTGRES, inPostgres],
];

for (const [name, isThere, newOpener] of DRIVERS) {
  describe.skipIf(!isThere)(name, () => {
    test('every kind of value comes back as it was written', async () => {
      const db = (await newOpener())();
      const body = new Uint8Array([0, 1, 255]);
      await db.query(
        'INSERT INTO hopgate.notes (weight, id, text, done, body, facts) VALUES ($6, $1, $2, $3, $4, $5)',
        [Number.MAX_SAFE_INTEGER, "it's “$1” 你好", true, body, '{"a":[1,null]}', 0.1],
      );
      await db.query(`INSERT INTO hopgate.notes (id, text, done) VALUES ${rowPlaceholders(2, 3)}`, [
        1,
        '',
        false,
        2,
        'x',
        true,
      ]);
      const rows = await db.query<Record<string, never>>(
        `SELECT * FROM hopgate.notes WHERE id IN (${placeholders(2)}) ORDER BY id`,
        [1, Number.MAX_SAFE_INTEGER],
      );
      const [first, last] = rows;
      expect(first).toMatchObject({ id: 1, text: '', weight: null, body: null, facts: null });
      expect(readBoolean(first!.done!)).toBe(false);
      expect(last).toMatchObject({ id: Number.MAX_SAFE_INTEGER, weight: 0.1 });
      expect(last!.text as unknown).toBe("it's “$1” 你好");
      expect([...(last!.body as unknown as Uint8Array)]).toEqual([0, 1, 255]);
      expect(readBoolean(last!.done!)).toBe(true);
      expect(readJson(last!.facts)).toEqual({ a: [1, null] });
    });

    test('a conflict updates, and what is written is returned', async () => {
      const db = (await newOpener())();
      const put = (text: string) =>
        db.query<{ text: string }>(
          `INSERT INTO hopgate.notes AS n (id, text, done) VALUES ($1, $2, $3)
             ON CONFLICT (id) DO UPDATE SET text = n.text || excluded.text RETURNING text`,
          [1, text, false],
        );
      expect(await put('a')).toEqual([{ text: 'a' }]);
      expect(await put('b')).toEqual([{ text: 'ab' }]);
    });

    test('as many values as one statement may have', async () => {
      const db = (await newOpener())();
      const rows = Math.floor(MAX_VALUES / 3);
      const values = Array.from({ length: rows }, (_, id) => [id, 'x', true]).flat();
      await db.query(
        `INSERT INTO hopgate.notes (id, text, done) VALUES ${rowPlaceholders(rows, 3)}`,
        values,
        20_000,
      );
      expect(await db.query('SELECT count(*) AS count FROM hopgate.notes')).toEqual([
        { count: rows },
      ]);
    });

    test('what a transaction throws undoes it, and comes out as it is', async () => {
      const db = (await newOpener())();
      const why = new Error('refused: connection closed by the test');
      const work = db.transaction(async (inside) => {
        await inside.query("INSERT INTO hopgate.notes (id, text, done) VALUES (1, 'x', true)");
        throw why;
      });
      expect(
        await work.then(
          () => undefined,
          (thrown: unknown) => thrown,
        ),
      ).toBe(why);
      const wrong = db.transaction(async ({ query }) => query('SELECT id FROM hopgate.nowhere'));
      expect(await wrong.then(String, String)).toMatch(/nowhere/);
      expect(await db.query('SELECT id FROM hopgate.notes')).toEqual([]);
    });

    test('transactions with one lock go one after the other, and nothing else gets into one', async () => {
      const open = await newOpener();
      const all = [open(), open()];
      await all[0]!.query("INSERT INTO hopgate.notes (id, text, done) VALUES (0, '0', true)");
      const add = (db: SqlDatabase) =>
        db.transaction(
          async ({ query }) => {
            const [row] = await query<{ text: string }>('SELECT text FROM hopgate.notes');
            await query('UPDATE hopgate.notes SET text = $1', [`${Number(row!.text) + 1}`]);
          },
          { lock: 7_496_299 },
        );
      const outside: Promise<unknown>[] = [];
      for (let i = 0; i < 20; i++) {
        outside.push(add(all[0]!));
        outside.push(all[0]!.query('UPDATE hopgate.notes SET done = false'));
      }
      await Promise.all(outside);
      for (let i = 0; i < 5; i++) await add(all[1]!);
      expect(await all[1]!.query('SELECT text FROM hopgate.notes')).toEqual([{ text: '25' }]);
    });

    test('a snapshot is of one moment', async () => {
      const open = await newOpener();
      const [reader, writer] = [open(), open()];
      const count = 'SELECT count(*) AS count FROM hopgate.notes';
      await writer.query(count);
      await reader.snapshot(async ({ query }) => {
        const before = await query(count);
        await writer.query("INSERT INTO hopgate.notes (id, text, done) VALUES (1, 'x', true)");
        expect(await query(count)).toEqual(before);
      });
      expect(await reader.query<{ count: number }>(count)).toEqual([{ count: 1 }]);
    });

    test('its clock is one of milliseconds', async () => {
      const db = (await newOpener())();
      const [row] = await db.query<{ now: number }>(`SELECT ${db.now} AS now`);
      expect(Math.abs(row!.now - Date.now())).toBeLessThan(60_000);
      expect(Number.isInteger(row!.now)).toBe(true);
    });

    test('tables of the version before get what is new, and keep their rows', async () => {
      const open = await newOpener();
      const before = open();
      await before.query("INSERT INTO hopgate.notes (id, text, done) VALUES (1, 'x', true)");
      if (name === 'SQLite') before.close();
      const after = open(NEWER);
      expect(await after.query('SELECT id, tag FROM hopgate.notes')).toEqual([
        { id: 1, tag: 'none' },
      ]);
    });
  });
}

test('a file that is read only stays as it is, whatever its version', async () => {
  const path = newPath();
  expect(openSqliteToRead(NEWER, path)).toBeUndefined();
  expect(existsSync(path)).toBe(false);
  const writer = openSqlite(SCHEMA, { path });
  await writer.query("INSERT INTO hopgate.notes (id, text, done) VALUES (1, 'x', true)");
  writer.close();
  const bytes = readFileSync(path);
  for (const schema of [SCHEMA, NEWER]) {
    const reader = openSqliteToRead(schema, path)!;
    expect(await reader.query('SELECT id FROM hopgate.notes')).toEqual([{ id: 1 }]);
    if (schema === NEWER) {
      expect(await reader.query('SELECT tag FROM hopgate.notes')).toEqual([{ tag: 'none' }]);
    }
    reader.close();
    expect(readFileSync(path).equals(bytes)).toBe(true);
  }
  openSqlite(NEWER, { path }).close();
  expect(() => openSqliteToRead(SCHEMA, path)).toThrow('a newer version of hopgate made it');
});

test.skipIf(!HAS_POSTGRES)('tables that are only looked at are not made', async () => {
  const { database } = await newDatabase(server!);
  cleanups.push(() => database.close());
  const look = () => openSides(SCHEMA, { database, path: '/there/is/none.db', to: 'engines' });
  expect((await look()).database.has.has('notes')).toBe(false);
  await openPostgres(database, SCHEMA).query('SELECT 1 AS one');
  const { file, database: reader } = await look();
  expect(file).toBeUndefined();
  expect(await reader.db.query('SELECT id FROM hopgate.notes')).toEqual([]);
});
