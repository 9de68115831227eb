/** The list of the samples of all replicas in Postgres: what is uploaded, what is removed, in an order that every replica can follow. */

import type { Sql, SqlReader } from '../../state/engines/engine.ts';
import {
  beforeErasures,
  DATABASE_NOW,
  HashedName,
  isErased,
  nameHash,
  type ReplicaErasures,
} from '../../state/erasures.ts';
import { isBehind, prepared } from '../../state/sql/migrations.ts';
import type { Retention } from '../store/retention.ts';

/**
 * `pending`: its objects may come to be; `done`: they are there; `gone`: they are being removed, and the row stays for a
 * while so that every replica learns of it.
 */
export type ListedState = 'pending' | 'done' | 'gone';

/** A sample before its upload. */
export interface NewSample {
  readonly id: string;
  readonly key: string;
  /** By the clock of this process, in ms since 1970. */
  readonly time: number;
  readonly failed: boolean;
  readonly bytes: number;
  readonly parts: number;
  /** Hash of its memory space. */
  readonly space: string | undefined;
  /** Hash of its owner. */
  readonly owner: string;
}

/** What another replica did. */
export interface ListedSample {
  readonly seq: number;
  readonly id: string;
  readonly replica: string;
  readonly state: ListedState;
  readonly meta: Uint8Array | null;
}

export interface StoredObject {
  readonly id: string;
  readonly key: string;
  readonly parts: number;
}

/** `seq` grows in the order in which transactions commit. `began`: in ms since 1970 by the database's clock. */
const MIGRATIONS = [
  `CREATE SEQUENCE hopgate.samples_seq
CREATE TABLE hopgate.samples (
  id text PRIMARY KEY, seq bigint NOT NULL DEFAULT 0, replica text NOT NULL, key text NOT NULL, state text NOT NULL,
  began double precision NOT NULL, failed boolean NOT NULL, bytes bigint NOT NULL, parts int NOT NULL,
  space text, meta bytea, changed timestamptz NOT NULL DEFAULT now(), checks int NOT NULL DEFAULT 0
)
CREATE INDEX samples_by_seq ON hopgate.samples (seq)
CREATE INDEX samples_by_space ON hopgate.samples (space) WHERE space IS NOT NULL
CREATE INDEX samples_by_state ON hopgate.samples (state, changed) WHERE state <> 'done'
CREATE TABLE hopgate.samples_state (
  name text PRIMARY KEY, holder text NOT NULL DEFAULT '', until timestamptz, seq bigint NOT NULL DEFAULT 0
)
INSERT INTO hopgate.samples_state (name) VALUES ('cleaning'), ('forgotten')`,
  // Whose it is, as a hash: what one key makes does not push out the samples of another.
  'ALTER TABLE hopgate.samples ADD COLUMN owner text',
];

const DEADLINE_MS = 5000;
/** Sorting the list for its limits may take longer. */
const SLOW_MS = 30_000;
/** Rows of one answer. */
const PAGE = 200;
/** Objects of removed samples are looked for a second time, since an upload may have been under way. */
const SECOND_CHECK = "interval '15 minutes'";
/** Uploads that were never finished: their replica does not come back. */
const ABANDONED = "interval '7 days'";
/** How long removed samples are told to replicas that were away. */
const TOLD = "interval '7 days'";

export class SampleList {
  readonly #prepared: () => Promise<void>;
  /** How much the clock of this process is ahead of the database's, at least. */
  #ahead = 0;

  constructor(
    private readonly database: Sql,
    private readonly erasures: Pick<ReplicaErasures, 'prepared'>,
  ) {
    this.#prepared = prepared(database, 'samples', MIGRATIONS);
  }

  /** Makes the tables. @throws EngineAway */
  async ready(): Promise<void> {
    await this.erasures.prepared();
    await this.#prepared();
  }

