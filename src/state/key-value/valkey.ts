/** Entries that all replicas have in common in a cache: read ahead in one trip, then at hand; written behind. */

import { NewestMap } from '../../lib/loop/newest-map.ts';
import { preciseNow } from '../../lib/loop/precise-time.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import { type KeyValue, script } from '../engines/engine.ts';
import type { TextSeal } from '../text-seal.ts';
import { headOf, PackedEntries, packed } from './at-hand.ts';
import { type EntryLimits, type EntryStore, Room, type RoomDriver, type RoomKind } from './room.ts';
import { GROUP_MS, type GroupKeys, type PendingEntry, WriteBehind } from './write-behind.ts';

export interface ValkeyEntriesOptions {
  readonly cache: KeyValue;
  readonly seal: TextSeal;
  /** Entries that other replicas will never see: there were too many while the cache was away, or one was too large. */
  readonly onDropped?: (room: string, count: number) => void;
  /** The cache answers, but does not take what it is given. */
  readonly onProblem?: (message: string) => void;
  readonly local?: EntryLimits;
  /** Limits of pending writes while the cache is away. */
  readonly pending?: EntryLimits;
}

const READ_MS = 100;
const BACKGROUND_MS = 1000;
/** Of one trip; the last ones of a history count. */
const MAX_KEYS = 20_000;
const MAX_GROUPS = 10_000;
const MAX_ENTRY = 4 * 2 ** 20;
const LOCAL: EntryLimits = { entries: 50_000, bytes: 64 * 2 ** 20 };
const PENDING: EntryLimits = { entries: 5000, bytes: 16 * 2 ** 20 };
/** An entry that was written this part of its time ago is kept for longer when it is used. */
const KEEP_AFTER = 0.25;

/** KEYS: the epoch of a group. ARGV: an epoch for a group that has none, milliseconds. Answers the epoch that holds. */
const EPOCH = script(`
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX')
return redis.call('GET', KEYS[1])
`);

/** KEYS: entries that were used. ARGV: milliseconds that they stay from now on. */
const KEEP = script(`
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[1]) end
return 0
`);

/** An epoch that is known here alone: the cache was away when it was to be read. */
const HERE = 'here:';

interface Group {
  readonly epoch: string;
  /** When the cache told it. */
  readonly at: number;
}

/** Settings of a room. */
type Kind = Pick<RoomKind<never>, 'name' | 'ttlMs' | 'keep'>;

interface Asked {
  readonly kind: Kind;
  readonly group: string | undefined;
}

interface Batch {
  readonly keys: Map<string, Asked>;
  readonly groups: Set<string>;
  readonly done: Promise<void>;
}

const hashed = (text: string): string =>
  new Bun.CryptoHasher('sha256').update(text).digest('base64url').slice(0, 32);

const groupKeys = (group: string): GroupKeys => ({
  epoch: `{hopgate}:epoch:${hashed(group)}`,
  members: `{hopgate}:members:${hashed(group)}`,
});

/** No method throws, and no promise rejects: without the cache, what is here is all there is. */
export class ValkeyEntries implements EntryStore {
  readonly #local: PackedEntries;
  readonly #writes: WriteBehind;
  readonly #groups = new NewestMap<string, Group>(MAX_GROUPS);
  /** By key: the trips that are under way. */
  readonly #underWay = new Map<string, Promise<void>>();
  #next: Batch | undefined;
  #reported = '';

