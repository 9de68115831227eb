/** What of the file of spend is not in the shared database yet, and which of its rows that database knows. */

import type { Database } from 'bun:sqlite';
import { randomBase36 } from '../../lib/text/ids.ts';
import type { StoredRow } from '../schema.ts';
import type { SpendRow } from '../spend.ts';
import { labelsText } from '../totals.ts';

/** Versions of a row: a greater one replaces a smaller one. 1 is what the database makes of a machine that is gone. */
export const OPEN = 0;
/** As reserved, by a process that took the try for lost. */
export const TAKEN_OVER = 2;
export const ENDED = 3;

/** Tries that end sooner are never sent as running ones. */
const OPEN_AFTER_MS = 1000;
const LEASE_MS = 5000;

/**
 * `unsent`: entries by process and number; `spend` is the row in the file, null: it is in `running`. `refused`: the
 * database does not take it. `spool`: this file's name among all machines, and which process sends. `shared_rows`: rows
 * of the file that the shared database knows by `at`, `writer` and `n`, or will know. Ids of rows that are gone may be
 * used again: the time tells such rows apart. `imports`: ids of rows that a move wrote, not in the order of time, and
 * from which database. `taken_totals`: up to which hour a move took totals of rows that the database has no more.
 */
const TABLES = [
  `CREATE TABLE IF NOT EXISTS unsent (
    writer TEXT NOT NULL, n INTEGER NOT NULL, rev INTEGER NOT NULL, at INTEGER NOT NULL, written INTEGER NOT NULL,
    spend INTEGER, refused INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (writer, n, rev)) WITHOUT ROWID`,
  'CREATE INDEX IF NOT EXISTS unsent_spend ON unsent (spend)',
  'CREATE TABLE IF NOT EXISTS taken_totals (database TEXT PRIMARY KEY, through INTEGER NOT NULL) WITHOUT ROWID',
  `CREATE TABLE IF NOT EXISTS shared_rows (
    writer TEXT NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, rev INTEGER NOT NULL, spend INTEGER NOT NULL,
    time INTEGER NOT NULL, PRIMARY KEY (writer, n, at)) WITHOUT ROWID`,
  'CREATE INDEX IF NOT EXISTS shared_rows_time ON shared_rows (time, spend)',
  'CREATE TABLE IF NOT EXISTS imports (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, database TEXT NOT NULL)',
  'CREATE TABLE IF NOT EXISTS spool (id TEXT PRIMARY KEY, sender TEXT, until INTEGER NOT NULL) WITHOUT ROWID',
];

/** Of a row in the shared database. */
export interface RowName {
  readonly at: number;
  readonly writer: string;
  readonly n: number;
  readonly rev: number;
}

/** One row as the database takes it; it is known by `at`, `writer` and `n`. */
export interface SpoolEntry extends RowName {
  /** Columns of the row; undefined: there is none any more, and nothing to send. */
  readonly row: Readonly<Record<string, string | number | null>> | undefined;
}

export class Spool {
  /** The name of this file among all machines. */
  readonly id: string;
  readonly #db: Database;
  readonly #sql: ReturnType<typeof statements>;

  /** @throws SQLiteError */
  constructor(db: Database) {
    this.#db = db;
    this.id = db
      .transaction(() => {
        for (const sql of TABLES) db.run(sql);
        const found = db.query<{ id: string }, []>('SELECT id FROM spool').get();
        if (found !== null) return found.id;
        const id = randomBase36(20);
        db.query('INSERT INTO spool VALUES (?, NULL, 0)').run(id);
        return id;
      })
      .immediate();
    this.#sql = statements(db);
  }

  /** A try runs. Part of the caller's transaction, as the next two. */
  opened(writer: string, n: number, at: number): void {
    this.#sql.add.run(writer, n, OPEN, at, Date.now(), null);
  }

  /** A try has its row in the file. */
  ended(name: RowName, spend: number, time: number): void {
    const { writer, n, rev, at } = name;
    this.#sql.removeOlder.run(writer, n, rev);
    this.#sql.add.run(writer, n, rev, at, Date.now(), spend);
    this.known(name, spend, time);
  }

  /** The database has this row of the file, or gets it. Part of the caller's transaction, as the next ones. */
  known({ writer, n, at, rev }: RowName, spend: number, time: number): void {
    this.#sql.know.run(writer, n, at, rev, spend, time);
  }

  /** The row of the file that the database knows by this name; undefined: there is none. */
  rowOf({ writer, n, at }: RowName): KnownRow | undefined {
    return this.#sql.rowOf.get(writer, n, at) ?? undefined;
  }

