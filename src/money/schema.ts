/** The tables of `state/spend.db`: rows of tries, totals beside them, and the tries that run. */

import type { Migration } from '../state/versioned-store.ts';

/** Spans of totals. A range of time is made of whole months, days and hours. */
export const HOUR = 0;
export const DAY = 1;
export const MONTH = 2;

const COUNTS = `
  tries INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL,
  cache_write INTEGER NOT NULL, cache_write_1h INTEGER NOT NULL, reasoning INTEGER NOT NULL,
  searches INTEGER NOT NULL, cost INTEGER NOT NULL, unpriced INTEGER NOT NULL, estimated INTEGER NOT NULL`;

/**
 * - `spend`: in the order in which tries ended; an index would cost every request
 * - `texts`: labels and prices, as JSON; the same ones stand in thousands of rows
 * - `totals`: sums by span, key, labels, model and target; `session_totals`: by day, session and key
 * - `running`: tries that run longer than a moment, as the rows that they become if the process is killed
 */
const FIRST = `
CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE spend (
  id INTEGER PRIMARY KEY, time INTEGER NOT NULL, request TEXT NOT NULL, key TEXT NOT NULL,
  labels INTEGER NOT NULL, session TEXT, client TEXT NOT NULL, model TEXT NOT NULL, target TEXT NOT NULL,
  upstream_key TEXT, hop INTEGER NOT NULL, attempt INTEGER NOT NULL, status INTEGER, ended TEXT NOT NULL,
  input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL,
  cache_write_1h INTEGER NOT NULL, reasoning INTEGER NOT NULL, searches INTEGER NOT NULL,
  estimated INTEGER NOT NULL, cost INTEGER, price INTEGER, trace TEXT);
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

/**
 * Where a session's rows are: `session_totals` has the ids of its first and its last row of the day. An index over
 * rows would cost every try of a session a write at a random place of the file.
 */
const SESSION_RANGES = `
DROP INDEX spend_session;
ALTER TABLE session_totals ADD COLUMN first_row INTEGER;
ALTER TABLE session_totals ADD COLUMN last_row INTEGER;
UPDATE session_totals SET first_row = found.first_row, last_row = found.last_row FROM (
  SELECT time - time % 86400000 AS start, session, key, min(id) AS first_row, max(id) AS last_row
  FROM spend WHERE session IS NOT NULL GROUP BY 1, 2, 3) AS found
  WHERE found.start = session_totals.start AND found.session = session_totals.session
    AND found.key = session_totals.key;
CREATE INDEX session_days ON session_totals (session);
`;

/** What answers of a target have shown: kept over a restart. `written`: milliseconds since 1970. */
const LEARNED = `
CREATE TABLE learned (
  target TEXT NOT NULL, stream INTEGER NOT NULL, bytes_per_token REAL NOT NULL, mean REAL NOT NULL,
  spread REAL NOT NULL, written INTEGER NOT NULL, PRIMARY KEY (target, stream)) WITHOUT ROWID;
`;

/** When each writer began, as its system tells it: its number alone may be another process's by now. */
const STARTS = 'ALTER TABLE writers ADD COLUMN started TEXT;';

/** Up to which line of its file the rows of each process are in here. */
const TAILS =
  'CREATE TABLE tails (writer TEXT PRIMARY KEY, line INTEGER NOT NULL, time INTEGER NOT NULL) WITHOUT ROWID, STRICT;';

export const MIGRATIONS: readonly Migration[] = [FIRST, SESSION_RANGES, LEARNED, STARTS, TAILS];

/** What is summed over tries: columns of all totals. */
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
  /** Tries whose vendor did not report all of its usage. */
  estimated: number;
}

export const NO_SUMS: Readonly<Sums> = {
  tries: 0,
  input: 0,
  output: 0,
  cache_read: 0,
  cache_write: 0,
  cache_write_1h: 0,
  reasoning: 0,
  searches: 0,
  cost: 0,
  unpriced: 0,
  estimated: 0,
};

/** In the order of reports. The order in the tables is another one: statements name what they write. */
export const SUM_COLUMNS = Object.keys(NO_SUMS) as readonly (keyof Sums)[];

/** Totals of one hour. */
export interface HourTotals extends Sums {
  /** Milliseconds since 1970. */
  readonly start: number;
  readonly key: string;
  /** JSON. */
  readonly labels: string;
  readonly model: string;
  readonly target: string;
}

/** Totals of a session on one day. */
export interface SessionTotals extends Sums {
  /** Milliseconds since 1970. */
  readonly start: number;
  readonly session: string;
  readonly key: string;
}

export const ROW_FILTERS = ['key', 'model', 'target', 'session', 'request', 'ended', 'client'];

/** Which rows are asked for. */
export interface RowsQuery {
  /** Milliseconds since 1970; `to` is not included. */
  readonly from: number;
  readonly to: number;
  /** By column, equal to these. */
  readonly filters: Readonly<Record<string, string>>;
  /** Only rows behind the page before, whose last one had this id, and this time where rows are in the order of time. */
  readonly before: number;
  readonly beforeTime?: number;
  readonly limit: number;
}

/** One row as it is stored. */
export interface StoredRow {
  readonly id: number;
  readonly time: number;
  readonly request: string;
  readonly key: string;
  /** JSON. */
  readonly labels_text: string;
  readonly session: string | null;
  readonly client: string;
  readonly model: string;
  readonly target: string;
  readonly upstream_key: string | null;
  readonly hop: number;
  readonly attempt: number;
  readonly status: number | null;
  readonly ended: string;
  readonly input: number;
  readonly output: number;
  readonly cache_read: number;
  readonly cache_write: number;
  readonly cache_write_1h: number;
  readonly reasoning: number;
  readonly searches: number;
  readonly estimated: number;
  readonly cost: number | null;
  /** JSON. */
  readonly price_text: string | null;
  readonly trace: string | null;
  /** The machine; left out where there is one. */
  readonly replica?: string;
}

/** What the same questions are called in the file and in the shared database. */
export interface SpendNames {
  readonly rows: string;
  readonly totals: string;
  readonly sessionTotals: string;
  readonly texts: string;
  /** SQL: the beginning of the month of `start`. */
  readonly month: string;
  /** SQL: the texts of a JSON array, which is the value `names`. */
  readonly names: string;
}

/** What reads what was spent. Values are named as in the SQL, without `$`. */
export interface SpendReader {
  readonly names: SpendNames;
  /** True: each question is a trip, and holds up nothing here. Left out: long answers are read in pieces. */
  readonly remote?: true;
  /** @throws SQLiteError, or GatewayError where the shared database is away */
  all<Row>(
    sql: string,
    values?: Readonly<Record<string, string | number>>,
  ): readonly Row[] | Promise<readonly Row[]>;
  /** Rows in the order of time, newest first, in pieces; left out: they are read by their ids. */
  scan?(query: RowsQuery): AsyncGenerator<readonly StoredRow[]>;
}

export const FILE_NAMES: SpendNames = {
  rows: 'spend',
  totals: 'totals',
  sessionTotals: 'session_totals',
  texts: 'texts',
  month: "CAST(strftime('%s', start / 1000, 'unixepoch', 'start of month') AS INTEGER) * 1000",
  names: '(SELECT value FROM json_each($names))',
};
