/** The tables of the memory as versions before made them, in a file and in Postgres. Never changed. */

/**
 * Until version 2 a file had tables of its own form. The index of words is still this one: terms are stored as
 * `<space>:<term>`, so that no query and no count reaches beyond its space. It has no texts and no positions, which the
 * events have. The ascii tokenizer takes every non-ASCII character for a letter, including those that are newer than
 * unicode61's tables.
 */
export const FILE_1 = `
CREATE TABLE spaces (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, events INTEGER NOT NULL DEFAULT 0,
  bytes INTEGER NOT NULL DEFAULT 0, length INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE events (
  row INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL, id TEXT NOT NULL, time INTEGER NOT NULL,
  text TEXT NOT NULL, source TEXT NOT NULL, tags TEXT NOT NULL, importance REAL NOT NULL,
  fingerprint BLOB NOT NULL, length INTEGER NOT NULL
);
CREATE UNIQUE INDEX events_id ON events (space, id);
CREATE INDEX events_time ON events (space, time, row);
CREATE INDEX events_fingerprint ON events (space, fingerprint, time);
CREATE TRIGGER event_kept AFTER INSERT ON events BEGIN
  UPDATE spaces SET events = events + 1, bytes = bytes + octet_length(new.text),
    length = length + new.length WHERE id = new.space;
END;
CREATE TRIGGER event_gone AFTER DELETE ON events BEGIN
  UPDATE spaces SET events = events - 1, bytes = bytes - octet_length(old.text),
    length = length - old.length WHERE id = old.space;
  DELETE FROM words WHERE rowid = old.row;
  DELETE FROM vectors WHERE row = old.row;
END;
CREATE TABLE erasures (space BLOB PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5(terms, content='', contentless_delete=1, detail=none,
  tokenize="ascii tokenchars ':'");
CREATE VIRTUAL TABLE vocabulary USING fts5vocab('words', 'row');
CREATE TABLE vectors (
  number INTEGER PRIMARY KEY AUTOINCREMENT, row INTEGER NOT NULL UNIQUE, space INTEGER NOT NULL,
  model TEXT NOT NULL, signs BLOB NOT NULL, vector BLOB NOT NULL
);
CREATE INDEX vectors_space ON vectors (space, model, number);
CREATE TABLE leases (name TEXT PRIMARY KEY, holder TEXT NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
`;

export const FILE_2 = `
CREATE TABLE digests (
  row INTEGER PRIMARY KEY, space INTEGER NOT NULL, time INTEGER NOT NULL, importance REAL NOT NULL, digest BLOB NOT NULL
);
ALTER TABLE events ADD COLUMN turn TEXT;
CREATE INDEX events_turn ON events (space, turn) WHERE turn IS NOT NULL;
CREATE TRIGGER digest_gone AFTER DELETE ON events BEGIN
  DELETE FROM digests WHERE row = old.row;
END;
`;

/** Counts the terms of events that were just made. */
const COUNT_TERMS = `\
  INSERT INTO hopgate.memory_terms AS m
    SELECT e.space, substr(t, strpos(t, ':') + 1), count(*)
      FROM hopgate.memory_events e, unnest(e.terms) t WHERE e.seq = ANY(made) GROUP BY 1, 2
    ON CONFLICT (space, term) DO UPDATE SET events = m.events + excluded.events;
`;

const DISCARD_TURN = `\
    IF kind = 'capture' AND one ? 'turn' THEN
      SELECT coalesce(array_agg(seq), '{}'), all_bytes - coalesce(sum(bytes), 0) INTO discarded, all_bytes
        FROM hopgate.memory_events WHERE space = place.id AND turn = one->>'turn'
          AND time >= (one->>'turn_since')::float8
          AND print <> ALL(ARRAY(SELECT jsonb_array_elements_text(one->'keep')));
      IF cardinality(discarded) > 0 THEN
        -- What this call made is counted first: only what was counted can be taken off.
        PERFORM hopgate.memory_count(made);
        made := '{}';
        PERFORM hopgate.memory_remove(discarded);
        SELECT * INTO place FROM hopgate.memory_spaces WHERE id = place.id;
      END IF;
    END IF;
`;
const TURN_VALUES = `,
        decode(one->>'digest', 'base64'), one->>'turn'`;

