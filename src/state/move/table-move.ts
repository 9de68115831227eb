/**
 * Moves tables between the file of a machine and the database of all replicas. A room describes its table
 * ({@link MovedTable}). A move reads pages of the source, finds the state of each row in the target, and writes the
 * missing rows and a note of each in one transaction. A copy that was cut goes on where it was.
 */

import type { Sql } from '../engines/engine.ts';
import { ERASURES_LOCK, erasureTables } from '../erasures.ts';
import { openPostgres } from '../sql/postgres.ts';
import {
  placeholders,
  rowPlaceholders,
  type SqlDatabase,
  type SqlSchema,
  type SqlStatements,
  type SqlValue,
} from '../sql/sql.ts';
import { openSqlite, openSqliteToRead, type SqliteOptions } from '../sql/sqlite.ts';
import { AS_IT_IS, type TextSeal } from '../text-seal.ts';
import {
  batchesOf,
  type ClockAhead,
  clockAhead,
  leftOut,
  type MoveDirection,
  type MovePass,
  movedItems,
  originOf,
  outdatedFile,
  pagedMove,
  type StateMove,
  sealedElsewhere,
  type TargetState,
} from './paged-move.ts';

export interface MoveOptions {
  readonly database: Sql;
  /** The file of this machine. */
  readonly path: string;
  readonly to: MoveDirection;
}

export interface TableMoveOptions extends MoveOptions {
  /** Seals texts in the database; in a file they are not sealed. */
  readonly seal: TextSeal;
}

export interface RowKey {
  readonly owner: string;
  readonly id: string;
}

/** The fields of a row that a comparison reads. */
export interface ListedRow extends RowKey {
  readonly bytes: number;
  /** The hash of its memory space, and when it began: a later erasure of the space covers it. */
  readonly space?: string | null;
  readonly began?: number;
}

/** A table whose key is `owner` and `id`. */
export interface MovedTable<Row extends ListedRow, Whole extends RowKey = Row> {
  /** Its name for people and in notes of moves. Published. */
  readonly name: string;
  /** One row of it, for people. */
  readonly item: string;
  readonly schema: SqlSchema;
  readonly file?: Partial<SqliteOptions>;
  readonly table: string;
  /** Columns by which rows are sorted: rows that others refer to come first. */
  readonly order: readonly string[];
  /** SQL: the fields of a row; `from` is the table. */
  readonly listed: (from: SqlDatabase) => string;
  /** Fields that are times by the clock of the side that holds the row. A move never makes them later. */
  readonly times?: readonly (keyof Row & string)[];
  /** Whether the database can hold the row; by default it can. */
  readonly isUsable?: (row: Row) => boolean;
  /** Columns that are compared where both sides have the row, and what follows; by default it counts as `there`. */
  readonly compared?: readonly string[];
  readonly state?: (ours: Row, theirs: Readonly<Record<string, SqlValue>>) => TargetState;
  /** Tables of the keys of removed rows, and of erased spaces with their times, where the room has them. */
  readonly removed?: string;
  readonly erased?: string;
  /** Locks that writers share, beside that of erasures. */
  readonly sharedLocks?: readonly number[];
  /** Whole rows, in the order in which they are written; by default the listed fields are all. */
  readonly read?: (from: SqlDatabase, rows: readonly Row[]) => Promise<readonly Whole[]>;
  /** With its texts under another seal; undefined: they cannot be opened. */
  readonly resealed: (row: Whole, from: TextSeal, to: TextSeal) => Whole | undefined;
  /** @returns those that are new */
  readonly write: (
    inside: SqlStatements,
    rows: readonly MovedPair<Row, Whole>[],
    to: SqlDatabase,
  ) => Promise<readonly RowKey[]>;
}

/** A row as it was listed, its times by the clock of the target, and as it was read. */
export interface MovedPair<Row, Whole> {
  readonly listed: Row;
  readonly row: Whole;
}

/** The tables of a room on one side. */
export interface Side {
  readonly db: SqlDatabase;
  /** Names of tables that are there. */
  readonly has: ReadonlySet<string>;
}

export interface Sides {
  /** Undefined: there is no file. */
  readonly file: Side | undefined;
  readonly database: Side;
  readonly source: Side | undefined;
  readonly target: Side | undefined;
  close(): void;
}

/** Milliseconds to wait for a gateway that writes. */
const BUSY_MS = 5000;

