/** The inverted index (FTS5) of terms to events in a file, strictly separate for each space. */

import { othersTurn } from '../../../lib/loop/steps.ts';
import type { SqlDatabase, SqlStatements } from '../../../state/sql/sql.ts';
import { knownTerms, type LookedUp, MAX_ROWS_READ } from '../ranking/known-terms.ts';
import { type Beside, OF_A_TIME, POOL, WITH_NEIGHBOURS, worthOf } from '../ranking/rank.ts';
import { formsOf } from './schema.ts';
import type { Asking, ErasedSpace, FoundRow, FoundRows, TermsIndex } from './terms-index.ts';

/** Pages of the index that are merged at a time after a write: about three times what so many terms add. */
const STEP_PAGES = 16;
const STEP_TERMS = 2000;
/** Pages that one step of tidying writes; it passes over dead ones besides. */
const TIDY_PAGES = 8;
/** Pages that one step gives back. */
const VACUUM_PAGES = 250;
/** Events that one step of an erasure removes. They are few, since each is overwritten with all its terms. */
const SWEEP_ROWS = 8;
/**
 * Events that are removed before the index is tidied, since one step of tidying passes over all dead entries in one place.
 * In a space with more events, every fourth event stays until the index is tidied.
 */
const MAX_DEAD = 1000;
const THINNED = 4;

/**
 * Left alone, SQLite merges within a write, all that there is to merge. It still merges the many small parts of one
 * transaction, since an index has at most 2,000 parts. Two parts of about one size are merged into one: each term is
 * looked up in every part, which takes 2 µs (decision 44).
 */
const OWN_MERGES = { deletemerge: 0, automerge: 0, crisismerge: 256, usermerge: 2 };

/** Events that hold a term, from which on its count is kept: to count them, SQLite reads them all. */
const OFTEN = 100;
/** A count is kept until its space has grown or shrunk by this share of it, by which it may then be wrong. */
const MAX_CHANGE = 0.05;
/** Counts that are kept. */
const MAX_KEPT = 20_000;

const { isOneOf } = formsOf({ form: 'file' });
const merge = 'INSERT INTO words (words, rank) VALUES ($1, $2)';

export class FileTerms implements TermsIndex {
  readonly together = 1;
  readonly column = undefined;
  /** Counts of frequent terms: the events that hold one, and those of its space at that time. */
  readonly #often = new Map<string, { readonly having: number; readonly events: number }>();
  /** Terms that were added since the last merge. */
  #unmerged = 0;
  readonly #sweeping = { dead: 0, thins: false, space: -1, time: -1, seq: -1 };

  constructor(private readonly db: SqlDatabase) {}

  async prepare(): Promise<void> {
    await this.db.query('PRAGMA secure_delete = ON');
    await this.db.query('PRAGMA cache_size = -16000');
    for (const [name, value] of Object.entries(OWN_MERGES)) {
      const found = await this.db.query<{ v: number }>(
        'SELECT v FROM words_config WHERE k = $1 AND v = $2',
        [name, value],
      );
      if (found.length === 0) await this.db.query(merge, [name, value]);
    }
  }

  stored(space: number, term: string): string {
    return `${space.toString(36)}:${term}`;
  }

  async add(inside: SqlStatements, events: ReadonlyMap<number, readonly string[]>): Promise<void> {
    for (const [row, terms] of events) {
      this.#unmerged += terms.length;
      await inside.query('INSERT INTO words (rowid, terms) VALUES ($1, $2)', [
        row,
        terms.join(' '),
      ]);
    }
  }

  async remove(inside: SqlStatements, rows: readonly number[]): Promise<void> {
    const all = [JSON.stringify(rows)];
    const isSeq = isOneOf('seq', '$1', 'bigint');
    await inside.query(`DELETE FROM words WHERE ${isOneOf('rowid', '$1', 'bigint')}`, all);
    await inside.query(`DELETE FROM memory_vectors WHERE ${isSeq}`, all);
    await inside.query(`DELETE FROM memory_claims WHERE ${isSeq}`, all);
  }

  async added(): Promise<void> {
    let left = this.#unmerged;
    this.#unmerged = 0;
    for (; left > 0; left -= STEP_TERMS) {
      await this.db.query(merge, ['merge', STEP_PAGES]);
      if (left > STEP_TERMS) await othersTurn();
    }
  }