/** @param hasTurns the form of {@link POSTGRES_2}: a captured turn takes the place of what the same turn had before */
const putting = (hasTurns: boolean) => `\
CREATE${hasTurns ? ' OR REPLACE' : ''} FUNCTION hopgate.memory_put(
  kind text, given jsonb, most_events int, most_bytes bigint, dedupe_ms float8, kept_ms float8
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  one jsonb;
  place hopgate.memory_spaces;
  known hopgate.memory_events;
  erased float8;
  oldest float8;
  all_bytes bigint;
  added bigint := 0;
  made bigint[] := '{}';
  new_seq bigint;
  outcomes jsonb := '[]';
${hasTurns ? '  discarded bigint[];\n' : ''}BEGIN
  PERFORM hopgate.memory_lock(ARRAY(SELECT g->>'space' FROM jsonb_array_elements(given) g));
  oldest := hopgate.memory_clock() - kept_ms;
  SELECT bytes INTO all_bytes FROM hopgate.memory_total;
  FOR one IN SELECT * FROM jsonb_array_elements(given) LOOP
    IF kind = 'capture' THEN
      SELECT at INTO erased FROM hopgate.memory_erasures WHERE space = one->>'hash';
      -- Events from before the erasure are dropped too: a running turn must not bring its space back.
      IF (one->>'began')::float8 <= greatest(oldest, coalesce(erased, 0))
        OR (one->>'happened')::float8 + 1 <= coalesce(erased, 0) THEN
        outcomes := outcomes || '"erased"';
        CONTINUE;
      END IF;
    END IF;
    SELECT * INTO place FROM hopgate.memory_spaces WHERE name = one->>'space';
    IF NOT FOUND THEN
      INSERT INTO hopgate.memory_spaces (name) VALUES (one->>'space') RETURNING * INTO place;
    END IF;
${hasTurns ? DISCARD_TURN : ''}    SELECT * INTO known FROM hopgate.memory_events WHERE space = place.id AND id = one->>'id';
    IF FOUND AND kind = 'change' THEN
      PERFORM hopgate.memory_remove(ARRAY[known.seq]);
      all_bytes := all_bytes - known.bytes;
      SELECT * INTO place FROM hopgate.memory_spaces WHERE id = place.id;
    ELSIF FOUND THEN
      -- The same write again, after an answer that was lost, or an import of what is there.
      outcomes := outcomes || jsonb_build_object('id', known.id, 'time', known.time,
        'body', encode(known.body, 'base64'), 'importance', known.importance);
      CONTINUE;
    ELSIF kind = 'change' THEN
      outcomes := outcomes || '"absent"';
      CONTINUE;
    END IF;
    IF kind = 'capture' AND EXISTS (
      SELECT 1 FROM hopgate.memory_events WHERE space = place.id AND print = one->>'print'
        AND time BETWEEN (one->>'time')::bigint - dedupe_ms AND (one->>'time')::bigint + dedupe_ms
    ) THEN
      outcomes := outcomes || '"duplicate"';
      CONTINUE;
    END IF;
    IF place.events >= most_events OR all_bytes + (one->>'bytes')::int > most_bytes THEN
      IF kind = 'capture' THEN
        outcomes := outcomes || '"full"';
        CONTINUE;
      END IF;
      RAISE EXCEPTION 'full' USING ERRCODE = CASE WHEN place.events >= most_events THEN 'HG001' ELSE 'HG002' END;
    END IF;
    INSERT INTO hopgate.memory_events
      (space, id, time, body, tags, importance, print, bytes, length, terms${hasTurns ? ', digest, turn' : ''})
      VALUES (place.id, one->>'id', (one->>'time')::bigint, decode(one->>'body', 'base64'),
        ARRAY(SELECT jsonb_array_elements_text(one->'tags')), (one->>'importance')::float8, one->>'print',
        (one->>'bytes')::int, (one->>'length')::int,
        ARRAY(SELECT place.id || ':' || t FROM jsonb_array_elements_text(one->'terms') t)${hasTurns ? TURN_VALUES : ''})
      RETURNING seq INTO new_seq;
    made := made || new_seq;
    UPDATE hopgate.memory_spaces SET events = events + 1, bytes = bytes + (one->>'bytes')::int,
      length = length + (one->>'length')::int WHERE id = place.id;
    all_bytes := all_bytes + (one->>'bytes')::int;
    added := added + (one->>'bytes')::int;
    outcomes := outcomes || '"stored"';
  END LOOP;
${hasTurns ? '  PERFORM hopgate.memory_count(made);\n' : COUNT_TERMS}  IF added > 0 THEN UPDATE hopgate.memory_total SET bytes = bytes + added; END IF;
  RETURN jsonb_build_object('outcomes', outcomes, 'clock', hopgate.memory_clock());
END;
$$;
`;

