/** The keys made at run time in memory: found without a query, brought up to date by a poll, by hints over the cache, and when one is unknown. */

import { existsSync } from 'node:fs';
import { messageOf } from '../lib/text/thrown.ts';
import { EngineAway, type KeyValue, type Sql } from '../state/engines/engine.ts';
import { openPostgres } from '../state/sql/postgres.ts';
import { openSqlite } from '../state/sql/sqlite.ts';
import { fileAt, isPassing, REMOVED } from '../state/versioned-store.ts';
import type { KeyChange } from './key-records.ts';
import { KeySnapshotStore } from './key-snapshot-store.ts';
import { BEGINNING, KeyStore, type News, type Position } from './key-store.ts';
import { KEYS_SCHEMA } from './schema.ts';

/** A message without content: look at the database. */
export const KEYS_CHANNEL = '{hopgate}:keys';
/** Milliseconds between two looks without a hint. */
const POLL_MS = 2000;
/** Unknown keys of all clients together cost the database one look in so many milliseconds. */
const LOOK_MS = 250;
/** Between two looks, for unknown keys, at what could not be read. */
const RETRY_MS = 1000;
const DEADLINE_MS = 1000;
/** Milliseconds to wait for another process's write to the file. */
const BUSY_MS = 2000;

/** Where the keys are kept. */
export interface KeySource {
  /** Its name in messages. */
  readonly form: KeyStore['form'];
  /** Milliseconds between two looks for unknown keys. */
  readonly lookMs: number;
  /** It is known that a look would be in vain. */
  readonly isAway: boolean;
  /** Undefined: no key was made yet. @throws when it cannot be used */
  found(): KeyStore | undefined;
  /** For changes: made where there is none. @throws when it cannot be used */
  opened(): KeyStore;
  close(): void;
}

/** A key that was revoked does not come back with a power cut. */
export const KEY_FILE = { busyMs: BUSY_MS, durable: true } as const;

/** @throws as {@link openSqlite} */
export const openKeyFile = (path: string): KeyStore =>
  new KeyStore(openSqlite(KEYS_SCHEMA, { path, ...KEY_FILE }));

export const keysInDatabase = (database: Sql): KeyStore =>
  new KeyStore(openPostgres(database, KEYS_SCHEMA));

/**
 * The file of this machine, made with the first key.
 * @param warn told that the file was removed; the keys of it that are in memory stay valid until a key is made
 */
export function fileSource(path: string, warn: (message: string) => void = () => {}): KeySource {
  let store: KeyStore | undefined;
  let file = 0;
  /** SQLite goes on in a removed file, which is lost with the process. */
  const leaveRemoved = (): void => {
    if (store === undefined || fileAt(path) === file) return;
    store.close();
    store = undefined;
    warn(`${path}: ${REMOVED}`);
  };
  const opened = (): KeyStore => {
    leaveRemoved();
    if (store === undefined) {
      store = openKeyFile(path);
      file = fileAt(path);
    }
    return store;
  };
  return {
    form: 'file',
    lookMs: 0,
    isAway: false,
    found() {
      leaveRemoved();
      return store === undefined && !existsSync(path) ? undefined : opened();
    },
    opened,
    close() {
      store?.close();
      store = undefined;
    },
  };
}

/** The database of all replicas. */
export function databaseSource(database: Sql): KeySource {
  const store = keysInDatabase(database);
  return {
    form: 'database',
    lookMs: LOOK_MS,
    get isAway() {
      return database.state.status === 'down';
    },
    found: () => store,
    opened: () => store,
    close() {},
  };
}

export interface RunTimeKeysOptions {
  readonly source: KeySource;
  /** Tells of changes at once; without it, the poll does. */
  readonly cache?: KeyValue | undefined;
  /** The file of the keys that were known last: a replica starts with it while the database is away. */
  readonly snapshot?: string;
  /** Trouble with the keys or the snapshot, once until it is over. An engine that is away is told elsewhere. */
  readonly warn: (message: string) => void;
  /** The database is away, and the keys are those of the snapshot. */
  readonly onSnapshot?: (snapshot: { readonly keys: number; readonly time: number }) => void;
  /** The database was read for the first time. */
  readonly onLoaded?: () => void;
  readonly pollMs?: number;
}

