/** The index of terms in Postgres: each event's row has its terms, and how many events of a space hold one is counted. */

import type { SqlDatabase, SqlStatements } from '../../../state/sql/sql.ts';
import { knownTerms, MAX_ROWS_READ } from '../ranking/known-terms.ts';
import {
  type Beside,
  MIN_EVENTS,
  OF_A_TIME,
  POOL,
  SINGLE_CHARACTER,
  WITH_NEIGHBOURS,
} from '../ranking/rank.ts';
import { isSingleCharacter } from '../ranking/terms.ts';
import { CLOCK_NOW, type DatabaseClock } from './database-clock.ts';
import { formsOf } from './schema.ts';
import type { SealedEvents } from './sealed-events.ts';
import type { Asking, ErasedSpace, FoundRows, TermsIndex } from './terms-index.ts';

const READ_MS = 2000;
/** The largest body, in bytes, that comes with its digest. */
const WHOLE_BYTES = 1500;
/** Events, and then terms, that one step of an erasure removes. */
const SWEEP_EVENTS = 500;
const SWEEP_TERMS = 10_000;

const { isOneOf, list } = formsOf({ form: 'database' });
/** A list of numbers, given as JSON. */
const numbers = (json: string, type = 'bigint') => `CAST(${list(json)} AS ${type}[])`;

/**
 * In one trip what a file finds in several: events that hold the rarest terms, those right before and after the first of
 * them, those of named times, and those of the nearest vectors. The planner takes lists of unknown length for short
 * ones; a row of its own for each lookup keeps it at the indexes, whatever it knows of the tables.
 */
const FIND = `
WITH place AS MATERIALIZED (
  SELECT id, events, length FROM hopgate.memory_spaces WHERE name = $1
), counted AS MATERIALIZED (
  SELECT l.form, l.term, l.worth, m.events
    FROM place p CROSS JOIN unnest(${list('$2')}, ${numbers('$3')}, ${numbers('$4', 'float8')}) AS l(form, term, worth)
    CROSS JOIN LATERAL (
      SELECT events FROM hopgate.memory_terms WHERE space = p.id AND term = l.form LIMIT 1
    ) m
), terms AS (
  SELECT c.term, c.worth, least(sum(c.events), p.events) AS having_it, array_agg(p.id || ':' || c.form) AS held
    FROM counted c CROSS JOIN place p GROUP BY c.term, c.worth, p.events
), planned AS (
  SELECT *, row_number() OVER (ORDER BY having_it, term) AS nth,
      coalesce(sum(having_it) OVER (
        ORDER BY having_it, term ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ), 0) AS read
    FROM terms
), hits AS MATERIALIZED (
  SELECT h.seq, t.nth, t.worth * ln(
      1 + (greatest($14, p.events) - t.having_it + 0.5)::float8 / (t.having_it + 0.5)::float8
    ) AS worth
    FROM place p CROSS JOIN planned t CROSS JOIN LATERAL (
      SELECT seq FROM (
        SELECT seq FROM hopgate.memory_events WHERE terms && t.held OFFSET 0
      ) hit ORDER BY seq DESC LIMIT greatest(0, $5 - t.read)::bigint
    ) h
    WHERE t.nth = 1 OR t.read + t.having_it <= $5
), weighed AS (
  SELECT seq, sum(worth ORDER BY nth) AS weight FROM hits h
    WHERE (CAST($12 AS bigint) = 0 AND CAST($13 AS bigint) = 9007199254740991) OR EXISTS (
      SELECT 1 FROM hopgate.memory_events t WHERE t.seq = h.seq AND t.time >= $12 AND t.time < $13
    ) GROUP BY seq
), best AS MATERIALIZED (
  -- A question that was asked a hundred times must not displace its answer.
  SELECT seq, row_number() OVER (ORDER BY same > $6 / 2, weight DESC, seq DESC) AS nth FROM (
    SELECT seq, weight, row_number() OVER (PARTITION BY weight ORDER BY seq DESC) AS same FROM weighed
  ) ranked ORDER BY nth LIMIT $6
), beside AS MATERIALIZED (
  SELECT b.seq, (
      SELECT seq FROM hopgate.memory_events WHERE space = p.id AND (time, seq) < (e.time, e.seq)
        ORDER BY time DESC, seq DESC LIMIT 1
    ) AS before, (
      SELECT seq FROM hopgate.memory_events WHERE space = p.id AND (time, seq) > (e.time, e.seq)
        ORDER BY time, seq LIMIT 1
    ) AS after
    FROM place p CROSS JOIN best b CROSS JOIN LATERAL (
      SELECT time, seq FROM hopgate.memory_events WHERE seq = b.seq LIMIT 1
    ) e WHERE b.nth <= $7
), timely AS (
  SELECT e.seq FROM place p
    CROSS JOIN unnest(${numbers('$8')}, ${numbers('$9')}) WITH ORDINALITY AS t(since, until, nth)
    CROSS JOIN LATERAL (
      SELECT seq, time FROM hopgate.memory_events WHERE space = p.id AND time >= t.since AND time < t.until
        ORDER BY time DESC, seq DESC LIMIT $10
    ) e ORDER BY t.nth, e.time DESC, e.seq DESC LIMIT $10
), wanted AS (
  SELECT seq FROM best UNION SELECT seq FROM timely UNION SELECT before FROM beside UNION SELECT after FROM beside
    UNION SELECT unnest(${numbers('$11')})
)
SELECT p.id AS space, p.events, p.length, ${CLOCK_NOW} AS clock,
  (SELECT json_agg(json_build_array(c.form, c.events)) FROM counted c) AS counts,
  (SELECT json_agg(json_build_array(b.seq, b.before, b.after)) FROM beside b) AS beside,
  (SELECT json_agg(json_build_array(e.seq, e.id, e.time, e.importance, encode(e.digest, 'base64'),
      CASE WHEN e.digest IS NULL OR octet_length(e.body) <= ${WHOLE_BYTES} THEN encode(e.body, 'base64') END))
    FROM wanted w CROSS JOIN LATERAL (
      SELECT * FROM hopgate.memory_events WHERE seq = w.seq AND space = p.id LIMIT 1
    ) e) AS rows
  FROM place p`;

