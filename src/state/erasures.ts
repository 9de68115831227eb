/** Erasures of names (memory spaces): work that began before one must not bring the erased data back, here and on all replicas. */

import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { isObject, tryParse } from '../lib/json/json.ts';
import { Repeating } from '../lib/loop/repeating.ts';
import { sha256Hex } from '../lib/text/sha256.ts';
import { EngineAway, type KeyValue, type Sql, type SqlReader } from './engines/engine.ts';
import { isBehind, type Prepared, prepared } from './sql/migrations.ts';

/** Milliseconds for which erasures are remembered: longer than any exchange takes. */
export const ERASURES_KEPT_MS = 3_600_000;

/** A name of which only the hash is known: what replicas tell each other of an erasure. No client can send one. */
export class HashedName {
  constructor(/** SHA-256 in hex. */ readonly hash: string) {}
}

/** The hash under which a name is stored where the name itself may be personal data. */
export const nameHash = (name: string | HashedName): string =>
  typeof name === 'string' ? sha256Hex(name) : name.hash;

/** The erasures that this process made. Times are those of `instant`. */
export class RecentErasures {
  readonly #times = new Map<string, number>();

  add(key: string, at: number): void {
    for (const [one, before] of this.#times) {
      if (before < at - ERASURES_KEPT_MS) this.#times.delete(one);
    }
    this.#times.set(key, at);
  }

  /** Was the key erased at this time or later? */
  hasSince(key: string, began: number): boolean {
    return (this.#times.get(key) ?? 0) >= began;
  }
}

/** A name was erased: whatever began before must go. */
export interface Erasure {
  readonly name: HashedName;
  /** By the clock of this process, in milliseconds since 1970; never before the true time. */
  readonly at: number;
}

/** Erases what this process holds, and may return a promise. If that fails it is reported, and called again. */
export type ErasureListener = (erasure: Erasure) => unknown;

export interface ReplicaErasuresOptions {
  readonly database: Sql;
  /** Carries hints, so that replicas learn of an erasure sooner than by asking. */
  readonly cache: KeyValue | undefined;
  /** The file that remembers how far this machine has followed. */
  readonly positionPath: string;
  readonly onProblem: (message: string) => void;
}

/** `seq` grows in the order in which transactions commit. `at`: milliseconds since 1970 by the database's clock. */
const MIGRATIONS = [
  `CREATE SEQUENCE hopgate.erasures_seq
CREATE TABLE hopgate.erasures (
  name text PRIMARY KEY, at double precision NOT NULL, seq bigint NOT NULL
)
CREATE INDEX erasures_by_seq ON hopgate.erasures (seq)`,
];

/** Tables that others write with {@link isErased} need this one. */
export const erasureTables = (database: Sql): Prepared =>
  prepared(database, 'erasures', MIGRATIONS);

/** What the database's clock says, in milliseconds since 1970. */
export const DATABASE_NOW = 'extract(epoch FROM clock_timestamp()) * 1000';

/**
 * For a statement that writes what belongs to a name, in SQL: was the name erased after this began?
 * Its transaction calls {@link beforeErasures} first.
 * @param hash and began: expressions; `began` in milliseconds by the database's clock
 */
export const isErased = (hash: string, began: string): string =>
  `EXISTS (SELECT 1 FROM hopgate.erasures gone WHERE gone.name = ${hash} AND gone.at >= ${began})`;

/** Whoever writes shares it; an erasure has it alone. */
export const ERASURES_LOCK = 7496260;

/** What this transaction writes is seen by any erasure that it does not see itself. */
export const beforeErasures = (inside: SqlReader): Promise<unknown> =>
  inside.query(`SELECT pg_advisory_xact_lock_shared(${ERASURES_LOCK})`, []);

const CHANNEL = '{hopgate}:erasures';
const DEADLINE_MS = 5000;
const HINT_MS = 100;
const POLL_MS = 2000;
const PAGE = 500;
/** Days for which erasures are kept: a replica that was away for longer must not come back with its old files. */
const KEPT_DAYS = 400;

export class ReplicaErasures {
  readonly #listeners = new Set<ErasureListener>();
  /** {@link erasureTables} */
  readonly prepared: Prepared;
  #position: Position;
  readonly #following: Repeating;
  #unwatch: (() => void) | undefined;
  /** What this process noted: who called has erased it here. */
  readonly #own = new Set<number>();

