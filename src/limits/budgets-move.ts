/** Moves what budgets have counted between the file of a machine and the database of all replicas, each unit once. */

import {
  type MoveSource,
  type MoveTarget,
  pagedMove,
  type StateMove,
  type TargetState,
} from '../state/move/paged-move.ts';
import { type MoveOptions, namedFile, openSides, pagesOf, type Side } from '../state/move/sides.ts';
import {
  placeholders,
  rowPlaceholders,
  type SqlDatabase,
  type SqlStatements,
} from '../state/sql/sql.ts';
import { LIMITS_SCHEMA, WINDOWS_LOCK } from './schema.ts';

/** One row of either table. */
interface Counted {
  readonly law: string;
  readonly start: number;
  /** Milliseconds since 1970 from which on it may go. */
  readonly keep_until: number;
  /** Units that this side counted itself in a window, without those from the other side. */
  readonly own?: number;
  /** A mark that was reached and reported. */
  readonly mark?: number;
}

const ALL_UNITS = Number.MAX_SAFE_INTEGER;

/** Differences of the tables: the database counts held and spent units apart. */
const FORMS = {
  file: { total: 'w.used', added: 'used', peer: 'database', name: ['origin', 'id'] },
  database: {
    total: 'w.spent + w.held',
    added: 'spent',
    peer: 'origin',
    name: ['limits_name', 'name'],
  },
} as const;

// In a file beside its schema and its versions: only moves know them.
const nameFile = namedFile(
  [
    `CREATE TABLE IF NOT EXISTS hopgate.moved_windows (
    database TEXT NOT NULL, law TEXT NOT NULL, start INTEGER NOT NULL, used INTEGER NOT NULL, keep_until INTEGER NOT NULL,
    PRIMARY KEY (database, law, start)) WITHOUT ROWID`,
    'CREATE TABLE IF NOT EXISTS hopgate.origin (id TEXT PRIMARY KEY) WITHOUT ROWID',
  ],
  'INSERT INTO hopgate.origin SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM hopgate.origin)',
);

/**
 * Each unit is counted first on one side. Each side notes how many units of a window it has from the other, in the
 * transaction that adds them. The rest are its own, and only these go to the other side, as the difference to those
 * that went before. The difference may be below 0: a running gateway counts units that it has drawn ahead, and takes
 * back those that it did not need.
 */
export const budgetsMove = (options: MoveOptions): StateMove =>
  pagedMove<Counted>({ name: 'budgets', item: 'count', engine: 'database' }, async (writes) => {
    const sides = await openSides(LIMITS_SCHEMA, options, {
      writes: writes ? 'both' : undefined,
      prepare: nameFile,
    });
    try {
      const here = sides.file && (await Counts.of(sides.file));
      const there = await Counts.of(sides.database);
      if (here !== undefined) here.other = there?.name;
      if (there !== undefined) there.other = here?.name;
      const [source, target] = options.to === 'engines' ? [here, there] : [there, here];
      return {
        source,
        target,
        write: (missing) => target!.add(missing),
        notes: ({ missing, there }) => (missing + there === 0 ? [] : [IN_USE]),
        close: sides.close,
      };
    } catch (thrown) {
      sides.close();
      throw thrown;
    }
  });

const IN_USE =
  'what gateways have reserved or drawn ahead counts as used until they end: run the command again then. Rates and slots are not copied: they are over within a minute.';

const keyOf = ({ law, start, mark = 0 }: Pick<Counted, 'law' | 'start' | 'mark'>) =>
  `${start} ${mark} ${law}`;
const lawsOf = (page: readonly Counted[]) => [...new Set(page.map(({ law }) => law))];

/** One side, without windows that are over. */
class Counts implements MoveSource<Counted>, MoveTarget<Counted> {
  readonly #sql: SqlDatabase;
  readonly #form: (typeof FORMS)['file' | 'database'];
  /** The name of the other side; undefined: nothing came from it. */
  other: string | undefined;

  private constructor(
    private readonly side: Side,
    /** Its name on the other side; undefined: nothing was moved from or to it. */
    readonly name: string | undefined,
  ) {
    this.#sql = side.db;
    this.#form = FORMS[side.db.form];
  }

  /** Undefined: nothing was counted there. */
  static async of(side: Side): Promise<Counts | undefined> {
    if (!side.has.has('windows')) return undefined;
    const [table, column] = FORMS[side.db.form].name;
    const [row] = side.has.has(table)
      ? await side.db.query<{ name: string }>(`SELECT ${column} AS name FROM hopgate.${table}`)
      : [];
    return new Counts(side, row?.name);
  }

