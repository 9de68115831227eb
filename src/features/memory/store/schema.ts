/** The tables of the memory in a file of this machine and in the Postgres of all replicas, and the SQL that differs between the two. */

import type { SqlDatabase, SqlSchema } from '../../../state/sql/sql.ts';

/**
 * - Whatever changes a space holds the lock of its name, and takes several locks in one order. So limits, counts and
 *   duplicates are exact over all replicas, and numbers of vectors are seen in their order.
 * - `terms` of an event are `<space>:<term>`, so that the index never looks beyond a space. How many events hold a
 *   term is counted in `memory_terms`.
 * - A space loses its name when it is erased. No search finds it then, and its rows are deleted in steps.
 * - `memory_total` is changed last in each transaction: it is held for a moment only.
 *
 * A database that an older version made also has functions that only older versions call.
 */
const POSTGRES_1 = `
CREATE TABLE hopgate.memory_spaces (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text COLLATE "C" UNIQUE,
  events int NOT NULL DEFAULT 0, bytes bigint NOT NULL DEFAULT 0, length bigint NOT NULL DEFAULT 0
);
CREATE INDEX memory_spaces_erased ON hopgate.memory_spaces (id) WHERE name IS NULL;
CREATE TABLE hopgate.memory_events (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, space bigint NOT NULL, id text COLLATE "C" NOT NULL,
  time bigint NOT NULL, body bytea NOT NULL, tags text[] NOT NULL, importance float8 NOT NULL,
  print text COLLATE "C" NOT NULL, bytes int NOT NULL, length int NOT NULL, terms text[] COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX memory_events_id ON hopgate.memory_events (space, id);
CREATE INDEX memory_events_time ON hopgate.memory_events (space, time, seq);
CREATE INDEX memory_events_print ON hopgate.memory_events (space, print, time);
CREATE INDEX memory_events_terms ON hopgate.memory_events USING gin (terms) WITH (fastupdate = off);
CREATE TABLE hopgate.memory_terms (
  space bigint NOT NULL, term text COLLATE "C" NOT NULL, events int NOT NULL, PRIMARY KEY (space, term)
);
CREATE TABLE hopgate.memory_erasures (space text PRIMARY KEY, at float8 NOT NULL);
CREATE TABLE hopgate.memory_total (bytes bigint NOT NULL);
INSERT INTO hopgate.memory_total VALUES (0);
CREATE TABLE hopgate.memory_vectors (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  seq bigint NOT NULL UNIQUE REFERENCES hopgate.memory_events ON DELETE CASCADE,
  space bigint NOT NULL, model text NOT NULL, signs bytea NOT NULL, vector bytea NOT NULL
);
CREATE INDEX memory_vectors_space ON hopgate.memory_vectors (space, model, number);
CREATE TABLE hopgate.memory_claims (
  seq bigint PRIMARY KEY REFERENCES hopgate.memory_events ON DELETE CASCADE, until timestamptz NOT NULL
);
`;

const POSTGRES_2 = `
ALTER TABLE hopgate.memory_events ADD COLUMN digest bytea, ADD COLUMN turn text COLLATE "C";
CREATE INDEX memory_events_turn ON hopgate.memory_events (space, turn) WHERE turn IS NOT NULL;
`;

/**
 * - The index of words: terms are stored as `<space>:<term>`, so that no query and no count reaches beyond its space. It
 *   has no texts and no positions, which the events have. The ascii tokenizer takes every non-ASCII character for a
 *   letter, including those that are newer than unicode61's tables.
 * - The texts are the last column of events: SQLite reads the columns before them without them.
 */
const WORDS = `
CREATE VIRTUAL TABLE words USING fts5(terms, content='', contentless_delete=1, detail=none,
  tokenize="ascii tokenchars ':'");
CREATE VIRTUAL TABLE vocabulary USING fts5vocab('words', 'row');
`;
const SPACES_AND_VECTORS = `
CREATE TABLE memory_spaces (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, events INTEGER NOT NULL DEFAULT 0,
  bytes INTEGER NOT NULL DEFAULT 0, length INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE memory_vectors (
  number INTEGER PRIMARY KEY AUTOINCREMENT, seq INTEGER NOT NULL UNIQUE, space INTEGER NOT NULL,
  model TEXT NOT NULL, signs BLOB NOT NULL, vector BLOB NOT NULL
);
CREATE INDEX vectors_space ON memory_vectors (space, model, number);
`;
const EVENTS = `
CREATE INDEX memory_spaces_erased ON memory_spaces (id) WHERE name IS NULL;
CREATE TABLE memory_events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL, id TEXT NOT NULL, time INTEGER NOT NULL,
  importance REAL NOT NULL, print TEXT NOT NULL, bytes INTEGER NOT NULL, length INTEGER NOT NULL, turn TEXT,
  tags TEXT NOT NULL, digest BLOB, body BLOB NOT NULL
);
CREATE UNIQUE INDEX memory_events_id ON memory_events (space, id);
CREATE INDEX memory_events_time ON memory_events (space, time, seq);
CREATE INDEX memory_events_print ON memory_events (space, print, time);
CREATE INDEX memory_events_turn ON memory_events (space, turn) WHERE turn IS NOT NULL;
CREATE TABLE memory_erasures (space TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE memory_total (bytes INTEGER NOT NULL);
CREATE TABLE memory_claims (seq INTEGER PRIMARY KEY, until REAL NOT NULL);
CREATE TABLE moved_items (
  kind TEXT NOT NULL, owner TEXT NOT NULL, id TEXT NOT NULL, form TEXT NOT NULL, origin TEXT NOT NULL,
  PRIMARY KEY (kind, owner, id)
) WITHOUT ROWID;
`;