  constructor(private readonly options: ValkeyEntriesOptions) {
    this.#local = new PackedEntries(options.local ?? LOCAL);
    this.#writes = new WriteBehind({
      cache: options.cache,
      limits: options.pending ?? PENDING,
      onDropped: (room, count) => options.onDropped?.(room, count),
      onRefused: (entry, isVoid) => this.#refused(entry, isVoid),
      onProblem: (message) => this.#problem(message),
    });
  }

  room<Entry>(kind: RoomKind<Entry>): Room<Entry> {
    return new Room(new ValkeyRoom<Entry>(this, kind));
  }

  /** As {@link WriteBehind.sent}. */
  sent(deadlineMs: number): Promise<boolean> {
    return this.#writes.sent(deadlineMs);
  }

  /** The client of the cache opens by itself. */
  open(): void {}

  /** Voids the entries of a group for all replicas, those included that are being written, and deletes them. */
  eraseGroup(group: string): void {
    const known = this.#groups.get(group);
    if (known !== undefined) this.#local.deleteEpoch(known.epoch);
    const epoch = crypto.randomUUID();
    this.#remember(group, epoch, performance.now());
    this.#writes.erase({ keys: groupKeys(group), epoch });
  }

  close(): Promise<void> {
    return this.#writes.close();
  }

  // For rooms.

  /** What is asked for in one turn of the microtasks is one trip. Undefined: everything is here. */
  prefetch(
    kind: Kind,
    keys: readonly string[],
    group: string | undefined,
  ): Promise<void> | undefined {
    const waits = new Set<Promise<void>>();
    const ask = (): Batch => {
      this.#next ??= this.#newBatch();
      waits.add(this.#next.done);
      return this.#next;
    };
    if (group !== undefined) {
      const known = this.#groups.get(group);
      const isUnknown = known === undefined || known.epoch.startsWith(HERE);
      if (isUnknown || keys.length > 0) ask().groups.add(group);
    }
    for (const key of keys) {
      const full = fullKey(kind, key);
      // The newest entry may be another replica's.
      if (kind.keep === 'first' && this.#local.has(full)) continue;
      // Of a trip that has begun, it may be older than what was written since.
      const running = kind.keep === 'first' ? this.#underWay.get(full) : undefined;
      if (running !== undefined) waits.add(running);
      else ask().keys.set(full, { kind, group });
    }
    if (waits.size === 0) return undefined;
    return Promise.all(waits).then(() => {});
  }

  get(kind: Kind, key: string, group: string | undefined): unknown {
    const epoch = group === undefined ? '' : this.epochOf(group);
    return epoch === undefined ? undefined : this.#local.get(fullKey(kind, key), epoch);
  }

  put(
    kind: Kind,
    keys: readonly string[],
    value: unknown,
    group: string | undefined,
    epoch: string,
  ): void {
    if (group !== undefined && this.epochOf(group) !== epoch) return;
    const free =
      kind.keep === 'newest' ? keys : keys.filter((key) => !this.#holds(kind, key, epoch));
    if (free.length === 0) return;
    const bytes = packed(value, epoch, preciseNow());
    for (const key of free) {
      const full = fullKey(kind, key);
      this.#local.set(full, bytes);
      if (epoch.startsWith(HERE)) continue;
      if (bytes.length > MAX_ENTRY) this.options.onDropped?.(kind.name, 1);
      else this.#writes.put(this.#pending(full, kind, bytes, group, epoch));
    }
  }

  /** Undefined: it was not read yet. */
  epochOf(group: string): string | undefined {
    return this.#groups.get(group)?.epoch;
  }

  #holds(kind: Kind, key: string, epoch: string): boolean {
    return this.#local.get(fullKey(kind, key), epoch) !== undefined;
  }

  #pending(
    key: string,
    kind: Kind,
    bytes: Uint8Array,
    group: string | undefined,
    epoch: string,
  ): PendingEntry {
    return {
      key,
      room: kind.name,
      value: () => this.options.seal.seal(bytes, key),
      size: bytes.length,
      ttlMs: kind.ttlMs,
      onlyIfAbsent: kind.keep === 'first',
      ...(group !== undefined && { group: { keys: groupKeys(group), epoch } }),
    };
  }

  #newBatch(): Batch {
    const { promise, resolve } = Promise.withResolvers<void>();
    const batch: Batch = { keys: new Map(), groups: new Set(), done: promise };
    queueMicrotask(() => {
      this.#next = undefined;
      void this.#read(batch).then(resolve);
    });
    return batch;
  }

  async #read({ keys: asked, groups, done }: Batch): Promise<void> {
    const keys = [...asked.keys()].slice(-MAX_KEYS);
    const epochs = [...groups];
    const began = performance.now();
    for (const key of keys) this.#underWay.set(key, done);
    const { cache } = this.options;
    try {
      const all = [...epochs.map((group) => groupKeys(group).epoch), ...keys];
      const values = await cache.getMany(all, READ_MS);
      await Promise.all(epochs.map((group, i) => this.#learn(group, values[i], began)));
      const used: [string, Kind][] = [];
      keys.forEach((key, i) => {
        const { kind, group } = asked.get(key)!;
        const value = values[epochs.length + i];
        if (this.#take(key, value, kind, group !== undefined)) used.push([key, kind]);
      });
      if (used.length > 0) void this.#keep(used);
    } catch (thrown) {
      for (const group of epochs) this.#remember(group, HERE + crypto.randomUUID(), began);
      if (cache.state.status !== 'down') this.#problem(messageOf(thrown));
    } finally {
      for (const key of keys) this.#underWay.delete(key);
    }
  }

  async #learn(group: string, value: Uint8Array | undefined, began: number): Promise<void> {
    let epoch = value && Buffer.from(value).toString('latin1');
    epoch ??= String(
      await this.options.cache.run(
        EPOCH,
        [groupKeys(group).epoch],
        [crypto.randomUUID(), GROUP_MS],
        READ_MS,
      ),
    );
    // An erasure of this replica, still on its way or later than the question, counts.
    const isOld = (this.#groups.get(group)?.at ?? Number.NEGATIVE_INFINITY) > began;
    if (isOld || this.#writes.isErasing(groupKeys(group))) return;
    this.#remember(group, epoch, performance.now());
  }

  #remember(group: string, epoch: string, at: number): void {
    this.#groups.set(group, { epoch, at });
  }

  /** @returns it is to be kept for longer */
  #take(key: string, value: Uint8Array | undefined, kind: Kind, grouped: boolean): boolean {
    // What was put here meanwhile is newer, or is going to be told apart by the cache.
    if (this.#writes.has(key)) return false;
    const sealed = value && grouped ? Buffer.from(Buffer.from(value).toString(), 'base64') : value;
    const bytes = sealed && this.options.seal.open(sealed, key);
    const head = bytes && headOf(bytes);
    if (bytes === undefined || head === undefined) return false;
    this.#local.set(key, bytes);
    return preciseNow() / 1000 - head.writtenAt > (kind.ttlMs / 1000) * KEEP_AFTER;
  }

  async #keep(used: readonly (readonly [string, Kind])[]): Promise<void> {
    const byTime = Map.groupBy(used, ([, { ttlMs }]) => ttlMs);
    for (const [ttlMs, entries] of byTime) {
      const keys = entries.slice(0, 1000).map(([key]) => key);
      await this.options.cache.run(KEEP, keys, [ttlMs], BACKGROUND_MS).catch(() => {});
    }
  }

  #refused({ key, group }: PendingEntry, isVoid: boolean): void {
    this.#local.delete(key);
    if (!isVoid || group === undefined) return;
    for (const [name, { epoch }] of this.#groups) {
      if (epoch === group.epoch) this.#groups.delete(name);
    }
  }

  #problem(message: string): void {
    if (this.#reported === message) return;
    this.#reported = message;
    this.options.onProblem?.(message);
  }
}