  async count(): Promise<number> {
    const { now } = this.#sql;
    const [row] = await this.#sql.query<{ count: number }>(
      `SELECT (SELECT count(*) FROM hopgate.windows WHERE keep_until > ${now})
         + (SELECT count(*) FROM hopgate.notices WHERE keep_until > ${now}) AS count`,
    );
    return row!.count;
  }

  async *pages(): AsyncIterable<readonly Counted[]> {
    const { now } = this.#sql;
    const { total, peer } = this.#form;
    const isMarked = this.name !== undefined && this.other !== undefined;
    const taken = isMarked
      ? `coalesce((SELECT m.used FROM hopgate.moved_windows m
           WHERE m.${peer} = $1 AND m.law = w.law AND m.start = w.start), 0)`
      : '0';
    yield* pagesOf<Counted>(
      this.side,
      `SELECT w.law, w.start, w.keep_until, ${total} - ${taken} AS own FROM hopgate.windows w WHERE w.keep_until > ${now}`,
      ['law', 'start'],
      isMarked ? [this.other!] : [],
    );
    yield* pagesOf<Counted>(
      this.side,
      `SELECT law, start, mark, keep_until FROM hopgate.notices WHERE keep_until > ${now}`,
      ['law', 'start', 'mark'],
    );
  }

  /** Whether these are here already, unchanged. */
  async states(page: readonly Counted[]): Promise<readonly TargetState[]> {
    const taken = await this.#taken(this.#sql, page);
    const laws = lawsOf(page);
    const known = await this.#sql.query<Counted>(
      `SELECT law, start, mark FROM hopgate.notices WHERE law IN (${placeholders(laws.length)})`,
      laws,
    );
    const told = new Set(known.map(keyOf));
    return page.map((one) => {
      const isHere =
        one.own === undefined ? told.has(keyOf(one)) : (taken.get(keyOf(one)) ?? 0) === one.own;
      return isHere ? 'there' : 'missing';
    });
  }

  /** Units that are here from the other side, by window. */
  async #taken(sql: SqlStatements, page: readonly Counted[]): Promise<ReadonlyMap<string, number>> {
    const laws = lawsOf(page);
    if (this.name === undefined || this.other === undefined) return new Map();
    const rows = await sql.query<Counted & { readonly used: number }>(
      `SELECT law, start, used FROM hopgate.moved_windows
         WHERE ${this.#form.peer} = $1 AND law IN (${placeholders(laws.length, 2)})`,
      [this.other, ...laws],
    );
    return new Map(rows.map((row) => [keyOf(row), row.used]));
  }

  /** Adds units and marks since the last move, all or none. */
  async add(page: readonly Counted[]): Promise<number> {
    await this.#sql.transaction(
      async (inside) => {
        await this.#addCounts(
          inside,
          page.filter(({ own }) => own !== undefined),
        );
        const notices = page.filter(({ mark }) => mark !== undefined);
        if (notices.length === 0) return;
        await inside.query(
          `INSERT INTO hopgate.notices (law, start, mark, keep_until)
             VALUES ${rowPlaceholders(notices.length, 4)} ON CONFLICT DO NOTHING`,
          notices.flatMap(({ law, start, mark, keep_until }) => [law, start, mark!, keep_until]),
        );
      },
      { lock: WINDOWS_LOCK },
    );
    return page.length;
  }

  /** The difference to what was noted is added, and the new number noted: the same again adds nothing. */
  async #addCounts(inside: SqlStatements, counts: readonly Counted[]): Promise<void> {
    if (counts.length === 0) return;
    const { added, peer } = this.#form;
    const laws = lawsOf(counts);
    const taken = await this.#taken(inside, counts);
    const rows = await inside.query<Counted & { readonly counted: number }>(
      `SELECT law, start, ${added} AS counted FROM hopgate.windows WHERE law IN (${placeholders(laws.length)})`,
      laws,
    );
    const known = new Map(rows.map((row) => [keyOf(row), row.counted]));
    const counted = (one: Counted) =>
      (known.get(keyOf(one)) ?? 0) + one.own! - (taken.get(keyOf(one)) ?? 0);
    const keep = ({ keep_until }: Counted) => Math.min(ALL_UNITS, keep_until);
    await inside.query(
      `INSERT INTO hopgate.windows (law, start, ${added}, keep_until) VALUES ${rowPlaceholders(counts.length, 4)}
         ON CONFLICT (law, start) DO UPDATE SET ${added} = excluded.${added}`,
      counts.flatMap((one) => [
        one.law,
        one.start,
        Math.min(ALL_UNITS, Math.max(0, counted(one))),
        keep(one),
      ]),
    );
    await inside.query(
      `INSERT INTO hopgate.moved_windows (${peer}, law, start, used, keep_until)
         VALUES ${rowPlaceholders(counts.length, 5)}
         ON CONFLICT (${peer}, law, start) DO UPDATE SET used = excluded.used`,
      counts.flatMap((one) => [this.other!, one.law, one.start, one.own!, keep(one)]),
    );
    await inside.query(`DELETE FROM hopgate.moved_windows WHERE keep_until < ${this.#sql.now}`);
  }
}
