/** The database file of the embedded memory: events by space, with their terms and vectors. */

import type { Database, SQLQueryBindings, Statement } from 'bun:sqlite';
import type { GatewayError } from '../../../conversation/errors.ts';
import type { MemoryEvent } from '../../../conversation/memory.ts';
import { prefixedId } from '../../../lib/text/ids.ts';
import { ERASURES_KEPT_MS } from '../../../state/erasures.ts';
import { openStateFile, waitForLastWrite } from '../../../state/versioned-store.ts';
import {
  type CheckedEvent,
  type EventTurn,
  fingerprint,
  indexedText,
  type MemoryLimits,
  memoryIsFull,
  spaceIsFull,
} from '../event.ts';
import { digestOf } from '../ranking/digest.ts';
import { termsOf } from '../ranking/terms.ts';
import { DIGESTS_SCHEMA, type DigestStore, digestStore } from './digest-store.ts';
import {
  type EventPage,
  type EventRow,
  eventOfRow,
  eventPage,
  type ListQuery,
} from './event-row-store.ts';
import { TERMS_SCHEMA, type TermIndex, termIndex } from './term-index-store.ts';
import { VECTORS_SCHEMA, type VectorStore, vectorStore } from './vector-store.ts';

const SCHEMA = `
CREATE TABLE spaces (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, events INTEGER NOT NULL DEFAULT 0,
  bytes INTEGER NOT NULL DEFAULT 0, length INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE events (
  row INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL, id TEXT NOT NULL, time INTEGER NOT NULL,
  text TEXT NOT NULL, source TEXT NOT NULL, tags TEXT NOT NULL, importance REAL NOT NULL,
  fingerprint BLOB NOT NULL, length INTEGER NOT NULL
);
CREATE UNIQUE INDEX events_id ON events (space, id);
CREATE INDEX events_time ON events (space, time, row);
CREATE INDEX events_fingerprint ON events (space, fingerprint, time);
CREATE TRIGGER event_kept AFTER INSERT ON events BEGIN
  UPDATE spaces SET events = events + 1, bytes = bytes + octet_length(new.text),
    length = length + new.length WHERE id = new.space;
END;
CREATE TRIGGER event_gone AFTER DELETE ON events BEGIN
  UPDATE spaces SET events = events - 1, bytes = bytes - octet_length(old.text),
    length = length - old.length WHERE id = old.space;
  DELETE FROM words WHERE rowid = old.row;
  DELETE FROM vectors WHERE row = old.row;
END;
-- Recent erasures, by a hash of the space's name: events that another process queued before are dropped.
CREATE TABLE erasures (space BLOB PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
${TERMS_SCHEMA}${VECTORS_SCHEMA}`;

const MIGRATIONS = [SCHEMA, DIGESTS_SCHEMA];
/** Of the newest schema. */
export const VERSION = MIGRATIONS.length;

/** Events of a turn that began at a time (ms since 1970, with fractions). */
export interface CapturedEvent {
  readonly space: string;
  readonly event: CheckedEvent;
  readonly began: number;
  readonly turn?: EventTurn;
}

export interface StoredSpace {
  readonly id: number;
  readonly events: number;
  readonly bytes: number;
  /** Of all texts together, as of `Terms.length`. */
  readonly length: number;
}

/** How many captured events were stored, and why the others were not. */
export interface CaptureCounts {
  readonly stored: number;
  readonly duplicates: number;
  /** A limit was reached. */
  readonly full: number;
  /** The space has been erased since the turn began. */
  readonly erased: number;
}