/** Files of version 1 had events of another form. */
const FROM_1 = `
PRAGMA secure_delete = ON;
DROP TRIGGER event_kept;
DROP TRIGGER event_gone;
ALTER TABLE spaces RENAME TO memory_spaces;
ALTER TABLE vectors RENAME TO memory_vectors;
ALTER TABLE memory_vectors RENAME COLUMN row TO seq;
CREATE TABLE IF NOT EXISTS moved_items (owner TEXT NOT NULL, id TEXT NOT NULL, form TEXT NOT NULL, PRIMARY KEY (owner, id));
ALTER TABLE moved_items RENAME TO old_moved_items;
${EVENTS}
INSERT INTO sqlite_sequence SELECT 'memory_events', seq FROM sqlite_sequence WHERE name = 'events';
INSERT INTO memory_events
  SELECT row, space, id, time, importance, lower(hex(fingerprint)), octet_length(text), length, NULL, tags, NULL,
    CAST(json_object('text', text, 'source', source, 'tags', json(tags)) AS BLOB)
  FROM events ORDER BY row;
INSERT INTO memory_erasures SELECT lower(hex(space)), at FROM erasures;
INSERT INTO memory_total SELECT coalesce(sum(bytes), 0) FROM memory_events;
INSERT INTO moved_items SELECT 'memory', owner, id, form, '' FROM old_moved_items;
DROP TABLE events;
DROP TABLE erasures;
DROP TABLE leases;
DROP TABLE old_moved_items;
`;

/** The owner of each event, by a hash of its key's id, and the bytes of each owner by space. Older rows have no owner. */
const SHARES = `
ALTER TABLE hopgate.memory_events ADD COLUMN owner text;
CREATE TABLE hopgate.memory_shares (
  owner text NOT NULL, space bigint NOT NULL, bytes bigint NOT NULL, PRIMARY KEY (owner, space)
);
`;

export const MEMORY_SCHEMA: SqlSchema = {
  room: 'memory',
  sqlite: {
    version: 4,
    create: `${WORDS}${SPACES_AND_VECTORS}${EVENTS}${SHARES}INSERT INTO memory_total VALUES (0);`,
    upgrades: { 1: FROM_1 + SHARES },
  },
  postgres: [POSTGRES_1, POSTGRES_2, SHARES],
};

/** SQL that differs because the published tables of Postgres have types of its own, or to lead its planner. */
export interface SqlForms {
  /** The column is one of a list of texts or numbers, given as JSON. */
  isOneOf(column: string, json: string, type: 'text' | 'bigint'): string;
  /** A list of texts, given as JSON, as a column holds it. */
  list(json: string): string;
  /** Such a column has a text. */
  has(column: string, text: string): string;
  /** Milliseconds since 1970 as a column of claims holds them. */
  time(ms: string): string;
  /** Rows of this table are taken, unless another transaction has them. */
  taking(table: string): string;
}

const FILE: SqlForms = {
  isOneOf: (column, json) => `${column} IN (SELECT value FROM json_each(${json}))`,
  list: (json) => json,
  has: (column, text) => `EXISTS (SELECT 1 FROM json_each(${column}) WHERE value = ${text})`,
  time: (ms) => ms,
  taking: () => '',
};
const texts = (json: string) => `ARRAY(SELECT json_array_elements_text(CAST(${json} AS json)))`;
const DATABASE: SqlForms = {
  isOneOf: (column, json, type) => `${column} = ANY(CAST(${texts(json)} AS ${type}[]))`,
  list: texts,
  has: (column, text) => `${text} = ANY(${column})`,
  time: (ms) => `to_timestamp(CAST(${ms} AS double precision) / 1000)`,
  taking: (table) => ` FOR UPDATE OF ${table} SKIP LOCKED`,
};

export const formsOf = ({ form }: Pick<SqlDatabase, 'form'>): SqlForms =>
  form === 'file' ? FILE : DATABASE;
