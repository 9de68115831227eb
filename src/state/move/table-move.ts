/**
 * Moves rows between the file of a machine and the database of all replicas. A room describes its table
 * ({@link MovedTable}), or has a side of its own ({@link NotedSide}). A move reads pages of the source, finds the state
 * of each row in the target, and writes the missing rows and a note of each in one transaction. A copy that was cut goes
 * on where it was.
 */

import { hostname } from 'node:os';
import { batchesOf } from '../../lib/loop/batches.ts';
import type { Sql } from '../engines/engine.ts';
import { ERASURES_LOCK, erasureTables, nameHash } from '../erasures.ts';
import { prepared } from '../sql/migrations.ts';
import {
  placeholders,
  rowPlaceholders,
  type SqlDatabase,
  type SqlSchema,
  type SqlStatements,
  type SqlValue,
} from '../sql/sql.ts';
import type { SqliteOptions } from '../sql/sqlite.ts';
import { AS_IT_IS, type TextSeal } from '../text-seal.ts';
import {
  leftOut,
  type MovePass,
  type MoveSource,
  type MoveTarget,
  pagedMove,
  type StateMove,
  sealedElsewhere,
  type TargetState,
  tallyOf,
} from './paged-move.ts';
import {
  type ClockAhead,
  clockAhead,
  type MoveOptions,
  openSides,
  pagesOf,
  type Side,
  WRITE_MS,
} from './sides.ts';

export interface TableMoveOptions extends MoveOptions {
  /** Seals texts in the database; in a file they are not sealed. */
  readonly seal: TextSeal;
}

export interface RowKey {
  readonly owner: string;
  readonly id: string;
}

export const keyOf = ({ owner, id }: RowKey): string => `${owner}\n${id}`;

/** One side of a room that notes what moves wrote. */
export interface NotedSide<Item> extends MoveSource<Item>, MoveTarget<Item> {
  /** Items that cannot be opened with the secrets of this configuration, so far. */
  readonly unreadable: number;
  /** Items that the database cannot hold, in the last pages. */
  readonly unusable: number;
  /**
   * Takes in items of the other side, all or none, except those that came or were removed meanwhile.
   * @param origin the file that they come from, or go to
   * @returns how many are new or changed
   */
  take(items: readonly Item[], from: this, origin: string): Promise<number>;
  readonly tables: Side;
  /** What is there, by {@link keyOf}, with its name for people. */
  have(keys: readonly RowKey[]): Promise<ReadonlyMap<string, string>>;
}

export interface NotedRoom<Item, S extends NotedSide<Item>> {
  /** Its name for people and in notes of moves. Published. */
  readonly name: string;
  /** One row of it, for people. */
  readonly item: string;
  readonly schema: SqlSchema;
  readonly file?: Partial<SqliteOptions>;
  /** Of one transaction. */
  readonly batch: { readonly items: number; readonly bytes: number };
  /** What an erased memory space is called. */
  readonly space?: string;
  /** What a move copied, and what was removed from the file and not in the engines, for people. */
  readonly toldLeft: (names: ReadonlyMap<string, string>) => string;
  readonly side: (side: Side, seal: TextSeal, ahead: ClockAhead) => S;
}

export const notedMove = <Item extends { readonly bytes: number }, S extends NotedSide<Item>>(
  room: NotedRoom<Item, S>,
  options: TableMoveOptions,
): StateMove =>
  pagedMove<Item>({ name: room.name, item: room.item, engine: 'database' }, (writes) =>
    passOver(room, options, writes),
  );

const NO_DIFFERENCE: ClockAhead = { least: 0, most: 0 };

async function passOver<Item extends { readonly bytes: number }, S extends NotedSide<Item>>(
  room: NotedRoom<Item, S>,
  options: TableMoveOptions,
  writes: boolean,
): Promise<MovePass<Item>> {
  const { database, path, to, seal } = options;
  const ahead = await clockAhead(database);
  const sides = await openSides(room.schema, options, {
    writes: writes ? 'target' : undefined,
    prepare: (side) => prepareNotes(side, database),
    ...(room.file && { file: room.file }),
  });
  const file = sides.file && room.side(sides.file, AS_IT_IS, NO_DIFFERENCE);
  const engines = room.side(sides.database, seal, ahead);
  const [source, target] = to === 'engines' ? [file, engines] : [engines, file];
  const origin = originOf(path);
  return {
    source,
    target,
    async write(missing) {
      let written = 0;
      const { items, bytes } = room.batch;
      for (const batch of batchesOf(missing, items, bytes, (one) => one.bytes)) {
        written += await target!.take(batch, source!, origin);
      }
      return written;
    },
    finish() {
      const unreadable = source?.unreadable ?? 0;
      if (unreadable > 0) throw new Error(sealedElsewhere(unreadable));
    },
    async notes(tally) {
      if (to === 'engines') {
        const unusable = file?.unusable ?? 0;
        const left = await leftThere(room.name, file, engines, origin);
        return [
          ...(unusable > 0 ? [`${unusable} have ids that the database cannot hold.`] : []),
          ...leftOut(tally, 'there', room.space),
          ...(left.size > 0 ? [room.toldLeft(left)] : []),
        ];
      }
      const { removed, erased } = await tallyOf({ source: file, target: engines });
      const outdated = removed + erased;
      return [
        ...leftOut(tally, 'on this machine', room.space),
        ...(engines.unreadable > 0 ? [sealedElsewhere(engines.unreadable)] : []),
        ...(outdated > 0
          ? [
              `${outdated} of the file of this machine were removed in the engines: put ${path} away before the copy, so that they do not come back.`,
            ]
          : []),
      ];
    },
    close: () => sides.close(),
  };
}