/** Keys hold no text: those who read the keys of a cache learn nothing of what was said. */
const fullKey = ({ name }: Kind, key: string): string => `{hopgate}:${name}:${hashed(key)}`;

/** The keys of a room as the store knows them. */
class ValkeyRoom<Entry> implements RoomDriver<Entry> {
  readonly isElsewhere = true;
  /** Other replicas may have entries. */
  readonly empty = false;

  constructor(
    private readonly entries: ValkeyEntries,
    private readonly kind: Kind,
  ) {}

  /** With a group: also reads its epoch. */
  prefetch(keys: readonly string[], group: string | undefined): Promise<void> | undefined {
    return this.entries.prefetch(this.kind, named(keys, group), group);
  }

  find(keys: readonly string[], group: string | undefined): Entry | undefined {
    for (const key of named(keys, group)) {
      const entry = this.entries.get(this.kind, key, group);
      if (entry !== undefined) return entry as Entry;
    }
    return undefined;
  }

  put(keys: readonly string[], entry: Entry, group: string | undefined, epoch: string): void {
    this.entries.put(this.kind, named(keys, group), entry, group, epoch);
  }

  epochOf(group: string): string | undefined {
    return this.entries.epochOf(group);
  }

  async settled(keys: readonly string[], group: string | undefined): Promise<void> {
    await this.entries.sent(BACKGROUND_MS);
    const gone = keys.filter((key) => this.find([key], group) === undefined);
    if (gone.length > 0) await this.prefetch(gone, group);
  }
}

const named = (keys: readonly string[], group: string | undefined): readonly string[] =>
  group === undefined ? keys : keys.map((key) => `${group}\0${key}`);