/** Both functions begin with the rarest terms: few events have them, so few events are scored. */
const FIND_DECLARED = `\
DECLARE
  place hopgate.memory_spaces;
  counts jsonb;
  found_events jsonb;
  term record;
  worth float8;
  rarest float8;
  hits bigint[];
  seqs bigint[] := '{}';
  worths float8[] := '{}';
  unread int := most_read;
`;
const FIND_RAREST = `\
  SELECT * INTO place FROM hopgate.memory_spaces WHERE name = which;
  IF NOT FOUND THEN RETURN jsonb_build_object('clock', hopgate.memory_clock()); END IF;
  SELECT coalesce(jsonb_object_agg(m.term, m.events), '{}') INTO counts FROM hopgate.memory_terms m
    WHERE m.space = place.id AND m.term = ANY(ARRAY(
      SELECT jsonb_array_elements_text(l->1) FROM jsonb_array_elements(looked) l));
  rarest := greatest(50, place.events);
  FOR term IN
    SELECT (l.one->>0)::boolean AS single, least(sum((counts->>f)::int), place.events)::float8 AS having_it,
      array_agg(place.id || ':' || f) AS held
      FROM jsonb_array_elements(looked) WITH ORDINALITY l(one, ord), jsonb_array_elements_text(l.one->1) f
      WHERE counts ? f GROUP BY l.ord, l.one ORDER BY 2, l.ord
  LOOP
    EXIT WHEN term.having_it > unread AND cardinality(seqs) > 0;
    worth := ln(1::float8 + (rarest - term.having_it + 0.5::float8) / (term.having_it + 0.5::float8))
      * CASE WHEN term.single THEN 0.4::float8 ELSE 1::float8 END;
    WITH hit AS MATERIALIZED (SELECT seq FROM hopgate.memory_events WHERE terms && term.held)
      SELECT coalesce(array_agg(seq), '{}') INTO hits
        FROM (SELECT seq FROM hit ORDER BY seq DESC LIMIT unread) newest;
    seqs := seqs || hits;
    worths := worths || array_fill(worth, ARRAY[cardinality(hits)]);
    unread := unread - cardinality(hits);
    EXIT WHEN unread <= 0;
  END LOOP;
`;

/**
 * - Whatever changes a space holds the lock of its name, and takes several locks in one order. So limits, counts and
 *   duplicates are exact over all replicas, and numbers of vectors are seen in their order.
 * - `terms` of an event are `<space>:<term>`, so that the index never looks beyond a space. How many events hold a
 *   term is counted in `memory_terms`.
 * - A space without a name is erased: nobody finds it, and it is removed in steps.
 * - `memory_total` is changed last in each transaction: it is held for a moment only.
 */
