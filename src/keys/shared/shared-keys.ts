/** The keys of all replicas in memory: found without a query, brought up to date by a poll and by hints over the cache. */

import { EngineAway, type KeyValue, type Sql } from '../../state/engines/engine.ts';
import { type LoadedKey, LoadedKeys, type LoadedSecret } from '../loaded-keys.ts';
import type { RunTimeKeys } from '../run-time-keys.ts';
import { KeySnapshotStore } from './key-snapshot-store.ts';
import { BEGINNING, type News, type Position, SharedKeyStore } from './shared-key-store.ts';

/** A message without content: look at the database. */
export const KEYS_CHANNEL = 'hopgate:keys';
/** Milliseconds between two looks without a hint. */
const POLL_MS = 2000;
/** Unknown keys of all clients together cost one look in so many milliseconds. */
const LOOK_MS = 250;
const DEADLINE_MS = 1000;

export interface SharedKeysOptions {
  readonly database: Sql;
  /** Tells of changes at once; without it, the poll does. */
  readonly cache: KeyValue | undefined;
  /** The file of the snapshot. */
  readonly path: string;
  /** Trouble with the tables or the snapshot, once until it is over. An engine that is away is told elsewhere. */
  readonly warn: (message: string) => void;
  /** The database is away, and the keys are those of the snapshot. */
  readonly onSnapshot: (snapshot: { readonly keys: number; readonly time: number }) => void;
  /** The database was read for the first time. */
  readonly onLoaded?: () => void;
  readonly pollMs?: number;
}

/** What `GET /health/engines` says of the keys. */
export interface SharedKeysReport {
  /** `none`: neither the database nor a snapshot could be read yet. */
  readonly source: 'database' | 'snapshot' | 'none';
  readonly keys: number;
  /** The last audit entry that is in force here. */
  readonly entry: number;
  /** ISO 8601: when the database was read last; of a snapshot, when it was written. */
  readonly as_of?: string;
}

export class SharedKeys implements RunTimeKeys {
  readonly #options: SharedKeysOptions;
  readonly #keys = new LoadedKeys();
  readonly store: SharedKeyStore;
  #position: Position = BEGINNING;
  #source: SharedKeysReport['source'] = 'none';
  /** Of {@link SharedKeysReport.as_of}, in milliseconds since 1970. */
  #time: number | undefined;
  #unreadable = false;
  /** What was told of each, until it is over. */
  readonly #warned = new Map<'database' | 'snapshot', string>();
  #looked = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #waiting: Promise<void> | undefined;
  #snapshot: KeySnapshotStore | undefined;
  #isBehind = false;
  #saving: Promise<void> = Promise.resolve();
  #timer: ReturnType<typeof setInterval> | undefined;
  #unwatch: (() => void) | undefined;
  #closed = false;

  constructor(options: SharedKeysOptions) {
    this.#options = options;
    this.store = new SharedKeyStore(options.database);
  }

  get unreadable(): boolean {
    return this.#unreadable;
  }

  get unready(): string | undefined {
    return this.#source === 'none'
      ? 'the keys were not read yet: no database, and no snapshot of it'
      : undefined;
  }

  get report(): SharedKeysReport {
    return {
      source: this.#source,
      keys: this.#keys.size,
      entry: this.#position.seq,
      ...(this.#time !== undefined && { as_of: new Date(this.#time).toISOString() }),
    };
  }

  follow(): void {
    if (this.#timer !== undefined || this.#closed) return;
    this.#readSnapshot();
    this.#timer = setInterval(() => void this.refresh(), this.#options.pollMs ?? POLL_MS);
    this.#timer.unref();
    this.#unwatch = this.#options.cache?.watch(KEYS_CHANNEL, () => void this.refresh());
    void this.refresh();
  }

  find(digest: string): LoadedSecret | undefined {
    return this.#keys.find(digest);
  }

  /** Never rejects. While the database is away, nothing is waited for. */
  async findAnew(digest: string): Promise<LoadedSecret | undefined> {
    // The first request may come before anything was read.
    this.follow();
    const known = this.#keys.find(digest);
    if (known !== undefined) return known;
    this.#waiting ??= this.#look();
    await this.#waiting;
    return this.#keys.find(digest);
  }

  byId(id: string): LoadedKey | undefined {
    return this.#keys.byId(id);
  }

  get all(): Iterable<LoadedKey> {
    return this.#keys.all;
  }

  async changed(): Promise<void> {
    void this.#options.cache?.publish(KEYS_CHANNEL, '', DEADLINE_MS).catch(() => {});
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
  }

  /** A look for all who wait at the moment. */
  async #look(): Promise<void> {
    const wait = this.#looked + LOOK_MS - performance.now();
    const isAway = this.#options.database.state.status === 'down';
    // Never at once: the caller has to note this look before it begins.
    await (isAway ? undefined : Bun.sleep(Math.max(0, wait)));
    // Who comes from now on may know of a change that this look misses.
    this.#waiting = undefined;
    await this.refresh();
  }

  async #takeOver(): Promise<void> {
    if (this.#closed) return;
    this.#looked = performance.now();
    try {
      const news = await this.store.news(this.#position, DEADLINE_MS);
      if (this.#closed) return;
      this.#unreadable = false;
      this.#warned.delete('database');
      this.#time = Date.now();
      if (news !== undefined) {
        if (news.whole) this.#keys.clear();
        this.#keys.take(news.keys);
        this.#position = news.position;
        this.#saving = this.#saving.then(() => this.#save(news));
      }
      const isFirst = this.#source !== 'database';
      this.#source = 'database';
      if (isFirst) this.#options.onLoaded?.();
    } catch (thrown) {
      this.#isAway(thrown);
    }
  }

  #isAway(thrown: unknown): void {
    if (!this.#unreadable && this.#source === 'snapshot') {
      this.#options.onSnapshot({ keys: this.#keys.size, time: this.#time! });
    }
    this.#unreadable = true;
    if (!(thrown instanceof EngineAway)) this.#warn('database', messageOf(thrown));
  }

  #readSnapshot(): void {
    try {
      this.#snapshot = new KeySnapshotStore(this.#options.path);
      const found = this.#snapshot.read();
      // What the database has said meanwhile is newer.
      if (found === undefined || this.#source !== 'none') return;
      this.#keys.take(found.keys);
      this.#position = found.position;
      this.#time = found.time;
      this.#source = 'snapshot';
    } catch (thrown) {
      this.#warn('snapshot', `${this.#options.path}: ${messageOf(thrown)}`);
    }
  }

  /** Never rejects. */
  async #save(news: News): Promise<void> {
    try {
      await this.#snapshot?.write(this.#isBehind ? this.#all() : news);
      this.#isBehind = false;
      this.#warned.delete('snapshot');
    } catch (thrown) {
      this.#isBehind = true;
      this.#warn('snapshot', `${this.#options.path}: ${messageOf(thrown)}`);
    }
  }

  #all(): News {
    return { keys: [...this.#keys.all], position: this.#position, whole: true };
  }

  #warn(about: 'database' | 'snapshot', message: string): void {
    if (this.#warned.get(about) === message) return;
    this.#warned.set(about, message);
    this.#options.warn(message);
  }
}

const messageOf = (thrown: unknown) => (thrown instanceof Error ? thrown.message : String(thrown));
