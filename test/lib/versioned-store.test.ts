/** Schema versions of state: forwards with a backup, never backwards, all or nothing. */

import { Database } from 'bun:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bringUpToDate, type Migration } from '../../src/lib/versioned-store.ts';

let folder: string;
let path: string;
let opened: Database[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hopgate-store-'));
  path = join(folder, 'state.db');
  opened = [];
});
afterEach(() => {
  for (const db of opened) db.close();
  rmSync(folder, { recursive: true, force: true });
});

function open(file = path): Database {
  const db = new Database(file, { create: true, readwrite: true });
  db.run('PRAGMA journal_mode = WAL');
  opened.push(db);
  return db;
}

const FIRST: Migration = 'CREATE TABLE notes (text TEXT NOT NULL)';
const SECOND: Migration = (db) => {
  db.run("ALTER TABLE notes ADD COLUMN author TEXT NOT NULL DEFAULT 'nobody'");
};
const rows = (db: Database) => db.query('SELECT * FROM notes').all();

describe('a store with a version', () => {
  test('a new file gets everything at once, and no backup', () => {
    expect(bringUpToDate(open(), path, [FIRST, SECOND])).toEqual({
      from: 0,
      to: 2,
      backup: undefined,
    });
    expect(rows(opened[0]!)).toEqual([]);
    expect(readdirSync(folder).filter((name) => name.includes('backup'))).toEqual([]);
  });

  test('an older file goes forwards with its rows, and stands beside as it was', () => {
    const old = open();
    bringUpToDate(old, path, [FIRST]);
    // Still in the write-ahead log when the copy is made.
    old.run("INSERT INTO notes VALUES ('kept')");
    const db = open();
    const backup = `${path}.v1.backup`;
    expect(bringUpToDate(db, path, [FIRST, SECOND])).toEqual({ from: 1, to: 2, backup });
    expect(rows(db)).toEqual([{ text: 'kept', author: 'nobody' }]);
    expect(statSync(backup).mode & 0o777).toBe(0o600);
    const before = open(backup);
    expect(rows(before)).toEqual([{ text: 'kept' }]);
    expect(before.query('PRAGMA user_version').get()).toEqual({ user_version: 1 });
    expect(bringUpToDate(db, path, [FIRST, SECOND]).backup).toBeUndefined();
  });

  test('a file of a newer version is refused in words and left as it was', () => {
    bringUpToDate(open(), path, [FIRST, SECOND]);
    const db = open();
    expect(() => bringUpToDate(db, path, [FIRST])).toThrow(
      'the file was made by a newer version of hopgate (schema 2, this one knows 1)',
    );
    expect(db.query('PRAGMA user_version').get()).toEqual({ user_version: 2 });
    expect(existsSync(`${path}.v2.backup`)).toBe(false);
  });

  test('a file of a newer version that was an older one: its copy is named', () => {
    const db = open();
    bringUpToDate(db, path, [FIRST]);
    bringUpToDate(db, path, [FIRST, SECOND]);
    expect(() => bringUpToDate(db, path, [FIRST])).toThrow(
      `use that one again, or put ${path}.v1.backup in its place`,
    );
  });

  test('a step that fails leaves the file where it was, version and all', () => {
    const db = open();
    bringUpToDate(db, path, [FIRST]);
    db.run("INSERT INTO notes VALUES ('kept')");
    expect(() => bringUpToDate(db, path, [FIRST, SECOND, 'nonsense'])).toThrow();
    expect(rows(db)).toEqual([{ text: 'kept' }]);
    expect(bringUpToDate(db, path, [FIRST]).from).toBe(1);
  });

  test('several processes at once migrate once', async () => {
    bringUpToDate(open(), path, [FIRST]);
    const script = join(folder, 'migrate.ts');
    const module = join(import.meta.dir, '../../src/lib/versioned-store.ts');
    await Bun.write(
      script,
      `import { Database } from 'bun:sqlite';
import { bringUpToDate } from ${JSON.stringify(module)};
const db = new Database(${JSON.stringify(path)});
db.run('PRAGMA busy_timeout = 5000');
bringUpToDate(db, ${JSON.stringify(path)}, ['SELECT 1', 'ALTER TABLE notes ADD COLUMN extra TEXT']);
`,
    );
    const children = Array.from({ length: 4 }, () =>
      Bun.spawn([process.execPath, script], { stdout: 'ignore', stderr: 'pipe' }),
    );
    for (const child of children) {
      expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, '']);
    }
    const backup = open(`${path}.v1.backup`);
    expect(backup.query('PRAGMA user_version').get()).toEqual({ user_version: 1 });
  });
});

test('no part of the program opens a database of its own way', () => {
  const root = join(import.meta.dir, '../../src');
  const own = [...new Bun.Glob('**/*.ts').scanSync({ cwd: root })].filter((name) =>
    /new Database\((?!':memory:')/.test(readFileSync(join(root, name), 'utf8')),
  );
  expect(own).toEqual(['lib/versioned-store.ts']);
});
