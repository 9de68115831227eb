/** The tables of keys and of their audit. The number of a change is that of its audit entry, whose hash says which history it belongs to. */

import type { SqlSchema } from '../state/sql/sql.ts';

const FILE_1 = `
CREATE TABLE keys (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, version INTEGER NOT NULL, created INTEGER NOT NULL,
  updated INTEGER NOT NULL, blocked INTEGER NOT NULL, revoked INTEGER, settings TEXT NOT NULL,
  change INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX keys_change ON keys (change);
CREATE INDEX keys_created ON keys (created, id);
CREATE TABLE secrets (
  digest TEXT PRIMARY KEY, key TEXT NOT NULL, created INTEGER NOT NULL, until INTEGER
) WITHOUT ROWID;
CREATE INDEX secrets_key ON secrets (key);
CREATE TABLE requests (
  key TEXT PRIMARY KEY, body TEXT NOT NULL, target TEXT NOT NULL, time INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX requests_time ON requests (time);
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL,
  target TEXT NOT NULL, before TEXT, after TEXT, previous TEXT NOT NULL, hash TEXT NOT NULL
);
CREATE INDEX audit_target ON audit (target, seq);
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, hash TEXT NOT NULL);
INSERT INTO head VALUES (1, 0, '');
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'audit entries are never changed'); END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'audit entries are never removed'); END;
`;

// A key without an entry was put in by hand: it stays, for the audit to find.
const AS_IN_POSTGRES = `
DROP INDEX keys_change;
ALTER TABLE keys ADD COLUMN secrets json NOT NULL DEFAULT '[]';
UPDATE keys SET
  secrets = (SELECT json_group_array(json_object('digest', digest, 'created', created, 'until', until))
    FROM secrets WHERE key = keys.id),
  change = coalesce((SELECT max(seq) FROM audit WHERE target = keys.id), 1);
CREATE INDEX keys_change ON keys (change);
DROP TABLE secrets;
ALTER TABLE requests RENAME TO key_requests;
ALTER TABLE head RENAME TO audit_head;
`;

export const KEYS_SCHEMA: SqlSchema = {
  room: 'keys',
  sqlite: { version: 2, create: FILE_1 + AS_IN_POSTGRES, upgrades: { 1: AS_IN_POSTGRES } },
  postgres: [
    `
CREATE TABLE hopgate.keys (
  id text COLLATE "C" PRIMARY KEY, name text NOT NULL, version bigint NOT NULL, created bigint NOT NULL,
  updated bigint NOT NULL, blocked boolean NOT NULL, revoked bigint, settings text NOT NULL,
  secrets json NOT NULL, change bigint NOT NULL
);
CREATE UNIQUE INDEX keys_change ON hopgate.keys (change);
CREATE INDEX keys_created ON hopgate.keys (created, id);
CREATE TABLE hopgate.key_requests (
  key text PRIMARY KEY, body text NOT NULL, target text NOT NULL, time bigint NOT NULL
);
CREATE INDEX key_requests_time ON hopgate.key_requests (time);
CREATE TABLE hopgate.audit (
  seq bigint PRIMARY KEY, time bigint NOT NULL, actor text NOT NULL, action text NOT NULL,
  target text COLLATE "C" NOT NULL, before text, after text, previous text NOT NULL, hash text NOT NULL
);
CREATE INDEX audit_target ON hopgate.audit (target, seq);
CREATE TABLE hopgate.audit_head (
  one boolean PRIMARY KEY DEFAULT true CHECK (one), seq bigint NOT NULL, hash text NOT NULL
);
INSERT INTO hopgate.audit_head VALUES (true, 0, '');
CREATE FUNCTION hopgate.keep_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'audit entries are never changed or removed';
END;
$$;
CREATE TRIGGER keep_audit BEFORE UPDATE OR DELETE OR TRUNCATE ON hopgate.audit
  FOR EACH STATEMENT EXECUTE FUNCTION hopgate.keep_audit();
`,
  ],
};