  constructor(private readonly options: ReplicaErasuresOptions) {
    this.prepared = erasureTables(options.database);
    this.#position = readPosition(options.positionPath);
    this.#following = new Repeating({
      work: () => this.#follow(),
      everyMs: POLL_MS,
      // The engine itself logs that it is away.
      onProblem: (thrown) => {
        if (!(thrown instanceof EngineAway)) options.onProblem(String(thrown));
      },
    });
  }

  /** The listener gets erasures that other replicas made. @returns ends it */
  listen(listener: ErasureListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Begins to follow the table, in the background. */
  follow(): void {
    this.#unwatch ??= this.options.cache?.watch(CHANNEL, () => this.#following.wake());
    this.#following.wake();
  }

  /**
   * Writes an erasure down: from now on nothing of before is taken in by the engines, and all replicas learn of it.
   * Erasing what is there already, here and in the engines, is the caller's next step.
   * @throws EngineAway
   */
  async note(name: string): Promise<Erasure> {
    const { database } = this.options;
    await this.prepared();
    const [row] = await database.transaction(async (inside) => {
      await inside.query(`SELECT pg_advisory_xact_lock(${ERASURES_LOCK})`, []);
      await inside.query(`DELETE FROM hopgate.erasures WHERE at < ${DATABASE_NOW} - $1`, [
        KEPT_DAYS * 86_400_000,
      ]);
      return inside.query<{ at: number; now: number; seq: number }>(
        `INSERT INTO hopgate.erasures AS own (name, at, seq)
           VALUES ($1, ${DATABASE_NOW}, nextval('hopgate.erasures_seq'))
           ON CONFLICT (name) DO UPDATE SET at = greatest(own.at, excluded.at), seq = excluded.seq
           RETURNING at, seq, ${DATABASE_NOW} AS now`,
        [nameHash(name)],
      );
    }, DEADLINE_MS);
    const { at, now, seq } = row!;
    this.#own.add(seq);
    return { name: new HashedName(nameHash(name)), at: at + Date.now() - now };
  }

  /** Tells the other replicas that there is something new; they learn of it without that, too. */
  hint(): void {
    this.options.cache?.publish(CHANNEL, '', HINT_MS).catch(() => {});
  }

  /** Resolves when nothing is erased any more. */
  async close(): Promise<void> {
    this.#unwatch?.();
    await this.#following.close();
  }

  /** In a restored database the next erasures have numbers that were followed already. */
  async #beginAnewIfRestored(): Promise<void> {
    const { seq, at } = this.#position;
    if (seq === 0) return;
    const [row] = await this.options.database.query<{ restored: boolean }>(
      `SELECT ${isBehind('hopgate.erasures_seq', '$1::bigint')}
         OR EXISTS (SELECT 1 FROM hopgate.erasures WHERE seq = $1::bigint AND at <> $2::float8) AS restored`,
      [seq, at],
      DEADLINE_MS,
    );
    if (!row!.restored) return;
    this.#own.clear();
    this.#position = BEGINNING;
  }

  async #follow(): Promise<void> {
    const { database, positionPath } = this.options;
    await this.prepared();
    await this.#beginAnewIfRestored();
    for (;;) {
      const rows = await database.query<{ name: string; at: number; seq: number; now: number }>(
        `SELECT name, at, seq, ${DATABASE_NOW} AS now FROM hopgate.erasures
           WHERE seq > $1 ORDER BY seq LIMIT ${PAGE}`,
        [this.#position.seq],
        DEADLINE_MS,
      );
      const read = Date.now();
      for (const { name, at, seq, now } of rows) {
        const erasure = { name: new HashedName(name), at: at + read - now };
        if (!this.#own.delete(seq)) {
          for (const listener of this.#listeners) await listener(erasure);
        }
        this.#position = { seq, at };
      }
      if (rows.length > 0) writePosition(positionPath, this.#position);
      if (rows.length < PAGE) return;
    }
  }
}

/** The last erasure that was followed; `at` is null where an earlier version wrote it. */
interface Position {
  readonly seq: number;
  readonly at: number | null;
}

const BEGINNING: Position = { seq: 0, at: null };

/** A file that is missing or damaged: from the beginning. To erase twice does no harm. */
function readPosition(path: string): Position {
  try {
    const value = tryParse(readFileSync(path, 'utf8'));
    if (!isObject(value) || typeof value.erasures !== 'number') return BEGINNING;
    return { seq: value.erasures, at: typeof value.at === 'number' ? value.at : null };
  } catch {
    return BEGINNING;
  }
}

function writePosition(path: string, { seq, at }: Position): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const beside = `${path}.tmp`;
  writeFileSync(beside, JSON.stringify({ erasures: seq, at }), { mode: 0o600 });
  renameSync(beside, path);
}
