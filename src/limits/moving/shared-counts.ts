/** The windows of all replicas as one side of a move: what they have counted, and what of it came from which machine's file. */

import type { Sql, SqlReader } from '../../state/engines/engine.ts';
import { tablesThere } from '../../state/moving/moved-items.ts';
import { limitsTables, WINDOWS_LOCK } from '../database-schema.ts';
import { type Count, type Counted, type CountSide, isCount, isNotice, PAGE } from './counts.ts';

const READ_MS = 10_000;
const WRITE_MS = 5000;
/** Draws of replicas wait meanwhile. */
const LOCK_MS = 3000;
const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)';

interface PlaceRow {
  readonly law: string;
  readonly start: number;
  readonly keep_until: number;
}

/** Which tables there are; without the marks, nothing was ever moved. */
type Form = 'none' | 'unmarked' | 'marked';

export class SharedCounts implements CountSide {
  readonly #database: Sql;
  readonly #form: Form;
  /** Of the file; undefined: nothing was moved from there yet. */
  #origin: string | undefined;
  /** By which files know this database; undefined: it has no name yet. */
  readonly name: string | undefined;

  private constructor(database: Sql, form: Form, name: string | undefined) {
    this.#database = database;
    this.#form = form;
    this.name = name;
  }

  /** @param writes makes the tables; else nothing is written */
  static async open(database: Sql, writes: boolean): Promise<SharedCounts> {
    if (writes) await limitsTables(database)();
    const there = await tablesThere(database, ['windows', 'moved_windows']);
    if (!there.has('windows')) return new SharedCounts(database, 'none', undefined);
    if (!there.has('moved_windows')) return new SharedCounts(database, 'unmarked', undefined);
    const [row] = await database.query<{ name: string }>(
      'SELECT name FROM hopgate.limits_name',
      [],
      READ_MS,
    );
    return new SharedCounts(database, 'marked', row!.name);
  }

  /** @param origin the name of the other side */
  comparedWith(origin: string | undefined): this {
    this.#origin = origin;
    return this;
  }

  async count(): Promise<number> {
    if (this.#form === 'none') return 0;
    const [row] = await this.#database.query<{ count: number }>(
      `SELECT (SELECT count(*) FROM hopgate.windows WHERE keep_until > ${NOW})
         + (SELECT count(*) FROM hopgate.notices WHERE keep_until > ${NOW}) AS count`,
      [],
      READ_MS,
    );
    return row!.count;
  }

