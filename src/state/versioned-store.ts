/** SQLite files with a schema version: migrated after a backup, set aside when damaged, refused when from a newer hopgate. */

import { Database } from 'bun:sqlite';
import {
  chmodSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, sep } from 'node:path';

/** SQL, or a function; runs inside a transaction. */
export type Migration = string | ((db: Database) => void);

/** The tables of a file. */
export interface Tables {
  /** The newest version, to which `create` brings an empty file. */
  readonly version: number;
  readonly create: Migration;
  /** By the version that it begins with, each leads to the next one here or to the newest. No others were published. */
  readonly upgrades?: Readonly<Record<number, Migration>>;
}

const versionOf = (db: Database): number =>
  db.query<{ user_version: number }, []>('PRAGMA user_version').get()!.user_version;

/**
 * Brings a database to the newest version. All upgrades are done or none. What an existing file held is first copied
 * to `<path>.v<version>.backup` (0600).
 *
 * Several processes may do this at once: one migrates, the others find it done. Pragmas that cannot run
 * inside a transaction (journal_mode, auto_vacuum) are the caller's.
 *
 * @throws Error with a message for people when another hopgate made the file, which stays as it is
 */
export function bringUpToDate(db: Database, path: string, tables: Tables): void {
  const to = tables.version;
  const from = versionOf(db);
  refuseUnknown(path, from, tables);
  if (from === to) return;
  if (from > 0) backUp(db, path, from);
  db.transaction(() => {
    for (const step of stepsFrom(versionOf(db), tables)) {
      if (typeof step === 'string') db.run(step);
      else step(db);
    }
    db.run(`PRAGMA user_version = ${to}`);
  }).immediate();
}

function stepsFrom(from: number, { version, create, upgrades = {} }: Tables): readonly Migration[] {
  if (from === version) return [];
  if (from === 0) return [create];
  // Numbers as keys are in their order.
  return Object.entries(upgrades).flatMap(([at, step]) => (Number(at) < from ? [] : [step]));
}

/** @throws Error with a message for people */
function refuseUnknown(path: string, from: number, { version: to, upgrades }: Tables): void {
  if (from < to && from !== 0 && upgrades?.[from] === undefined) {
    throw new Error(
      `the file was made before the first release of hopgate (schema ${from}, this one knows ${to}): move the file away`,
    );
  }
  if (from <= to) return;
  const older = Array.from({ length: to }, (_, n) => backupOf(path, to - n)).find(existsSync);
  const back = older === undefined ? 'move the file away' : `put ${older} in its place`;
  throw new Error(
    `the file was made by a newer version of hopgate (schema ${from}, this one knows ${to}): use that one again, or ${back}`,
  );
}

const backupOf = (path: string, version: number) => `${path}.v${version}.backup`;

const BUSY_MS = 200;

/**
 * A database that only its owner can read: 0600, in a directory 0700. What a link leads to outside of
 * that directory keeps its permissions: other programs may need them.
 * @param busy milliseconds to wait for another process's write, on the event loop: keep it short
 * @throws SQLiteError, or the file system's error
 */
export function openPrivate(path: string, busy = BUSY_MS): Database {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // Created before SQLite opens it, so that its -wal and -shm files get the same permissions.
  closeSync(openSync(path, 'a', 0o600));
  if (!leadsOut(path)) chmodSync(path, 0o600);
  const db = new Database(path, { readwrite: true, create: true, strict: true });
  db.run(`PRAGMA busy_timeout = ${busy}`);
  return db;
}

/**
 * Turns a database's write-ahead log on. Of two connections that do this to a new file at once, SQLite refuses one without
 * waiting, since each holds what the other needs.
 * @param patience milliseconds
 */
export function useLog(db: Database, patience: number): void {
  for (const latest = performance.now() + patience; ; Bun.sleepSync(2)) {
    try {
      db.run('PRAGMA journal_mode = WAL');
      return;
    } catch (thrown) {
      if (!/BUSY/.test(codeOf(thrown)) || performance.now() > latest) throw thrown;
    }
  }
}

/** Before the last write of a process: from here on a write waits up to five seconds for that of another process. */
export function waitForLastWrite(db: Database): void {
  db.run('PRAGMA busy_timeout = 5000');
}

/**
 * A database of a gateway that may run, for reading alone.
 * @throws SQLiteError where there is none
 */
export function openToRead(path: string, busy = 2000): Database {
  // A database with a write-ahead log can only be read with its other files, which a reader may have to make.
  const db = new Database(path, { readwrite: true, create: false, strict: true });
  db.run(`PRAGMA busy_timeout = ${busy}`);
  db.run('PRAGMA query_only = ON');
  return db;
}

/** A database that is there, to be written with the tables that it has: another version may use it. */
export function openAsItIs(path: string): Database {
  const db = new Database(path, { readwrite: true, create: false, strict: true });
  db.run('PRAGMA busy_timeout = 5000');
  return db;
}

/**
 * A database as {@link openToRead} opens it, of which a log that was left behind stays as it is: closing a connection
 * that may write would move it into the file.
 */
