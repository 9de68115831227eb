/** The tables of spend, in the file of a machine or in the database of all replicas: rows and totals in one transaction. */

import type { Entry, JournalTables } from '../state/journal/keeper.ts';
import {
  placeholders,
  readJson,
  rowPlaceholders,
  type SqlDatabase,
  type SqlStatements,
  type SqlValue,
} from '../state/sql/sql.ts';
import { openSqlite } from '../state/sql/sqlite.ts';
import type { LearnedAnswers } from './estimate.ts';
import type { OwnColumns } from './row-parts.ts';
import {
  type Column,
  columnsWith,
  DATABASE_NAMES,
  ENDED,
  FILE_NAMES,
  type SpendNames,
  type SpendRow,
  type StoredRow,
  type SumColumn,
  spendSchema,
  sumColumnsWith,
  TAKEN_OVER,
} from './schema.ts';
import { makeMonths } from './spend-months.ts';
import { RowTotals, type SessionGroup, type TotalsGroup } from './totals.ts';

const DEADLINE_MS = 10_000;
const MAX_TEXTS = 10_000;
/** Rows of one statement: few sizes, so that there are few statements. */
const SIZES = [64, 8, 1] as const;
/** Targets that are remembered, the newest ones. */
const MAX_LEARNED = 2000;

/** The writer of a machine's rows holds this lock, together with the hash of the machine's name. */
export const MACHINE_LOCK = 7_496_232;

export type SpendEntry =
  /** A try has ended; `begun`: its number and time as one that runs. Other columns are those of the common row. */
  | {
      readonly row: OwnColumns | SpendRow;
      readonly begun?: readonly [n: number, at: number];
    }
  /** A try runs, and is this row if its process is killed. */
  | { readonly open: SpendRow }
  /** Tries for whose rows there was no room. */
  | { readonly sums: { readonly hours: TotalsGroup[]; readonly sessions: SessionGroup[] } }
  | { readonly learned: readonly LearnedAnswers[] };

/** A row by its try: when it went out (about), its process, and its number there. */
export interface RowName {
  readonly at: number;
  readonly writer: string;
  readonly n: number;
  readonly rev: number;
}
export interface NamedRow extends RowName {
  readonly row: SpendRow;
  readonly replica?: string | null;
}

const NAME = ['at', 'writer', 'n', 'rev', 'replica'];
/** Of a row, by column. */
type Values = Readonly<Record<string, string | number | undefined>>;

export type WrittenRow = readonly [row: NamedRow, id: number];

export interface SpendStoreOptions {
  /** The name of the folder of this machine's journals, among all. */
  readonly machine: string;
  /** For people. */
  readonly replica?: string;
  /** Columns beyond those that were published; for tests. */
  readonly added?: readonly Column[];
}

export class SpendStore implements JournalTables {
  readonly names: SpendNames;
  readonly #machine: string;
  readonly #replica: string | null;
  readonly #columns: readonly Column[];
  readonly #sums: readonly SumColumn[];
  readonly #isFile: boolean;
  readonly #textIds = new Map<string, number>();
  readonly #statements = new Map<string, string>();

  constructor(
    readonly database: SqlDatabase,
    { machine, replica, added }: SpendStoreOptions,
  ) {
    this.#isFile = database.form === 'file';
    this.names = this.#isFile ? FILE_NAMES : DATABASE_NAMES;
    this.#machine = machine;
    this.#replica = replica ?? null;
    this.#columns = columnsWith(added);
    this.#sums = sumColumnsWith(added);
  }

  async through(writer: string): Promise<number> {
    const [mark] = await this.database.query<{ n: number }>(
      'SELECT n FROM hopgate.spend_marks WHERE writer = $1',
      [writer],
      DEADLINE_MS,
    );
    return mark?.n ?? 0;
  }

  fold(writer: string, from: number, to: number, entries: readonly Entry[]): Promise<boolean> {
    return this.writing(async (inside) => {
      const [mark] = await inside.query(
        from === 0
          ? 'INSERT INTO hopgate.spend_marks (writer, n) VALUES ($1, $2) ON CONFLICT (writer) DO NOTHING RETURNING n'
          : 'UPDATE hopgate.spend_marks SET n = $2, gone = NULL WHERE writer = $1 AND n = $3 RETURNING n',
        from === 0 ? [writer, to] : [writer, to, from],
      );
      if (mark === undefined) return false;
      await this.#take(inside, writer, entries);
      return true;
    });
  }