/** Both sides of a room. A side that is only read is neither made nor changed. @throws Error with a message for people */
export async function openSides(
  schema: SqlSchema,
  { database, path, to }: MoveOptions,
  writes: { readonly file: boolean; readonly database: boolean },
  options: Partial<SqliteOptions> = {},
): Promise<Sides> {
  const file = writes.file
    ? openSqlite(schema, { busyMs: BUSY_MS, ...options, path })
    : openSqliteToRead(schema, path);
  try {
    const tables = writes.database
      ? openPostgres(database, schema)
      : openPostgres(database, schema, async () => {});
    const here = file && (await sideOf(file));
    const there = await sideOf(tables);
    const [source, target] = to === 'engines' ? [here, there] : [there, here];
    return { file: here, database: there, source, target, close: () => file?.close() };
  } catch (thrown) {
    file?.close();
    throw thrown;
  }
}

const NAMES = {
  file: "SELECT name FROM sqlite_master WHERE type = 'table'",
  database: "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'hopgate'",
};

async function sideOf(db: SqlDatabase): Promise<Side> {
  const rows = await db.query<{ name: string }>(NAMES[db.form], [], LONG_MS);
  return { db, has: new Set(rows.map(({ name }) => name)) };
}

const LONG_MS = 20_000;

const readerOf = ({ db }: Side): SqlStatements => ({
  query: (sql, values) => db.query(sql, values, LONG_MS),
});
const PAGE = 500;
// Limits of one transaction.
const BATCH = 64;
const BATCH_BYTES = 2_000_000;

/** The rows of a statement in this order, in pages. @param sql ends with a condition, or with `WHERE true` */
export async function* pagesOf<Row extends object>(
  { db }: Side,
  sql: string,
  order: readonly string[],
  values: readonly SqlValue[] = [],
): AsyncGenerator<readonly Row[]> {
  const columns = order.join(', ');
  const behind = ` AND (${columns}) > (${placeholders(order.length, values.length + 1)})`;
  for (let last: Row | undefined; ; ) {
    const from = last === undefined ? [] : order.map((name) => last![name as keyof Row]);
    const page: readonly Row[] = await db.query<Row>(
      `${sql}${last === undefined ? '' : behind} ORDER BY ${columns} LIMIT ${PAGE}`,
      [...values, ...(from as SqlValue[])],
      LONG_MS,
    );
    if (page.length > 0) yield page;
    if (page.length < PAGE) return;
    last = page.at(-1)!;
  }
}

export const keyOf = ({ owner, id }: RowKey): string => `${owner}\n${id}`;

// In a file, this table is not in the schema of every room: moves alone use it.
const NOTES = `CREATE TABLE IF NOT EXISTS hopgate.moved_items (
  kind TEXT NOT NULL, owner TEXT NOT NULL, id TEXT NOT NULL, form TEXT NOT NULL, origin TEXT NOT NULL,
  PRIMARY KEY (kind, owner, id)) WITHOUT ROWID`;

export function tableMove<Row extends ListedRow, Whole extends RowKey>(
  table: MovedTable<Row, Whole>,
  options: TableMoveOptions,
): StateMove {
  const { name, item } = table;
  return pagedMove<Row>({
    name,
    item,
    engine: 'database',
    open: (writes) => passOver(table, options, writes),
  });
}

async function passOver<Row extends ListedRow, Whole extends RowKey>(
  table: MovedTable<Row, Whole>,
  options: TableMoveOptions,
  writes: boolean,
): Promise<MovePass<Row>> {
  const { database, path, to } = options;
  const toEngines = to === 'engines';
  const sides = await openMoved(table.schema, options, writes, table.file);
  const ahead = await clockAhead(database);
  const seals = toEngines ? [AS_IT_IS, options.seal] : [options.seal, AS_IT_IS];
  const side = (one: Side | undefined) =>
    one && new TableSide(table, one, one.db.form === 'file' ? { least: 0, most: 0 } : ahead);
  const [file, engines] = [side(sides.file), side(sides.database)!];
  const [source, target] = toEngines ? [file, engines] : [engines, file];
  const origin = originOf(path);
  let unusable = 0;
  let sealed = 0;
  return {
    count: () => source?.count() ?? 0,
    async *pages() {
      unusable = 0;
      for await (const page of source?.pages() ?? []) {
        const usable = page.filter((row) => table.isUsable?.(row) ?? true);
        unusable += page.length - usable.length;
        if (usable.length > 0) yield usable;
      }
    },
    states: async (page) => (await target?.states(page)) ?? page.map(() => 'missing'),
    async write(missing) {
      let written = 0;
      for (const batch of batchesOf(missing, BATCH, BATCH_BYTES)) {
        const listed = new Map(batch.map((row) => [keyOf(row), row]));
        const rows = (await source!.read(batch)).flatMap((row) => {
          const again = table.resealed(row, seals[0]!, seals[1]!);
          if (again === undefined) sealed++;
          return again === undefined ? [] : [{ row: again, listed: listed.get(keyOf(row))! }];
        });
        written += await target!.take(rows, origin);
      }
      return written;
    },
    finish() {
      if (sealed > 0) throw new Error(sealedElsewhere(sealed));
    },
    async notes(tally) {
      if (!toEngines) {
        const there = await passOver(table, { ...options, to: 'engines' }, false);
        return [...leftOut(tally, 'on this machine'), ...(await outdatedFile(path, there))];
      }
      const left = (await leftThere(file, engines, origin)).size;
      return [
        ...(unusable > 0 ? [`${unusable} have ids that the database cannot hold.`] : []),
        ...leftOut(tally, 'there'),
        ...(left > 0
          ? [
              `${left} that were on both sides are not on this machine any more, but still there: delete there what must not stay.`,
            ]
          : []),
      ];
    },
    close: () => sides.close(),
  };
}

