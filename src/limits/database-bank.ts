/** The bank of all replicas, in Postgres. */

import type { Sql, SqlReader, SqlTransaction, SqlValue } from '../state/engines/engine.ts';
import type { Prepared } from '../state/sql/migrations.ts';
import {
  type Bank,
  type Draw,
  type Drawn,
  type Grant,
  grantLease,
  type LeaseRow,
  settleLease,
  type WindowKey,
  type WindowRow,
} from './bank.ts';
import { limitsTables, WINDOWS_LOCK } from './schema.ts';

const DRAW_MS = 1000;
/** Leases of a session are valid for so long after each draw, by the clock of the database. */
const SESSION_MS = 60_000;
/** A replica that freezes while it has the lock holds up the others for so long. */
const MAX_IDLE_MS = 500;
/** One in so many draws of a session deletes rows that are over. */
const CLEAN_DRAWS = 100;
/** Clocks that differ by less count as the same. */
const CLOCK_MS = 1000;
const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)';

interface Clock {
  readonly now: number;
}

interface SessionRow {
  readonly id: string;
  readonly seq: number;
  readonly answer: Drawn;
  readonly lapsed: boolean;
  readonly is_over: boolean;
}

interface OwnRow extends WindowRow {
  readonly law: string;
  readonly start: number;
  readonly own: number;
  readonly lost: number;
}

/** A window and the lease of the session, as they are in the transaction. */
interface Drawing {
  readonly window: WindowKey;
  readonly row: WindowRow;
  readonly lease: LeaseRow;
  readonly before: OwnRow;
}

const isChanged = ({ row, lease, before }: Drawing): boolean =>
  row.spent !== before.spent ||
  row.held !== before.held ||
  lease.held !== before.own ||
  lease.lost !== before.lost;

export interface DatabaseBankOptions {
  readonly database: Sql;
  /** For tests. */
  readonly sessionMs?: number | undefined;
  readonly deadlineMs?: number;
  /** Of this machine. */
  readonly wall?: () => number;
}

export class DatabaseBank implements Bank {
  readonly distance = 'far';
  readonly sessionMs: number;
  readonly #database: Sql;
  readonly #deadlineMs: number;
  readonly #prepared: Prepared;
  readonly #wall: () => number;
  #aheadMs: number | undefined;

  constructor(options: DatabaseBankOptions) {
    const { database, sessionMs = SESSION_MS, deadlineMs = DRAW_MS, wall = Date.now } = options;
    this.#database = database;
    this.sessionMs = sessionMs;
    this.#deadlineMs = deadlineMs;
    this.#wall = wall;
    this.#prepared = limitsTables(database);
  }

  get aheadMs(): number {
    return this.#aheadMs ?? 0;
  }

  async ready(): Promise<void> {
    if (this.#aheadMs !== undefined) return;
    const sent = this.#wall();
    const read = this.#database.query<Clock>(`SELECT ${NOW}::float8 AS now`, [], this.#deadlineMs);
    await read.then(
      ([row]) => this.#compare(row!.now, sent),
      () => {},
    );
  }

  /** @param sent when the question for this time of the database was sent; its answer came just now */
  #compare(now: number, sent: number): void {
    const [least, most] = [now - this.#wall(), now - sent];
    const { aheadMs } = this;
    const isAsKnown = aheadMs >= least - CLOCK_MS && aheadMs <= most + CLOCK_MS;
    this.#aheadMs = isAsKnown ? aheadMs : Math.round((least + most) / 2);
  }

  async draw(draw: Draw): Promise<Drawn> {
    await this.#prepared();
    return this.#database.transaction((inside) => this.#drawn(inside, draw), this.#deadlineMs);
  }

  hasOthers(): boolean {
    return true;
  }

  async isNew({ law, start, keepUntil }: WindowKey, mark: number): Promise<boolean> {
    await this.#prepared();
    const rows = await this.#database.query(
      'INSERT INTO hopgate.notices VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING RETURNING 1',
      [law, start, mark, keepUntil],
      this.#deadlineMs,
    );
    return rows.length > 0;
  }

