/** Rooms of entries that may be lost: one interface, whether the entries are in this process and its file or in a cache. */

import type { Migration } from '../versioned-store.ts';

/** The definition of a room, the same for every driver. */
export interface RoomKind<Entry> {
  /** In the keys of a cache, and in metrics. */
  readonly name: string;
  /** In warnings: "hop ledger". */
  readonly title: string;
  /** Which entry a key that was put twice leads to. */
  readonly keep: 'first' | 'newest';
  /** Whether it has entries of groups ({@link Room.of}). */
  readonly hasGroups?: true;
  /** Milliseconds that a cache keeps an entry after its last use, about. */
  readonly ttlMs: number;
  /** Of keys and their entries in the memory of this process. */
  readonly memory: EntryLimits;
  /** For `memory.bytes`; left out: only the number counts. */
  readonly sizeOf?: (entry: Entry) => number;
  /** Left out: the room does not outlive the process. */
  readonly file?: RoomFileKind;
}

export interface EntryLimits {
  readonly entries: number;
  readonly bytes: number;
}

/** Bytes are compressed ones. */
export interface RoomFileKind extends EntryLimits {
  /** In the folder of the state: "hops.db". */
  readonly name: string;
  /** Of its tables, which are the same in every room: those of `file-store.ts`. */
  readonly version: number;
  /** How files of older versions get there: as of `Tables`. */
  readonly upgrades: Readonly<Record<number, Migration>>;
  /** Milliseconds since an entry was last read. */
  readonly ageMs: number;
  /** Milliseconds between a put and its write to the file. */
  readonly flushAfterMs: number;
}

/**
 * Reads entries that are elsewhere, so that they are at hand. What is asked for in one turn of the microtasks is
 * one trip. Never rejects. Undefined: nothing has to be waited for.
 */
export type Prefetch = (keys: readonly string[]) => Promise<void> | undefined;

/** What a feature sees of a room. No method throws, and no promise rejects. */
export interface Entries<Entry> {
  /** There is no entry, so no request needs a lookup. */
  readonly empty: boolean;
  /** Undefined: every entry is at hand. */
  readonly prefetch: Prefetch | undefined;
  /** The entry of the first key that is known, of those at hand. */
  find(keys: readonly string[]): Entry | undefined;
  /** Stores an entry under all of the keys: at once for this process, soon for others. */
  put(keys: readonly string[], entry: Entry): void;
  /** `find` then gives what all processes get: where another one was faster, its entry. Undefined: it does now. */
  settled(keys: readonly string[]): Promise<void> | undefined;
}

/** What a driver does for one room. */
export interface RoomDriver<Entry> {
  readonly empty: boolean;
  /** Entries have to be read ahead. */
  readonly isElsewhere: boolean;
  find(keys: readonly string[], group: string | undefined): Entry | undefined;
  /** @param epoch of the group when the work on the entry began; '' without a group */
  put(keys: readonly string[], entry: Entry, group: string | undefined, epoch: string): void;
  prefetch(keys: readonly string[], group: string | undefined): Promise<void> | undefined;
  settled(keys: readonly string[], group: string | undefined): Promise<void> | undefined;
  /** Another one after each erasure. Undefined: it was not read yet. */
  epochOf(group: string): string | undefined;
}

/** Where the entries of all rooms are. */
export interface EntryStore {
  room<Entry>(kind: RoomKind<Entry>): Room<Entry>;
  /** Voids the entries of a group in all rooms, those included whose work has begun, and deletes them. */
  eraseGroup(group: string): void;
  /** Whether other processes can see by the deadline what was put before. Undefined: they need not be waited for. */
  readonly sent?: (deadlineMs: number) => Promise<boolean>;
  /** Opens what is otherwise opened with the first use. */
  open(): void;
  /** Writes what is pending. */
  close(): Promise<void>;
}

/** A room as one piece of work uses it; with a group, the entries of that group alone. */
export class Room<Entry> implements Entries<Entry> {
  readonly prefetch: Prefetch | undefined;
  /** An erasure since voids what is put. */
  #epoch: string | undefined;
  #hasRead = false;

  constructor(
    private readonly driver: RoomDriver<Entry>,
    private readonly group?: string,
  ) {
    this.#epoch = group === undefined ? '' : driver.epochOf(group);
    this.prefetch = driver.isElsewhere ? (keys) => this.#prefetch(keys) : undefined;
  }

  /** The entries of a group, which can be erased as a whole, for work that begins now. */
  of(group: string): Room<Entry> {
    return new Room(this.driver, group);
  }

  get empty(): boolean {
    return this.driver.empty;
  }

  find(keys: readonly string[]): Entry | undefined {
    return this.driver.find(keys, this.group);
  }

  put(keys: readonly string[], entry: Entry): void {
    if (this.#epoch !== undefined) this.driver.put(keys, entry, this.group, this.#epoch);
  }

  settled(keys: readonly string[]): Promise<void> | undefined {
    return this.driver.settled(keys, this.group);
  }

  #prefetch(keys: readonly string[]): Promise<void> | undefined {
    const reading = this.driver.prefetch(keys, this.group);
    if (reading === undefined) this.#learnEpoch();
    return reading?.then(() => this.#learnEpoch());
  }

  /** The first look tells the epoch in which the work began: what is known before it may be old. */
  #learnEpoch(): void {
    if (this.#hasRead || this.group === undefined) return;
    this.#hasRead = true;
    this.#epoch = this.driver.epochOf(this.group);
  }
}

/** The same entries under other keys. */
export function renamed<Entry>(
  entries: Entries<Entry>,
  nameOf: (key: string) => string,
): Entries<Entry> {
  const { prefetch } = entries;
  return {
    get empty() {
      return entries.empty;
    },
    prefetch: prefetch && ((keys) => prefetch(keys.map(nameOf))),
    find: (keys) => entries.find(keys.map(nameOf)),
    put: (keys, entry) => entries.put(keys.map(nameOf), entry),
    settled: (keys) => entries.settled(keys.map(nameOf)),
  };
}

/** Two prefetches as one; undefined where there is none. */
export function bothAhead(first: Prefetch | undefined, second: Prefetch | undefined) {
  if (first === undefined || second === undefined) return first ?? second;
  const both: Prefetch = (keys) => {
    const waits = [first(keys), second(keys)].filter((one) => one !== undefined);
    return waits.length === 0 ? undefined : Promise.all(waits).then(() => {});
  };
  return both;
}