export function openUnchanged(path: string, busy: number): Database {
  if (!existsSync(`${path}-wal`)) return openToRead(path, busy);
  let db: Database | undefined;
  try {
    db = new Database(path, { readonly: true, strict: true });
    db.run(`PRAGMA busy_timeout = ${busy}`);
    // The first query is what needs the other files.
    db.query('SELECT 1 FROM sqlite_master LIMIT 1').get();
    return db;
  } catch (thrown) {
    db?.close();
    if (/CANTOPEN|READONLY/.test(codeOf(thrown))) return openToRead(path, busy);
    throw thrown;
  }
}

/** Is the path a link to a file outside the link's own directory? */
function leadsOut(path: string): boolean {
  if (!lstatSync(path).isSymbolicLink()) return false;
  return !realpathSync(path).startsWith(realpathSync(dirname(path)) + sep);
}

/** The file is not a database, or is damaged. */
export const isDamage = (error: unknown): boolean =>
  /CORRUPT|NOTADB|SHORT_READ/.test(codeOf(error));

/**
 * The machine lacks something now (descriptors, memory, room on its disk), or another process holds the file: what failed
 * may succeed later.
 */
export const isPassing = (error: unknown): boolean =>
  /^E(MFILE|NFILE|NOMEM|NOSPC|DQUOT|IO)$|BUSY|LOCKED|CANTOPEN|FULL|IOERR|NOMEM/.test(codeOf(error));

const codeOf = (error: unknown) => String((error as { code?: unknown } | null)?.code);

/** A damaged file that was moved, and its new path. */
export interface SetAside {
  readonly path: string;
  readonly aside: string;
  readonly cause: unknown;
}

const listeners = new Set<(what: SetAside) => void>();

/** Calls the listener for every database that this process sets aside. The result unsubscribes. */
export function onSetAside(listener: (what: SetAside) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Another thread of this process has set a file aside. */
export function setAsideElsewhere(what: SetAside): void {
  for (const listener of listeners) listener(what);
}

/** Why a file that {@link fileAt} does not find any more is opened anew. */
export const REMOVED = 'the file was removed while it was in use';

/** The identity of the file at a path; 0 when there is none. */
export const fileAt = (path: string): number => statSync(path, { throwIfNoEntry: false })?.ino ?? 0;

/**
 * Moves a damaged database away with its log. Nothing is deleted: its data may be worth saving.
 * This process must not have it open any more.
 * @param file the damaged one, as of {@link fileAt}: another process may have set it aside before
 * @throws the error of the file system
 */
export function setAside(path: string, file: number, cause: unknown): void {
  if (fileAt(path) !== file) return;
  const time = new Date()
    .toISOString()
    .replace(/\.\d+Z$/, 'Z')
    .replaceAll(/[-:]/g, '');
  let aside = `${path}.damaged-${time}`;
  for (let n = 2; existsSync(aside); n++) aside = `${path}.damaged-${time}-${n}`;
  for (const end of ['', '-wal', '-shm']) {
    if (existsSync(path + end)) renameSync(path + end, aside + end);
  }
  setAsideElsewhere({ path, aside, cause });
}

export interface StateFile {
  readonly path: string;
  readonly tables: Tables;
  /** As of {@link openPrivate}. */
  readonly busy?: number;
  /** Run while a new file is empty, e.g. `auto_vacuum = INCREMENTAL`. */
  readonly pragmas?: readonly string[];
}

/**
 * A private database of the program's own state, brought up to date: write-ahead log, and a commit
 * that a crash of the machine (not of the process) may lose. A file that is damaged is set aside, and a
 * new one begins: {@link onSetAside} tells of it.
 * @throws as {@link openPrivate} and {@link bringUpToDate}; nothing stays open then
 */
export function openStateFile(file: StateFile): Database {
  const there = fileAt(file.path);
  try {
    return openWhole(file);
  } catch (thrown) {
    // A file that is no database at all may be another file that a wrong path names: it stays.
    if (!isDamage(thrown) || /NOTADB/.test(codeOf(thrown))) throw thrown;
    setAside(file.path, there, thrown);
    return openWhole(file);
  }
}

/** Another process that copies and changes a large file of an older version takes so long. */
const MIGRATION_MS = 20_000;

function openWhole({ path, tables, busy = BUSY_MS, pragmas = [] }: StateFile): Database {
  const db = openPrivate(path, busy);
  try {
    const version = versionOf(db);
    refuseUnknown(path, version, tables);
    const isOlder = version < tables.version;
    if (isOlder) db.run(`PRAGMA busy_timeout = ${MIGRATION_MS}`);
    for (const pragma of pragmas) db.run(`PRAGMA ${pragma}`);
    useLog(db, isOlder ? MIGRATION_MS : busy);
    db.run('PRAGMA synchronous = NORMAL');
    bringUpToDate(db, path, tables);
    if (isOlder) db.run(`PRAGMA busy_timeout = ${busy}`);
    return db;
  } catch (thrown) {
    db.close();
    throw thrown;
  }
}

/** Makes a complete copy, including the write-ahead log, unless another process was first. */
function backUp(db: Database, path: string, version: number): void {
  const temporary = `${path}.v${version}.${process.pid}`;
  rmSync(temporary, { force: true });
  db.query('VACUUM INTO ?').run(temporary);
  chmodSync(temporary, 0o600);
  if (versionOf(db) !== version) rmSync(temporary);
  else renameSync(temporary, backupOf(path, version));
}
