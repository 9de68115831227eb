/** The tables of spend as versions before the journal made them, in the file and in Postgres. Never changed. */

const FILE_COUNTS = `
  tries INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL,
  cache_write INTEGER NOT NULL, cache_write_1h INTEGER NOT NULL, reasoning INTEGER NOT NULL,
  searches INTEGER NOT NULL, cost INTEGER NOT NULL, unpriced INTEGER NOT NULL, estimated INTEGER NOT NULL`;

/**
 * - `spend`: in the order in which tries ended; an index would cost every request
 * - `texts`: labels and prices, as JSON; the same ones stand in thousands of rows
 * - `totals`: sums by span, key, labels, model and target
 * - `session_totals`: sums by day, session and key, with the ids of the session's first and last row of the day. An index
 *   over rows would cost every try of a session a write at a random place of the file.
 * - `running`: tries that run longer than a moment, as the rows that they become if the process is killed
 * - `writers`: with the time of their start, as the system tells it: the number alone may be another process's by now
 * - `learned`: what answers of a target have shown, kept over a restart. `written`: milliseconds since 1970
 */
export const FILE_TABLES = `
CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE spend (
  id INTEGER PRIMARY KEY, time INTEGER NOT NULL, request TEXT NOT NULL, key TEXT NOT NULL,
  labels INTEGER NOT NULL, session TEXT, client TEXT NOT NULL, model TEXT NOT NULL, target TEXT NOT NULL,
  upstream_key TEXT, hop INTEGER NOT NULL, attempt INTEGER NOT NULL, status INTEGER, ended TEXT NOT NULL,
  input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL,
  cache_write_1h INTEGER NOT NULL, reasoning INTEGER NOT NULL, searches INTEGER NOT NULL,
  estimated INTEGER NOT NULL, cost INTEGER, price INTEGER, trace TEXT);
CREATE TABLE totals (
  span INTEGER NOT NULL, start INTEGER NOT NULL, key TEXT NOT NULL, labels INTEGER NOT NULL,
  model TEXT NOT NULL, target TEXT NOT NULL, ${FILE_COUNTS},
  PRIMARY KEY (span, start, key, labels, model, target)) WITHOUT ROWID;
CREATE TABLE session_totals (
  start INTEGER NOT NULL, session TEXT NOT NULL, key TEXT NOT NULL, ${FILE_COUNTS},
  first_row INTEGER, last_row INTEGER, PRIMARY KEY (start, session, key)) WITHOUT ROWID;
CREATE INDEX session_days ON session_totals (session);
CREATE TABLE writers (
  id TEXT PRIMARY KEY, pid INTEGER NOT NULL, seen INTEGER NOT NULL, started TEXT) WITHOUT ROWID;
CREATE TABLE running (
  writer TEXT NOT NULL, seq INTEGER NOT NULL, row TEXT NOT NULL, spend INTEGER,
  PRIMARY KEY (writer, seq)) WITHOUT ROWID;
CREATE TABLE learned (
  target TEXT NOT NULL, stream INTEGER NOT NULL, bytes_per_token REAL NOT NULL, mean REAL NOT NULL,
  spread REAL NOT NULL, written INTEGER NOT NULL, PRIMARY KEY (target, stream)) WITHOUT ROWID;
`;

const COUNTS = FILE_COUNTS.replaceAll('INTEGER', 'bigint');
const ROW = `time bigint, request text, key text, labels int, session text, client text, model text, target text,
  upstream_key text, hop int, attempt int, status int, ended text, input bigint, output bigint, cache_read bigint,
  cache_write bigint, cache_write_1h bigint, reasoning bigint, searches bigint, estimated int, cost bigint,
  price int, trace text, replica text`;