  /** Statements that do not wait for each other go out together: while the lock is held, there is one trip, with its end. */
  async #drawn(inside: SqlTransaction, draw: Draw): Promise<Drawn> {
    const { session, number, settled, wanted, closes } = draw;
    const windows = [...new Map([...settled, ...wanted].map((one) => [keyOf(one), one])).values()];
    const read = () => readWindows(inside, session, windows);
    const sent = this.#wall();
    const [clock, sessions, found] = await Promise.all([
      // Draws are few and short: one after the other needs no order of locks.
      inside.query<Clock>(
        `SELECT set_config('idle_in_transaction_session_timeout', $1, true), pg_advisory_xact_lock($2),
           ${NOW}::float8 AS now`,
        [`${MAX_IDLE_MS}`, WINDOWS_LOCK],
      ),
      inside.query<SessionRow>(
        `SELECT id, seq, CASE WHEN id = $1 THEN answer END AS answer, lapsed, until < clock_timestamp() AS is_over
           FROM hopgate.sessions WHERE id = $1 OR NOT lapsed`,
        [session],
      ),
      read(),
    ]);
    this.#compare(clock[0]!.now, sent);
    const own = sessions.find(({ id }) => id === session);
    if (own?.seq === number) return own.answer;
    if (own !== undefined && own.seq > number)
      throw new Error(`draw ${number} of ${session} came after draw ${own.seq}`);
    const over = sessions.filter(({ lapsed, is_over }) => is_over && !lapsed).map(({ id }) => id);
    const lapsed = own !== undefined && (own.lapsed || over.includes(session));
    const living = sessions.filter(({ id, lapsed: isOver }) => !isOver && !over.includes(id));
    const count = living.length + (own === undefined ? 1 : 0);
    let rows = found;
    if (over.length > 0) {
      const lapsing = lapse(inside, over);
      rows = await read();
      await lapsing;
    }
    const drawing = new Map(rows.map((one) => [keyOf(one.window), one]));
    for (const one of settled) {
      const { row, lease } = drawing.get(keyOf(one))!;
      settleLease(row, lease, one);
    }
    const grants = wanted.map((want): Grant => {
      const { row, lease } = drawing.get(keyOf(want))!;
      if (!lapsed && !closes) grantLease(row, lease, want, count);
      return { spent: row.spent, held: row.held, own: lease.held };
    });
    const answer = { grants, lapsed, sessions: count };
    const ends = lapsed || closes;
    const stored = [number, JSON.stringify(answer), this.sessionMs, ends] as const;
    await Promise.all([
      write(inside, session, rows.filter(isChanged), stored),
      ...(closes ? giveBackAll(inside, session) : []),
      ...(number % CLEAN_DRAWS === 1 ? clean(inside, session) : []),
      inside.commit(),
    ]);
    return answer;
  }
}

const keyOf = ({ law, start }: Pick<WindowKey, 'law' | 'start'>) => `${start} ${law}`;

async function readWindows(
  inside: SqlReader,
  session: string,
  windows: readonly WindowKey[],
): Promise<readonly Drawing[]> {
  if (windows.length === 0) return [];
  const rows = await inside.query<OwnRow>(
    `SELECT g.law, g.start, coalesce(w.spent, 0) AS spent, coalesce(w.held, 0) AS held,
         coalesce(l.held, 0) AS own, coalesce(l.lost, 0) AS lost
       FROM unnest($2::text[], $3::bigint[]) AS g (law, start)
       LEFT JOIN hopgate.windows w ON w.law = g.law AND w.start = g.start
       LEFT JOIN hopgate.leases l ON l.session = $1 AND l.law = g.law AND l.start = g.start`,
    [session, windows.map(({ law }) => law), windows.map(({ start }) => start)],
  );
  const found = new Map(rows.map((row) => [keyOf(row), row]));
  return windows.map((window) => {
    const before = found.get(keyOf(window))!;
    const { spent, held, own, lost } = before;
    return { window, row: { spent, held }, lease: { held: own, lost }, before };
  });
}

