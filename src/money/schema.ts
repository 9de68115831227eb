/** The tables of `state/spend.db`: rows of tries, totals beside them, and the tries that run. */

import type { Database } from 'bun:sqlite';
import type { Migration } from '../lib/store/versioned-store.ts';

/** Spans of totals. A range of time is made of whole months, days and hours. */
export const HOUR = 0;
export const DAY = 1;
export const MONTH = 2;

const COUNTS = `
  tries INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL,
  cache_write INTEGER NOT NULL, cache_write_1h INTEGER NOT NULL, reasoning INTEGER NOT NULL,
  searches INTEGER NOT NULL, cost INTEGER NOT NULL, unpriced INTEGER NOT NULL, estimated INTEGER NOT NULL`;

/**
 * - `texts`: labels and prices, as JSON; the same ones stand in thousands of rows
 * - `totals`: sums by span, key, labels, model and target; `session_totals`: by day, session and key
 * - `running`: tries that run longer than a moment, as the rows that they become if the process is killed
 */
const FIRST = `
CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE spend (
  id INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER NOT NULL, request TEXT NOT NULL, key TEXT NOT NULL,
  labels INTEGER NOT NULL, session TEXT, client TEXT NOT NULL, model TEXT NOT NULL, target TEXT NOT NULL,
  upstream_key TEXT, hop INTEGER NOT NULL, attempt INTEGER NOT NULL, status INTEGER, ended TEXT NOT NULL,
  input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL,
  cache_write_1h INTEGER NOT NULL, reasoning INTEGER NOT NULL, searches INTEGER NOT NULL,
  estimated INTEGER NOT NULL, cost INTEGER, price INTEGER, trace TEXT);
CREATE INDEX spend_time ON spend (time);
CREATE INDEX spend_session ON spend (session, time) WHERE session IS NOT NULL;
CREATE TABLE totals (
  span INTEGER NOT NULL, start INTEGER NOT NULL, key TEXT NOT NULL, labels INTEGER NOT NULL,
  model TEXT NOT NULL, target TEXT NOT NULL, ${COUNTS},
  PRIMARY KEY (span, start, key, labels, model, target)) WITHOUT ROWID;
CREATE TABLE session_totals (
  start INTEGER NOT NULL, session TEXT NOT NULL, key TEXT NOT NULL, ${COUNTS},
  PRIMARY KEY (start, session, key)) WITHOUT ROWID;
CREATE TABLE writers (id TEXT PRIMARY KEY, pid INTEGER NOT NULL, seen INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE running (
  writer TEXT NOT NULL, seq INTEGER NOT NULL, row TEXT NOT NULL, spend INTEGER,
  PRIMARY KEY (writer, seq)) WITHOUT ROWID;
`;

export const MIGRATIONS: readonly Migration[] = [FIRST];

/** What is summed, in the order of the columns. */
export interface Sums {
  tries: number;
  input: number;
  output: number;
  cache_read: number;
  cache_write: number;
  cache_write_1h: number;
  reasoning: number;
  searches: number;
  /** Nano-USD of the tries whose price is known. */
  cost: number;
  /** Tries without a price. */
  unpriced: number;
  estimated: number;
}

export const SUM_COLUMNS = [
  'tries',
  'input',
  'output',
  'cache_read',
  'cache_write',
  'cache_write_1h',
  'reasoning',
  'searches',
  'cost',
  'unpriced',
  'estimated',
] as const satisfies readonly (keyof Sums)[];

const SUM_PLACES = SUM_COLUMNS.map(() => '?').join(', ');
const ADDED = SUM_COLUMNS.map((name) => `${name} = ${name} + excluded.${name}`).join(', ');

/** The statements of a writer. */
export function statements(db: Database) {
  return {
    textId: db.query<{ id: number }, [string]>('SELECT id FROM texts WHERE text = ?'),
    addText: db.query<{ id: number }, [string]>('INSERT INTO texts (text) VALUES (?) RETURNING id'),
    addRow: db.query(
      `INSERT INTO spend (time, request, key, labels, session, client, model, target, upstream_key, hop, attempt,
        status, ended, input, output, cache_read, cache_write, cache_write_1h, reasoning, searches, estimated, cost,
        price, trace) VALUES (${Array.from({ length: 24 }, () => '?').join(', ')})`,
    ),
    addTotals: db.query(
      `INSERT INTO totals VALUES (?, ?, ?, ?, ?, ?, ${SUM_PLACES}) ON CONFLICT DO UPDATE SET ${ADDED}`,
    ),
    addSessionTotals: db.query(
      `INSERT INTO session_totals VALUES (?, ?, ?, ${SUM_PLACES}) ON CONFLICT DO UPDATE SET ${ADDED}`,
    ),
    addRunning: db.query<unknown, [string, number, string]>(
      'INSERT INTO running (writer, seq, row) VALUES (?, ?, ?)',
    ),
    endRunning: db.query<{ spend: number | null }, [string, number]>(
      'DELETE FROM running WHERE writer = ? AND seq = ? RETURNING spend',
    ),
    seen: db.query<unknown, [string, number, number]>(
      'INSERT INTO writers (id, pid, seen) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET seen = excluded.seen',
    ),
    gone: db.query<unknown, [string]>('DELETE FROM writers WHERE id = ?'),
    dropRows: db.query<unknown, [number, number]>(
      'DELETE FROM spend WHERE id IN (SELECT id FROM spend WHERE time < ? ORDER BY time LIMIT ?)',
    ),
  };
}