/** `form`: the item at that time, where it can change. `origin`: the file that it came from. */
const COLUMNS =
  'kind text NOT NULL, owner text NOT NULL, id text NOT NULL, form text NOT NULL, origin text NOT NULL';
const KEY = 'PRIMARY KEY (kind, owner, id)';
const MIGRATIONS = [
  `CREATE TABLE hopgate.moved_items (
  ${COLUMNS},
  ${KEY}
)
CREATE INDEX moved_items_origin ON hopgate.moved_items (kind, origin, owner, id)`,
];

/** In a file, the table of notes is not in the schema of every room: moves alone use it. */
async function prepareNotes(side: SqlDatabase, database: Sql): Promise<void> {
  if (side.form === 'file') {
    await side.query(
      `CREATE TABLE IF NOT EXISTS hopgate.moved_items (${COLUMNS}, ${KEY}) WITHOUT ROWID`,
    );
    return;
  }
  await erasureTables(database)();
  await prepared(database, 'moves', MIGRATIONS)();
}

/** Which file it is, on which machine: a hash. */
const originOf = (path: string): string => nameHash(`${hostname()}\n${path}`).slice(0, 32);

async function leftThere<Item>(
  kind: string,
  file: NotedSide<Item> | undefined,
  engines: NotedSide<Item>,
  origin: string,
): Promise<ReadonlyMap<string, string>> {
  const left = new Map<string, string>();
  if (file === undefined) return left;
  for (const { tables } of [engines, file]) {
    for await (const page of movedKeys(tables, kind, origin)) {
      const here = await file.have(page);
      for (const [key, name] of await engines.have(page)) if (!here.has(key)) left.set(key, name);
    }
  }
  return left;
}

/** Keys of items that moves wrote: in the database, those from this file; in a file, all. */
async function* movedKeys(
  side: Side,
  kind: string,
  origin: string,
): AsyncGenerator<readonly RowKey[]> {
  if (!side.has.has('moved_items')) return;
  const [which, values] = side.db.form === 'file' ? ['', []] : [' AND origin = $2', [origin]];
  const sql = `SELECT owner, id FROM hopgate.moved_items WHERE kind = $1${which}`;
  yield* pagesOf<RowKey>(side, sql, ['owner', 'id'], [kind, ...values]);
}

/** The notes of these keys: the forms that were moved, by {@link keyOf}. */
export async function notesOf(
  { has }: Side,
  inside: SqlStatements,
  kind: string,
  keys: readonly RowKey[],
): Promise<ReadonlyMap<string, string>> {
  if (keys.length === 0 || !has.has('moved_items')) return new Map();
  const rows = await inside.query<RowKey & { readonly form: string }>(
    `SELECT owner, id, form FROM hopgate.moved_items
       WHERE kind = '${kind}' AND (owner, id) IN (VALUES ${rowPlaceholders(keys.length, 2)})`,
    keys.flatMap(({ owner, id }) => [owner, id]),
  );
  return new Map(rows.map((row) => [keyOf(row), row.form]));
}

/** Notes what was moved; the form is that of the last move. */
export const note = (
  inside: SqlStatements,
  kind: string,
  origin: string,
  moved: readonly (RowKey & { readonly form?: string })[],
) =>
  inside.query(
    `INSERT INTO hopgate.moved_items (kind, owner, id, form, origin)
       VALUES ${rowPlaceholders(moved.length, 5)} ON CONFLICT (kind, owner, id) DO UPDATE SET form = excluded.form`,
    moved.flatMap(({ owner, id, form = '' }) => [kind, owner, id, form, origin]),
  );

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

/** The fields of a row that a comparison reads. */
export interface ListedRow extends RowKey {
  readonly bytes: number;
  /** The hash of its memory space, and when it began: a later erasure of the space covers it. */
  readonly space?: string | null;
  readonly began?: number;
}

