/** The digests of events in the database, and what a question finds by them. */

import type { Database, SQLQueryBindings, Statement } from 'bun:sqlite';
import { digestOf, readDigest } from '../ranking/digest.ts';
import type { Question } from '../ranking/question.ts';
import {
  type Beside,
  type Candidate,
  type Found,
  OF_A_TIME,
  POOL,
  pairsOf,
  WITH_NEIGHBOURS,
} from '../ranking/rank.ts';
import type { TermIndex } from './term-index-store.ts';

/** An event that was stored before there were digests gets its own when a question first finds it. A captured event names its turn. */
export const DIGESTS_SCHEMA = `
CREATE TABLE digests (
  row INTEGER PRIMARY KEY, space INTEGER NOT NULL, time INTEGER NOT NULL, importance REAL NOT NULL, digest BLOB NOT NULL
);
ALTER TABLE events ADD COLUMN turn TEXT;
CREATE INDEX events_turn ON events (space, turn) WHERE turn IS NOT NULL;
CREATE TRIGGER digest_gone AFTER DELETE ON events BEGIN
  DELETE FROM digests WHERE row = old.row;
END;
`;

export interface DigestStore {
  put(space: number, row: number, event: DigestedEvent, digest: Uint8Array): void;
  /** @param nearest rows that are candidates, too */
  find(
    space: { readonly id: number; readonly events: number; readonly length: number },
    question: Question,
    nearest: readonly number[],
  ): FoundRows;
  /** Makes the digests of the first rows; the others. */
  make(rows: readonly number[]): readonly number[];
}

interface DigestedEvent {
  readonly time: number;
  readonly importance: number;
}

export interface FoundRows extends Found {
  /** Candidates that have no digest. */
  readonly without: readonly number[];
}

/** Digests that are made in one step. */
const STEP = 16;

export function digestStore(db: Database, terms: TermIndex): DigestStore {
  const of = <R, A extends SQLQueryBindings[]>(sql: string) =>
    db.query(sql) as unknown as Statement<R, A>;
  const put = of<unknown, [number, number, number, number, Uint8Array]>(
    'INSERT OR REPLACE INTO digests VALUES (?, ?, ?, ?, ?)',
  );
  const read = of<never, [number, string]>(
    `SELECT row, time, importance, digest FROM digests
     WHERE +space = ? AND row IN (SELECT value FROM json_each(?))`,
  );
  const beside = of<never, [number, string]>(
    `SELECT e.row,
       (SELECT row FROM events WHERE space = ?1 AND (time, row) < (e.time, e.row) ORDER BY time DESC, row DESC LIMIT 1),
       (SELECT row FROM events WHERE space = ?1 AND (time, row) > (e.time, e.row) ORDER BY time, row LIMIT 1)
     FROM events e WHERE +e.space = ?1 AND e.row IN (SELECT value FROM json_each(?2))`,
  );
  const between = of<never, [number, number, number, number]>(
    'SELECT row FROM events WHERE space = ? AND time >= ? AND time < ? ORDER BY time DESC, row DESC LIMIT ?',
  );
  const ofTime = of<never, [number, number, string]>(
    `SELECT row FROM events WHERE +time >= ? AND +time < ? AND row IN (SELECT value FROM json_each(?))`,
  );
  const text = of<
    { space: number; time: number; text: string; source: string; tags: string; importance: number },
    [number]
  >('SELECT space, time, text, source, tags, importance FROM events WHERE row = ?');

  return {
    put: (space, row, { time, importance }, digest) =>
      void put.run(row, space, time, importance, digest),
    find({ id, events, length }, question, nearest) {
      const { since, until } = question.within;
      const isWithin = (some: readonly number[]) =>
        (ofTime.values(since, until, JSON.stringify(some)) as [number][]).map(([row]) => row);
      const restricted = since > 0 || until < Number.MAX_SAFE_INTEGER;
      const { rows, ...known } = terms.find(
        id,
        events,
        question.terms,
        POOL,
        restricted ? isWithin : undefined,
      );
      const wanted = new Set([...rows, ...nearest]);
      let left = OF_A_TIME;
      for (const { since, until } of question.times) {
        for (const [row] of between.values(id, since, until, left) as [number][]) {
          wanted.add(row);
          left--;
        }
      }
      const first = JSON.stringify(rows.slice(0, WITH_NEIGHBOURS));
      const pairs = pairsOf(beside.values(id, first) as unknown as Beside[]);
      for (const pair of pairs) for (const row of pair) wanted.add(row);
      const candidates: Candidate[] = [];
      for (const [row, time, importance, bytes] of read.values(
        id,
        JSON.stringify([...wanted]),
      ) as unknown as Stored[]) {
        const digest = readDigest(bytes);
        if (digest === undefined) continue;
        wanted.delete(row);
        candidates.push({ row, time, importance, digest });
      }
      return { ...known, events, length, candidates, pairs, without: [...wanted] };
    },
    make(rows) {
      for (const row of rows.slice(0, STEP)) {
        const event = text.get(row);
        if (event === null) continue;
        const digest = digestOf({ ...event, tags: JSON.parse(event.tags) as string[] });
        put.run(row, event.space, event.time, event.importance, digest);
      }
      return rows.slice(STEP);
    },
  };
}

type Stored = readonly [row: number, time: number, importance: number, digest: Uint8Array];
