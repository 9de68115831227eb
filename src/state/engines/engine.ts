/** The interfaces of engines (a cache, a database, an object store), whatever client reaches them. */

export type EngineName = 'cache' | 'database' | 'objects';

/**
 * - `connecting`: not reached yet since the start
 * - `up`: its last answer came in time
 * - `down`: it is not asked until a ping in the background is answered
 */
export type EngineStatus = 'connecting' | 'up' | 'down';

export interface EngineState {
  readonly name: EngineName;
  readonly status: EngineStatus;
  /** Since when, in milliseconds since 1970. */
  readonly since: number;
  /** Milliseconds since it came back; left out: it has never been away, or is. */
  readonly backMs?: number;
  /** Why it is down; holds no secret. */
  readonly message?: string;
  /** Calls that went to the engine so far. */
  readonly trips: number;
}

/** The engine did not answer in time, or is not asked at the moment. */
export class EngineAway extends Error {
  override readonly name = 'EngineAway';
  readonly engine: EngineName;

  constructor(engine: EngineName, message: string, options?: ErrorOptions) {
    super(message, options);
    this.engine = engine;
  }
}

/** What every engine has. Every call is rejected with {@link EngineAway} at its deadline, at the latest. */
export interface Engine {
  readonly state: EngineState;
  /** Connects now, and not with the first call. Never rejects. */
  open(): Promise<void>;
  /** Looks at everything that an operator can get wrong. Rejects where the engine cannot be reached. */
  examine(): Promise<readonly EngineFinding[]>;
  close(): Promise<void>;
}

/** One result of {@link Engine.examine}, for people. */
export interface EngineFinding {
  readonly status: 'ok' | 'warn' | 'fail';
  readonly message: string;
  /** What to do about it. */
  readonly hint?: string;
}

/** Lua, known to the server by its digest after the first call. All its keys are in one slot of a cluster. */
export interface Script {
  readonly lua: string;
  /** SHA-1 in hex. */
  readonly sha1: string;
}

export const script = (lua: string): Script => ({
  lua,
  sha1: new Bun.CryptoHasher('sha1').update(lua).digest('hex'),
});

export interface CacheEntry {
  readonly key: string;
  readonly value: Uint8Array;
  /** Milliseconds after which it is gone. */
  readonly ttlMs: number;
  /** A value that is there stays. */
  readonly onlyIfAbsent?: boolean;
}

/** Valkey or Redis. */
export interface KeyValue extends Engine {
  /** Numbers come back as numbers, texts as strings, nil as null. */
  run(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    deadlineMs: number,
  ): Promise<unknown>;
  /** One trip, in the order of the keys (of one slot); undefined: there is none. */
  getMany(
    keys: readonly string[],
    deadlineMs: number,
  ): Promise<readonly (Uint8Array | undefined)[]>;
  /** One trip. @returns whether each was written; false: a value was there, and stays */
  put(entries: readonly CacheEntry[], deadlineMs: number): Promise<readonly boolean[]>;
  /**
   * Messages are hints: some may be lost. The listener gets undefined after a gap.
   * @returns ends it
   */
  watch(channel: string, listener: (message: string | undefined) => void): () => void;
  publish(channel: string, message: string, deadlineMs: number): Promise<void>;
}

export type SqlValue = string | number | boolean | null | Uint8Array | readonly unknown[];

/** Postgres. Placeholders are `$1`, `$2` …; a bigint comes back as a number. */
export interface SqlReader {
  query<Row>(sql: string, values: readonly SqlValue[]): Promise<readonly Row[]>;
}

export interface SqlTransaction extends SqlReader {
  /** The end, sent with the last statements and not after their answers. If one of them fails, all is undone. */
  commit(): Promise<void>;
}

export interface Sql extends Engine {
  /**
   * One trip.
   * @param stopMs the server ends the query after so long (`57014`), which is no sign that it is away
   */
  query<Row>(
    sql: string,
    values: readonly SqlValue[],
    deadlineMs: number,
    stopMs?: number,
  ): Promise<readonly Row[]>;
  /** All of it or nothing. What `work` throws undoes everything. It runs again where the server undid it, since it idled. */
  transaction<T>(work: (inside: SqlTransaction) => Promise<T>, deadlineMs: number): Promise<T>;
}

export interface ObjectInfo {
  readonly key: string;
  readonly bytes: number;
}

/** A store that speaks S3. Keys are below the configured prefix. */
export interface Objects extends Engine {
  put(key: string, body: Uint8Array, deadlineMs: number): Promise<void>;
  /** @param range first byte and the one after the last; undefined: there is no such object */
  get(
    key: string,
    range: readonly [number, number] | undefined,
    deadlineMs: number,
  ): Promise<Uint8Array | undefined>;
  /** In the order of keys, those after `after`; one page, of the store's own size. */
  list(prefix: string, after: string, deadlineMs: number): Promise<readonly ObjectInfo[]>;
  remove(key: string, deadlineMs: number): Promise<void>;
}

const SLOW_MS = 10;
const MAX_SKEW_MS = 2000;

export const finding = (
  status: EngineFinding['status'],
  message: string,
  hint?: string,
): EngineFinding => ({ status, message, ...(hint !== undefined && { hint }) });

/** @param times milliseconds of some round trips */
export function latencyFinding(times: readonly number[]): EngineFinding {
  const middle = times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]!;
  const message = `answers in ${middle < 1 ? middle.toFixed(2) : middle.toFixed(1)} ms`;
  if (middle <= SLOW_MS) return finding('ok', message);
  const hint = 'Requests near a limit wait for it: put the gateway into the same network.';
  return finding('warn', message, hint);
}

/** @param doubt what the measurement itself may be off by, in milliseconds */
export function clockFinding(skewMs: number, doubt: number): EngineFinding {
  const off = Math.abs(skewMs);
  if (off <= MAX_SKEW_MS + doubt) return finding('ok', 'its clock agrees with this one');
  const message = `its clock and this one differ by ${Math.round(off / 1000)} s`;
  return finding('warn', message, 'Run a time service on both machines.');
}
