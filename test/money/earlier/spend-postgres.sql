
CREATE TABLE hopgate.spend_texts (
  id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text text NOT NULL
);
CREATE UNIQUE INDEX spend_texts_text ON hopgate.spend_texts (md5(text));
CREATE SEQUENCE hopgate.spend_ids;
CREATE TABLE hopgate.spend_rows (
  at bigint NOT NULL, writer text NOT NULL, n bigint NOT NULL, rev int NOT NULL,
  id bigint NOT NULL DEFAULT nextval('hopgate.spend_ids'), time bigint, request text, key text, labels int, session text, client text, model text, target text,
  upstream_key text, hop int, attempt int, status int, ended text, input bigint, output bigint, cache_read bigint,
  cache_write bigint, cache_write_1h bigint, reasoning bigint, searches bigint, estimated int, cost bigint,
  price int, trace text, replica text,
  PRIMARY KEY (at, writer, n)
) PARTITION BY RANGE (at);
CREATE INDEX spend_rows_time ON hopgate.spend_rows (time, id);
CREATE INDEX spend_rows_session ON hopgate.spend_rows (session, time) WHERE session IS NOT NULL;
CREATE TABLE hopgate.spend_months (start bigint PRIMARY KEY, until bigint NOT NULL, made timestamptz NOT NULL);
CREATE TABLE hopgate.spend_totals (
  span int NOT NULL, start bigint NOT NULL, key text NOT NULL, labels int NOT NULL, model text NOT NULL,
  target text NOT NULL, tries bigint NOT NULL, input bigint NOT NULL, output bigint NOT NULL, cache_read bigint NOT NULL, cache_write bigint NOT NULL, cache_write_1h bigint NOT NULL, reasoning bigint NOT NULL, searches bigint NOT NULL, cost bigint NOT NULL, unpriced bigint NOT NULL, estimated bigint NOT NULL, PRIMARY KEY (span, start, key, labels, model, target)
) WITH (fillfactor = 70);
CREATE TABLE hopgate.spend_session_totals (
  start bigint NOT NULL, session text NOT NULL, key text NOT NULL, tries bigint NOT NULL, input bigint NOT NULL, output bigint NOT NULL, cache_read bigint NOT NULL, cache_write bigint NOT NULL, cache_write_1h bigint NOT NULL, reasoning bigint NOT NULL, searches bigint NOT NULL, cost bigint NOT NULL, unpriced bigint NOT NULL, estimated bigint NOT NULL, PRIMARY KEY (start, session, key)
) WITH (fillfactor = 80);
CREATE TABLE hopgate.spend_open (
  at bigint NOT NULL, writer text NOT NULL, n bigint NOT NULL, spool text NOT NULL, row jsonb NOT NULL,
  PRIMARY KEY (at, writer, n)
);
CREATE INDEX spend_open_spool ON hopgate.spend_open (spool);
CREATE TABLE hopgate.spend_spools (id text PRIMARY KEY, replica text NOT NULL, seen timestamptz NOT NULL);
CREATE TYPE hopgate.spend_entry AS (
  at bigint, writer text, n bigint, rev int, time bigint, request text, key text, labels text, session text, client text, model text, target text,
  upstream_key text, hop int, attempt int, status int, ended text, input bigint, output bigint, cache_read bigint,
  cache_write bigint, cache_write_1h bigint, reasoning bigint, searches bigint, estimated int, cost bigint,
  price text, trace text, replica text
);