  /** The try is in this file as one that runs. */
  isOpen({ writer, n }: RowName): boolean {
    return this.#sql.isOpen.get(writer, n) !== null;
  }

  /** Ids of rows from before a time, some of the oldest, that the database has. Imported ones may be of another one. */
  sentBefore(time: number, most: number): readonly number[] {
    return this.#sql.sentBefore.all(time, most).map(({ id }) => id);
  }

  /** The row is gone from the file. */
  forget(spend: number, time: number): void {
    this.#sql.forget.run(time, spend);
  }

  /** Rows with these ids, as a move has written them. */
  imported(first: number, last: number, database: string): void {
    const before = this.#sql.lastImport.get();
    const goesOn = before?.last === first - 1 && before.database === database;
    this.#sql.imported.run(goesOn ? before.first : first, last, database);
  }

  /** Totals up to this hour were taken from a database, without their rows. Part of the caller's transaction. */
  tookTotals(database: string, through: number): void {
    this.#sql.tookTotals.run(database, through);
  }

  /**
   * Whether this process is the one that sends; it asks again all the time. That two send at once for a moment does
   * no harm.
   */
  claim(sender: string, now: number): boolean {
    const { sender: own, until } = this.#sql.lease.get()!;
    const free = own === null || until <= now || until > now + 10 * LEASE_MS;
    if (own !== sender && !free) return false;
    if (own !== sender || until < now + LEASE_MS / 2) this.#sql.claim.run(sender, now + LEASE_MS);
    return true;
  }

  /** Another process may send. */
  release(sender: string): void {
    this.#sql.release.run(sender);
  }

  /** Some entries that wait; tries that run, after a second. */
  take(most: number, now: number): readonly SpoolEntry[] {
    return this.#sql.take.all(now - OPEN_AFTER_MS, now + OPEN_AFTER_MS, most).map(entryOf);
  }

  /** The database has them. */
  sent(entries: readonly SpoolEntry[]): void {
    this.#db
      .transaction(() => {
        for (const { writer, n, rev } of entries) this.#sql.remove.run(writer, n, rev);
      })
      .immediate();
  }

  /** Deletes rows from before a time, some of the oldest, that this gateway did not write for the database. */
  get dropRows() {
    return this.#sql.dropRows;
  }

  /** The database has told that it will never take this one: it stays in the file, and holds up no other. */
  refused({ writer, n, rev }: SpoolEntry): void {
    this.#sql.refuse.run(writer, n, rev);
  }
}

function statements(db: Database) {
  return {
    add: db.query(
      'INSERT OR REPLACE INTO unsent (writer, n, rev, at, written, spend) VALUES (?, ?, ?, ?, ?, ?)',
    ),
    removeOlder: db.query('DELETE FROM unsent WHERE writer = ? AND n = ? AND rev < ?'),
    remove: db.query('DELETE FROM unsent WHERE writer = ? AND n = ? AND rev = ?'),
    refuse: db.query('UPDATE unsent SET refused = 1 WHERE writer = ? AND n = ? AND rev = ?'),
    dropRows: db.query<unknown, [number, number]>(
      `DELETE FROM spend WHERE time < ?1 AND id IN (SELECT id FROM spend ORDER BY id LIMIT ?2)
        AND (NOT EXISTS (SELECT 1 FROM shared_rows s WHERE s.time = spend.time AND s.spend = spend.id)
          OR EXISTS (SELECT 1 FROM imports i WHERE spend.id BETWEEN i.first AND i.last))`,
    ),
    know: db.query('INSERT OR REPLACE INTO shared_rows VALUES (?, ?, ?, ?, ?, ?)'),
    rowOf: db.query<KnownRow, [string, number, number]>(
      'SELECT rev, spend, time FROM shared_rows WHERE writer = ? AND n = ? AND at = ?',
    ),
    isOpen: db.query<unknown, [string, number]>(
      `SELECT 1 FROM unsent WHERE writer = ? AND n = ? AND rev = ${OPEN}`,
    ),
    sentBefore: db.query<{ id: number }, [number, number]>(
      `SELECT s.spend AS id FROM shared_rows s JOIN spend ON spend.id = s.spend AND spend.time = s.time
        WHERE s.time < ?1 AND NOT EXISTS (SELECT 1 FROM unsent u WHERE u.spend = s.spend)
          AND NOT EXISTS (SELECT 1 FROM imports i WHERE s.spend BETWEEN i.first AND i.last)
        ORDER BY s.time LIMIT ?2`,
    ),
    forget: db.query('DELETE FROM shared_rows WHERE time = ? AND spend = ?'),
    tookTotals: db.query('INSERT OR REPLACE INTO taken_totals VALUES (?, ?)'),
    lastImport: db.query<
      { readonly first: number; readonly last: number; readonly database: string },
      []
    >('SELECT * FROM imports ORDER BY first DESC LIMIT 1'),
    imported: db.query('INSERT OR REPLACE INTO imports VALUES (?, ?, ?)'),
    lease: db.query<{ sender: string | null; until: number }, []>(
      'SELECT sender, until FROM spool',
    ),
    claim: db.query<unknown, [string, number]>('UPDATE spool SET sender = ?, until = ?'),
    release: db.query<unknown, [string]>('UPDATE spool SET sender = NULL WHERE sender = ?'),
    take: db.query<TakenRow, [number, number, number]>(
      `SELECT spend.*, u.writer, u.n, u.rev, u.at, labels.text AS labels_text, prices.text AS price_text,
         running.row AS running
       FROM unsent u LEFT JOIN spend ON spend.id = u.spend
         LEFT JOIN texts AS labels ON labels.id = spend.labels LEFT JOIN texts AS prices ON prices.id = spend.price
         LEFT JOIN running ON u.rev = ${OPEN} AND running.writer = u.writer AND running.seq = u.n
       WHERE u.refused = 0 AND (u.rev > ${OPEN} OR u.written NOT BETWEEN ?1 AND ?2) LIMIT ?3`,
    ),
  };
}