  find(asking: Asking): Promise<FoundRows | undefined> {
    return this.db.snapshot((inside) => this.#find(inside, asking));
  }

  async #find(
    inside: SqlStatements,
    { space: name, question, lookedUp, near }: Asking,
  ): Promise<FoundRows | undefined> {
    const [place] = await inside.query<{ space: number; events: number; length: number }>(
      'SELECT id AS space, events, length FROM memory_spaces WHERE name = $1',
      [name],
    );
    if (place === undefined) return undefined;
    const { space, events } = place;
    const counts = await this.#counts(inside, space, events, lookedUp);
    const known = knownTerms(lookedUp, events, (form) => counts.get(form) ?? 0);
    const { since, until } = question.within;
    const isWhole = since <= 0 && until >= Number.MAX_SAFE_INTEGER;
    const weights = await this.#weights(inside, space, events, known, isWhole);
    if (!isWhole) {
      const within = await inside.query<{ seq: number }>(
        `SELECT seq FROM memory_events WHERE +time >= $1 AND +time < $2 AND ${isOneOf('seq', '$3', 'bigint')}`,
        [since, until, JSON.stringify([...weights.keys()])],
      );
      const some = new Set(within.map(({ seq }) => seq));
      for (const row of weights.keys()) if (!some.has(row)) weights.delete(row);
    }
    const rows = bestRows(weights, POOL);
    const wanted = new Set([...rows, ...near]);
    let left = OF_A_TIME;
    for (const { since, until } of question.times) {
      const found = await inside.query<{ seq: number }>(
        `SELECT seq FROM memory_events WHERE space = $1 AND time >= $2 AND time < $3
           ORDER BY time DESC, seq DESC LIMIT $4`,
        [space, since, until, left],
      );
      for (const { seq } of found) wanted.add(seq);
      left -= found.length;
    }
    const beside = await inside.query<{ seq: number; before: number | null; after: number | null }>(
      `SELECT e.seq,
         (SELECT seq FROM memory_events WHERE space = $1 AND (time, seq) < (e.time, e.seq)
           ORDER BY time DESC, seq DESC LIMIT 1) AS before,
         (SELECT seq FROM memory_events WHERE space = $1 AND (time, seq) > (e.time, e.seq)
           ORDER BY time, seq LIMIT 1) AS after
       FROM json_each($2) AS j CROSS JOIN memory_events AS e ON e.seq = j.value WHERE +e.space = $1`,
      [space, JSON.stringify(rows.slice(0, WITH_NEIGHBOURS))],
    );
    for (const { before, after } of beside) {
      for (const row of [before, after]) if (row !== null) wanted.add(row);
    }
    const found = await inside.query<FoundRow>(
      `SELECT e.seq, e.id, e.time, e.importance, e.digest, NULL AS body
         FROM json_each($2) AS j CROSS JOIN memory_events AS e ON e.seq = j.value WHERE +e.space = $1`,
      [space, JSON.stringify([...wanted].sort((a, b) => a - b))],
    );
    return {
      ...place,
      ...known,
      rows: found,
      beside: beside.map(({ seq, before, after }): Beside => [seq, before, after]),
    };
  }