CREATE FUNCTION hopgate.spend_month_of(t bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT extract(epoch FROM date_trunc('month', to_timestamp(t / 1000) AT TIME ZONE 'UTC'))::bigint * 1000
$$;

CREATE FUNCTION hopgate.spend_part_of(month bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT 'spend_rows_' || to_char(to_timestamp(month / 1000) AT TIME ZONE 'UTC', 'YYYYMM')
$$;

CREATE FUNCTION hopgate.spend_make_month(month bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  after bigint;
BEGIN
  IF to_regclass('hopgate.' || hopgate.spend_part_of(month)) IS NOT NULL THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock(7496233);
  after := hopgate.spend_month_of(month + 32::bigint * 86400000);
  EXECUTE format('CREATE TABLE IF NOT EXISTS hopgate.%I PARTITION OF hopgate.spend_rows FOR VALUES FROM (%s) TO (%s)',
    hopgate.spend_part_of(month), month, after);
  INSERT INTO hopgate.spend_months VALUES (month, after, clock_timestamp()) ON CONFLICT (start) DO NOTHING;
END;
$$;

-- Locks of totals are taken in the order of their keys, by everybody.
CREATE FUNCTION hopgate.spend_count(made hopgate.spend_rows[], gone hopgate.spend_rows[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO hopgate.spend_totals AS t
    SELECT span, start, (r).key, (r).labels, (r).model, (r).target, sum(sign), sum(sign * coalesce((r).input, 0)), sum(sign * coalesce((r).output, 0)), sum(sign * coalesce((r).cache_read, 0)), sum(sign * coalesce((r).cache_write, 0)), sum(sign * coalesce((r).cache_write_1h, 0)), sum(sign * coalesce((r).reasoning, 0)), sum(sign * coalesce((r).searches, 0)), sum(sign * coalesce((r).cost, 0)), sum(CASE WHEN (r).cost IS NULL THEN sign ELSE 0 END), sum(sign * coalesce((r).estimated, 0))
    FROM (SELECT m AS r, 1 AS sign FROM unnest(made) m UNION ALL SELECT g, -1 FROM unnest(gone) g) counted
    CROSS JOIN LATERAL (VALUES (0, (r).time - (r).time % 3600000), (1, (r).time - (r).time % 86400000),
      (2, hopgate.spend_month_of((r).time))) spans (span, start)
    GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
    ON CONFLICT (span, start, key, labels, model, target) DO UPDATE SET tries = t.tries + excluded.tries, input = t.input + excluded.input, output = t.output + excluded.output, cache_read = t.cache_read + excluded.cache_read, cache_write = t.cache_write + excluded.cache_write, cache_write_1h = t.cache_write_1h + excluded.cache_write_1h, reasoning = t.reasoning + excluded.reasoning, searches = t.searches + excluded.searches, cost = t.cost + excluded.cost, unpriced = t.unpriced + excluded.unpriced, estimated = t.estimated + excluded.estimated;
  INSERT INTO hopgate.spend_session_totals AS t
    SELECT (r).time - (r).time % 86400000, (r).session, (r).key, sum(sign), sum(sign * coalesce((r).input, 0)), sum(sign * coalesce((r).output, 0)), sum(sign * coalesce((r).cache_read, 0)), sum(sign * coalesce((r).cache_write, 0)), sum(sign * coalesce((r).cache_write_1h, 0)), sum(sign * coalesce((r).reasoning, 0)), sum(sign * coalesce((r).searches, 0)), sum(sign * coalesce((r).cost, 0)), sum(CASE WHEN (r).cost IS NULL THEN sign ELSE 0 END), sum(sign * coalesce((r).estimated, 0))
    FROM (SELECT m AS r, 1 AS sign FROM unnest(made) m UNION ALL SELECT g, -1 FROM unnest(gone) g) counted
    WHERE (r).session IS NOT NULL
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (start, session, key) DO UPDATE SET tries = t.tries + excluded.tries, input = t.input + excluded.input, output = t.output + excluded.output, cache_read = t.cache_read + excluded.cache_read, cache_write = t.cache_write + excluded.cache_write, cache_write_1h = t.cache_write_1h + excluded.cache_write_1h, reasoning = t.reasoning + excluded.reasoning, searches = t.searches + excluded.searches, cost = t.cost + excluded.cost, unpriced = t.unpriced + excluded.unpriced, estimated = t.estimated + excluded.estimated;
END;
$$;

-- The caller holds the lock of the machine whose entries these are. A new month has no statistics yet: without the
-- settings, its rows would be read as a whole for each batch.
CREATE FUNCTION hopgate.spend_apply(batch jsonb) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  came hopgate.spend_entry[];
  gone hopgate.spend_rows[];
  made hopgate.spend_rows[];
  month bigint;
BEGIN
  SELECT array_agg(ROW(e.*)::hopgate.spend_entry) INTO came FROM (
    SELECT DISTINCT ON (at, writer, n) * FROM jsonb_populate_recordset(NULL::hopgate.spend_entry, batch)
    WHERE rev > 0 ORDER BY at, writer, n, rev DESC) e;
  IF came IS NULL THEN RETURN; END IF;
  FOR month IN SELECT DISTINCT hopgate.spend_month_of(at) FROM unnest(came) ORDER BY 1 LOOP
    PERFORM hopgate.spend_make_month(month);
  END LOOP;
  INSERT INTO hopgate.spend_texts (text)
    SELECT text FROM (SELECT labels AS text FROM unnest(came) UNION SELECT price FROM unnest(came)) used
    WHERE text IS NOT NULL AND NOT EXISTS (SELECT 1 FROM hopgate.spend_texts t WHERE md5(t.text) = md5(used.text))
    ORDER BY text ON CONFLICT DO NOTHING;
  WITH old AS (DELETE FROM hopgate.spend_rows s USING unnest(came) c
    WHERE s.at = c.at AND s.writer = c.writer AND s.n = c.n AND s.rev < c.rev RETURNING s.*)
    SELECT array_agg(ROW(old.*)::hopgate.spend_rows) INTO gone FROM old;
  WITH new AS (INSERT INTO hopgate.spend_rows (at, writer, n, rev, labels, price, time, request, key, session, client, model, target, upstream_key, hop, attempt, status, ended, input, output, cache_read, cache_write, cache_write_1h, reasoning, searches, estimated, cost, trace, replica)
    SELECT at, writer, n, rev, l.id, p.id, time, request, key, session, client, model, target, upstream_key, hop, attempt, status, ended, input, output, cache_read, cache_write, cache_write_1h, reasoning, searches, estimated, cost, trace, replica
    FROM unnest(came) c JOIN hopgate.spend_texts l ON md5(l.text) = md5(c.labels)
      LEFT JOIN hopgate.spend_texts p ON md5(p.text) = md5(c.price)
    ORDER BY time, n ON CONFLICT DO NOTHING RETURNING *)
    SELECT array_agg(ROW(new.*)::hopgate.spend_rows) INTO made FROM new;
  IF made IS NOT NULL OR gone IS NOT NULL THEN PERFORM hopgate.spend_count(made, gone); END IF;
  DELETE FROM hopgate.spend_open o USING unnest(came) c WHERE o.at = c.at AND o.writer = c.writer AND o.n = c.n;
END;
$$;

-- A batch that comes late, after one that was sent behind it, changes nothing that is newer.
CREATE FUNCTION hopgate.spend_put(me text, on_replica text, batch jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('lock_timeout', '2000', true);
  PERFORM pg_advisory_xact_lock(7496232, hashtext(me));
  INSERT INTO hopgate.spend_spools VALUES (me, on_replica, clock_timestamp())
    ON CONFLICT (id) DO UPDATE SET seen = excluded.seen, replica = excluded.replica;
  PERFORM hopgate.spend_apply(batch);
  INSERT INTO hopgate.spend_open (at, writer, n, spool, row)
    SELECT (e->>'at')::bigint, e->>'writer', (e->>'n')::bigint, me, e FROM jsonb_array_elements(batch) e
    WHERE (e->>'rev')::int = 0 AND NOT EXISTS (SELECT 1 FROM hopgate.spend_rows s
      WHERE s.at = (e->>'at')::bigint AND s.writer = e->>'writer' AND s.n = (e->>'n')::bigint)
    ON CONFLICT DO NOTHING;
END;
$$;

-- What runs on a machine that was not heard for so long is lost, with what was reserved. The true row replaces it.
CREATE FUNCTION hopgate.spend_lapse(after_ms int, most int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  silent text;
  batch jsonb;
  found int := 0;
BEGIN
  PERFORM set_config('lock_timeout', '2000', true);
  IF NOT pg_try_advisory_xact_lock(7496234) THEN RETURN 0; END IF;
  FOR silent IN SELECT id FROM hopgate.spend_spools s
    WHERE seen < clock_timestamp() - after_ms * interval '1 millisecond'
      AND EXISTS (SELECT 1 FROM hopgate.spend_open o WHERE o.spool = s.id) LIMIT 20 LOOP
    CONTINUE WHEN NOT pg_try_advisory_xact_lock(7496232, hashtext(silent));
    CONTINUE WHEN EXISTS (SELECT 1 FROM hopgate.spend_spools WHERE id = silent
      AND seen >= clock_timestamp() - after_ms * interval '1 millisecond');
    SELECT jsonb_agg(row || '{"rev": 1, "ended": "lost"}') INTO batch
      FROM (SELECT row FROM hopgate.spend_open WHERE spool = silent ORDER BY at LIMIT most) taken;
    CONTINUE WHEN batch IS NULL;
    PERFORM hopgate.spend_apply(batch);
    found := found + jsonb_array_length(batch);
    EXIT WHEN found >= most;
  END LOOP;
  RETURN found;
END;
$$;

-- One month of rows at a time, and one that was made a moment ago stays: rows that come late are not counted twice.
CREATE FUNCTION hopgate.spend_prune(row_days int, total_days int, settled_ms bigint, most int) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
  now_ms bigint := extract(epoch FROM clock_timestamp()) * 1000;
  month bigint;
  deleted int := 0;
  part int;
BEGIN
  PERFORM set_config('lock_timeout', '2000', true);
  IF NOT pg_try_advisory_xact_lock(7496235) THEN RETURN 0; END IF;
  IF row_days > 0 THEN
    PERFORM pg_advisory_xact_lock(7496233);
    SELECT start INTO month FROM hopgate.spend_months WHERE until <= now_ms - row_days * 86400000::bigint
      AND made < clock_timestamp() - settled_ms * interval '1 millisecond' ORDER BY start LIMIT 1;
    IF month IS NOT NULL THEN
      EXECUTE format('DROP TABLE hopgate.%I', hopgate.spend_part_of(month));
      DELETE FROM hopgate.spend_months WHERE start = month;
      deleted := most;
    END IF;
  END IF;
  IF total_days > 0 THEN
    FOR span_of IN 0..2 LOOP
      DELETE FROM hopgate.spend_totals WHERE ctid = ANY (ARRAY(SELECT ctid FROM hopgate.spend_totals
        WHERE span = span_of AND start < now_ms - (total_days + (ARRAY[1, 1, 31])[span_of + 1]) * 86400000::bigint
        LIMIT most));
      GET DIAGNOSTICS part = ROW_COUNT;
      deleted := deleted + part;
    END LOOP;
    DELETE FROM hopgate.spend_session_totals WHERE ctid = ANY (ARRAY(SELECT ctid FROM hopgate.spend_session_totals
      WHERE start < now_ms - (total_days + 1) * 86400000::bigint LIMIT most));
    GET DIAGNOSTICS part = ROW_COUNT;
    deleted := deleted + part;
  END IF;
  DELETE FROM hopgate.spend_spools s WHERE seen < clock_timestamp() - interval '30 days'
    AND NOT EXISTS (SELECT 1 FROM hopgate.spend_open o WHERE o.spool = s.id);
  RETURN deleted;
END;
$$;


CREATE TABLE hopgate.spend_moves (
  origin text PRIMARY KEY, since bigint NOT NULL, id bigint NOT NULL, time bigint NOT NULL,
  totals boolean NOT NULL DEFAULT false
);
CREATE TABLE hopgate.spend_name (one boolean PRIMARY KEY DEFAULT true CHECK (one), name text NOT NULL);
INSERT INTO hopgate.spend_name (name) VALUES (md5(random()::text || clock_timestamp()::text || pg_backend_pid()));
CREATE TABLE hopgate.spend_moved_totals (
  origin text NOT NULL, start bigint NOT NULL, key text NOT NULL, labels int NOT NULL, model text NOT NULL,
  target text NOT NULL, tries bigint NOT NULL, input bigint NOT NULL, output bigint NOT NULL, cache_read bigint NOT NULL, cache_write bigint NOT NULL, cache_write_1h bigint NOT NULL, reasoning bigint NOT NULL, searches bigint NOT NULL, cost bigint NOT NULL, unpriced bigint NOT NULL, estimated bigint NOT NULL, PRIMARY KEY (origin, start, key, labels, model, target)
);
CREATE TABLE hopgate.spend_moved_sessions (
  origin text NOT NULL, start bigint NOT NULL, session text NOT NULL, key text NOT NULL, tries bigint NOT NULL, input bigint NOT NULL, output bigint NOT NULL, cache_read bigint NOT NULL, cache_write bigint NOT NULL, cache_write_1h bigint NOT NULL, reasoning bigint NOT NULL, searches bigint NOT NULL, cost bigint NOT NULL, unpriced bigint NOT NULL, estimated bigint NOT NULL,
  PRIMARY KEY (origin, start, session, key)
);


CREATE TABLE hopgate.spend_kept (LIKE hopgate.spend_rows, PRIMARY KEY (at, writer, n));

CREATE OR REPLACE FUNCTION hopgate.spend_apply(batch jsonb) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  came hopgate.spend_entry[];
  gone hopgate.spend_rows[];
  made hopgate.spend_rows[];
  month bigint;
BEGIN
  SELECT array_agg(ROW(e.*)::hopgate.spend_entry) INTO came FROM (
    SELECT DISTINCT ON (at, writer, n) * FROM jsonb_populate_recordset(NULL::hopgate.spend_entry, batch)
    WHERE rev > 0 ORDER BY at, writer, n, rev DESC) e;
  IF came IS NULL THEN RETURN; END IF;
  FOR month IN SELECT DISTINCT hopgate.spend_month_of(at) FROM unnest(came) ORDER BY 1 LOOP
    PERFORM hopgate.spend_make_month(month);
  END LOOP;
  INSERT INTO hopgate.spend_texts (text)
    SELECT text FROM (SELECT labels AS text FROM unnest(came) UNION SELECT price FROM unnest(came)) used
    WHERE text IS NOT NULL AND NOT EXISTS (SELECT 1 FROM hopgate.spend_texts t WHERE md5(t.text) = md5(used.text))
    ORDER BY text ON CONFLICT DO NOTHING;
  WITH old AS (DELETE FROM hopgate.spend_rows s USING unnest(came) c
    WHERE s.at = c.at AND s.writer = c.writer AND s.n = c.n AND s.rev < c.rev RETURNING s.*)
    SELECT array_agg(ROW(old.*)::hopgate.spend_rows) INTO gone FROM old;
  WITH old AS (DELETE FROM hopgate.spend_kept s USING unnest(came) c
    WHERE s.at = c.at AND s.writer = c.writer AND s.n = c.n AND s.rev < c.rev RETURNING s.*)
    SELECT gone || array_agg(ROW(old.*)::hopgate.spend_rows) INTO gone FROM old;
  WITH new AS (INSERT INTO hopgate.spend_rows (at, writer, n, rev, labels, price, time, request, key, session, client, model, target, upstream_key, hop, attempt, status, ended, input, output, cache_read, cache_write, cache_write_1h, reasoning, searches, estimated, cost, trace, replica)
    SELECT c.at, c.writer, c.n, c.rev, l.id, p.id, time, request, key, session, client, model, target, upstream_key, hop, attempt, status, ended, input, output, cache_read, cache_write, cache_write_1h, reasoning, searches, estimated, cost, trace, replica
    FROM unnest(came) c JOIN hopgate.spend_texts l ON md5(l.text) = md5(c.labels)
      LEFT JOIN hopgate.spend_texts p ON md5(p.text) = md5(c.price)
    WHERE NOT EXISTS (SELECT 1 FROM hopgate.spend_kept k WHERE k.at = c.at AND k.writer = c.writer AND k.n = c.n)
    ORDER BY time, n ON CONFLICT DO NOTHING RETURNING *)
    SELECT array_agg(ROW(new.*)::hopgate.spend_rows) INTO made FROM new;
  IF made IS NOT NULL OR gone IS NOT NULL THEN PERFORM hopgate.spend_count(made, gone); END IF;
  DELETE FROM hopgate.spend_open o USING unnest(came) c WHERE o.at = c.at AND o.writer = c.writer AND o.n = c.n;
END;
$$;

CREATE OR REPLACE FUNCTION hopgate.spend_prune(row_days int, total_days int, settled_ms bigint, most int) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
  now_ms bigint := extract(epoch FROM clock_timestamp()) * 1000;
  month bigint;
  deleted int := 0;
  part int;
BEGIN
  PERFORM set_config('lock_timeout', '2000', true);
  IF NOT pg_try_advisory_xact_lock(7496235) THEN RETURN 0; END IF;
  IF row_days > 0 THEN
    PERFORM pg_advisory_xact_lock(7496233);
    SELECT start INTO month FROM hopgate.spend_months WHERE until <= now_ms - row_days * 86400000::bigint
      AND made < clock_timestamp() - settled_ms * interval '1 millisecond' ORDER BY start LIMIT 1;
    IF month IS NOT NULL THEN
      EXECUTE format('INSERT INTO hopgate.spend_kept SELECT * FROM hopgate.%I WHERE rev < 3 ON CONFLICT DO NOTHING',
        hopgate.spend_part_of(month));
      EXECUTE format('DROP TABLE hopgate.%I', hopgate.spend_part_of(month));
      DELETE FROM hopgate.spend_months WHERE start = month;
      deleted := most;
    END IF;
  END IF;
  IF total_days > 0 THEN
    FOR span_of IN 0..2 LOOP
      DELETE FROM hopgate.spend_totals WHERE ctid = ANY (ARRAY(SELECT ctid FROM hopgate.spend_totals
        WHERE span = span_of AND start < now_ms - (total_days + (ARRAY[1, 1, 31])[span_of + 1]) * 86400000::bigint
        LIMIT most));
      GET DIAGNOSTICS part = ROW_COUNT;
      deleted := deleted + part;
    END LOOP;
    DELETE FROM hopgate.spend_session_totals WHERE ctid = ANY (ARRAY(SELECT ctid FROM hopgate.spend_session_totals
      WHERE start < now_ms - (total_days + 1) * 86400000::bigint LIMIT most));
    GET DIAGNOSTICS part = ROW_COUNT;
    deleted := deleted + part;
  END IF;
  DELETE FROM hopgate.spend_kept WHERE ctid = ANY (ARRAY(SELECT ctid FROM hopgate.spend_kept
    WHERE at < now_ms - least(366, coalesce(nullif(total_days, 0), 366)) * 86400000::bigint LIMIT most));
  DELETE FROM hopgate.spend_spools s WHERE seen < clock_timestamp() - interval '30 days'
    AND NOT EXISTS (SELECT 1 FROM hopgate.spend_open o WHERE o.spool = s.id);
  RETURN deleted;
END;
$$;


ALTER TABLE hopgate.spend_totals SET (parallel_workers = 0);

