/** The table of live replicas: each says every ten seconds that it is there, and learns of the others by that. */

import { type Prepared, prepared } from '../sql/migrations.ts';
import type { Sql } from './engine.ts';

/** What a replica says of itself. */
export interface ReplicaFacts {
  /** Of this process, new with each start. */
  readonly id: string;
  readonly host: string;
  readonly version: string;
  /** A digest of its configuration, without secrets and without what belongs to one machine. */
  readonly config: string;
  /** Milliseconds since 1970, by its own clock. */
  readonly started: number;
  /** Where it listens, and its process: what tells the replicas of one host apart. Older versions do not say them. */
  readonly port?: number | null;
  readonly pid?: number | null;
}

export interface Replica extends ReplicaFacts {
  /** Milliseconds since its last word, as of the last heartbeat here. */
  readonly silentMs: number;
}

const MIGRATIONS = [
  `
CREATE TABLE hopgate.replicas (
  id text PRIMARY KEY, host text NOT NULL, version text NOT NULL, config text NOT NULL,
  started bigint NOT NULL, seen timestamptz NOT NULL
);
`,
  `
ALTER TABLE hopgate.replicas ADD COLUMN port int, ADD COLUMN pid int;
`,
];

const HEARTBEAT_MS = 10_000;
/** Without a word for so long, a replica is not live. */
const LIVE_MS = 30_000;
const DEADLINE_MS = 1000;

// One trip. Rows of processes that were killed go after an hour.
const HEARTBEAT = `
WITH gone AS (
  DELETE FROM hopgate.replicas WHERE seen < clock_timestamp() - interval '1 hour' AND id <> $1
), own AS (
  INSERT INTO hopgate.replicas (id, host, version, config, started, port, pid, seen)
    VALUES ($1, $2, $3, $4, $5, $7, $8, clock_timestamp())
    ON CONFLICT (id) DO UPDATE SET version = $3, config = $4, seen = clock_timestamp()
)
SELECT id, host, version, config, started, port, pid,
    (extract(epoch FROM clock_timestamp() - seen) * 1000)::float8 AS "silentMs"
  FROM hopgate.replicas
  WHERE id <> $1 AND seen > clock_timestamp() - $6::int * interval '1 millisecond'
  ORDER BY started, id`;

export interface ReplicasOptions {
  readonly database: Sql;
  readonly own: () => ReplicaFacts;
  /** The configuration of this one is not that of most others. Once until it is. */
  readonly onDiffers: (others: readonly Replica[]) => void;
  /** For tests. */
  readonly heartbeatMs?: number;
  readonly liveMs?: number;
}

export class Replicas {
  readonly #prepared: Prepared;
  #others: readonly Replica[] = [];
  #differs = false;
  #timer: ReturnType<typeof setInterval> | undefined;
  #beating: Promise<void> | undefined;

  constructor(private readonly options: ReplicasOptions) {
    this.#prepared = prepared(options.database, 'replicas', MIGRATIONS);
  }

  /** Says that it is there, now and from time to time. */
  open(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setInterval(
      () => void this.heartbeat(),
      this.options.heartbeatMs ?? HEARTBEAT_MS,
    ).unref();
    void this.heartbeat();
  }

  /** This one first, then the others as of the last heartbeat, the oldest first. */
  get all(): readonly Replica[] {
    return [{ ...this.options.own(), silentMs: 0 }, ...this.#others];
  }

  /** Never rejects: while the database is away, the others are those of before. */
  heartbeat(): Promise<void> {
    this.#beating ??= this.#beat().finally(() => {
      this.#beating = undefined;
    });
    return this.#beating;
  }

  /** Takes this one from the table, as far as that is quickly done. */
  async close(): Promise<void> {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#beating;
    const { database, own } = this.options;
    await database
      .query('DELETE FROM hopgate.replicas WHERE id = $1', [own().id], DEADLINE_MS)
      .catch(() => {});
  }

  async #beat(): Promise<void> {
    const { database, own, liveMs = LIVE_MS } = this.options;
    const { id, host, version, config, started, port = null, pid = null } = own();
    try {
      await this.#prepared();
      this.#others = await database.query<Replica>(
        HEARTBEAT,
        [id, host, version, config, started, liveMs, port, pid],
        DEADLINE_MS,
      );
    } catch {
      return;
    }
    const usual = usualConfig(this.all.filter((one) => one.version === version));
    const differs = config !== usual;
    if (differs && !this.#differs) {
      this.options.onDiffers(this.#others.filter((one) => one.config === usual));
    }
    this.#differs = differs;
  }
}

/** That of most; of those that are equally many, that of the replica that runs longest. */
function usualConfig(replicas: readonly Replica[]): string {
  const oldestFirst = replicas.toSorted((a, b) => a.started - b.started || (a.id < b.id ? -1 : 1));
  const groups = [...Map.groupBy(oldestFirst, ({ config }) => config)];
  const [[usual]] = groups.toSorted(([, a], [, b]) => b.length - a.length) as [[string, unknown]];
  return usual;
}

/**
 * Asks the table without taking part, which may be that of an older version.
 * @throws EngineAway, or the database's error
 */
export async function liveReplicas(database: Sql): Promise<readonly Replica[]> {
  const [there] = await database.query<{ made: boolean }>(
    "SELECT to_regclass('hopgate.replicas') IS NOT NULL AS made",
    [],
    DEADLINE_MS,
  );
  return there!.made ? database.query<Replica>(LIVE, [LIVE_MS], DEADLINE_MS) : [];
}

const LIVE = `
SELECT id, host, version, config, started,
    (extract(epoch FROM clock_timestamp() - seen) * 1000)::float8 AS "silentMs"
  FROM hopgate.replicas WHERE seen > clock_timestamp() - $1::int * interval '1 millisecond'
  ORDER BY started, id`;