/** Both sides, with the notes of moves on the one that is written. The database gets tables only where there is a file to copy. */
export async function openMoved(
  schema: SqlSchema,
  options: MoveOptions,
  writes: boolean,
  file?: Partial<SqliteOptions>,
): Promise<Sides> {
  const { database, path, to } = options;
  if (writes && to === 'embedded') {
    const made = openSqlite(schema, { busyMs: BUSY_MS, ...file, path });
    await made.query(NOTES).finally(() => made.close());
    return openSides(schema, options, { file: true, database: false }, file);
  }
  const sides = await openSides(schema, options, { file: false, database: false }, file);
  if (!writes || sides.file === undefined) return sides;
  sides.close();
  await erasureTables(database)();
  await movedItems(database)();
  return openSides(schema, options, { file: false, database: true }, file);
}

interface NotedSide<Found> {
  /** Keys that moves wrote. @param origin only those from this file, or to it */
  moved(origin: string): AsyncIterable<readonly RowKey[]>;
  /** What is there, by {@link keyOf}. */
  have(keys: readonly RowKey[]): Promise<ReadonlyMap<string, Found>>;
}

/** What a move copied, and what was removed from the file and not in the engines, by its key. */
export async function leftThere<Found>(
  file: NotedSide<Found> | undefined,
  engines: NotedSide<Found>,
  origin: string,
): Promise<ReadonlyMap<string, Found>> {
  const left = new Map<string, Found>();
  for (const side of [engines, file]) {
    for await (const page of side?.moved(origin) ?? []) {
      const here = await file?.have(page);
      for (const [key, found] of await engines.have(page)) {
        if (here?.has(key) !== true) left.set(key, found);
      }
    }
  }
  return left;
}

/** The notes of these keys, by {@link keyOf}. */
export async function notesOf(
  { has }: Side,
  inside: SqlStatements,
  kind: string,
  keys: readonly RowKey[],
): Promise<ReadonlyMap<string, { readonly form: string }>> {
  if (keys.length === 0 || !has.has('moved_items')) return new Map();
  const rows = await inside.query<RowKey & { readonly form: string }>(
    `SELECT owner, id, form FROM hopgate.moved_items
       WHERE kind = '${kind}' AND (owner, id) IN (VALUES ${rowPlaceholders(keys.length, 2)})`,
    keys.flatMap(({ owner, id }) => [owner, id]),
  );
  return new Map(rows.map((row) => [keyOf(row), row]));
}

/**
 * When these spaces were erased last, by the hashes of their names.
 * @param own the room's table of erasures, where it has one
 */
export async function erasuresOf(
  { db, has }: Side,
  inside: SqlStatements,
  own: string | undefined,
  spaces: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const last = new Map<string, number>();
  const hashes = [...new Set(spaces)];
  if (hashes.length === 0) return last;
  const tables = [
    [own, 'space'],
    // This table is for all rooms, and in the database alone.
    [db.form === 'database' ? 'erasures' : undefined, 'name'],
  ] as const;
  for (const [table, name] of tables) {
    if (table === undefined || !has.has(table)) continue;
    const rows = await inside.query<{ space: string; at: number }>(
      `SELECT ${name} AS space, at FROM hopgate.${table} WHERE ${name} IN (${placeholders(hashes.length)})`,
      hashes,
    );
    for (const { space, at } of rows) last.set(space, Math.max(at, last.get(space) ?? 0));
  }
  return last;
}

class TableSide<Row extends ListedRow, Whole extends RowKey> {
  constructor(
    private readonly table: MovedTable<Row, Whole>,
    private readonly side: Side,
    private readonly ahead: ClockAhead,
  ) {}

  async count(): Promise<number> {
    const { table } = this.table;
    if (!this.side.has.has(table)) return 0;
    const sql = `SELECT count(*) AS n FROM hopgate.${table}`;
    const [row] = await this.side.db.query<{ n: number }>(sql, [], LONG_MS);
    return row!.n;
  }