  async #take(inside: SqlStatements, writer: string, entries: readonly Entry[]): Promise<void> {
    const totals = new RowTotals(this.#sums);
    const open = new Map<number, SpendRow>();
    const ended: NamedRow[] = [];
    const begun: NamedRow[] = [];
    for (const { n, value, common } of entries) {
      const entry = value as SpendEntry;
      if ('row' in entry) {
        const row = { ...(common as SpendRow), ...entry.row } as SpendRow;
        const [number, at] = entry.begun ?? [n, row.time];
        const named = { row, at, writer, n: number, rev: ENDED };
        ended.push(named);
        // One that began in this batch is not in the tables.
        if (entry.begun !== undefined && !open.delete(number)) begun.push(named);
      } else if ('open' in entry) open.set(n, entry.open);
      else if ('sums' in entry) totals.addGroups(entry.sums.hours, entry.sums.sessions);
      else if ('learned' in entry) await this.#learn(inside, entry.learned);
    }
    await this.#takeBack(inside, begun, totals);
    await this.#insert(inside, ended, totals);
    await this.#writeTotals(inside, totals);
    await this.#open(inside, writer, open);
  }

  async #open(
    inside: SqlStatements,
    writer: string,
    open: ReadonlyMap<number, SpendRow>,
  ): Promise<void> {
    if (open.size === 0) return;
    if (!this.#isFile) await this.#heard(inside);
    await this.#inPieces(
      inside,
      'INSERT INTO hopgate.spend_open (at, writer, n, spool, row) VALUES',
      [...open].map(([n, row]) => {
        const name = { at: row.time, writer, n, rev: 0, replica: this.#replica };
        return [row.time, writer, n, this.#machine, this.#jsonOf({ ...row, ...name })];
      }),
      'ON CONFLICT DO NOTHING',
    );
  }

  /** Deletes earlier versions of these rows: tries that run, and rows that were booked before their end. */
  async #takeBack(
    inside: SqlStatements,
    names: readonly RowName[],
    totals: RowTotals,
  ): Promise<void> {
    const tables = this.#isFile ? [this.names.rows] : [this.names.rows, 'hopgate.spend_kept'];
    for (const [rev, same] of Map.groupBy(names, (name) => name.rev)) {
      // A row of a running try replaces no earlier row.
      if (rev === 0) continue;
      for (const piece of pieces(same)) {
        const values = piece.flatMap(({ at, writer, n }) => [at, writer, n]);
        const named = this.#named(piece.length);
        await inside.query(`DELETE FROM hopgate.spend_open WHERE ${named}`, values);
        for (const table of tables) {
          const where = `rev < ${ENDED} AND rev < $${values.length + 1} AND ${named}`;
          await this.#drop(inside, table, where, [...values, rev], totals);
        }
      }
    }
  }

  /** SQL: is one of so many names. For a list of alternatives SQLite would read all reserved rows. */
  #named(count: number): string {
    if (this.#isFile) return `(at, writer, n) IN (VALUES ${rowPlaceholders(count, 3)})`;
    const one = (_: unknown, i: number) =>
      `(at = $${3 * i + 1} AND writer = $${3 * i + 2} AND n = $${3 * i + 3})`;
    return `(${Array.from({ length: count }, one).join(' OR ')})`;
  }

  /** Deletes rows, and their part of the totals. */
  async #drop(
    inside: SqlStatements,
    table: string,
    where: string,
    values: readonly SqlValue[],
    totals: RowTotals,
  ): Promise<void> {
    const gone = await inside.query<StoredRow & { readonly labels: number }>(
      `DELETE FROM ${table} WHERE ${where} RETURNING *`,
      values,
    );
    const texts = await this.#textsOf(inside, gone);
    for (const row of gone) totals.add({ ...row, labels: texts.get(row.labels)! }, row.id, -1);
  }

  /** Adds rows that are not there, and counts them. @returns the rows that were added */
  async #insert(
    inside: SqlStatements,
    rows: readonly NamedRow[],
    totals: RowTotals,
  ): Promise<readonly WrittenRow[]> {
    const written: WrittenRow[] = [];
    if (rows.length === 0) return written;
    const texts = await this.textIds(inside, this.#sharedIn(rows));
    if (!this.#isFile)
      await makeMonths(
        inside,
        rows.map(({ at }) => at),
      );
    // The file looks up rows by name only while their tries run.
    const isNamed = !this.#isFile || rows.some(({ rev }) => rev < ENDED);
    const names = [...(isNamed ? NAME : []), ...this.#columns.map(({ name }) => name)];
    const before = `INSERT INTO ${this.names.rows} (${names.join(', ')}) VALUES`;
    const behind = this.#isFile ? '' : 'ON CONFLICT DO NOTHING RETURNING id, writer, n';
    let last = this.#isFile ? await this.#lastRow(inside) : 0;
    for (const piece of pieces(rows)) {
      const values = this.#valuesOf(piece, isNamed, texts);
      const sql = this.#sqlOf(before, piece.length, names.length, behind);
      const found = await inside.query<{ id: number; writer: string; n: number }>(sql, values);
      // In Postgres some may have been there.
      const ids = new Map(found.map(({ id, writer, n }) => [`${n} ${writer}`, id] as const));
      for (const named of piece) {
        const id = this.#isFile ? ++last : ids.get(`${named.n} ${named.writer}`);
        if (id === undefined) continue;
        totals.add(named.row, id);
        written.push([named, id]);
      }
    }
    return written;
  }

  /** In the file, rows have the numbers behind it: to be told each of them costs a third of its row. */
  async #lastRow(inside: SqlStatements): Promise<number> {
    const [row] = await inside.query<{ id: number | null }>(
      `SELECT max(id) AS id FROM ${this.names.rows}`,
    );
    return row!.id ?? 0;
  }

  #sharedIn(rows: readonly NamedRow[]): readonly string[] {
    const shared = this.#columns.filter(({ isShared }) => isShared).map(({ name }) => name);
    const texts = new Set<string>();
    for (const { row } of rows) {
      const values: Values = row;
      for (const name of shared) {
        const text = values[name];
        if (typeof text === 'string') texts.add(text);
      }
    }
    return [...texts];
  }

  #valuesOf(
    rows: readonly NamedRow[],
    isNamed: boolean,
    texts: ReadonlyMap<string, number>,
  ): readonly SqlValue[] {
    const width = this.#columns.length + (isNamed ? NAME.length : 0);
    const values = new Array<SqlValue>(rows.length * width);
    let place = 0;
    for (const { row, at, writer, n, rev, replica = this.#replica } of rows) {
      if (isNamed) for (const value of [at, writer, n, rev, replica]) values[place++] = value;
      const own: Values = row;
      for (const { name, isShared } of this.#columns) {
        const value = own[name] ?? null;
        if (typeof value !== 'string') values[place++] = value;
        else if (isShared) values[place++] = texts.get(this.#storable(value))!;
        else values[place++] = this.#storable(value);
      }
    }
    return values;
  }

  async #writeTotals(inside: SqlStatements, totals: RowTotals): Promise<void> {
    const sums = this.#sums;
    const added = sums.map((name) => `${name} = t.${name} + excluded.${name}`).join(', ');
    const spans = totals.spans();
    if (spans.length > 0) {
      const texts = await this.textIds(
        inside,
        spans.map(({ labels }) => labels),
      );
      await this.#inPieces(
        inside,
        `INSERT INTO ${this.names.totals} AS t (span, start, key, labels, model, target, ${sums.join(', ')}) VALUES`,
        spans.map((group) => [
          group.span,
          group.start,
          this.#storable(group.key),
          texts.get(this.#storable(group.labels))!,
          this.#storable(group.model),
          this.#storable(group.target),
          ...sums.map((name) => group[name]),
        ]),
        `ON CONFLICT (span, start, key, labels, model, target) DO UPDATE SET ${added}`,
      );
    }
    const ranges = this.#isFile ? ['first_row', 'last_row'] : [];
    const ranged = this.#isFile ? `, ${RANGES}` : '';
    await this.#inPieces(
      inside,
      `INSERT INTO ${this.names.sessionTotals} AS t (${['start', 'session', 'key', ...ranges, ...sums].join(', ')}) VALUES`,
      totals
        .days()
        .map((group) => [
          group.start,
          this.#storable(group.session),
          this.#storable(group.key),
          ...(this.#isFile ? [group.first_row, group.last_row] : []),
          ...sums.map((name) => group[name]),
        ]),
      `ON CONFLICT (start, session, key) DO UPDATE SET ${added}${ranged}`,
    );
  }

  /** The numbers of labels and prices. */
  async textIds(
    inside: SqlStatements,
    all: readonly string[],
  ): Promise<ReadonlyMap<string, number>> {
    const ids = this.#textIds;
    if (ids.size > MAX_TEXTS) ids.clear();
    const unknown = new Set(all.map((text) => this.#storable(text)));
    for (const text of unknown) if (ids.has(text)) unknown.delete(text);
    const texts = [...unknown].toSorted();
    await this.#inPieces(
      inside,
      `INSERT INTO ${this.names.texts} (text) VALUES`,
      texts.map((text) => [text]),
      'ON CONFLICT DO NOTHING',
    );
    const digest = (text: string) => (this.#isFile ? text : `md5(${text})`);
    for (const piece of pieces(texts)) {
      const places = piece.map((_, i) => digest(`$${i + 1}`)).join(', ');
      const found = await inside.query<{ id: number; text: string }>(
        `SELECT id, text FROM ${this.names.texts} WHERE ${digest('text')} IN (${places})`,
        piece,
      );
      for (const { id, text } of found) ids.set(text, id);
    }
    return ids;
  }

  async #textsOf(
    inside: SqlStatements,
    rows: readonly { readonly labels: number }[],
  ): Promise<ReadonlyMap<number, string>> {
    const texts = new Map<number, string>();
    for (const piece of pieces([...new Set(rows.map(({ labels }) => labels))])) {
      const found = await inside.query<{ id: number; text: string }>(
        `SELECT id, text FROM ${this.names.texts} WHERE id IN (${placeholders(piece.length)})`,
        piece,
      );
      for (const { id, text } of found) texts.set(id, text);
    }
    return texts;
  }

  /** Books the tries of a process that is gone. If it lives after all, the true rows replace these. */
  async ended(writer: string): Promise<void> {
    await this.writing((inside) =>
      this.book(inside, 'writer = $1', [writer], (row) => ({ ...row, rev: TAKEN_OVER })),
    );
  }

  async gone(writer: string): Promise<void> {
    await this.database.query(
      'UPDATE hopgate.spend_marks SET gone = $2 WHERE writer = $1',
      [writer, Date.now()],
      DEADLINE_MS,
    );
  }

  /** Tries that run become rows. @param as the row of a try, as it was reserved @returns how many */
  async book(
    inside: SqlStatements,
    where: string,
    values: readonly SqlValue[],
    as: (row: NamedRow) => NamedRow,
  ): Promise<number> {
    const open = await inside.query<RowName & { readonly row: unknown }>(
      `DELETE FROM hopgate.spend_open WHERE ${where} RETURNING at, writer, n, row`,
      values,
    );
    const rows = open.map(({ at, writer, n, row }) => {
      const { replica = null, ...stored } = readJson(row) as never as SpendRow & NamedRow;
      return as({ at, writer, n, rev: 0, replica, row: stored });
    });
    const totals = new RowTotals(this.#sums);
    await this.#insert(inside, rows, totals);
    await this.#writeTotals(inside, totals);
    return rows.length;
  }

  /** Writes rows as they are named, unless the same or newer ones are there. */
  async put(rows: readonly NamedRow[]): Promise<void> {
    await this.writing((inside) => this.replace(inside, rows));
  }

  /** {@link put} in a transaction. @param gone ids of rows whose place they take @returns the rows that were written */
  async replace(
    inside: SqlStatements,
    rows: readonly NamedRow[],
    gone: readonly number[] = [],
  ): Promise<readonly WrittenRow[]> {
    const totals = new RowTotals(this.#sums);
    await this.#takeBack(inside, rows, totals);
    for (const piece of pieces(gone)) {
      const where = `id IN (${placeholders(piece.length)})`;
      await this.#drop(inside, this.names.rows, where, piece, totals);
    }
    const written = await this.#insert(inside, rows, totals);
    await this.#writeTotals(inside, totals);
    return written;
  }

  /** Adds totals that have no rows here. */
  async addTotals(
    inside: SqlStatements,
    hours: Iterable<TotalsGroup>,
    sessions: Iterable<SessionGroup>,
  ): Promise<void> {
    const totals = new RowTotals(this.#sums);
    totals.addGroups(hours, sessions);
    await this.#writeTotals(inside, totals);
  }

  refuses(thrown: unknown): boolean {
    const code = String((thrown as { code?: unknown } | null)?.code);
    // Data exceptions, and rules that they break.
    return this.#isFile ? /CONSTRAINT|MISMATCH|TOOBIG/.test(code) : /^2[23]...$/.test(code);
  }

  async #learn(inside: SqlStatements, all: readonly LearnedAnswers[]): Promise<void> {
    const now = Date.now();
    const { learned } = this.names;
    await this.#inPieces(
      inside,
      `INSERT INTO ${learned} (target, stream, bytes_per_token, mean, spread, written) VALUES`,
      all
        .toSorted((a, b) => (a.target < b.target ? -1 : 1))
        .map(({ target, stream, bytesPerToken, mean, spread }) => {
          const name = this.#storable(target);
          return [name, stream ? 1 : 0, bytesPerToken, mean, spread, now];
        }),
      `ON CONFLICT (target, stream) DO UPDATE SET bytes_per_token = excluded.bytes_per_token, mean = excluded.mean,
        spread = excluded.spread, written = excluded.written`,
    );
    await inside.query(
      `DELETE FROM ${learned} WHERE (target, stream) IN
        (SELECT target, stream FROM ${learned} ORDER BY written DESC LIMIT 100000 OFFSET ${MAX_LEARNED})`,
    );
  }

  /** Tells other replicas that this machine lives. */
  heard(): Promise<void> {
    return this.#isFile ? Promise.resolve() : this.#heard(this.database);
  }

  async #heard(inside: SqlStatements): Promise<void> {
    await inside.query(
      `INSERT INTO hopgate.spend_spools VALUES ($1, $2, clock_timestamp())
        ON CONFLICT (id) DO UPDATE SET seen = excluded.seen, replica = excluded.replica`,
      [this.#machine, this.#replica ?? ''],
    );
  }

  close(): void {
    this.database.close();
  }

  /** One transaction. In Postgres, entries of one machine come one after the other. */
  async writing<T>(work: (inside: SqlStatements) => Promise<T>): Promise<T> {
    try {
      return await this.database.transaction(
        async (inside) => {
          if (!this.#isFile) {
            await inside.query(
              `SELECT set_config('lock_timeout', '2000', true), set_config('enable_seqscan', 'off', true),
                set_config('idle_in_transaction_session_timeout', '2000', true),
                pg_advisory_xact_lock(${MACHINE_LOCK}, hashtext($1))`,
              [this.#machine],
            );
          }
          return work(inside);
        },
        { deadlineMs: DEADLINE_MS },
      );
    } catch (thrown) {
      // Numbers of texts that were undone.
      this.#textIds.clear();
      throw thrown;
    }
  }

  async #inPieces(
    inside: SqlStatements,
    before: string,
    rows: readonly (readonly SqlValue[])[],
    behind: string,
  ): Promise<void> {
    for (const piece of pieces(rows)) {
      const sql = this.#sqlOf(before, piece.length, piece[0]!.length, behind);
      await inside.query(sql, piece.flat());
    }
  }

  /** A statement with rows of values; each is made once. */
  #sqlOf(before: string, rows: number, columns: number, behind: string): string {
    const name = `${rows} ${before}`;
    let sql = this.#statements.get(name);
    if (sql === undefined) {
      sql = `${before} ${rowPlaceholders(rows, columns)} ${behind}`;
      this.#statements.set(name, sql);
    }
    return sql;
  }

  #jsonOf(value: object): string {
    if (this.#isFile) return JSON.stringify(value);
    return JSON.stringify(value, (_, one) => this.#storable(one));
  }

  /** Texts of clients may hold what Postgres cannot: a NUL, a half of a pair. */
  #storable<T>(value: T): T {
    if (this.#isFile || typeof value !== 'string') return value;
    return value.toWellFormed().replaceAll('\0', '\u{FFFD}') as T & string;
  }
}

/** @throws SQLiteError, or the file system's error */
export const fileStore = (path: string, busyMs = 5000): SpendStore =>
  new SpendStore(openSqlite(spendSchema(), { path, busyMs }), { machine: '' });

/** Ids of the first and last row of a session, in the file. */
const RANGES = `first_row = min(coalesce(t.first_row, excluded.first_row), coalesce(excluded.first_row, t.first_row)),
  last_row = max(coalesce(t.last_row, excluded.last_row), coalesce(excluded.last_row, t.last_row))`;

/** A list in parts of {@link SIZES}. */
function* pieces<T>(list: readonly T[]): Generator<readonly T[]> {
  let at = 0;
  for (const size of SIZES) {
    for (; at + size <= list.length; at += size) yield list.slice(at, at + size);
  }
}
