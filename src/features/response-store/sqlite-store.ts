/** The database file of the response store: schema, batches in one transaction, pruning in small steps. */

import type { Database, Statement } from 'bun:sqlite';
import { ERASURES_KEPT_MS } from '../../state/erasures.ts';
import { movedInFile } from '../../state/moving/moved-store.ts';
import { openStateFile, waitForLastWrite } from '../../state/versioned-store.ts';
import {
  type ChainLink,
  type PackedRow,
  pack,
  type ResponseLimits,
  type StoredResponse,
  unpack,
  unpackItems,
} from './stored-response.ts';

// A conversation is a `thread`: its rows are pruned together, least recently continued first, so that no
// chain in use is cut. Triggers keep the counts, so they are right whatever deletes a row.
const SCHEMA = `
CREATE TABLE threads (
  id INTEGER PRIMARY KEY, used REAL NOT NULL,
  rows INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX threads_used ON threads (used);
CREATE TABLE responses (
  owner TEXT NOT NULL, id TEXT NOT NULL, thread INTEGER NOT NULL, created INTEGER NOT NULL,
  previous TEXT, model TEXT NOT NULL, input TEXT NOT NULL, output TEXT NOT NULL,
  response TEXT NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (owner, id)
);
CREATE INDEX responses_thread ON responses (thread);
CREATE TABLE items (
  owner TEXT NOT NULL, item TEXT NOT NULL, response TEXT NOT NULL, PRIMARY KEY (owner, item)
) WITHOUT ROWID;
CREATE INDEX items_response ON items (owner, response);
CREATE TRIGGER response_added AFTER INSERT ON responses BEGIN
  UPDATE threads SET rows = rows + 1, bytes = bytes + new.bytes WHERE id = new.thread;
END;
CREATE TRIGGER response_gone AFTER DELETE ON responses BEGIN
  UPDATE threads SET rows = rows - 1, bytes = bytes - old.bytes WHERE id = old.thread;
  DELETE FROM threads WHERE id = old.thread AND rows <= 0;
  DELETE FROM items WHERE owner = old.owner AND response = old.id;
END;
`;

const SPACES = `
ALTER TABLE responses ADD COLUMN space TEXT;
CREATE INDEX responses_space ON responses (space) WHERE space IS NOT NULL;
`;

// Recent erasures: rows that another process had queued before are not stored.
const KEEPERS = `
ALTER TABLE responses ADD COLUMN keeper TEXT;
CREATE TABLE IF NOT EXISTS erasures (space TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
`;

// Each migration leads to the next version of the file; released ones never change.
const MIGRATIONS = [SCHEMA, SPACES, KEEPERS];
/** Of the newest schema. */
export const VERSION = MIGRATIONS.length;

/** A row of another store. */
export interface TakenRow {
  readonly row: PackedRow;
  /** A number for its conversation, where nothing that it continues is here. */
  readonly thread: number;
  /** When that was used last, in milliseconds since 1970. */
  readonly used: number;
}

/** One queued change. `touch`: a request continued the conversation from here. */
export type QueuedChange =
  | { readonly kind: 'put'; readonly row: PackedRow }
  | { readonly kind: 'delete' | 'touch'; readonly owner: string; readonly id: string };

/** A known response, with the provider that also stores it. */
export type KnownResponse = Pick<StoredResponse, 'keeper'>;

export interface ResponseFile {
  read(owner: string, id: string): StoredResponse | undefined;
  link(owner: string, id: string): ChainLink | undefined;
  /** Undefined where the response is unknown. */
  known(owner: string, id: string): KnownResponse | undefined;
  /** The id of the response that has this item in its output. */
  responseOf(owner: string, item: string): string | undefined;
  /** Puts what `make` makes of the row in its place, with no other process between; false: nothing was made. */
  change(
    owner: string,
    id: string,
    make: (row: StoredResponse) => StoredResponse | undefined,
    now: number,
  ): boolean;
  /** Applies all changes or none, in order. `now` is in milliseconds since 1970. */
  apply(changes: readonly QueuedChange[], now: number): void;
  /**
   * Takes in rows of another store, all or none, but not what is there, was taken in before, or was erased.
   * @returns how many are new
   */
  take(rows: readonly TakenRow[]): number;
  /**
   * Removes everything made with this memory space and overwrites its pages; the number of rows.
   * @param at as of `instant`: rows whose request came before are not stored any more
   */
  eraseSpace(space: string, at: number): number;
  /** Removes at most `step` rows beyond the limits; the number of removed rows. */
  prune(limits: ResponseLimits, now: number, step: number): number;
  waitForLastWrite(): void;
  close(): void;
}

