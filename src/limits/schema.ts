/** The tables of limits, in the file of a machine and in Postgres. */

import type { Sql } from '../state/engines/engine.ts';
import { type Prepared, prepared } from '../state/sql/migrations.ts';
import type { SqlSchema } from '../state/sql/sql.ts';

// Databases that older versions made have a function besides, which they call, and this version does not.
const POSTGRES = [
  `
CREATE TABLE hopgate.windows (
  law text NOT NULL, start bigint NOT NULL, spent bigint NOT NULL DEFAULT 0, held bigint NOT NULL DEFAULT 0,
  keep_until bigint NOT NULL, PRIMARY KEY (law, start),
  CHECK (spent >= 0 AND held >= 0)
);
CREATE TABLE hopgate.sessions (
  id text PRIMARY KEY, seq bigint NOT NULL, answer jsonb, until timestamptz NOT NULL,
  lapsed boolean NOT NULL DEFAULT false
);
CREATE INDEX sessions_until ON hopgate.sessions (until);
CREATE TABLE hopgate.leases (
  session text NOT NULL, law text NOT NULL, start bigint NOT NULL, held bigint NOT NULL DEFAULT 0,
  lost bigint NOT NULL DEFAULT 0, PRIMARY KEY (session, law, start)
);
CREATE TABLE hopgate.notices (
  law text NOT NULL, start bigint NOT NULL, mark bigint NOT NULL, keep_until bigint NOT NULL,
  PRIMARY KEY (law, start, mark)
);
`,
  // Of moves: what of the file of a machine is in the windows here, and the name by which files know this database.
  `
CREATE TABLE hopgate.moved_windows (
  origin text NOT NULL, law text NOT NULL, start bigint NOT NULL, used bigint NOT NULL, keep_until bigint NOT NULL,
  PRIMARY KEY (origin, law, start)
);
CREATE TABLE hopgate.limits_name (
  one boolean PRIMARY KEY DEFAULT true CHECK (one), name text NOT NULL
);
INSERT INTO hopgate.limits_name (name) VALUES (md5(random()::text || clock_timestamp()::text || pg_backend_pid()));
`,
  '',
];

const SQLITE = `
CREATE TABLE windows (law TEXT NOT NULL, start INTEGER NOT NULL, used INTEGER NOT NULL, keep_until INTEGER NOT NULL,
  PRIMARY KEY (law, start));
CREATE INDEX windows_keep ON windows (keep_until);
CREATE TABLE rates (law TEXT PRIMARY KEY, debt INTEGER NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE slots (law TEXT NOT NULL, holder INTEGER NOT NULL, held INTEGER NOT NULL, until INTEGER NOT NULL,
  PRIMARY KEY (law, holder)) WITHOUT ROWID;
CREATE TABLE notices (law TEXT NOT NULL, start INTEGER NOT NULL, mark INTEGER NOT NULL, keep_until INTEGER NOT NULL,
  PRIMARY KEY (law, start, mark));
`;

export const LIMITS_SCHEMA: SqlSchema = {
  room: 'limits',
  sqlite: { version: 1, create: SQLITE },
  postgres: POSTGRES,
};

/** The lock for changes of windows. The function of older versions takes it, too. */
export const WINDOWS_LOCK = 7_496_231;

/** Brings the tables up to date. */
export const limitsTables = (database: Sql): Prepared => prepared(database, 'limits', POSTGRES);