  /**
   * Says that these are about to be uploaded, and returns what there is of each now. Those that are missing in the
   * answer may not be uploaded: their memory space was erased.
   * @throws EngineAway
   */
  reserve(
    replica: string,
    samples: readonly NewSample[],
  ): Promise<
    readonly { readonly id: string; readonly replica: string; readonly state: ListedState }[]
  > {
    return this.database.transaction(async (inside) => {
      await beforeErasures(inside);
      await this.#readClock(inside);
      for (const one of samples) {
        const began = one.time - this.#ahead;
        await inside.query(
          `INSERT INTO hopgate.samples (id, replica, key, state, began, failed, bytes, parts, space, owner)
             SELECT $1, $2, $3, 'pending', $4::double precision, $5, $6, $7, $8::text, $9
             WHERE NOT ${isErased('$8::text', '$4::double precision')}
             ON CONFLICT (id) DO NOTHING`,
          [
            one.id,
            replica,
            one.key,
            began,
            one.failed,
            one.bytes,
            one.parts,
            one.space ?? null,
            one.owner,
          ],
        );
      }
      return inside.query(
        `SELECT id, replica, state FROM hopgate.samples WHERE id = ANY($1) AND NOT (
           state <> 'gone' AND space IS NOT NULL AND ${isErased('space', 'began')})`,
        [samples.map(({ id }) => id)],
      );
    }, DEADLINE_MS);
  }

  /** Lists an uploaded sample for all replicas. False: it was removed meanwhile. @throws EngineAway */
  complete(id: string, meta: Uint8Array): Promise<boolean> {
    return this.database.transaction(async (inside) => {
      await beforeErasures(inside);
      await inOrder(inside);
      const done = await inside.query(
        `UPDATE hopgate.samples SET state = 'done', meta = $2, seq = nextval('hopgate.samples_seq'), changed = now()
           WHERE id = $1 AND state = 'pending' AND NOT ${isErased('space', 'began')} RETURNING id`,
        [id, meta],
      );
      return done.length > 0;
    }, DEADLINE_MS);
  }

  /** What changed behind `seq`, a page of it. @throws EngineAway */
  changes(seq: number): Promise<readonly ListedSample[]> {
    return this.database.query(
      `SELECT seq, id, replica, state, meta FROM hopgate.samples WHERE seq > $1 ORDER BY seq LIMIT ${PAGE}`,
      [seq],
      DEADLINE_MS,
    );
  }

  /** The database was restored from an older backup: numbers behind which nothing was followed come again. @throws EngineAway */
  async isBehind(seq: number): Promise<boolean> {
    const [row] = await this.database.query<{ restored: boolean }>(
      `SELECT ${isBehind('hopgate.samples_seq', '$1::bigint')} AS restored`,
      [seq],
      DEADLINE_MS,
    );
    return row!.restored;
  }

  /** Who has followed less far cannot know all that was removed. @throws EngineAway */
  async forgotten(): Promise<number> {
    const [row] = await this.database.query<{ seq: number }>(
      `SELECT seq FROM hopgate.samples_state WHERE name = 'forgotten'`,
      [],
      DEADLINE_MS,
    );
    return row!.seq;
  }

  /** Marks samples as removed; returns their objects. @throws EngineAway */
  remove(ids: readonly string[]): Promise<readonly StoredObject[]> {
    if (ids.length === 0) return Promise.resolve([]);
    return this.database.transaction(async (inside) => {
      await inOrder(inside);
      return inside.query<StoredObject>(
        `UPDATE hopgate.samples SET state = 'gone', meta = NULL, space = NULL, bytes = 0,
             seq = nextval('hopgate.samples_seq'), changed = now(), checks = 0
           WHERE id = ANY($1) AND state <> 'gone' RETURNING id, key, parts`,
        [ids],
      );
    }, DEADLINE_MS);
  }

  /** Samples of erased memory spaces; of this one, or of any. A page of ids. @throws EngineAway */
  async erased(space?: string): Promise<readonly string[]> {
    const rows = await this.database.query<{ id: string }>(
      `SELECT id FROM hopgate.samples WHERE space IS NOT NULL AND ($1::text IS NULL OR space = $1)
         AND ${isErased('space', 'began')} LIMIT ${PAGE}`,
      [space ?? null],
      DEADLINE_MS,
    );
    return rows.map(({ id }) => id);
  }

