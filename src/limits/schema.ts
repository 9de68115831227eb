/** The tables of limits, in the file of a machine and in Postgres. */

import type { Sql } from '../state/engines/engine.ts';
import { type Prepared, prepared } from '../state/sql/migrations.ts';
import type { SqlSchema } from '../state/sql/sql.ts';

// The function `draw` is for the versions before, which may run beside this one.
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

-- What a session held when its time was over counts as spent: it may have been used. A settlement that comes after
-- all takes it from "lost", so that nothing counts twice.
CREATE FUNCTION hopgate.lapse(which text) RETURNS void LANGUAGE sql AS $$
  UPDATE hopgate.windows w SET spent = w.spent + l.held, held = greatest(0, w.held - l.held)
    FROM hopgate.leases l WHERE l.session = which AND l.law = w.law AND l.start = w.start AND l.held > 0;
  UPDATE hopgate.leases SET lost = lost + held, held = 0 WHERE session = which AND held > 0;
  UPDATE hopgate.sessions SET lapsed = true WHERE id = which;
$$;

CREATE FUNCTION hopgate.draw(me text, number bigint, lease_ms int, settled jsonb, wanted jsonb, closes boolean)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  own hopgate.sessions;
  one jsonb;
  lease hopgate.leases;
  place hopgate.windows;
  units bigint;
  from_held bigint;
  from_lost bigint;
  granted bigint;
  free bigint;
  replicas int;
  grants jsonb := '[]';
  answer jsonb;
BEGIN
  -- Draws are few and short: one after the other needs no order of locks.
  PERFORM pg_advisory_xact_lock(7496231);
  SELECT * INTO own FROM hopgate.sessions WHERE id = me;
  IF own.seq >= number THEN
    IF own.seq = number THEN RETURN own.answer; END IF;
    RAISE EXCEPTION 'draw % of % came after draw %', number, me, own.seq;
  END IF;
  PERFORM hopgate.lapse(id) FROM hopgate.sessions WHERE until < clock_timestamp() AND NOT lapsed;
  SELECT * INTO own FROM hopgate.sessions WHERE id = me;
  SELECT count(*) + (CASE WHEN own.id IS NULL THEN 1 ELSE 0 END) INTO replicas
    FROM hopgate.sessions WHERE NOT lapsed;
  FOR one IN SELECT * FROM jsonb_array_elements(settled) LOOP
    INSERT INTO hopgate.windows (law, start, keep_until) VALUES (one->>0, (one->>1)::bigint, (one->>2)::bigint)
      ON CONFLICT DO NOTHING;
    SELECT * INTO lease FROM hopgate.leases
      WHERE session = me AND law = one->>0 AND start = (one->>1)::bigint;
    units := (one->>3)::bigint;
    from_held := least(coalesce(lease.held, 0), units);
    from_lost := least(coalesce(lease.lost, 0), units - from_held);
    UPDATE hopgate.windows SET spent = spent + units - from_lost, held = greatest(0, held - from_held)
      WHERE law = one->>0 AND start = (one->>1)::bigint;
    UPDATE hopgate.leases SET held = held - from_held, lost = lost - from_lost
      WHERE session = me AND law = one->>0 AND start = (one->>1)::bigint
      RETURNING * INTO lease;
    units := (one->>4)::bigint;
    from_held := least(coalesce(lease.held, 0), units);
    from_lost := least(coalesce(lease.lost, 0), units - from_held);
    UPDATE hopgate.windows SET spent = greatest(0, spent - from_lost), held = greatest(0, held - from_held)
      WHERE law = one->>0 AND start = (one->>1)::bigint;
    UPDATE hopgate.leases SET held = held - from_held, lost = lost - from_lost
      WHERE session = me AND law = one->>0 AND start = (one->>1)::bigint;
  END LOOP;
  FOR one IN SELECT * FROM jsonb_array_elements(wanted) LOOP
    INSERT INTO hopgate.windows (law, start, keep_until) VALUES (one->>0, (one->>1)::bigint, (one->>2)::bigint)
      ON CONFLICT DO NOTHING;
    SELECT * INTO place FROM hopgate.windows WHERE law = one->>0 AND start = (one->>1)::bigint;
    free := greatest(0, (one->>3)::bigint - place.spent - place.held);
    granted := least((one->>4)::bigint, free);
    granted := granted + least((one->>5)::bigint, (free - granted) / 10 / replicas);
    IF coalesce(own.lapsed, false) OR closes THEN granted := 0; END IF;
    IF granted > 0 THEN
      UPDATE hopgate.windows SET held = held + granted WHERE law = place.law AND start = place.start;
      INSERT INTO hopgate.leases (session, law, start, held) VALUES (me, place.law, place.start, granted)
        ON CONFLICT (session, law, start) DO UPDATE SET held = hopgate.leases.held + granted;
    END IF;
    SELECT coalesce(sum(held), 0) INTO units FROM hopgate.leases
      WHERE session = me AND law = place.law AND start = place.start;
    grants := grants || jsonb_build_array(jsonb_build_array(place.spent, place.held + granted, units));
  END LOOP;
  IF closes THEN
    -- All of it is settled: what is left of the leases was never used.
    UPDATE hopgate.windows w SET held = greatest(0, w.held - l.held), spent = greatest(0, w.spent - l.lost)
      FROM hopgate.leases l WHERE l.session = me AND l.law = w.law AND l.start = w.start;
    DELETE FROM hopgate.leases WHERE session = me;
  ELSE
    DELETE FROM hopgate.leases WHERE session = me AND held = 0 AND lost = 0;
  END IF;
  IF number % 100 = 1 THEN
    DELETE FROM hopgate.windows WHERE keep_until < extract(epoch FROM clock_timestamp()) * 1000;
    DELETE FROM hopgate.notices WHERE keep_until < extract(epoch FROM clock_timestamp()) * 1000;
    DELETE FROM hopgate.sessions s WHERE until < clock_timestamp() - interval '1 day'
      AND NOT EXISTS (SELECT 1 FROM hopgate.leases l WHERE l.session = s.id AND l.held > 0);
    DELETE FROM hopgate.leases l WHERE NOT EXISTS (SELECT 1 FROM hopgate.sessions s WHERE s.id = l.session) AND l.session <> me;
  END IF;
  answer := jsonb_build_object('grants', grants, 'lapsed', coalesce(own.lapsed, false), 'replicas', replicas);
  INSERT INTO hopgate.sessions (id, seq, answer, until, lapsed)
    VALUES (me, number, answer, clock_timestamp() + lease_ms * interval '1 millisecond', closes)
    ON CONFLICT (id) DO UPDATE SET seq = number, answer = excluded.answer,
      until = CASE WHEN hopgate.sessions.lapsed THEN hopgate.sessions.until ELSE excluded.until END,
      lapsed = hopgate.sessions.lapsed OR closes;
  RETURN answer;
