/** Databases that know their schema's version: brought forwards after a backup, set aside when damaged, refused when a newer hopgate made them. */

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

/** SQL, or a function, that brings a file from one version to the next; runs inside a transaction. */
export type Migration = string | ((db: Database) => void);

export interface Migrated {
  /** 0: the file was new. */
  readonly from: number;
  readonly to: number;
  /** The copy of the file as it was; undefined where nothing had to be kept. */
  readonly backup: string | undefined;
}

const versionOf = (db: Database): number =>
  db.query<{ user_version: number }, []>('PRAGMA user_version').get()!.user_version;

/**
 * Brings a database to the version that is the number of `migrations`; the n-th one leads from
 * version n to n+1, so the first makes a new file. All of them are done or none. What an existing file
 * held is first copied to `<path>.v<version>.backup` (0600).
 *
 * Several processes may do this at once: one works, the others find it done. Pragmas that cannot run
 * inside a transaction (journal_mode, auto_vacuum) are the caller's.
 *
 * @throws Error in words for people when a newer hopgate made the file; it is left as it is
 */
export function bringUpToDate(
  db: Database,
  path: string,
  migrations: readonly Migration[],
): Migrated {
  const to = migrations.length;
  const from = versionOf(db);
  refuseNewer(path, from, to);
  if (from === to) return { from, to, backup: undefined };
  const backup = from === 0 ? undefined : backUp(db, path, from);
  db.transaction(() => {
    for (let at = versionOf(db); at < to; at++) {
      const step = migrations[at]!;
      if (typeof step === 'string') db.run(step);
      else step(db);
    }
    db.run(`PRAGMA user_version = ${to}`);
  }).immediate();
  return { from, to, backup };
}

function refuseNewer(path: string, from: number, to: number): void {
  if (from <= to) return;
  const older = Array.from({ length: to }, (_, n) => backupOf(path, to - n)).find(existsSync);
  const back = older === undefined ? 'move the file away' : `put ${older} in its place`;
  throw new Error(
    `the file was made by a newer version of hopgate (schema ${from}, this one knows ${to}): use that one again, or ${back}`,
  );
}

/** Where a file of an older version is kept. */
const backupOf = (path: string, version: number) => `${path}.v${version}.backup`;

/**
 * A database that only its owner can read: 0600, in a directory 0700. What a link leads to outside of
 * that directory keeps its permissions: somebody else may need them.
 * @param busy milliseconds to wait for another process's write, on the event loop: keep it short
 * @throws SQLiteError, or the file system's error
 */
export function openPrivate(path: string, busy = 200): Database {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // Made before SQLite opens it, so that its -wal and -shm files take over the permissions.
  closeSync(openSync(path, 'a', 0o600));
  if (!leadsOut(path)) chmodSync(path, 0o600);
  const db = new Database(path, { readwrite: true, create: true, strict: true });
  db.run(`PRAGMA busy_timeout = ${busy}`);
  return db;
}

/** The path is a link to a file that does not lie in or under the link's own directory. */
function leadsOut(path: string): boolean {
  if (!lstatSync(path).isSymbolicLink()) return false;
  return !realpathSync(path).startsWith(realpathSync(dirname(path)) + sep);
}

/** The content of a file is no database, or not a whole one. */
export const isDamage = (error: unknown): boolean =>
  /CORRUPT|NOTADB|SHORT_READ/.test(codeOf(error));

const codeOf = (error: unknown) => String((error as { code?: unknown } | null)?.code);

/** A damaged file that was moved away, and where it is now. */
export interface SetAside {
  readonly path: string;
  readonly aside: string;
  readonly cause: unknown;
}

const listeners = new Set<(what: SetAside) => void>();

/** Told of every database that is set aside in this process. Call what comes back to be left alone. */
export function onSetAside(listener: (what: SetAside) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Which file a path leads to; 0 when it is not there. */
export const fileAt = (path: string): number => statSync(path, { throwIfNoEntry: false })?.ino ?? 0;

/**
 * Moves a damaged database away, its log with it: nothing that somebody may want to save is deleted.
 * This process must not have it open any more.
 * @param file the damaged one, as of {@link fileAt}: another process may have set it aside before
 * @throws what the file system throws
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
  for (const listener of listeners) listener({ path, aside, cause });
}

export interface StateFile {
  readonly path: string;
  readonly migrations: readonly Migration[];
  /** As of {@link openPrivate}. */
  readonly busy?: number;
  /** Run before anything is in a new file, e.g. `auto_vacuum = INCREMENTAL`. */
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
    // What is no database at all may be somebody's file that a wrong path names: it stays.
    if (!isDamage(thrown) || /NOTADB/.test(codeOf(thrown))) throw thrown;
    setAside(file.path, there, thrown);
    return openWhole(file);
  }
}

function openWhole({ path, migrations, busy, pragmas = [] }: StateFile): Database {
  const db = openPrivate(path, busy);
  try {
    refuseNewer(path, versionOf(db), migrations.length);
    for (const pragma of pragmas) db.run(`PRAGMA ${pragma}`);
    db.run('PRAGMA journal_mode = WAL');
    db.run('PRAGMA synchronous = NORMAL');
    bringUpToDate(db, path, migrations);
    return db;
  } catch (thrown) {
    db.close();
    throw thrown;
  }
}

/** A copy in one piece, whatever still stands in the write-ahead log; undefined when another process was first. */
function backUp(db: Database, path: string, version: number): string | undefined {
  const temporary = `${path}.v${version}.${process.pid}`;
  rmSync(temporary, { force: true });
  db.query('VACUUM INTO ?').run(temporary);
  chmodSync(temporary, 0o600);
  if (versionOf(db) !== version) {
    rmSync(temporary);
    return undefined;
  }
  const backup = backupOf(path, version);
  renameSync(temporary, backup);
  return backup;
}
