/** The tables of the memory in a file of this machine and in the Postgres of all replicas, and the SQL that differs between the two. */

import type { SqlDatabase, SqlSchema } from '../../../state/sql/sql.ts';
import { FILE_1, FILE_2, POSTGRES_1, POSTGRES_2 } from './published-tables.ts';

// The texts are the last column: SQLite reads the columns before them without them.
const FILE_TABLES = `
PRAGMA secure_delete = ON;
DROP TRIGGER event_kept;
DROP TRIGGER event_gone;
DROP TRIGGER digest_gone;
ALTER TABLE spaces RENAME TO memory_spaces;
CREATE INDEX memory_spaces_erased ON memory_spaces (id) WHERE name IS NULL;
CREATE TABLE memory_events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL, id TEXT NOT NULL, time INTEGER NOT NULL,
  importance REAL NOT NULL, print TEXT NOT NULL, bytes INTEGER NOT NULL, length INTEGER NOT NULL, turn TEXT,
  tags TEXT NOT NULL, digest BLOB, body BLOB NOT NULL
);
INSERT INTO sqlite_sequence SELECT 'memory_events', seq FROM sqlite_sequence WHERE name = 'events';
INSERT INTO memory_events
  SELECT e.row, e.space, e.id, e.time, e.importance, lower(hex(e.fingerprint)), octet_length(e.text), e.length, e.turn,
    e.tags, d.digest, CAST(json_object('text', e.text, 'source', e.source, 'tags', json(e.tags)) AS BLOB)
  FROM events e LEFT JOIN digests d ON d.row = e.row ORDER BY e.row;
DROP TABLE events;
DROP TABLE digests;
CREATE UNIQUE INDEX memory_events_id ON memory_events (space, id);
CREATE INDEX memory_events_time ON memory_events (space, time, seq);
CREATE INDEX memory_events_print ON memory_events (space, print, time);
CREATE INDEX memory_events_turn ON memory_events (space, turn) WHERE turn IS NOT NULL;
CREATE TABLE memory_erasures (space TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
INSERT INTO memory_erasures SELECT lower(hex(space)), at FROM erasures;
DROP TABLE erasures;
CREATE TABLE memory_total (bytes INTEGER NOT NULL);
INSERT INTO memory_total SELECT coalesce(sum(bytes), 0) FROM memory_events;
ALTER TABLE vectors RENAME TO memory_vectors;
ALTER TABLE memory_vectors RENAME COLUMN row TO seq;
DROP TABLE leases;
CREATE TABLE memory_claims (seq INTEGER PRIMARY KEY, until REAL NOT NULL);
CREATE TABLE IF NOT EXISTS moved_items (owner TEXT NOT NULL, id TEXT NOT NULL, form TEXT NOT NULL, PRIMARY KEY (owner, id));
ALTER TABLE moved_items RENAME TO old_moved_items;
CREATE TABLE moved_items (
  kind TEXT NOT NULL, owner TEXT NOT NULL, id TEXT NOT NULL, form TEXT NOT NULL, origin TEXT NOT NULL,
  PRIMARY KEY (kind, owner, id)
) WITHOUT ROWID;
INSERT INTO moved_items SELECT 'memory', owner, id, form, '' FROM old_moved_items;
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
  sqlite: [FILE_1, FILE_2, FILE_TABLES, SHARES],
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