/**
 * A row is known by `at` (when its try went out, about; it never changes, and says in which month the row is stored),
 * `writer` (the process) and `n` (its number there). `rev` tells versions of it apart: a greater one replaces a
 * smaller one, and the same one changes nothing.
 *
 * - `spend_rows`: by month, so that old ones go at once
 * - `spend_kept`: rows of months that are gone whose true row may still come (lost, or taken over), for a year or as
 *   long as totals. The true row takes off what they counted, whenever it comes.
 * - `spend_totals`: not read in parallel. A report of a month takes as long as starting processes for it.
 * - `spend_open`: tries that run, as the rows that they become if their replica never comes back
 * - `spend_spools`: the machines that send, and when they were last heard
 * - `spend_months`: the parts of `spend_rows`, and when they were made
 *
 * Of moves, by the file of a machine (`origin`):
 *
 * - `spend_moves`: rows up to this id are here, as far as they are not older than `since`; `totals`: and so is what the
 *   file had counted without having the rows any more
 * - `spend_name`: by which files know this database
 * - `spend_moved_totals`, `spend_moved_sessions`: the latter, as it was added
 */
const DATABASE_FIRST = `
CREATE TABLE hopgate.spend_texts (
  id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text text NOT NULL
);
CREATE UNIQUE INDEX spend_texts_text ON hopgate.spend_texts (md5(text));
CREATE SEQUENCE hopgate.spend_ids;
CREATE TABLE hopgate.spend_rows (
  at bigint NOT NULL, writer text NOT NULL, n bigint NOT NULL, rev int NOT NULL,
  id bigint NOT NULL DEFAULT nextval('hopgate.spend_ids'), ${ROW},
  PRIMARY KEY (at, writer, n)
) PARTITION BY RANGE (at);
CREATE INDEX spend_rows_time ON hopgate.spend_rows (time, id);
CREATE INDEX spend_rows_session ON hopgate.spend_rows (session, time) WHERE session IS NOT NULL;
CREATE TABLE hopgate.spend_months (start bigint PRIMARY KEY, until bigint NOT NULL, made timestamptz NOT NULL);
CREATE TABLE hopgate.spend_kept (LIKE hopgate.spend_rows, PRIMARY KEY (at, writer, n));
CREATE TABLE hopgate.spend_totals (
  span int NOT NULL, start bigint NOT NULL, key text NOT NULL, labels int NOT NULL, model text NOT NULL,
  target text NOT NULL, ${COUNTS}, PRIMARY KEY (span, start, key, labels, model, target)
) WITH (fillfactor = 70, parallel_workers = 0);
CREATE TABLE hopgate.spend_session_totals (
  start bigint NOT NULL, session text NOT NULL, key text NOT NULL, ${COUNTS}, PRIMARY KEY (start, session, key)
) WITH (fillfactor = 80);
CREATE TABLE hopgate.spend_open (
  at bigint NOT NULL, writer text NOT NULL, n bigint NOT NULL, spool text NOT NULL, row jsonb NOT NULL,
  PRIMARY KEY (at, writer, n)
);
CREATE INDEX spend_open_spool ON hopgate.spend_open (spool);
CREATE TABLE hopgate.spend_spools (id text PRIMARY KEY, replica text NOT NULL, seen timestamptz NOT NULL);
CREATE TABLE hopgate.spend_moves (
  origin text PRIMARY KEY, since bigint NOT NULL, id bigint NOT NULL, time bigint NOT NULL,
  totals boolean NOT NULL DEFAULT false
);
CREATE TABLE hopgate.spend_name (one boolean PRIMARY KEY DEFAULT true CHECK (one), name text NOT NULL);
INSERT INTO hopgate.spend_name (name) VALUES (md5(random()::text || clock_timestamp()::text || pg_backend_pid()));
CREATE TABLE hopgate.spend_moved_totals (
  origin text NOT NULL, start bigint NOT NULL, key text NOT NULL, labels int NOT NULL, model text NOT NULL,
  target text NOT NULL, ${COUNTS}, PRIMARY KEY (origin, start, key, labels, model, target)
);
CREATE TABLE hopgate.spend_moved_sessions (
  origin text NOT NULL, start bigint NOT NULL, session text NOT NULL, key text NOT NULL, ${COUNTS},
  PRIMARY KEY (origin, start, session, key)
);
`;

/**
 * The first one is of version 4, which is the oldest that was published. Databases that it made have functions besides,
 * which it calls, and this version does not.
 */
export const DATABASE_TABLES: readonly string[] = [DATABASE_FIRST, '', '', ''];