END;
$$;
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
  // The only replica there is may come back after its time: nobody is live then.
  `
DO $$
BEGIN
  EXECUTE replace(
    pg_get_functiondef('hopgate.draw(text, bigint, int, jsonb, jsonb, boolean)'::regprocedure),
    '/ 10 / replicas', '/ 10 / greatest(1, replicas)');
END;
$$;
`,
];

const SQLITE = [
  `
CREATE TABLE windows (law TEXT NOT NULL, start INTEGER NOT NULL, used INTEGER NOT NULL, keep_until INTEGER NOT NULL,
  PRIMARY KEY (law, start));
CREATE INDEX windows_keep ON windows (keep_until);
CREATE TABLE rates (law TEXT PRIMARY KEY, debt INTEGER NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE slots (law TEXT NOT NULL, holder INTEGER NOT NULL, held INTEGER NOT NULL, until INTEGER NOT NULL,
  PRIMARY KEY (law, holder)) WITHOUT ROWID;
CREATE TABLE notices (law TEXT NOT NULL, start INTEGER NOT NULL, mark INTEGER NOT NULL, keep_until INTEGER NOT NULL,
  PRIMARY KEY (law, start, mark));
`,
];

export const LIMITS_SCHEMA: SqlSchema = { room: 'limits', sqlite: SQLITE, postgres: POSTGRES };

/** Held by whoever changes windows, also by the function of the versions before. */
export const WINDOWS_LOCK = 7_496_231;

/** Brings the tables up to date. */
export const limitsTables = (database: Sql): Prepared => prepared(database, 'limits', POSTGRES);