  /**
   * Samples over the limits: successful ones by age, number and size; failed ones by their own age and number, and by
   * size only once no successful one is left. Where they are too many or too large, the oldest go of the owner that has
   * most. Abandoned uploads too. A page of ids.
   * @throws EngineAway
   */
  async overdue({
    keepDays,
    keepFailedDays,
    maxBytes,
    maxCount,
  }: Retention): Promise<readonly string[]> {
    const rows = await this.database.query<{ id: string }>(
      // A sample stands behind as many as its owner has that are newer: the first of each owner come first.
      `WITH owned AS (
         SELECT id, failed, began, bytes, row_number() OVER own AS own_place, sum(bytes) OVER own AS own_bytes
         FROM hopgate.samples WHERE state = 'done'
         WINDOW own AS (PARTITION BY failed, owner ORDER BY began DESC, id DESC)
       ), ranked AS (
         SELECT id, failed, began,
           row_number() OVER (PARTITION BY failed ORDER BY own_place, began DESC, id DESC) AS place,
           sum(bytes) OVER (ORDER BY failed DESC, own_bytes, began DESC, id DESC) AS bytes
         FROM owned
       )
       (SELECT id FROM ranked WHERE
           ($1::float8 > 0 AND NOT failed AND began < ${DATABASE_NOW} - $1::float8 * 86400000)
           OR ($2::float8 > 0 AND failed AND began < ${DATABASE_NOW} - $2::float8 * 86400000)
           OR ($3::bigint > 0 AND bytes > $3::bigint) OR ($4::bigint > 0 AND place > $4::bigint)
         ORDER BY failed, began LIMIT ${PAGE})
       UNION ALL
       (SELECT id FROM hopgate.samples WHERE state = 'pending' AND changed < now() - ${ABANDONED} LIMIT ${PAGE})`,
      [keepDays, keepFailedDays, maxBytes, maxCount],
      SLOW_MS,
    );
    return rows.map(({ id }) => id);
  }

  /** Removed samples whose objects have to be looked for, a page. @throws EngineAway */
  unchecked(): Promise<readonly StoredObject[]> {
    return this.database.query(
      `SELECT id, key, parts FROM hopgate.samples WHERE state = 'gone'
         AND (checks = 0 OR (checks = 1 AND changed < now() - ${SECOND_CHECK})) LIMIT ${PAGE}`,
      [],
      DEADLINE_MS,
    );
  }

  /** The object store no longer lists the objects of these. @throws EngineAway */
  async checked(ids: readonly string[]): Promise<void> {
    await this.database.query(
      `UPDATE hopgate.samples SET checks = checks + 1 WHERE id = ANY($1) AND state = 'gone'`,
      [ids],
      DEADLINE_MS,
    );
  }

  /** Forgets samples that were removed long ago. @throws EngineAway */
  async forget(): Promise<void> {
    await this.database.query(
      `WITH old AS (DELETE FROM hopgate.samples
           WHERE state = 'gone' AND checks > 1 AND changed < now() - ${TOLD} RETURNING seq)
         UPDATE hopgate.samples_state SET seq = greatest(seq, (SELECT max(seq) FROM old))
           WHERE name = 'forgotten' AND EXISTS (SELECT 1 FROM old)`,
      [],
      DEADLINE_MS,
    );
  }

  /** Is this replica the one that cleans now, for a minute? @throws EngineAway */
  async leads(replica: string): Promise<boolean> {
    const rows = await this.database.query(
      `UPDATE hopgate.samples_state SET holder = $1, until = now() + interval '1 minute'
         WHERE name = 'cleaning' AND (holder = $1 OR until IS NULL OR until < now()) RETURNING name`,
      [replica],
      DEADLINE_MS,
    );
    return rows.length > 0;
  }

  async #readClock(inside: SqlReader): Promise<void> {
    const [row] = await inside.query<{ now: number }>(`SELECT ${DATABASE_NOW} AS now`, []);
    this.#ahead = Date.now() - row!.now;
  }
}

/** Held while a sample gets its number. Each room has a lock of its own, or one would hold up another. */
const LOCK = 7_496_236;

/** Numbers are given in the order of commits: who follows them misses none. */
const inOrder = (inside: SqlReader) => inside.query('SELECT pg_advisory_xact_lock($1)', [LOCK]);

/** A space whose name was masked is in the meta as its hash already. */
export const spaceHash = (space: string) =>
  nameHash(/^sha256:[0-9a-f]{64}$/.test(space) ? new HashedName(space.slice(7)) : space);