/** The keys in `GET /health/engines`. */
export interface KeysReport {
  /** `none`: neither the database nor a snapshot could be read yet. */
  readonly source: 'database' | 'snapshot' | 'none';
  readonly keys: number;
  /** The last audit entry that is in force here. */
  readonly entry: number;
  /** ISO 8601: when the database was read last; of a snapshot, when it was written. */
  readonly as_of?: string;
}

/** Keys in memory stay valid while the store cannot be read. */
export class RunTimeKeys {
  /** Those in memory. */
  readonly loaded = new LoadedKeys();
  #position: Position = BEGINNING;
  #source: KeysReport['source'] = 'none';
  /** Of {@link KeysReport.as_of}, in milliseconds since 1970. */
  #time: number | undefined;
  #unreadable = false;
  /** What was told of each, until it is over. */
  readonly #warned = new Map<'keys' | 'snapshot', string>();
  #looked = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #waiting: Promise<void> | undefined;
  #snapshot: KeySnapshotStore | undefined;
  #isBehind = false;
  /** The snapshot could not be written, and the next look tries again. */
  #savesAgain = false;
  #saving: Promise<void> = Promise.resolve();
  #timer: ReturnType<typeof setInterval> | undefined;
  #unwatch: (() => void) | undefined;
  #closed = false;

  constructor(private readonly options: RunTimeKeysOptions) {}

  /** For changes; call {@link changed} after each. @throws when it cannot be used */
  get store(): KeyStore {
    return this.options.source.opened();
  }

  /** The store could not be read when it was last looked at: it may have keys that are not known here. */
  get unreadable(): boolean {
    return this.#unreadable;
  }

  /** Why no key can be known yet; undefined: they are known. Of a file that is at hand, each look tells. */
  get unready(): string | undefined {
    return this.#source === 'none' && this.options.source.form === 'database'
      ? 'the keys were not read yet: no database, and no snapshot of it'
      : undefined;
  }