  /** Times by the clock of this machine. */
  async *pages(): AsyncGenerator<readonly Row[]> {
    const { table, order, listed } = this.table;
    if (!this.side.has.has(table)) return;
    const sql = `SELECT ${listed(this.side.db)} FROM hopgate.${table} WHERE true`;
    for await (const page of pagesOf<Row>(this.side, sql, order)) {
      const now = Date.now();
      yield page.map((row) => this.#timed(row, (at) => Math.min(now, at - this.ahead.most)));
    }
  }

  #timed(row: Row, change: (time: number) => number): Row {
    const { times = [] } = this.table;
    const changed = times.map((name) => [name, change(Number(row[name]))]);
    return { ...row, ...Object.fromEntries(changed) };
  }

  async read(rows: readonly Row[]): Promise<readonly Whole[]> {
    const { read } = this.table;
    return read === undefined ? (rows as never as readonly Whole[]) : read(this.side.db, rows);
  }

  have(keys: readonly RowKey[]) {
    return this.#among(readerOf(this.side), this.table.table, keys);
  }

  async #among(
    inside: SqlStatements,
    table: string | undefined,
    keys: readonly RowKey[],
    fields: readonly string[] = [],
  ): Promise<ReadonlyMap<string, Readonly<Record<string, SqlValue>>>> {
    if (table === undefined || keys.length === 0 || !this.side.has.has(table)) return new Map();
    const rows = await inside.query<RowKey & Readonly<Record<string, SqlValue>>>(
      `SELECT ${['owner', 'id', ...fields].join(', ')} FROM hopgate.${table}
         WHERE (owner, id) IN (VALUES ${rowPlaceholders(keys.length, 2)})`,
      keys.flatMap(({ owner, id }) => [owner, id]),
    );
    return new Map(rows.map((row) => [keyOf(row), row]));
  }

  /** @param rows times by the clock of this machine */
  async states(
    rows: readonly Row[],
    inside: SqlStatements = readerOf(this.side),
  ): Promise<readonly TargetState[]> {
    const { name, table, compared, state, removed, erased } = this.table;
    const there = await this.#among(inside, table, rows, compared);
    const gone = await this.#among(inside, removed, rows);
    const moved = await notesOf(this.side, inside, name, rows);
    const spaces = rows.flatMap(({ space }) => space ?? []);
    const erasures = await erasuresOf(this.side, inside, erased, spaces);
    return rows.map((row): TargetState => {
      const key = keyOf(row);
      const theirs = there.get(key);
      if (theirs !== undefined) return state?.(row, theirs) ?? 'there';
      if (moved.has(key) || gone.has(key)) return 'removed';
      const began = (row.began ?? 0) + this.ahead.least;
      const isErased = (erasures.get(row.space ?? '') ?? Number.NEGATIVE_INFINITY) >= began;
      return isErased ? 'erased' : 'missing';
    });
  }

  /**
   * Takes in rows of the other side, all or none, except those that came or were removed meanwhile.
   * @param origin the file that they come from, or go to
   * @returns how many are new or changed
   */
  take(given: readonly MovedPair<Row, Whole>[], origin: string): Promise<number> {
    const { name, sharedLocks = [], write } = this.table;
    const { db } = this.side;
    return db.transaction(
      async (inside) => {
        const states = await this.states(
          given.map(({ listed }) => listed),
          inside,
        );
        const missing = given
          .filter((_, at) => states[at] === 'missing')
          .map(({ listed, row }) => ({
            row,
            listed: this.#timed(listed, (at) => at + this.ahead.least),
          }));
        const written = missing.length === 0 ? [] : await write(inside, missing, db);
        if (written.length === 0) return 0;
        await inside.query(
          `INSERT INTO hopgate.moved_items (kind, owner, id, form, origin)
             VALUES ${rowPlaceholders(written.length, 5)} ON CONFLICT (kind, owner, id) DO NOTHING`,
          written.flatMap(({ owner, id }) => [name, owner, id, '', origin]),
        );
        return written.length;
      },
      { deadlineMs: LONG_MS, sharedLocks: [...sharedLocks, ERASURES_LOCK] },
    );
  }

  async *moved(origin: string): AsyncGenerator<readonly RowKey[]> {
    if (!this.side.has.has('moved_items')) return;
    const sql = "SELECT owner, id FROM hopgate.moved_items WHERE kind = $1 AND origin IN ($2, '')";
    yield* pagesOf<RowKey>(this.side, sql, ['owner', 'id'], [this.table.name, origin]);
  }
}