interface KnownRow {
  readonly rev: number;
  readonly spend: number;
  readonly time: number;
}

interface TakenRow {
  readonly writer: string;
  readonly n: number;
  readonly rev: number;
  readonly at: number;
  /** Null: there is no row in the file, and so of all columns of the row. */
  readonly id: number | null;
  readonly labels_text: string;
  readonly price_text: string | null;
  /** JSON. */
  readonly running: string | null;
}

type SameColumn = Exclude<keyof StoredRow, 'id' | 'labels_text' | 'price_text' | 'replica'>;
/** Each column is here: one that is left out would stay behind in the file, without a word. */
const ALL_SAME: Readonly<Record<SameColumn, true>> = {
  time: true,
  request: true,
  key: true,
  session: true,
  client: true,
  model: true,
  target: true,
  upstream_key: true,
  hop: true,
  attempt: true,
  status: true,
  ended: true,
  input: true,
  output: true,
  cache_read: true,
  cache_write: true,
  cache_write_1h: true,
  reasoning: true,
  searches: true,
  estimated: true,
  cost: true,
  trace: true,
};
/** Columns that the file and the database have alike. */
export const SAME = Object.keys(ALL_SAME) as readonly SameColumn[];

function entryOf(taken: TakenRow): SpoolEntry {
  const { writer, n, rev, at } = taken;
  if (rev === OPEN) {
    const row = taken.running === null ? undefined : columnsOf(JSON.parse(taken.running));
    return { writer, n, rev, at, row };
  }
  if (taken.id === null) return { writer, n, rev, at, row: undefined };
  return { writer, n, rev, at, row: storedColumns(taken) };
}

/** A row of the file, with its texts, as the database takes it. */
export function storedColumns(
  row: Pick<TakenRow, 'labels_text' | 'price_text'>,
): NonNullable<SpoolEntry['row']> {
  const stored = row as unknown as Readonly<Record<string, string | number | null>>;
  const columns = Object.fromEntries(SAME.map((name) => [name, storable(stored[name]!)]));
  const { labels_text: labels, price_text: price } = row;
  return { ...columns, labels: storable(labels), price };
}

const columnsOf = ({
  tokens,
  ...row
}: SpendRow): Readonly<Record<SameColumn | 'labels' | 'price', string | number | null>> => ({
  time: row.time,
  request: storable(row.request),
  key: storable(row.key),
  labels: storable(labelsText(row.labels)),
  session: storable(row.session ?? null),
  client: storable(row.client),
  model: storable(row.model),
  target: storable(row.target),
  upstream_key: storable(row.upstreamKey ?? null),
  hop: row.hop,
  attempt: row.attempt,
  status: row.status ?? null,
  ended: row.ended,
  input: tokens.input,
  output: tokens.output,
  cache_read: tokens.cacheRead,
  cache_write: tokens.cacheWrite,
  cache_write_1h: tokens.cacheWrite1h,
  reasoning: tokens.reasoning,
  searches: tokens.searches,
  estimated: row.estimated ? 1 : 0,
  cost: row.cost ?? null,
  price: row.price ?? null,
  trace: row.trace ?? null,
});

/** Texts of clients may hold what Postgres cannot: a NUL, a half of a pair. */
function storable<T extends string | number | null>(value: T): T {
  if (typeof value !== 'string') return value;
  return value.toWellFormed().replaceAll('\0', '\u{FFFD}') as T;
}