/** One statement: what the draw has changed, and its answer, in case that it does not arrive. */
function write(
  inside: SqlReader,
  session: string,
  rows: readonly Drawing[],
  [number, answer, sessionMs, ends]: readonly [number, string, number, boolean],
) {
  const column = (of: (one: Drawing) => SqlValue) => rows.map(of);
  return inside.query(
    `WITH changed AS (
         SELECT * FROM unnest($6::text[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[])
           AS c (law, start, spent, held, keep_until, own, lost)),
       windows AS (
         INSERT INTO hopgate.windows (law, start, spent, held, keep_until)
           SELECT law, start, spent, held, keep_until FROM changed
           ON CONFLICT (law, start) DO UPDATE SET spent = excluded.spent, held = excluded.held),
       leases AS (
         INSERT INTO hopgate.leases (session, law, start, held, lost)
           SELECT $1, law, start, own, lost FROM changed WHERE own + lost > 0
           ON CONFLICT (session, law, start) DO UPDATE SET held = excluded.held, lost = excluded.lost),
       ended AS (
         DELETE FROM hopgate.leases l USING changed c
           WHERE l.session = $1 AND l.law = c.law AND l.start = c.start AND c.own + c.lost = 0)
     INSERT INTO hopgate.sessions (id, seq, answer, until, lapsed)
       VALUES ($1, $2, $3, clock_timestamp() + $4 * interval '1 millisecond', $5)
       ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, answer = excluded.answer, lapsed = excluded.lapsed,
         until = CASE WHEN hopgate.sessions.lapsed THEN hopgate.sessions.until ELSE excluded.until END`,
    [
      session,
      number,
      answer,
      sessionMs,
      ends,
      column(({ window }) => window.law),
      column(({ window }) => window.start),
      column(({ row }) => row.spent),
      column(({ row }) => row.held),
      column(({ window }) => window.keepUntil),
      column(({ lease }) => lease.held),
      column(({ lease }) => lease.lost),
    ],
  );
}

/** Units that sessions held when their time was over count as spent: they may have been used. */
const lapse = (inside: SqlReader, sessions: readonly string[]) =>
  Promise.all([
    inside.query(
      `UPDATE hopgate.windows w SET spent = w.spent + l.held, held = greatest(0, w.held - l.held)
         FROM (SELECT law, start, sum(held)::bigint AS held FROM hopgate.leases
           WHERE session = ANY ($1::text[]) GROUP BY law, start) l
         WHERE l.law = w.law AND l.start = w.start AND l.held > 0`,
      [sessions],
    ),
    inside.query(
      'UPDATE hopgate.leases SET lost = lost + held, held = 0 WHERE session = ANY ($1::text[]) AND held > 0',
      [sessions],
    ),
    inside.query('UPDATE hopgate.sessions SET lapsed = true WHERE id = ANY ($1::text[])', [
      sessions,
    ]),
  ]);

/** Everything is settled: the rest of the leases was never used. */
const giveBackAll = (inside: SqlReader, session: string) => [
  inside.query(
    `UPDATE hopgate.windows w SET held = greatest(0, w.held - l.held), spent = greatest(0, w.spent - l.lost)
       FROM hopgate.leases l WHERE l.session = $1 AND l.law = w.law AND l.start = w.start`,
    [session],
  ),
  inside.query('DELETE FROM hopgate.leases WHERE session = $1', [session]),
];

const clean = (inside: SqlReader, session: string) => [
  inside.query(`DELETE FROM hopgate.windows WHERE keep_until < ${NOW}`, []),
  inside.query(`DELETE FROM hopgate.notices WHERE keep_until < ${NOW}`, []),
  inside.query(
    `DELETE FROM hopgate.sessions s WHERE until < clock_timestamp() - interval '1 day'
       AND NOT EXISTS (SELECT 1 FROM hopgate.leases l WHERE l.session = s.id AND l.held > 0)`,
    [],
  ),
  inside.query(
    `DELETE FROM hopgate.leases l WHERE l.session <> $1
       AND NOT EXISTS (SELECT 1 FROM hopgate.sessions s WHERE s.id = l.session)`,
    [session],
  ),
];
