/** Schema versions of state: forwards with a backup, never backwards, all or nothing. */

import { Database } from 'bun:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RoomKind } from '../../src/state/key-value/room.ts';
import {
  bringUpToDate,
  fileAt,
  type Migration,
  onSetAside,
  openPrivate,
  openStateFile,
  type SetAside,
  setAside,
  type Tables,
} from '../../src/state/versioned-store.ts';

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

import { fileRoom } from '../support/entries.ts';

const FIRST: Tables = { version: 1, create: 'CREATE TABLE notes (text TEXT NOT NULL)' };
const upgrade: Migration = (db) => {
  db.run("ALTER TABLE notes ADD COLUMN author TEXT NOT NULL DEFAULT 'nobody'");
};
const SECOND: Tables = {
  version: 2,
  create: "CREATE TABLE notes (text TEXT NOT NULL, author TEXT NOT NULL DEFAULT 'nobody')",
  upgrades: { 1: upgrade },
};
const rows = (db: Database) => db.query('SELECT * FROM notes').all();

describe('a store with a version', () => {
  test('a new file gets everything at once, and no backup', () => {
    bringUpToDate(open(), path, SECOND);
    expect(opened[0]!.query('PRAGMA user_version').get()).toEqual({ user_version: 2 });
    expect(rows(opened[0]!)).toEqual([]);
    expect(readdirSync(folder).filter((name) => name.includes('backup'))).toEqual([]);
  });

  test('an older file goes forwards with its rows, and stands beside as it was', () => {
    const old = open();
    bringUpToDate(old, path, FIRST);
    // Still in the write-ahead log when the copy is made.
    old.run("INSERT INTO notes VALUES ('kept')");
    const db = open();
    const backup = `${path}.v1.backup`;
    bringUpToDate(db, path, SECOND);
    expect(db.query('PRAGMA user_version').get()).toEqual({ user_version: 2 });
    expect(rows(db)).toEqual([{ text: 'kept', author: 'nobody' }]);
    expect(statSync(backup).mode & 0o777).toBe(0o600);
    const before = open(backup);
    expect(rows(before)).toEqual([{ text: 'kept' }]);
    expect(before.query('PRAGMA user_version').get()).toEqual({ user_version: 1 });
    rmSync(backup);
    bringUpToDate(db, path, SECOND);
    expect(existsSync(backup)).toBe(false);
  });

  test('a file of a newer version is refused in words and left as it was', () => {
    bringUpToDate(open(), path, SECOND);
    const db = open();
    expect(() => bringUpToDate(db, path, FIRST)).toThrow(
      'the file was made by a newer version of hopgate (schema 2, this one knows 1)',
    );
    expect(db.query('PRAGMA user_version').get()).toEqual({ user_version: 2 });
    expect(existsSync(`${path}.v2.backup`)).toBe(false);
  });

  test('a file of a newer version that was an older one: its copy is named', () => {
    const db = open();
    bringUpToDate(db, path, FIRST);
    bringUpToDate(db, path, SECOND);
    expect(() => bringUpToDate(db, path, FIRST)).toThrow(
      `use that one again, or put ${path}.v1.backup in its place`,
    );
  });

  test('a file of a version between two releases is refused in words and left as it was', () => {
    const third: Tables = { ...SECOND, version: 3 };
    bringUpToDate(open(), path, { ...SECOND, upgrades: {} });
    const db = open();
    expect(() => bringUpToDate(db, path, third)).toThrow(
      'the file was made before the first release of hopgate (schema 2, this one knows 3)',
    );
    expect(db.query('PRAGMA user_version').get()).toEqual({ user_version: 2 });
    expect(existsSync(`${path}.v2.backup`)).toBe(false);
  });

  test('a step that fails leaves the file where it was, version and all', () => {
    const db = open();
    bringUpToDate(db, path, FIRST);
    db.run("INSERT INTO notes VALUES ('kept')");
    expect(() =>
      bringUpToDate(db, path, { ...SECOND, version: 3, upgrades: { 1: upgrade, 2: 'nonsense' } }),
    ).toThrow();
    expect(rows(db)).toEqual([{ text: 'kept' }]);
    expect(db.query('PRAGMA user_version').get()).toEqual({ user_version: 1 });
  });

  test('several processes at once migrate once', async () => {
    bringUpToDate(open(), path, FIRST);
    const script = join(folder, 'migrate.ts');
    const module = join(import.meta.dir, '../../src/state/versioned-store.ts');
    await Bun.write(
      script,
      `import { Database } from 'bun:sqlite';
import { bringUpToDate } from ${JSON.stringify(module)};
const db = new Database(${JSON.stringify(path)});
db.run('PRAGMA busy_timeout = 5000');
bringUpToDate(db, ${JSON.stringify(path)}, {
  version: 2, create: '', upgrades: { 1: 'ALTER TABLE notes ADD COLUMN extra TEXT' },
});
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

  test.each([
    ['a new one', 0],
    ['an older one', 1],
  ])(
    'a process that opens %s while another changes it for longer than a write takes waits for it',
    async (_, from) => {
      if (from === 1) openStateFile({ path, tables: FIRST }).close();
      const script = join(folder, 'open.ts');
      const module = join(import.meta.dir, '../../src/state/versioned-store.ts');
      await Bun.write(
        script,
        `import { openStateFile } from ${JSON.stringify(module)};
const slow = () => Bun.sleepSync(1500);
openStateFile({ path: ${JSON.stringify(path)}, tables: { version: 2, create: slow, upgrades: { 1: slow } } }).close();
`,
      );
      const children = Array.from({ length: 3 }, () =>
        Bun.spawn([process.execPath, script], { stdout: 'ignore', stderr: 'pipe' }),
      );
      for (const child of children) {
        expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, '']);
      }
      expect(open().query('PRAGMA user_version').get()).toEqual({ user_version: 2 });
    },
  );
});

test('processes that open the same new files at the same time all get them', async () => {
  const script = join(folder, 'open-many.ts');
  const module = join(import.meta.dir, '../../src/state/versioned-store.ts');
  await Bun.write(
    script,
    `import { openStateFile } from ${JSON.stringify(module)};
const [folder = '', start] = process.argv.slice(2);
while (Date.now() < Number(start));
for (let n = 0; n < 300; n++) {
  const tables = { version: 1, create: 'CREATE TABLE kept (name TEXT)' };
  openStateFile({ path: \`\${folder}/\${n}.db\`, tables }).close();
}
`,
  );
  const start = String(Date.now() + 1000);
  const children = Array.from({ length: 4 }, () =>
    Bun.spawn([process.execPath, script, folder, start], { stdout: 'ignore', stderr: 'pipe' }),
  );
  for (const child of children) {
    expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, '']);
  }
});

test('no part of the program opens a database of its own way', () => {
  const root = join(import.meta.dir, '../../src');
  const own = [...new Bun.Glob('**/*.ts').scanSync({ cwd: root })].filter((name) =>
    /new Database\((?!':memory:')/.test(readFileSync(join(root, name), 'utf8')),
  );
  expect(own).toEqual(['state/versioned-store.ts']);
});

describe('a file that is damaged', () => {
  const told: SetAside[] = [];
  let leave: () => void;
  beforeEach(() => {
    told.length = 0;
    leave = onSetAside((what) => told.push(what));
  });
  afterEach(() => leave());
  const openState = () => {
    const db = openStateFile({ path, tables: FIRST });
    opened.push(db);
    return db;
  };

  test('is set aside under a name, reported, and a new one begins', () => {
    for (const n of [0, 1]) {
      const before = openState();
      before.run(`INSERT INTO notes VALUES ('kept ${n}')`);
      before.run('PRAGMA wal_checkpoint(TRUNCATE)');
      before.close();
      // The page of the schema: the header says that it is a database.
      const bytes = readFileSync(path);
      writeFileSync(path, bytes.fill(0x5a, 100, 4096));
      expect(rows(openState())).toEqual([]);
      expect(told).toHaveLength(n + 1);
      expect(told[n]!.path).toBe(path);
      expect(readFileSync(told[n]!.aside, 'latin1')).toContain(`kept ${n}`);
    }
    expect(new Set(told.map(({ aside }) => aside)).size).toBe(2);
  });

  test('is left to another process that was first', () => {
    openState();
    setAside(path, fileAt(path) + 1, new Error('old news'));
    expect([told, existsSync(path)]).toEqual([[], true]);
  });

  test('with a ledger in it is set aside while it is used, and no question fails', () => {
    const kind: RoomKind<{ text: string }> = {
      name: 'test',
      title: 'ledger of a test',
      keep: 'first',
      ttlMs: 1e9,
      memory: { entries: 10_000, bytes: 1e9 },
      file: {
        name: 'test.db',
        version: 3,
        upgrades: {},
        entries: 10_000,
        bytes: 1e9,
        ageMs: 1e9,
        flushAfterMs: 1e9,
      },
    };
    const warned: string[] = [];
    const openLedger = () => fileRoom(kind, path, { warn: (message) => warned.push(message) });
    const ledger = openLedger();
    const noise = () => crypto.randomUUID().repeat(20);
    for (let i = 0; i < 500; i++) ledger.it.put([`key ${i}`], { text: noise() });
    ledger.flush();
    ledger.close();
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.fill(0x5a, 4096));
    const again = openLedger();
    for (let i = 0; i < 500; i++) again.it.find([`key ${i}`]);
    expect(told).toHaveLength(1);
    again.it.put(['later'], { text: 'kept' });
    again.flush();
    expect(again.it.find(['later'])).toEqual({ text: 'kept' });
    again.close();
    expect(warned.length).toBeGreaterThan(0);
  });
});

test('permissions of what a link leads to elsewhere stay', () => {
  const other = mkdtempSync(join(tmpdir(), 'hopgate-other-'));
  try {
    const target = join(other, 'shared.db');
    writeFileSync(target, '');
    chmodSync(target, 0o664);
    symlinkSync(target, path);
    opened.push(openPrivate(path));
    expect(statSync(target).mode & 0o777).toBe(0o664);
    const within = join(folder, 'real.db');
    writeFileSync(within, '');
    chmodSync(within, 0o664);
    symlinkSync(within, join(folder, 'link.db'));
    opened.push(openPrivate(join(folder, 'link.db')));
    expect(statSync(within).mode & 0o777).toBe(0o600);
  } finally {
    rmSync(other, { recursive: true, force: true });
  }
});
