/** The tables of stored responses, in a file of this machine and in the Postgres of all replicas. */

import { secretBase36 } from '../../lib/text/ids.ts';
import type { SqlDatabase, SqlSchema } from '../../state/sql/sql.ts';
import type { Migration } from '../../state/versioned-store.ts';
import { packText } from './stored-response.ts';

// A conversation is a thread: its responses are removed together, those that were used last stay. `began` and `at` are
// milliseconds since 1970 by the clock of the database. A deletion and an erasure are remembered: another process may
// still have to write what they concern.
const POSTGRES = `
CREATE TABLE hopgate.responses (
  owner text NOT NULL, id text NOT NULL, thread text NOT NULL, seq bigint GENERATED ALWAYS AS IDENTITY,
  created bigint NOT NULL, previous text, model text NOT NULL, space text, keeper text,
  began double precision NOT NULL, items bytea NOT NULL, response bytea NOT NULL, bytes bigint NOT NULL,
  item_ids text[] NOT NULL, PRIMARY KEY (owner, id)
);
CREATE INDEX responses_thread ON hopgate.responses (thread);
CREATE INDEX responses_space ON hopgate.responses (space) WHERE space IS NOT NULL;
CREATE TABLE hopgate.response_items (
  owner text NOT NULL, item text NOT NULL, response text NOT NULL, PRIMARY KEY (owner, item),
  FOREIGN KEY (owner, response) REFERENCES hopgate.responses ON DELETE CASCADE
);
CREATE INDEX response_items_response ON hopgate.response_items (owner, response);
CREATE TABLE hopgate.response_threads (id text PRIMARY KEY, used timestamptz NOT NULL);
CREATE TABLE hopgate.response_deletions (
  owner text NOT NULL, id text NOT NULL, at timestamptz NOT NULL, PRIMARY KEY (owner, id)
);
CREATE TABLE hopgate.response_erasures (space text PRIMARY KEY, at double precision NOT NULL);
CREATE TABLE hopgate.response_upkeep (one boolean PRIMARY KEY DEFAULT true, at timestamptz NOT NULL);
INSERT INTO hopgate.response_upkeep (at) VALUES ('epoch');
`;

// What is erased later must not be found in what this leaves behind.
const OLD_TABLES_ASIDE = `
PRAGMA secure_delete = ON;
DROP TRIGGER response_added;
DROP TRIGGER response_gone;
DROP INDEX responses_thread;
DROP INDEX responses_space;
ALTER TABLE responses RENAME TO old_responses;
CREATE TABLE IF NOT EXISTS moved_items (owner TEXT NOT NULL, id TEXT NOT NULL, form TEXT NOT NULL, PRIMARY KEY (owner, id));
ALTER TABLE moved_items RENAME TO old_moved_items;
`;

// The columns before the texts can be read without them.
const TABLES = `
CREATE TABLE responses (
  seq INTEGER PRIMARY KEY, owner TEXT NOT NULL, id TEXT NOT NULL, thread TEXT NOT NULL, created INTEGER NOT NULL,
  previous TEXT, model TEXT NOT NULL, space TEXT, keeper TEXT, began REAL NOT NULL, bytes INTEGER NOT NULL,
  item_ids TEXT NOT NULL, items BLOB NOT NULL, response BLOB NOT NULL, UNIQUE (owner, id)
);
CREATE INDEX responses_thread ON responses (thread, owner, id, created, bytes);
CREATE INDEX responses_space ON responses (space) WHERE space IS NOT NULL;
CREATE TABLE response_items (
  owner TEXT NOT NULL, item TEXT NOT NULL, response TEXT NOT NULL, PRIMARY KEY (owner, item)
) WITHOUT ROWID;
CREATE INDEX response_items_response ON response_items (owner, response);
CREATE TABLE response_threads (id TEXT PRIMARY KEY, used REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE response_deletions (
  owner TEXT NOT NULL, id TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (owner, id)
) WITHOUT ROWID;
CREATE TABLE response_erasures (space TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE response_upkeep (at REAL NOT NULL);
INSERT INTO response_upkeep VALUES (0);
CREATE TABLE moved_items (
  kind TEXT NOT NULL, owner TEXT NOT NULL, id TEXT NOT NULL, form TEXT NOT NULL, origin TEXT NOT NULL,
  PRIMARY KEY (kind, owner, id)
) WITHOUT ROWID;
`;

/** @param prefix of the names of conversations, which were numbers: names of two files must differ */
const rowsOver = (prefix: string) => `
INSERT INTO response_items SELECT owner, item, response FROM items;
INSERT INTO response_threads SELECT '${prefix}' || id, used FROM threads;
INSERT INTO response_erasures SELECT space, at FROM erasures;
INSERT INTO moved_items SELECT 'responses', owner, id, form, '' FROM old_moved_items;
DROP TABLE items;
DROP TABLE threads;
DROP TABLE erasures;
DROP TABLE old_responses;
DROP TABLE old_moved_items;
PRAGMA secure_delete = OFF;
`;

/** An old row has the time of its answer: its request came at most so much earlier. */
const MAX_MS = 3_600_000;

interface OldRow {
  readonly [column: string]: string | number | null;
  readonly input: string;
  readonly output: string;
  readonly response: string;
  readonly created: number;
}

/** Files of version 3 had tables of another form. */
const fromVersion3: Migration = (db) => {
  db.run(OLD_TABLES_ASIDE);
  db.run(TABLES);
  const prefix = `${secretBase36(12)}-`;
  const insert = db.query(
    `INSERT INTO responses (owner, id, thread, created, previous, model, space, keeper, began, bytes, item_ids, items, response)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const first = db.query<OldRow, []>(
    `SELECT *, (SELECT json_group_array(item) FROM items WHERE owner = old.owner AND response = old.id) AS item_ids
       FROM old_responses AS old ORDER BY rowid LIMIT 1`,
  );
  // Each makes room for the next one.
  const remove = db.query('DELETE FROM old_responses WHERE owner = ? AND id = ?');
  const now = Date.now();
  for (let row = first.get(); row !== null; row = first.get()) {
    const { owner, id, thread, created, previous, model, space, keeper, bytes, item_ids } = row;
    insert.run(
      ...[owner!, id!, prefix + thread, created, previous!, model!, space!, keeper!],
      ...[Math.min(created * 1000, now) - MAX_MS, bytes!, item_ids!],
      packText(`{"input":${row.input},"output":${row.output}}`),
      packText(row.response),
    );
    remove.run(owner!, id!);
  }
  db.run(rowsOver(prefix));
};

export const RESPONSES: SqlSchema = {
  room: 'responses',
  sqlite: { version: 4, create: TABLES, upgrades: { 3: fromVersion3 } },
  postgres: [POSTGRES],
};

/** How values are written that the published tables of Postgres hold as types of its own; a file has numbers and JSON. */
export interface ColumnForms {
  /** Milliseconds since 1970 as a time. */
  time(ms: string): string;
  /** The reverse. */
  ms(column: string): string;
  /** A list of texts, given as JSON. */
  list(json: string): string;
}

export const columnForms = ({ form }: Pick<SqlDatabase, 'form'>): ColumnForms =>
  form === 'file'
    ? { time: (ms) => ms, ms: (column) => column, list: (json) => json }
    : {
        time: (ms) => `to_timestamp(CAST(${ms} AS double precision) / 1000)`,
        ms: (column) => `CAST(extract(epoch FROM ${column}) * 1000 AS double precision)`,
        list: (json) => `ARRAY(SELECT json_array_elements_text(${json}))`,
      };