export interface MemoryStore {
  readonly termIndex: TermIndex;
  readonly digests: DigestStore;
  readonly vectors: VectorStore;
  space(name: string): StoredSpace | undefined;
  /**
   * Adds all events or none. An event whose id the space already has stays unchanged (false).
   * @throws GatewayError that names the limit
   */
  add(space: string, events: readonly CheckedEvent[]): readonly (readonly [MemoryEvent, boolean])[];
  /** Stores captured events in one transaction. */
  capture(captured: readonly CapturedEvent[], dedupeMs: number): CaptureCounts;
  get(space: string, id: string): MemoryEvent | undefined;
  list(space: string, query: ListQuery): EventPage;
  remove(space: string, id: string): boolean;
  /** Replaces the event of the same id, and its terms and vector. @throws GatewayError at a limit */
  change(space: string, event: CheckedEvent & { readonly id: string }): MemoryEvent;
  /** Spaces sorted by name, after the name `after`. */
  spaces(
    after: string,
    limit: number,
  ): readonly { readonly space: string; readonly events: number }[];
  /** Events of a space by their rows, in no particular order; rows of other spaces are left out. */
  eventsByRow(
    space: StoredSpace,
    rows: readonly number[],
  ): readonly (MemoryEvent & { readonly row: number })[];
  /** Calls of this store and queries of its file, all or none: what a move writes. */
  inOne<T>(work: (db: Database) => T): T;
  /** Hides the space at once; {@link sweep} removes it. Returns its number of events. */
  forget(space: string, at: number): number;
  /** Removes a few events of hidden spaces; false where the index is to be tidied before it goes on. */
  sweep(): boolean;
  /** Whether there are hidden spaces to sweep. */
  isSwept(): boolean;
  /** Gives some free pages back to the disk; false when there are none. */
  vacuum(): boolean;
  /** Removes the last bytes of removed data from the file. False: another process is reading it. */
  flush(): boolean;
  waitForLastWrite(): void;
  close(): void;
}

export interface MemoryStoreOptions {
  /** Made 0600, its directory 0700. */
  readonly path: string;
  readonly limits: () => MemoryLimits;
  /** Milliseconds to wait for another process that writes. */
  readonly busy?: number;
}

/** Events of one step of an erasure: each is overwritten, with all its terms. */
const SWEEP_ROWS = 8;
/**
 * One step of tidying passes over all that is dead in one place of the index. So at most so many events are removed
 * at once; of more of them, every fourth waits until the index was tidied.
 */
const MAX_DEAD = 1000;
const THINNED = 4;
/** Pages that one step gives back. */
const VACUUM_PAGES = 250;

const hashOf = (space: string): Uint8Array =>
  new Uint8Array(new Bun.CryptoHasher('sha256').update(space).digest());

