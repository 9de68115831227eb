/** Writes to the cache behind requests: one pipeline at the end of a tick, a bounded queue while the cache is away. */

import { atTickEnd, type TickTask } from '../../lib/loop/tick-end.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import { EngineAway, type KeyValue, script } from '../engines/engine.ts';
import { afterAnswers } from '../engines/watch.ts';
import type { EntryLimits } from './room.ts';

/** What is known of a group stays longer than any entry, in milliseconds. */
export const GROUP_MS = 90 * 24 * 3_600_000;

/**
 * KEYS: the epoch of the group, the set of its keys, the key. ARGV: the epoch as the writer knows it, milliseconds of
 * the entry, those of the group, 1: a value that is there stays, the value.
 * Answers 1: written; 0: the group has another epoch; 2: a value was there.
 */
const PUT_IN_GROUP = script(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
if ARGV[4] == '1' and redis.call('EXISTS', KEYS[3]) == 1 then return 2 end
redis.call('SET', KEYS[3], ARGV[5], 'PX', ARGV[2])
redis.call('SADD', KEYS[2], KEYS[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 1
`);

/** KEYS: the epoch of the group, the set of its keys. ARGV: the next epoch, milliseconds. */
const ERASE_GROUP = script(`
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
for _, key in ipairs(redis.call('SMEMBERS', KEYS[2])) do redis.call('DEL', key) end
return redis.call('DEL', KEYS[2])
`);

/** A group of entries as it stands in the cache. */
export interface GroupKeys {
  /** The key of its epoch. */
  readonly epoch: string;
  /** The set of its keys. */
  readonly members: string;
}

export interface PendingEntry {
  readonly key: string;
  /** For {@link WriteBehindOptions.onDropped}. */
  readonly room: string;
  /** As it is to stand in the cache; called when it is sent. */
  readonly value: () => Uint8Array;
  /** Approximate bytes of the value. */
  readonly size: number;
  readonly ttlMs: number;
  readonly onlyIfAbsent: boolean;
  readonly group?: { readonly keys: GroupKeys; readonly epoch: string };
}

export interface WriteBehindOptions {
  readonly cache: KeyValue;
  /** Entries that will never be written. */
  readonly onDropped: (room: string, count: number) => void;
  /** A value was there already, or (`isVoid`) the group has another epoch. */
  readonly onRefused: (entry: PendingEntry, isVoid: boolean) => void;
  /** The cache does not take what it is given. */
  readonly onProblem: (message: string) => void;
  readonly limits: EntryLimits;
}

const DEADLINE_MS = 1000;
const RETRY_MS = 500;
/** Of one pipeline. */
const BATCH_ENTRIES = 500;
const BATCH_BYTES = 4 * 2 ** 20;
const MAX_ERASURES = 10_000;

type Written = 'written' | 'there' | 'void';

interface Waiter {
  /** Resolves when everything up to this number is written. */
  readonly number: number;
  readonly resolve: (sent: boolean) => void;
}

interface Numbered {
  readonly entry: PendingEntry;
  readonly number: number;
}

interface Erasure {
  readonly keys: GroupKeys;
  readonly epoch: string;
}

export class WriteBehind implements TickTask {
  /** In the order in which they came. */
  readonly #pending = new Map<string, Numbered>();
  readonly #erasures = new Map<string, Erasure>();
  #waiters: Waiter[] = [];
  #bytes = 0;
  #number = 0;
  #inFlight: ReadonlySet<string> = new Set();
  #running: Promise<void> | undefined;
  #scheduled = false;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor(private readonly options: WriteBehindOptions) {}

  put(entry: PendingEntry): void {
    if (this.#closed) return;
    this.#remove(entry.key);
    this.#add({ entry, number: ++this.#number });
    this.#shrink();
    this.#schedule();
  }

  /** Voids and deletes the entries of a group. What is pending for the group is not written. */
  erase(erasure: Erasure): void {
    for (const [key, { entry }] of this.#pending) {
      if (entry.group?.keys.epoch === erasure.keys.epoch) this.#remove(key);
    }
    if (this.#erasures.size < MAX_ERASURES) this.#erasures.set(erasure.keys.epoch, erasure);
    this.#schedule();
  }

  /** The erasure of the group is on its way. */
  isErasing({ epoch }: GroupKeys): boolean {
    return this.#erasures.has(epoch);
  }

  /** It is on its way. */
  has(key: string): boolean {
    return this.#pending.has(key) || this.#inFlight.has(key);
  }

  /** Whether everything that was put before is in the cache by the deadline. False at once while the cache is away. */
  sent(deadlineMs: number): Promise<boolean> {
    if (this.#pending.size === 0 && this.#inFlight.size === 0) return Promise.resolve(true);
    if (this.options.cache.state.status === 'down') return Promise.resolve(false);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#waiters.push({ number: this.#number, resolve });
    void this.#flush();
    const timer = afterAnswers(() => resolve(false), deadlineMs);
    return promise.finally(() => {
      clearTimeout(timer);
      this.#waiters = this.#waiters.filter((one) => one.resolve !== resolve);
    });
  }

  /** Sends what is pending, if the cache is there. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#flush();
    for (const { entry } of this.#pending.values()) this.options.onDropped(entry.room, 1);
    this.#pending.clear();
  }

  onTickEnd(): void {
    this.#scheduled = false;
    void this.#flush();
  }

  #add(one: Numbered): void {
    this.#pending.set(one.entry.key, one);
    this.#bytes += one.entry.size;
  }

  #remove(key: string): void {
    const there = this.#pending.get(key);
    if (there === undefined) return;
    this.#pending.delete(key);
    this.#bytes -= there.entry.size;
  }

  /** The oldest goes first: what is new is asked for first. */
  #shrink(): void {
    const { entries, bytes } = this.options.limits;
    for (const [key, { entry }] of this.#pending) {
      if (this.#pending.size <= entries && this.#bytes <= bytes) return;
      this.#remove(key);
      this.options.onDropped(entry.room, 1);
    }
  }

  #schedule(): void {
    if (this.#closed || this.#scheduled) return;
    if (this.#running !== undefined || this.#retry !== undefined) return;
    this.#scheduled = true;
    atTickEnd(this);
  }

  #flush(): Promise<void> {
    this.#running ??= this.#sendAll().finally(() => {
      this.#running = undefined;
      // Put after the last look.
      if (this.#pending.size > 0 || this.#erasures.size > 0) this.#schedule();
    });
    return this.#running;
  }

  async #sendAll(): Promise<void> {
    clearTimeout(this.#retry);
    this.#retry = undefined;
    while (this.#erasures.size > 0 || this.#pending.size > 0) {
      if (!(await this.#sendErasures()) || !(await this.#sendBatch())) {
        this.#tellWaiters(false);
        this.#tryAgain();
        return;
      }
    }
  }

  #tryAgain(): void {
    if (this.#closed) return;
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      void this.#flush();
    }, RETRY_MS).unref();
  }

  /** @returns false: the cache is away */
  async #sendErasures(): Promise<boolean> {
    for (const [key, erasure] of this.#erasures) {
      const { keys, epoch } = erasure;
      try {
        const { cache } = this.options;
        await cache.run(ERASE_GROUP, [keys.epoch, keys.members], [epoch, GROUP_MS], DEADLINE_MS);
      } catch (thrown) {
        if (thrown instanceof EngineAway) return false;
        this.options.onProblem(messageOf(thrown));
      }
      if (this.#erasures.get(key) === erasure) this.#erasures.delete(key);
    }
    return true;
  }

  /** @returns false: the cache is away */
  async #sendBatch(): Promise<boolean> {
    const batch = this.#takeBatch();
    if (batch.length === 0) return true;
    this.#inFlight = new Set(batch.map(({ entry }) => entry.key));
    try {
      const written = await this.#send(batch.map(({ entry }) => entry));
      this.#inFlight = new Set();
      batch.forEach(({ entry }, i) => {
        if (written[i] !== 'written') this.options.onRefused(entry, written[i] === 'void');
      });
    } catch (thrown) {
      this.#inFlight = new Set();
      if (thrown instanceof EngineAway) {
        this.#putBack(batch);
        return false;
      }
      for (const { entry } of batch) this.options.onDropped(entry.room, 1);
      this.options.onProblem(messageOf(thrown));
    }
    this.#tellWaiters(true, batch.at(-1)!.number);
    return true;
  }

  #takeBatch(): readonly Numbered[] {
    const batch: Numbered[] = [];
    let bytes = 0;
    for (const [key, one] of this.#pending) {
      if (batch.length >= BATCH_ENTRIES || bytes >= BATCH_BYTES) break;
      bytes += one.entry.size;
      batch.push(one);
      this.#remove(key);
    }
    return batch;
  }

  async #send(batch: readonly PendingEntry[]): Promise<readonly Written[]> {
    const { cache } = this.options;
    const written = new Map<PendingEntry, Written>();
    const plain = batch.filter(({ group }) => group === undefined);
    const asked: Promise<void>[] = [];
    if (plain.length > 0) {
      const entries = plain.map(({ key, value, ttlMs, onlyIfAbsent }) => ({
        key,
        value: value(),
        ttlMs,
        onlyIfAbsent,
      }));
      asked.push(
        cache.put(entries, DEADLINE_MS).then((results) => {
          plain.forEach((entry, i) => {
            written.set(entry, results[i] ? 'written' : 'there');
          });
        }),
      );
    }
    for (const entry of batch) {
      const { group } = entry;
      if (group === undefined) continue;
      const { keys, epoch } = group;
      const args = [
        epoch,
        entry.ttlMs,
        GROUP_MS,
        entry.onlyIfAbsent ? 1 : 0,
        Buffer.from(entry.value()).toString('base64'),
      ];
      asked.push(
        cache
          .run(PUT_IN_GROUP, [keys.epoch, keys.members, entry.key], args, DEADLINE_MS)
          .then((answer) => {
            written.set(entry, answer === 1 ? 'written' : answer === 0 ? 'void' : 'there');
          }),
      );
    }
    await Promise.all(asked);
    return batch.map((entry) => written.get(entry)!);
  }

  /** In front of what came since, unless that replaces it. */
  #putBack(batch: readonly Numbered[]): void {
    const later = [...this.#pending.values()];
    this.#pending.clear();
    this.#bytes = 0;
    for (const one of [...batch, ...later]) {
      this.#remove(one.entry.key);
      this.#add(one);
    }
    this.#shrink();
  }

  #tellWaiters(sent: boolean, upTo = Number.POSITIVE_INFINITY): void {
    for (const { number, resolve } of this.#waiters) if (number <= upTo) resolve(sent);
  }
}