  async *pages(): AsyncIterable<readonly Counted[]> {
    if (this.#form === 'none') return;
    const origin = this.#form === 'marked' && this.#origin !== undefined ? [this.#origin] : [];
    const given =
      origin.length === 0
        ? '0'
        : `coalesce((SELECT m.used FROM hopgate.moved_windows m
            WHERE m.origin = $3 AND m.law = w.law AND m.start = w.start), 0)`;
    for (let law = '', start = Number.MIN_SAFE_INTEGER; ; ) {
      const rows = await this.#database.query<PlaceRow & { readonly own: number }>(
        `SELECT w.law, w.start, w.keep_until, w.spent + w.held - ${given} AS own
          FROM hopgate.windows w
          WHERE (w.law, w.start) > ($1, $2) AND w.keep_until > ${NOW} ORDER BY w.law, w.start LIMIT ${PAGE}`,
        [law, start, ...origin],
        READ_MS,
      );
      if (rows.length > 0)
        yield rows.map((row) => ({ ...placeOf(row), kind: 'window', own: row.own }));
      if (rows.length < PAGE) break;
      ({ law, start } = rows.at(-1)!);
    }
    for (let law = '', start = Number.MIN_SAFE_INTEGER, mark = -1; ; ) {
      const rows = await this.#database.query<PlaceRow & { readonly mark: number }>(
        `SELECT law, start, mark, keep_until FROM hopgate.notices
          WHERE (law, start, mark) > ($1, $2, $3) AND keep_until > ${NOW} ORDER BY law, start, mark LIMIT ${PAGE}`,
        [law, start, mark],
        READ_MS,
      );
      if (rows.length > 0) {
        yield rows.map((row) => ({ ...placeOf(row), kind: 'notice', mark: row.mark }));
      }
      if (rows.length < PAGE) return;
      ({ law, start, mark } = rows.at(-1)!);
    }
  }

  async has(page: readonly Counted[]): Promise<readonly boolean[]> {
    const counts = page.filter(isCount);
    const notices = page.filter(isNotice);
    const marks =
      this.#form === 'marked' && this.#origin !== undefined && counts.length > 0
        ? await this.#database.query<{ law: string; start: number; used: number }>(
            `SELECT law, start, used FROM hopgate.moved_windows
              WHERE origin = $1 AND (law, start) IN (SELECT * FROM unnest($2::text[], $3::bigint[]))`,
            [this.#origin, lawsOf(counts), startsOf(counts)],
            READ_MS,
          )
        : [];
    const known =
      this.#form !== 'none' && notices.length > 0
        ? await this.#database.query<{ law: string; start: number; mark: number }>(
            `SELECT law, start, mark FROM hopgate.notices
              WHERE (law, start, mark) IN (SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[]))`,
            [lawsOf(notices), startsOf(notices), notices.map(({ mark }) => mark)],
            READ_MS,
          )
        : [];
    const given = new Map(marks.map(({ law, start, used }) => [`${start} ${law}`, used]));
    const sent = new Set(known.map(({ law, start, mark }) => `${start} ${mark} ${law}`));
    return page.map((one) =>
      isCount(one)
        ? (given.get(`${one.start} ${one.law}`) ?? 0) === one.own
        : sent.has(`${one.start} ${one.mark} ${one.law}`),
    );
  }

  async add(page: readonly Counted[]): Promise<void> {
    await this.#database.transaction(async (inside) => {
      await inside.query("SELECT set_config('lock_timeout', $1, true)", [`${LOCK_MS}`]);
      await inside.query('SELECT pg_advisory_xact_lock($1)', [WINDOWS_LOCK]);
      const counts = page.filter(isCount);
      if (counts.length > 0) await this.#addCounts(inside, counts);
      const notices = page.filter(isNotice);
      if (notices.length === 0) return;
      await inside.query(
        `INSERT INTO hopgate.notices (law, start, keep_until, mark)
          SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) ON CONFLICT DO NOTHING`,
        [...placesOf(notices), notices.map(({ mark }) => mark)],
      );
    }, WRITE_MS);
  }

  /** What was counted for this file before is taken off, and the new number noted: the same again adds nothing. */
  async #addCounts(inside: SqlReader, counts: readonly Count[]): Promise<void> {
    const places = placesOf(counts);
    await inside.query(
      `INSERT INTO hopgate.windows (law, start, keep_until)
        SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[]) ON CONFLICT DO NOTHING`,
      places,
    );
    await inside.query(
      `WITH came AS (
         SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) AS g (law, start, keep_until, own)
       ), marked AS (
         INSERT INTO hopgate.moved_windows (origin, law, start, keep_until, used) SELECT $5, * FROM came
         ON CONFLICT (origin, law, start) DO UPDATE SET used = excluded.used
       )
       UPDATE hopgate.windows w SET spent = greatest(0, w.spent + c.own - coalesce(m.used, 0))
         FROM came c LEFT JOIN hopgate.moved_windows m
           ON m.origin = $5 AND m.law = c.law AND m.start = c.start
         WHERE w.law = c.law AND w.start = c.start`,
      [...places, counts.map(({ own }) => own), this.#origin!],
    );
    await inside.query(`DELETE FROM hopgate.moved_windows WHERE keep_until < ${NOW}`, []);
  }
}

const lawsOf = (all: readonly Counted[]) => all.map(({ law }) => law);
const startsOf = (all: readonly Counted[]) => all.map(({ start }) => start);
const placesOf = (all: readonly Counted[]) => [
  lawsOf(all),
  startsOf(all),
  all.map(({ keepUntil }) => keepUntil),
];

const placeOf = ({ law, start, keep_until }: PlaceRow) => ({
  law,
  start,
  keepUntil: keep_until,
});