/** @throws SQLiteError, or an Error where a newer version made the file */
export function openMemoryStore({ path, limits, busy }: MemoryStoreOptions): MemoryStore {
  const pragmas = ['auto_vacuum = INCREMENTAL'];
  const db = openStateFile({
    path,
    migrations: MIGRATIONS,
    pragmas,
    ...(busy !== undefined && { busy }),
  });
  db.run('PRAGMA secure_delete = ON');
  db.run('PRAGMA cache_size = -16000');
  db.run('PRAGMA journal_size_limit = 16777216');
  const of = <R, A extends SQLQueryBindings[]>(sql: string) =>
    db.query(sql) as unknown as Statement<R, A>;
  const terms = termIndex(db);
  const digests = digestStore(db, terms);
  const vectors = vectorStore(db);
  const spaceOf = of<StoredSpace, [string]>(
    'SELECT id, events, bytes, length FROM spaces WHERE name = ?',
  );
  const namedSpaces = of<{ space: string; events: number }, [string, number]>(
    'SELECT name AS space, events FROM spaces WHERE name > ? AND events > 0 ORDER BY name LIMIT ?',
  );
  const newSpace = of<unknown, [string]>(
    'INSERT INTO spaces (name) VALUES (?) ON CONFLICT DO NOTHING',
  );
  const allBytes = of<{ bytes: number }, []>('SELECT total(bytes) AS bytes FROM spaces');
  const insert = of<{ row: number }, SQLQueryBindings[]>(
    `INSERT INTO events (space, id, time, text, source, tags, importance, fingerprint, length, turn)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING row`,
  );
  const byId = of<EventRow, [number, string]>('SELECT * FROM events WHERE space = ? AND id = ?');
  const alike = of<{ row: number }, [number, Uint8Array, number, number]>(
    'SELECT row FROM events WHERE space = ? AND fingerprint = ? AND time BETWEEN ? AND ? LIMIT 1',
  );
  const byRows = of<EventRow, [number, string]>(
    'SELECT * FROM events WHERE +space = ? AND row IN (SELECT value FROM json_each(?))',
  );
  const remove = of<unknown, [number, string]>('DELETE FROM events WHERE space = ? AND id = ?');
  const ofTurn = of<{ row: number; bytes: number }, [number, string, number, string]>(
    `SELECT row, octet_length(text) AS bytes FROM events WHERE space = ? AND turn = ? AND time >= ?
     AND lower(hex(fingerprint)) NOT IN (SELECT value FROM json_each(?))`,
  );
  const removeRow = of<unknown, [number]>('DELETE FROM events WHERE row = ?');
  const erasure = of<{ at: number }, [Uint8Array]>('SELECT at FROM erasures WHERE space = ?');
  const noteErasure = of<unknown, [Uint8Array, number]>(
    'INSERT OR REPLACE INTO erasures VALUES (?, ?)',
  );
  const dropErasures = of<unknown, [number]>('DELETE FROM erasures WHERE at < ?');
  const unname = of<unknown, [number]>('UPDATE spaces SET name = NULL WHERE id = ?');
  const unnamed = of<{ id: number; events: number }, []>(
    'SELECT id, events FROM spaces WHERE name IS NULL ORDER BY id LIMIT 1',
  );
  const rowsAfter = of<{ row: number; time: number }, [number, number, number, number]>(
    'SELECT row, time FROM events WHERE space = ? AND (time, row) > (?, ?) ORDER BY time, row LIMIT ?',
  );
  const freePages = of<{ freelist_count: number }, []>('PRAGMA freelist_count');
  const dropSpace = of<unknown, [number]>('DELETE FROM spaces WHERE id = ?');

  const make = (name: string): StoredSpace => {
    newSpace.run(name);
    return spaceOf.get(name)!;
  };

  function put(space: number, event: CheckedEvent, print: Uint8Array, turn?: string): MemoryEvent {
    const { id = prefixedId('mem_'), time, text, source, tags, importance } = event;
    const eventTerms = termsOf(indexedText(event));
    const more = [
      source,
      JSON.stringify(tags),
      importance,
      print,
      eventTerms.length,
      turn ?? null,
    ] as const;
    const { row } = insert.get(space, id, time, text, ...more)!;
    terms.add(space, row, eventTerms);
    digests.put(space, row, event, digestOf(event, eventTerms));
    return { id, time, text, ...(source !== '' && { source }), tags, importance };
  }

  /** The error where a limit leaves no room for the event. */
  function noRoom(
    space: StoredSpace,
    bytes: number,
    event: CheckedEvent,
  ): GatewayError | undefined {
    const most = limits();
    if (space.events >= most.events) return spaceIsFull(most);
    return bytes + Buffer.byteLength(event.text) > most.bytes ? memoryIsFull(most) : undefined;
  }

  const add = db.transaction((name: string, events: readonly CheckedEvent[]) => {
    const { id } = make(name);
    let { bytes } = allBytes.get()!;
    return events.map((event) => {
      const known = event.id === undefined ? null : byId.get(id, event.id);
      if (known !== null) return [eventOfRow(known), false] as const;
      const why = noRoom(spaceOf.get(name)!, bytes, event);
      if (why !== undefined) throw why;
      bytes += Buffer.byteLength(event.text);
      return [put(id, event, fingerprint(event)), true] as const;
    });
  });

  const change = db.transaction((name: string, event: CheckedEvent & { readonly id: string }) => {
    const { id } = make(name);
    remove.run(id, event.id);
    const why = noRoom(spaceOf.get(name)!, allBytes.get()!.bytes, event);
    if (why !== undefined) throw why;
    return put(id, event, fingerprint(event));
  });

  const capture = db.transaction(
    (captured: readonly CapturedEvent[], dedupeMs: number): CaptureCounts => {
      const count = { stored: 0, duplicates: 0, full: 0, erased: 0 };
      let { bytes } = allBytes.get()!;
      for (const { space: name, event, began, turn } of captured) {
        const gone = erasure.get(hashOf(name));
        // Events from before the erasure are dropped too: a running turn must not bring its space back.
        if (gone !== null && (gone.at >= began || gone.at >= event.time + 1)) {
          count.erased++;
          continue;
        }
        const { id } = make(name);
        if (turn !== undefined) {
          const since = turn.isGiven ? 0 : event.time - dedupeMs;
          const discarded = JSON.stringify(turn.prints);
          for (const one of ofTurn.all(id, turn.name, since, discarded)) {
            bytes -= one.bytes;
            removeRow.run(one.row);
          }
        }
        const space = spaceOf.get(name)!;
        const print = fingerprint(event);
        if (alike.get(space.id, print, event.time - dedupeMs, event.time + dedupeMs) !== null) {
          count.duplicates++;
        } else if (noRoom(space, bytes, event) !== undefined) count.full++;
        else {
          put(space.id, event, print, turn?.name);
          bytes += Buffer.byteLength(event.text);
          count.stored++;
        }
      }
      return count;
    },
  );

  const forget = db.transaction((name: string, at: number): number => {
    dropErasures.run(at - ERASURES_KEPT_MS);
    noteErasure.run(hashOf(name), at);
    const space = spaceOf.get(name);
    if (space === null) return 0;
    unname.run(space.id);
    return space.events;
  });

  const sweeping = { dead: 0, thins: false, space: -1, time: -1, row: -1 };
  const sweep = db.transaction((): boolean => {
    const gone = unnamed.get();
    if (gone === null || sweeping.dead > MAX_DEAD) {
      sweeping.dead = 0;
      return false;
    }
    if (gone.id !== sweeping.space) {
      Object.assign(sweeping, { space: gone.id, time: -1, row: -1, thins: gone.events > MAX_DEAD });
    }
    const rows = rowsAfter.all(gone.id, sweeping.time, sweeping.row, SWEEP_ROWS);
    for (const [i, { row }] of rows.entries()) {
      if (!sweeping.thins || i % THINNED !== 0) removeRow.run(row);
    }
    const last = rows.at(-1);
    if (last !== undefined) {
      Object.assign(sweeping, last);
      if (!sweeping.thins) sweeping.dead += rows.length;
      return true;
    }
    // The next round begins with what is left of it.
    sweeping.space = -1;
    if (!sweeping.thins) dropSpace.run(gone.id);
    return !sweeping.thins;
  });

  const merged = <T>(done: T): T => {
    terms.merge();
    return done;
  };

  return {
    termIndex: terms,
    digests,
    vectors,
    space: (name) => spaceOf.get(name) ?? undefined,
    add: (...given) => merged(add.immediate(...given)),
    capture: (...given) => merged(capture.immediate(...given)),
    get(name, id) {
      const space = spaceOf.get(name);
      const row = space === null ? null : byId.get(space.id, id);
      return row === null ? undefined : eventOfRow(row);
    },
    list: (name, query) => eventPage(db, spaceOf.get(name)?.id, query),
    remove(name, id) {
      const space = spaceOf.get(name);
      if (space === null) return false;
      // Looked up first, since the count of changes includes those of triggers.
      return db
        .transaction(() => {
          const there = byId.get(space.id, id) !== null;
          if (there) remove.run(space.id, id);
          return there;
        })
        .immediate();
    },
    change: (...given) => merged(change.immediate(...given)),
    spaces: (after, limit) => namedSpaces.all(after, limit),
    eventsByRow: (space, rows) =>
      byRows
        .all(space.id, JSON.stringify(rows))
        .map((row) => ({ ...eventOfRow(row), row: row.row })),
    inOne: (work) => db.transaction(() => work(db)).immediate(),
    forget: (name, at) => forget.immediate(name, at),
    sweep: () => sweep.immediate(),
    isSwept: () => unnamed.get() === null,
    vacuum() {
      db.run(`PRAGMA incremental_vacuum(${VACUUM_PAGES})`);
      return freePages.get()!.freelist_count > 0;
    },
    flush() {
      return of<{ busy: number }, []>('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy === 0;
    },
    waitForLastWrite: () => waitForLastWrite(db),
    close: () => db.close(),
  };
}