/** A table whose key is `owner` and `id`. */
export interface MovedTable<Row extends ListedRow, Whole extends RowKey = Row>
  extends Pick<NotedRoom<Row, never>, 'name' | 'item' | 'schema' | 'file'> {
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

export const tableMove = <Row extends ListedRow, Whole extends RowKey>(
  table: MovedTable<Row, Whole>,
  options: TableMoveOptions,
): StateMove =>
  notedMove<Row, TableSide<Row, Whole>>(
    {
      ...table,
      batch: { items: 64, bytes: 2_000_000 },
      toldLeft: ({ size }) =>
        `${size} that were on both sides are not on this machine any more, but still there: delete there what must not stay.`,
      side: (side, seal, ahead) => new TableSide(table, side, seal, ahead),
    },
    options,
  );

class TableSide<Row extends ListedRow, Whole extends RowKey> implements NotedSide<Row> {
  unreadable = 0;
  unusable = 0;

  constructor(
    private readonly table: MovedTable<Row, Whole>,
    readonly tables: Side,
    private readonly seal: TextSeal,
    private readonly ahead: ClockAhead,
  ) {}

  async count(): Promise<number> {
    const { table } = this.table;
    if (!this.tables.has.has(table)) return 0;
    const sql = `SELECT count(*) AS n FROM hopgate.${table}`;
    const [row] = await this.tables.reader.query<{ n: number }>(sql);
    return row!.n;
  }

  /** Times by the clock of this machine. */
  async *pages(): AsyncGenerator<readonly Row[]> {
    const { table, order, listed, isUsable = () => true } = this.table;
    this.unusable = 0;
    if (!this.tables.has.has(table)) return;
    const sql = `SELECT ${listed(this.tables.db)} FROM hopgate.${table} WHERE true`;
    for await (const page of pagesOf<Row>(this.tables, sql, order)) {
      const now = Date.now();
      const usable = page.filter(isUsable);
      this.unusable += page.length - usable.length;
      yield usable.map((row) => this.#timed(row, (at) => Math.min(now, at - this.ahead.most)));
    }
  }

  #timed(row: Row, change: (time: number) => number): Row {
    const { times = [] } = this.table;
    const changed = times.map((name) => [name, change(Number(row[name]))]);
    return { ...row, ...Object.fromEntries(changed) };
  }

  async #read(rows: readonly Row[]): Promise<readonly Whole[]> {
    const { read } = this.table;
    return read === undefined ? (rows as never as readonly Whole[]) : read(this.tables.db, rows);
  }

  async have(keys: readonly RowKey[]): Promise<ReadonlyMap<string, string>> {
    const found = await this.#among(this.tables.reader, this.table.table, keys);
    return new Map([...found.keys()].map((key) => [key, '']));
  }

  async #among(
    inside: SqlStatements,
    table: string | undefined,
    keys: readonly RowKey[],
    fields: readonly string[] = [],
  ): Promise<ReadonlyMap<string, Readonly<Record<string, SqlValue>>>> {
    if (table === undefined || keys.length === 0 || !this.tables.has.has(table)) return new Map();
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
    inside: SqlStatements = this.tables.reader,
  ): Promise<readonly TargetState[]> {
    const { name, table, compared, state, removed, erased } = this.table;
    const there = await this.#among(inside, table, rows, compared);
    const gone = await this.#among(inside, removed, rows);
    const moved = await notesOf(this.tables, inside, name, rows);
    const spaces = rows.flatMap(({ space }) => space ?? []);
    const erasures = await erasuresOf(this.tables, inside, erased, spaces);
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

  async take(rows: readonly Row[], from: this, origin: string): Promise<number> {
    const { name, sharedLocks = [], resealed, write } = this.table;
    const { db } = this.tables;
    const wholes = await from.#read(rows);
    const again = wholes.flatMap((row) => resealed(row, from.seal, this.seal) ?? []);
    from.unreadable += wholes.length - again.length;
    const listed = new Map(rows.map((row) => [keyOf(row), row]));
    const given = again.map((row) => ({ row, listed: listed.get(keyOf(row))! }));
    return db.transaction(
      async (inside) => {
        const states = await this.states(
          given.map((one) => one.listed),
          inside,
        );
        const missing = given
          .filter((_, at) => states[at] === 'missing')
          .map((one) => ({
            ...one,
            listed: this.#timed(one.listed, (at) => at + this.ahead.least),
          }));
        const written = missing.length === 0 ? [] : await write(inside, missing, db);
        if (written.length > 0) await note(inside, name, origin, written);
        return written.length;
      },
      { deadlineMs: WRITE_MS, sharedLocks: [...sharedLocks, ERASURES_LOCK] },
    );
  }
}