  async #counts(
    inside: SqlStatements,
    space: number,
    events: number,
    lookedUp: LookedUp,
  ): Promise<ReadonlyMap<string, number>> {
    const counts = new Map<string, number>();
    const unknown = new Map<string, string>();
    for (const form of new Set([...lookedUp.values()].flat())) {
      const stored = this.stored(space, form);
      const kept = this.#often.get(stored);
      if (kept !== undefined && Math.abs(events - kept.events) <= MAX_CHANGE * kept.having) {
        counts.set(form, kept.having);
      } else unknown.set(stored, form);
    }
    const found = await inside.query<{ term: string; doc: number }>(
      `SELECT v.term, v.doc FROM json_each($1) AS j CROSS JOIN vocabulary AS v WHERE v.term = j.value`,
      [JSON.stringify([...unknown.keys()])],
    );
    for (const { term, doc } of found) {
      counts.set(unknown.get(term)!, doc);
      if (doc < OFTEN) continue;
      if (this.#often.size >= MAX_KEPT) this.#often.clear();
      this.#often.set(term, { having: doc, events });
    }
    return counts;
  }

  /** The rows that hold the rarest terms, by the worth of those that they hold. */
  async #weights(
    inside: SqlStatements,
    space: number,
    events: number,
    { eventCounts, forms }: Pick<FoundRows, 'eventCounts' | 'forms'>,
    isWhole: boolean,
  ): Promise<Map<number, number>> {
    const rarest = [...eventCounts].filter(([, having]) => having > 0).sort((a, b) => a[1] - b[1]);
    const weights = new Map<number, number>();
    let left = MAX_ROWS_READ;
    for (const [at, [term, having]] of rarest.entries()) {
      // A very common term adds little once rarer terms have been found.
      if (left <= 0 || (having > left && weights.size > 0)) break;
      const most = left;
      left -= having;
      // The rows of a single term all weigh the same: the newest ones are the pool.
      const isSingle =
        weights.size === 0 && left < (rarest[at + 1]?.[1] ?? Number.POSITIVE_INFINITY);
      const worth = worthOf(term, having, events);
      const held = forms.get(term)!.map((form) => `"${this.stored(space, form)}"`);
      const [hit] = await inside.query<{ rows: string }>(
        `SELECT json_group_array(rowid) AS rows FROM
           (SELECT rowid FROM words WHERE words MATCH $1 ORDER BY rowid DESC LIMIT $2)`,
        [held.join(' OR '), isSingle && isWhole ? Math.min(most, POOL) : most],
      );
      for (const row of JSON.parse(hit!.rows) as number[]) {
        weights.set(row, (weights.get(row) ?? 0) + worth);
      }
    }
    return weights;
  }

  async sweep(
    inside: SqlStatements,
    space: ErasedSpace,
    drop: (rows: readonly number[]) => Promise<void>,
  ): Promise<boolean> {
    const sweeping = this.#sweeping;
    if (sweeping.dead > MAX_DEAD) {
      sweeping.dead = 0;
      return false;
    }
    if (space.id !== sweeping.space) {
      this.#often.clear();
      const thins = space.events > MAX_DEAD;
      Object.assign(sweeping, { space: space.id, time: -1, seq: -1, thins });
    }
    const rows = await inside.query<{ time: number; seq: number }>(
      `SELECT time, seq FROM memory_events WHERE space = $1 AND (time, seq) > ($2, $3)
         ORDER BY time, seq LIMIT $4`,
      [space.id, sweeping.time, sweeping.seq, SWEEP_ROWS],
    );
    const last = rows.at(-1);
    if (last !== undefined) {
      const gone = rows.flatMap(({ seq }, i) => (sweeping.thins && i % THINNED === 0 ? [] : [seq]));
      await this.remove(inside, gone);
      await drop(gone);
      Object.assign(sweeping, last);
      if (!sweeping.thins) sweeping.dead += rows.length;
      return true;
    }
    // The next round begins with what is left of it.
    sweeping.space = -1;
    if (sweeping.thins) return false;
    await inside.query('DELETE FROM memory_spaces WHERE id = $1', [space.id]);
    return true;
  }

  /** Rewrites a part of the index without deleted entries. */
  async tidy(first: boolean): Promise<boolean> {
    // A negative number starts a full rewrite; a merge that changes fewer than two rows is done.
    const before = await this.#changes();
    await this.db.query(merge, ['merge', first ? -TIDY_PAGES : TIDY_PAGES]);
    return (await this.#changes()) - before >= 2;
  }

  async #changes(): Promise<number> {
    const [row] = await this.db.query<{ n: number }>('SELECT total_changes() AS n');
    return row!.n;
  }

  /** Gives some free pages back to the disk. */
  async vacuum(): Promise<boolean> {
    await this.db.query(`PRAGMA incremental_vacuum(${VACUUM_PAGES})`);
    const [row] = await this.db.query<{ freelist_count: number }>('PRAGMA freelist_count');
    return row!.freelist_count > 0;
  }

  /** The log may have what was removed. */
  async flush(): Promise<boolean> {
    const [row] = await this.db.query<{ busy: number }>('PRAGMA wal_checkpoint(TRUNCATE)');
    return row!.busy !== 0;
  }
}

/**
 * The `count` rows of the largest weights, the newest first among equal ones, but at most half of them with the very same
 * terms while there are others: a question that was asked a hundred times must not displace its answer.
 */
function bestRows(weights: ReadonlyMap<number, number>, count: number): readonly number[] {
  const rowsOf = new Map<number, number[]>();
  for (const [row, weight] of weights) {
    const same = rowsOf.get(weight);
    if (same === undefined) rowsOf.set(weight, [row]);
    else same.push(row);
  }
  const half = Math.floor(count / 2);
  const first: number[] = [];
  const rest: number[] = [];
  for (const weight of [...rowsOf.keys()].sort((a, b) => b - a)) {
    if (first.length >= count) break;
    const same = rowsOf.get(weight)!.sort((a, b) => b - a);
    first.push(...same.slice(0, half));
    if (rest.length < count) rest.push(...same.slice(half, half + count));
  }
  return [...first, ...rest].slice(0, count);
}