export const POSTGRES_1 = `
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

CREATE FUNCTION hopgate.memory_clock() RETURNS float8 LANGUAGE sql AS $$
  SELECT extract(epoch FROM clock_timestamp())::float8 * 1000;
$$;

CREATE FUNCTION hopgate.memory_lock(names text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  lock bigint;
BEGIN
  FOR lock IN
    SELECT DISTINCT hashtextextended(n, 7496233) AS k FROM unnest(names) n ORDER BY k
  LOOP
    PERFORM pg_advisory_xact_lock(lock);
  END LOOP;
END;
$$;

-- Removes events of one space, whose lock is held.
CREATE FUNCTION hopgate.memory_remove(which bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  gone record;
BEGIN
  WITH held AS (
    SELECT e.space, substr(t, strpos(t, ':') + 1) AS term, count(*) AS events
      FROM hopgate.memory_events e, unnest(e.terms) t WHERE e.seq = ANY(which) GROUP BY 1, 2
  ), last AS (
    DELETE FROM hopgate.memory_terms m USING held h
      WHERE m.space = h.space AND m.term = h.term AND m.events <= h.events
  )
  UPDATE hopgate.memory_terms m SET events = m.events - h.events FROM held h
    WHERE m.space = h.space AND m.term = h.term AND m.events > h.events;
  SELECT space, count(*) AS events, sum(bytes) AS bytes, sum(length) AS length INTO gone
    FROM hopgate.memory_events WHERE seq = ANY(which) GROUP BY space;
  IF NOT FOUND THEN RETURN; END IF;
  UPDATE hopgate.memory_spaces SET events = events - gone.events, bytes = bytes - gone.bytes,
    length = length - gone.length WHERE id = gone.space;
  DELETE FROM hopgate.memory_events WHERE seq = ANY(which);
  UPDATE hopgate.memory_total SET bytes = bytes - gone.bytes;
END;
$$;

-- kind "capture": what cannot be stored is left out, and the outcome says why. "add": all or none; a known id keeps its
-- event. "change": replaces an event that is there. Errors: HG001 a full space, HG002 no bytes left.
${putting(false)}
CREATE FUNCTION hopgate.memory_drop(which text, event text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  found_seq bigint;
BEGIN
  PERFORM hopgate.memory_lock(ARRAY[which]);
  SELECT e.seq INTO found_seq FROM hopgate.memory_spaces s JOIN hopgate.memory_events e ON e.space = s.id
    WHERE s.name = which AND e.id = event;
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM hopgate.memory_remove(ARRAY[found_seq]);
  RETURN true;
END;
$$;

-- Hides a space at once; memory_sweep removes it. Its erasure is known until kept_ms are over.
CREATE FUNCTION hopgate.memory_erase(which text, hash text, kept_ms float8) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  gone int;
BEGIN
  PERFORM hopgate.memory_lock(ARRAY[which]);
  DELETE FROM hopgate.memory_erasures WHERE at < hopgate.memory_clock() - kept_ms;
  INSERT INTO hopgate.memory_erasures VALUES (hash, hopgate.memory_clock())
    ON CONFLICT (space) DO UPDATE SET at = excluded.at;
  UPDATE hopgate.memory_spaces SET name = NULL WHERE name = which RETURNING events INTO gone;
  RETURN jsonb_build_object('events', coalesce(gone, 0), 'clock', hopgate.memory_clock());
END;
$$;

-- Removes a part of an erased space; false when there is none. One replica at a time sweeps a space.
CREATE FUNCTION hopgate.memory_sweep(most int) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  place bigint;
  gone int;
  gone_bytes bigint;
BEGIN
  SELECT id INTO place FROM hopgate.memory_spaces WHERE name IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN EXISTS (SELECT 1 FROM hopgate.memory_spaces WHERE name IS NULL); END IF;
  WITH removed AS (
    DELETE FROM hopgate.memory_events
      WHERE seq IN (SELECT seq FROM hopgate.memory_events WHERE space = place LIMIT most) RETURNING bytes
  ) SELECT count(*), coalesce(sum(bytes), 0) INTO gone, gone_bytes FROM removed;
  IF gone > 0 THEN
    UPDATE hopgate.memory_total SET bytes = bytes - gone_bytes;
    RETURN true;
  END IF;
  DELETE FROM hopgate.memory_terms
    WHERE space = place AND term IN (SELECT term FROM hopgate.memory_terms WHERE space = place LIMIT most * 20);
  IF NOT FOUND THEN DELETE FROM hopgate.memory_spaces WHERE id = place; END IF;
  RETURN true;
END;
$$;

-- The events that hold the rarest terms, as the embedded index finds them (term-index-store.ts).
-- looked: [[is a single character, [forms of the term]], ...]
CREATE FUNCTION hopgate.memory_recall(which text, looked jsonb, most_read int, most int)
RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
${FIND_DECLARED}BEGIN
${FIND_RAREST}  SELECT coalesce(jsonb_agg(jsonb_build_array(e.seq, e.id, e.time, encode(e.body, 'base64'), e.importance)), '[]')
    INTO found_events
    FROM (
      SELECT seq FROM (
        SELECT seq, weight, row_number() OVER (PARTITION BY weight ORDER BY seq DESC) AS same FROM (
          SELECT h.seq, sum(h.worth ORDER BY h.ord) AS weight
            FROM unnest(seqs, worths) WITH ORDINALITY h(seq, worth, ord) GROUP BY h.seq
        ) weighed
      -- A question that was asked a hundred times must not displace its answer.
      ) ranked ORDER BY same > most / 2, weight DESC, seq DESC LIMIT most
    ) best JOIN hopgate.memory_events e ON e.seq = best.seq;
  RETURN jsonb_build_object('clock', hopgate.memory_clock(), 'events', found_events, 'counts', counts,
    'space', jsonb_build_array(place.id, place.events, place.length));
END;
$$;

-- Leases the next events without a vector to one replica. Looks at a part of all events, up to "reached".
CREATE FUNCTION hopgate.memory_claim(wanted_model text, behind bigint, most int, lease_ms int)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  claimed bigint[];
  answer jsonb;
  newest bigint;
  reached bigint;
BEGIN
  SELECT coalesce(max(seq), 0) INTO newest FROM hopgate.memory_events;
  reached := greatest(behind, least(newest, behind + 20000));
  WITH free AS (
    SELECT e.seq FROM hopgate.memory_events e
      WHERE e.seq > behind AND e.seq <= reached
        AND NOT EXISTS (SELECT 1 FROM hopgate.memory_vectors v WHERE v.seq = e.seq AND v.model = wanted_model)
        AND NOT EXISTS (SELECT 1 FROM hopgate.memory_claims c WHERE c.seq = e.seq AND c.until > clock_timestamp())
        AND NOT EXISTS (SELECT 1 FROM hopgate.memory_spaces s WHERE s.id = e.space AND s.name IS NULL)
      ORDER BY e.seq LIMIT most FOR UPDATE OF e SKIP LOCKED
  ), taken AS (
    INSERT INTO hopgate.memory_claims AS c
      SELECT seq, clock_timestamp() + lease_ms * interval '1 millisecond' FROM free
      ON CONFLICT (seq) DO UPDATE SET until = excluded.until WHERE c.until <= clock_timestamp()
      RETURNING c.seq
  ) SELECT array_agg(seq) INTO claimed FROM taken;
  SELECT coalesce(jsonb_agg(jsonb_build_array(e.seq, s.name, e.id, encode(e.body, 'base64')) ORDER BY e.seq), '[]')
    INTO answer FROM hopgate.memory_events e JOIN hopgate.memory_spaces s ON s.id = e.space
    WHERE e.seq = ANY(claimed) AND s.name IS NOT NULL;
  RETURN jsonb_build_object('events', answer, 'reached', reached, 'more', reached < newest,
    'others', (SELECT min(seq) FROM hopgate.memory_claims c WHERE c.seq <> ALL(coalesce(claimed, '{}'))));
END;
$$;

-- given: [[seq, signs, vector], ...]. Numbers are given out under the lock of the space: who reads on from the last
-- number that it knows misses none.
CREATE FUNCTION hopgate.memory_vectors_put(wanted_model text, given jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  which bigint[] := ARRAY(SELECT (g->>0)::bigint FROM jsonb_array_elements(given) g);
BEGIN
  PERFORM hopgate.memory_lock(ARRAY(SELECT DISTINCT s.name FROM hopgate.memory_events e
    JOIN hopgate.memory_spaces s ON s.id = e.space WHERE e.seq = ANY(which) AND s.name IS NOT NULL));
  DELETE FROM hopgate.memory_vectors WHERE seq = ANY(which);
  INSERT INTO hopgate.memory_vectors (seq, space, model, signs, vector)
    SELECT e.seq, e.space, wanted_model, decode(g->>1, 'base64'), decode(g->>2, 'base64')
      FROM jsonb_array_elements(given) g JOIN hopgate.memory_events e ON e.seq = (g->>0)::bigint
      JOIN hopgate.memory_spaces s ON s.id = e.space AND s.name IS NOT NULL;
  DELETE FROM hopgate.memory_claims WHERE seq = ANY(which);
END;
$$;
`;