  get report(): KeysReport {
    return {
      source: this.#source,
      keys: this.loaded.size,
      entry: this.#position.seq,
      ...(this.#time !== undefined && { as_of: new Date(this.#time).toISOString() }),
    };
  }

  /** Follows the changes of other processes from now on. Called again, it does nothing. */
  follow(): void {
    if (this.#timer !== undefined || this.#closed) return;
    this.#readSnapshot();
    this.#timer = setInterval(() => void this.refresh(), this.options.pollMs ?? POLL_MS).unref();
    this.#unwatch = this.options.cache?.watch(KEYS_CHANNEL, () => void this.refresh());
    void this.refresh();
  }

  /** {@link LoadedKeys.find} after a look at the store, which another process may have changed a moment ago. Never rejects. */
  async findAnew(digest: string): Promise<LoadedSecret | undefined> {
    // The first request may come before anything was read.
    this.follow();
    const known = this.loaded.find(digest);
    if (known !== undefined) return known;
    this.#waiting ??= this.#look();
    await this.#waiting;
    return this.loaded.find(digest);
  }

  /** This process has changed the store. Resolves when the change is in force here. */
  async changed(): Promise<void> {
    void this.options.cache?.publish(KEYS_CHANNEL, '', DEADLINE_MS).catch(() => {});
    await this.refresh();
  }

  /** Resolves after a look that began after this call. Never rejects. */
  refresh(): Promise<void> {
    if (this.#running === undefined) {
      this.#running = this.#takeOver().finally(() => {
        this.#running = undefined;
      });
      return this.#running;
    }
    // The look that has begun may have missed the change of now.
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      return this.refresh();
    });
    return this.#next;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#unwatch?.();
    await this.#saving;
    this.#snapshot?.close();
    this.#snapshot = undefined;
    this.options.source.close();
  }

  /** A look for all who wait at the moment. */
  async #look(): Promise<void> {
    const { lookMs, isAway } = this.options.source;
    const since = performance.now() - this.#looked;
    // Never at once: the caller has to note this look before it begins.
    await (isAway || lookMs <= since ? undefined : Bun.sleep(lookMs - since));
    // Who comes from now on may know of a change that this look misses.
    this.#waiting = undefined;
    if (this.#unreadable && since < RETRY_MS) return;
    await this.refresh();
  }

  async #takeOver(): Promise<void> {
    if (this.#closed) return;
    this.#looked = performance.now();
    try {
      const { source } = this.options;
      const news = await source.found()?.news(this.#position, DEADLINE_MS);
      if (this.#closed) return;
      this.#unreadable = false;
      this.#warned.delete('keys');
      this.#time = Date.now();
      if (news !== undefined) {
        if (news.whole) this.loaded.clear();
        this.loaded.take(news.keys);
        this.#position = news.position;
        this.#saving = this.#saving.then(() => this.#save(news));
      } else if (this.#savesAgain) {
        this.#savesAgain = false;
        this.#saving = this.#saving.then(() => this.#save(this.#all()));
      }
      const isFirst = this.#source !== 'database';
      this.#source = 'database';
      if (isFirst) this.options.onLoaded?.();
    } catch (thrown) {
      if (!this.#closed) this.#isAway(thrown);
    }
  }

  #isAway(thrown: unknown): void {
    if (!this.#unreadable && this.#source === 'snapshot') {
      this.options.onSnapshot?.({ keys: this.loaded.size, time: this.#time! });
    }
    this.#unreadable = true;
    if (!(thrown instanceof EngineAway)) this.#warn('keys', messageOf(thrown));
  }

  /** @throws as {@link KeySnapshotStore}: the next write tries again */
  #openSnapshot(): KeySnapshotStore | undefined {
    const { snapshot: path } = this.options;
    if (path !== undefined) this.#snapshot ??= new KeySnapshotStore(path);
    return this.#snapshot;
  }

  #readSnapshot(): void {
    try {
      const found = this.#openSnapshot()?.read();
      // A later answer of the database is newer.
      if (found === undefined || this.#source !== 'none') return;
      this.loaded.take(found.keys);
      this.#position = found.position;
      this.#time = found.time;
      this.#source = 'snapshot';
    } catch (thrown) {
      this.#warn('snapshot', `${this.options.snapshot}: ${messageOf(thrown)}`);
    }
  }

  /** Never rejects. */
  async #save(news: News): Promise<void> {
    try {
      await this.#openSnapshot()?.write(this.#isBehind ? this.#all() : news);
      this.#isBehind = false;
      this.#warned.delete('snapshot');
    } catch (thrown) {
      this.#isBehind = true;
      this.#savesAgain = isPassing(thrown);
      this.#warn('snapshot', `${this.options.snapshot}: ${messageOf(thrown)}`);
    }
  }

  #all(): News {
    return { keys: [...this.loaded.all], position: this.#position, whole: true };
  }

  #warn(about: 'keys' | 'snapshot', message: string): void {
    if (this.#warned.get(about) === message) return;
    this.#warned.set(about, message);
    this.options.warn(message);
  }
}

export interface LoadedSecret {
  readonly digest: Uint8Array;
  readonly until: number | undefined;
  readonly key: KeyChange;
}

export class LoadedKeys {
  readonly #bySecret = new Map<string, LoadedSecret>();
  readonly #byId = new Map<string, KeyChange>();

  /** Each key as it is from now on. */
  take(changes: readonly KeyChange[]): void {
    for (const key of changes) {
      const { record, secrets } = key;
      for (const { digest } of this.#byId.get(record.id)?.secrets ?? []) {
        this.#bySecret.delete(digest);
      }
      this.#byId.set(record.id, key);
      if (record.revoked !== undefined) continue;
      for (const { digest, until } of secrets) {
        this.#bySecret.set(digest, { digest: Buffer.from(digest, 'hex'), until, key });
      }
    }
  }

  clear(): void {
    this.#bySecret.clear();
    this.#byId.clear();
  }

  /** @param digest SHA-256 in hex */
  find(digest: string): LoadedSecret | undefined {
    return this.#bySecret.get(digest);
  }

  byId(id: string): KeyChange | undefined {
    return this.#byId.get(id);
  }

  /** Revoked ones too. */
  get all(): Iterable<KeyChange> {
    return this.#byId.values();
  }

  get size(): number {
    return this.#byId.size;
  }
}