interface FindAnswer {
  readonly space: number;
  readonly events: number;
  readonly length: number;
  readonly clock: number;
  readonly counts: readonly (readonly [form: string, events: number])[] | null;
  readonly beside: readonly Beside[] | null;
  /** Digest and body are base64. */
  readonly rows:
    | readonly (readonly [
        seq: number,
        id: string,
        time: number,
        importance: number,
        digest: string | null,
        body: string | null,
      ])[]
    | null;
}

export class DatabaseTerms implements TermsIndex {
  readonly together = 200;
  readonly column = 'terms';

  constructor(
    private readonly db: SqlDatabase,
    private readonly sealed: SealedEvents,
    private readonly clock: DatabaseClock,
  ) {}

  stored(space: number, term: string): string {
    return `${space}:${term}`;
  }

  async add(inside: SqlStatements, events: ReadonlyMap<number, readonly string[]>): Promise<void> {
    await inside.query(
      `INSERT INTO hopgate.memory_terms AS m
         SELECT e.space, substr(t, strpos(t, ':') + 1), count(*)
           FROM hopgate.memory_events e, unnest(e.terms) t WHERE ${isOneOf('e.seq', '$1', 'bigint')} GROUP BY 1, 2
         ON CONFLICT (space, term) DO UPDATE SET events = m.events + excluded.events`,
      [JSON.stringify([...events.keys()])],
    );
  }

  async remove(inside: SqlStatements, rows: readonly number[]): Promise<void> {
    await inside.query(
      `WITH held AS (
         SELECT e.space, substr(t, strpos(t, ':') + 1) AS term, count(*) AS events
           FROM hopgate.memory_events e, unnest(e.terms) t WHERE ${isOneOf('e.seq', '$1', 'bigint')} GROUP BY 1, 2
       ), last AS (
         DELETE FROM hopgate.memory_terms m USING held h
           WHERE m.space = h.space AND m.term = h.term AND m.events <= h.events
       )
       UPDATE hopgate.memory_terms m SET events = m.events - h.events FROM held h
         WHERE m.space = h.space AND m.term = h.term AND m.events > h.events`,
      [JSON.stringify(rows)],
    );
  }

  async find({ space, question, lookedUp, near }: Asking): Promise<FoundRows | undefined> {
    const { times, within } = question;
    const blinded = new Map<string, string>();
    const forms: [form: string, term: number, worth: number][] = [];
    let at = -1;
    for (const [term, finding] of lookedUp) {
      at++;
      const factor = isSingleCharacter(term) ? SINGLE_CHARACTER : 1;
      for (const form of finding) {
        if (!blinded.has(form)) blinded.set(form, this.sealed.term(space, form));
        forms.push([blinded.get(form)!, at, factor]);
      }
    }
    const column = (at: 0 | 1 | 2) => JSON.stringify(forms.map((one) => one[at]));
    const [answer] = await this.db.query<FindAnswer>(
      FIND,
      [
        ...[space, column(0), column(1), column(2), MAX_ROWS_READ, POOL, WITH_NEIGHBOURS],
        JSON.stringify(times.map(({ since }) => Math.ceil(since))),
        JSON.stringify(times.map(({ until }) => Math.ceil(until))),
        ...[OF_A_TIME, JSON.stringify(near), Math.ceil(within.since), Math.ceil(within.until)],
        MIN_EVENTS,
      ],
      READ_MS,
    );
    if (answer === undefined) return undefined;
    this.clock.measured(answer.clock);
    const counts = new Map(answer.counts);
    return {
      ...answer,
      ...knownTerms(lookedUp, answer.events, (form) => counts.get(blinded.get(form)!) ?? 0),
      rows: (answer.rows ?? []).map(([seq, id, time, importance, digest, body]) => ({
        ...{ seq, id, time, importance },
        digest: digest === null ? null : Buffer.from(digest, 'base64'),
        body: body === null ? null : Buffer.from(body, 'base64'),
      })),
      beside: answer.beside ?? [],
    };
  }

  async sweep(
    inside: SqlStatements,
    { id }: ErasedSpace,
    drop: (rows: readonly number[]) => Promise<void>,
  ): Promise<boolean> {
    const rows = await inside.query<{ seq: number }>(
      `SELECT seq FROM hopgate.memory_events WHERE space = $1 LIMIT ${SWEEP_EVENTS}`,
      [id],
    );
    if (rows.length > 0) {
      await drop(rows.map(({ seq }) => seq));
      return true;
    }
    const terms = await inside.query(
      `DELETE FROM hopgate.memory_terms WHERE space = $1 AND term IN
         (SELECT term FROM hopgate.memory_terms WHERE space = $1 LIMIT ${SWEEP_TERMS}) RETURNING 1`,
      [id],
    );
    if (terms.length === 0) {
      await inside.query('DELETE FROM hopgate.memory_spaces WHERE id = $1', [id]);
    }
    return true;
  }
}