export const POSTGRES_2 = `
ALTER TABLE hopgate.memory_events ADD COLUMN digest bytea, ADD COLUMN turn text COLLATE "C";
CREATE INDEX memory_events_turn ON hopgate.memory_events (space, turn) WHERE turn IS NOT NULL;

-- Counts the terms of events that were just made.
CREATE FUNCTION hopgate.memory_count(made bigint[]) RETURNS void LANGUAGE sql AS $$
${COUNT_TERMS}$$;

-- As before; a captured turn takes the place of what the same turn had before: "keep" has the prints that stay.
${putting(true)}

-- What memory_recall finds, and beside it: the events right before and after the first "neighbours" of them, events of
-- "times" ([[since, until], ...]) and those of "near". Bodies of more than "whole_bytes" are fetched on their own.
CREATE FUNCTION hopgate.memory_find(
  which text, looked jsonb, most_read int, most int, neighbours int, times jsonb, of_times int, near bigint[], whole_bytes int,
  since bigint, until bigint
) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
${FIND_DECLARED}  best bigint[];
  beside jsonb;
  spans bigint[];
  span jsonb;
  wanted bigint[];
BEGIN
${FIND_RAREST}  SELECT coalesce(array_agg(seq ORDER BY nth), '{}') INTO best FROM (
    SELECT seq, row_number() OVER (ORDER BY same > most / 2, weight DESC, seq DESC) AS nth FROM (
      SELECT seq, weight, row_number() OVER (PARTITION BY weight ORDER BY seq DESC) AS same FROM (
        SELECT h.seq, sum(h.worth ORDER BY h.ord) AS weight
          FROM unnest(seqs, worths) WITH ORDINALITY h(seq, worth, ord)
          WHERE (since = 0 AND until = 9007199254740991) OR EXISTS (
            SELECT 1 FROM hopgate.memory_events t WHERE t.seq = h.seq AND t.time >= since AND t.time < until
          ) GROUP BY h.seq
      ) weighed
    -- A question that was asked a hundred times must not displace its answer.
    ) ranked ORDER BY same > most / 2, weight DESC, seq DESC LIMIT most
  ) first_ones;
  wanted := best || near;
  FOR span IN SELECT * FROM jsonb_array_elements(times) LOOP
    SELECT coalesce(array_agg(seq), '{}') INTO spans FROM (
      SELECT seq FROM hopgate.memory_events
        WHERE space = place.id AND time >= (span->>0)::float8 AND time < (span->>1)::float8
        ORDER BY time DESC, seq DESC LIMIT of_times
    ) of_span;
    of_times := of_times - cardinality(spans);
    wanted := wanted || spans;
  END LOOP;
  SELECT coalesce(jsonb_agg(jsonb_build_array(e.seq, b.seq, a.seq)), '[]'),
      wanted || coalesce(array_agg(b.seq), '{}') || coalesce(array_agg(a.seq), '{}')
    INTO beside, wanted
    FROM hopgate.memory_events e
    LEFT JOIN LATERAL (
      SELECT seq FROM hopgate.memory_events WHERE space = place.id AND (time, seq) < (e.time, e.seq)
        ORDER BY time DESC, seq DESC LIMIT 1
    ) b ON true
    LEFT JOIN LATERAL (
      SELECT seq FROM hopgate.memory_events WHERE space = place.id AND (time, seq) > (e.time, e.seq)
        ORDER BY time, seq LIMIT 1
    ) a ON true
    WHERE e.seq = ANY(best[1:neighbours]);
  SELECT coalesce(jsonb_agg(jsonb_build_array(e.seq, e.id, e.time, e.importance, encode(e.digest, 'base64'),
      CASE WHEN e.digest IS NULL OR octet_length(e.body) <= whole_bytes THEN encode(e.body, 'base64') END)), '[]')
    INTO found_events FROM hopgate.memory_events e WHERE e.space = place.id AND e.seq = ANY(wanted);
  RETURN jsonb_build_object('clock', hopgate.memory_clock(), 'events', found_events, 'counts', counts,
    'beside', beside, 'space', jsonb_build_array(place.id, place.events, place.length));
END;
$$;

CREATE FUNCTION hopgate.memory_digest(given jsonb) RETURNS void LANGUAGE sql AS $$
  UPDATE hopgate.memory_events e SET digest = decode(g->>1, 'base64')
    FROM jsonb_array_elements(given) g WHERE e.seq = (g->>0)::bigint AND e.digest IS NULL;
$$;
`;