/**
 * Opens the file, or creates it with mode 0600 in a directory of mode 0700.
 * @param busy milliseconds to wait for another process's write; they block the event loop, so keep it short
 * @throws SQLiteError, or an Error where a newer version made the file
 */
export function openResponseFile(path: string, busy = 200): ResponseFile {
  const pragmas = ['auto_vacuum = INCREMENTAL', 'journal_size_limit = 16777216'];
  const db = openStateFile({ path, migrations: MIGRATIONS, busy, pragmas });
  try {
    return fileOf(db);
  } catch (error) {
    db.close();
    throw error;
  }
}

function fileOf(db: Database): ResponseFile {
  const of = <Row, Args extends (string | number | null)[]>(sql: string) =>
    db.query(sql) as unknown as Statement<Row, Args>;
  const read = of<Omit<PackedRow, 'bytes' | 'itemIds'>, [string, string]>(
    'SELECT id, owner, created, previous, model, space, keeper, input, output, response FROM responses WHERE owner = ? AND id = ?',
  );
  const link = of<Pick<PackedRow, 'previous' | 'keeper' | 'input' | 'output'>, [string, string]>(
    'SELECT previous, keeper, input, output FROM responses WHERE owner = ? AND id = ?',
  );
  const keeperOf = of<Pick<PackedRow, 'keeper'>, [string, string]>(
    'SELECT keeper FROM responses WHERE owner = ? AND id = ?',
  );
  const threadOf = of<{ thread: number }, [string, string]>(
    'SELECT thread FROM responses WHERE owner = ? AND id = ?',
  );
  const newThread = of<{ id: number }, [number]>(
    'INSERT INTO threads (used) VALUES (?) RETURNING id',
  );
  const makeThread = of<unknown, [number, number]>(
    'INSERT INTO threads (id, used) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET used = max(used, excluded.used)',
  );
  const useThread = of<unknown, [number, number]>(
    'UPDATE threads SET used = max(used, ?) WHERE id = ?',
  );
  const remove = of<unknown, [string, string]>('DELETE FROM responses WHERE owner = ? AND id = ?');
  const insert = of<unknown, (string | number | null)[]>(
    `INSERT INTO responses (owner, id, thread, created, previous, model, space, keeper, input, output, response, bytes)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const removeSpace = of<unknown, [string]>('DELETE FROM responses WHERE space = ?');
  const insertItem = of<unknown, [string, string, string]>(
    'INSERT OR REPLACE INTO items (owner, item, response) VALUES (?, ?, ?)',
  );
  const itemOf = of<{ response: string }, [string, string]>(
    'SELECT response FROM items WHERE owner = ? AND item = ?',
  );
  const totals = of<{ threads: number; rows: number; bytes: number }, []>(
    'SELECT count(*) AS threads, total(rows) AS rows, total(bytes) AS bytes FROM threads',
  );
  const idlest = of<{ id: number; used: number; rows: number }, []>(
    'SELECT id, used, rows FROM threads ORDER BY used, id LIMIT 1',
  );
  const removeOldest = of<unknown, [number, number]>(
    'DELETE FROM responses WHERE rowid IN (SELECT rowid FROM responses WHERE thread = ? ORDER BY rowid LIMIT ?)',
  );

  const noteErasure = of<unknown, [string, number]>(
    `INSERT INTO erasures VALUES (?, ?)
     ON CONFLICT (space) DO UPDATE SET at = max(at, excluded.at)`,
  );
  const dropErasures = of<unknown, [number]>('DELETE FROM erasures WHERE at < ?');
  const erasedAt = of<{ at: number }, [string]>('SELECT at FROM erasures WHERE space = ?');
  const isErased = ({ space, began }: PackedRow): boolean =>
    space !== null && began !== undefined && (erasedAt.get(space)?.at ?? 0) >= began;

  // Milliseconds, with thousandths to order uses within one millisecond.
  let last = 0;
  const tick = (now: number) => {
    last = Math.max(now, last + 0.001);
    return last;
  };

  const put = (row: PackedRow, now: number) => {
    remove.run(row.owner, row.id);
    const before = row.previous === null ? null : threadOf.get(row.owner, row.previous);
    const thread = before?.thread ?? newThread.get(now)!.id;
    if (before) useThread.run(now, thread);
    add(row, thread);
  };

  const add = (row: PackedRow, thread: number) => {
    insert.run(
      row.owner,
      row.id,
      thread,
      row.created,
      row.previous,
      row.model,
      row.space,
      row.keeper,
      row.input,
      row.output,
      row.response,
      row.bytes,
    );
    for (const item of row.itemIds) insertItem.run(row.owner, item, row.id);
  };

  const applyAll = db.transaction((changes: readonly QueuedChange[], now: number) => {
    for (const change of changes) {
      if (change.kind === 'put') {
        if (!isErased(change.row)) put(change.row, tick(now));
      } else if (change.kind === 'delete') remove.run(change.owner, change.id);
      else {
        const thread = threadOf.get(change.owner, change.id);
        if (thread) useThread.run(tick(now), thread.thread);
      }
    }
  });

  const changeOne = db.transaction(
    (
      owner: string,
      id: string,
      make: (row: StoredResponse) => StoredResponse | undefined,
      now: number,
    ): boolean => {
      const row = read.get(owner, id);
      const next = row ? make(unpack(row)) : undefined;
      if (next === undefined) return false;
      put(pack(next), tick(now));
      return true;
    },
  );

  const takeAll = db.transaction((rows: readonly TakenRow[]): number => {
    const moved = movedInFile(db, true);
    let count = 0;
    for (const { row, thread: number, used } of rows) {
      const { owner, id, previous } = row;
      const isKnown = threadOf.get(owner, id) !== null || moved.form(owner, id) !== undefined;
      if (isKnown || isErased(row)) continue;
      const before = previous === null ? null : threadOf.get(owner, previous);
      const thread = before?.thread ?? number;
      makeThread.run(thread, used);
      add(row, thread);
      moved.note(owner, id, '');
      count++;
    }
    return count;
  });

  const pruneSome = db.transaction((limits: ResponseLimits, now: number, step: number) => {
    let left = step;
    while (left > 0) {
      const thread = idlest.get();
      const total = totals.get()!;
      if (!thread) break;
      const over = total.rows > limits.rows || total.bytes > limits.bytes;
      if (thread.used >= now - limits.age && !over) break;
      // The last conversation, when too large itself, loses its oldest rows one by one.
      const alone = total.threads === 1 && thread.used >= now - limits.age;
      const count = alone ? 1 : Math.min(left, thread.rows);
      removeOldest.run(thread.id, count);
      left -= count;
    }
    return step - left;
  });

  return {
    read: (owner, id) => {
      const row = read.get(owner, id);
      return row ? unpack(row) : undefined;
    },
    link: (owner, id) => {
      const row = link.get(owner, id);
      if (!row) return undefined;
      const { previous, keeper } = row;
      return { previous: previous ?? undefined, keeper: keeper ?? undefined, ...unpackItems(row) };
    },
    known: (owner, id) => {
      const row = keeperOf.get(owner, id);
      return row ? { keeper: row.keeper ?? undefined } : undefined;
    },
    responseOf: (owner, item) => itemOf.get(owner, item)?.response,
    change: (owner, id, make, now) => changeOne.immediate(owner, id, make, now),
    apply: (changes, now) => applyAll.immediate(changes, now),
    take: (rows) => takeAll.immediate(rows),
    eraseSpace(space, at) {
      dropErasures.run(at - ERASURES_KEPT_MS);
      noteErasure.run(space, at);
      db.run('PRAGMA secure_delete = ON');
      const { changes } = removeSpace.run(space);
      db.run('PRAGMA secure_delete = OFF');
      // The write-ahead log still contains the rows.
      if (changes > 0) db.run('PRAGMA wal_checkpoint(TRUNCATE)');
      return changes;
    },
    prune: (limits, now, step) => {
      const total = totals.get()!;
      const oldest = idlest.get();
      const idle = oldest === null || oldest.used >= now - limits.age;
      if (idle && total.rows <= limits.rows && total.bytes <= limits.bytes) return 0;
      const removed = pruneSome.immediate(limits, now, step);
      if (removed > 0) db.run('PRAGMA incremental_vacuum(256)');
      return removed;
    },
    waitForLastWrite: () => waitForLastWrite(db),
    close: () => db.close(),
  };
}
