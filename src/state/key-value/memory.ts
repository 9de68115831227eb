/** Entries in the memory of this process, and in a file for each room that outlives it. */

import { join } from 'node:path';
import { NewestMap } from '../../lib/loop/newest-map.ts';
import { preciseNow } from '../../lib/loop/precise-time.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import { isPassing } from '../versioned-store.ts';
import { Lru } from './at-hand.ts';
import { keyInGroup, RoomFile } from './file-store.ts';
import { type EntryStore, Room, type RoomDriver, type RoomKind } from './room.ts';

export interface MemoryEntriesOptions {
  /** Folder of the files; if omitted, nothing outlives the process. */
  readonly folder?: string;
  /** Called for problems with a file. */
  readonly warn?: (message: string) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** A file is opened with the first use of its room. */
export class MemoryEntries implements EntryStore {
  readonly #rooms: MemoryRoom<unknown>[] = [];

  constructor(private readonly options: MemoryEntriesOptions = {}) {}

  room<Entry>(kind: RoomKind<Entry>): Room<Entry> {
    const room = new MemoryRoom(kind, this.options);
    this.#rooms.push(room as unknown as MemoryRoom<unknown>);
    return new Room(room);
  }

  eraseGroup(group: string): void {
    for (const room of this.#rooms) room.eraseGroup(group);
  }

  /** Writes what other processes are to find in the files. */
  flush(): void {
    for (const room of this.#rooms) room.flush();
  }

  open(): void {
    for (const room of this.#rooms) room.open();
  }

  close(): Promise<void> {
    for (const room of this.#rooms) room.close();
    return Promise.resolve();
  }
}

/** For so long (ms) a file is assumed unchanged; other processes need at least as long to write an entry. */
const RECHECK_AFTER = 20;
/** Keys that are remembered as missing: most calls of a history have no entry. */
const MAX_MISSING = 50_000;
/** Erased groups whose epoch is remembered without a file. */
const MAX_ERASED = 10_000;
/** Milliseconds until a file that could not be opened is tried again. */
const RETRY_MS = 1000;

class MemoryRoom<Entry> implements RoomDriver<Entry> {
  readonly isElsewhere = false;
  readonly #now: () => number;
  /** All entries; with a file, the latest of those that never change. */
  readonly #memory: Lru<Entry>;
  readonly #erased = new NewestMap<string, number>(MAX_ERASED);
  #file: RoomFile<Entry> | undefined;
  /** As of `performance.now()`: the file is opened from then on. */
  #openAt = 0;
  #hasWarned = false;
  #isClosed = false;
  /** The file has entries. Until then it is looked at again. */
  #filled = false;
  #lookedForAny = Number.NEGATIVE_INFINITY;
  /** Keys that the file did not have when it had this version. */
  readonly #missing = new Set<string>();
  #version = -1;
  #versionAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly kind: RoomKind<Entry>,
    private readonly options: MemoryEntriesOptions,
  ) {
    this.#now = options.now ?? Date.now;
    this.#memory = new Lru(kind.memory);
  }

  get empty(): boolean {
    if (this.#memory.size > 0 || this.#filled) return false;
    const file = this.#opened();
    if (file === undefined) return true;
    const now = this.#now();
    // What is the newest may be what the client's next request continues: it is looked for at once.
    if (this.kind.keep === 'first' && now - this.#lookedForAny < RECHECK_AFTER) return true;
    this.#lookedForAny = now;
    this.#filled = !file.empty;
    return !this.#filled;
  }

  find(keys: readonly string[], group: string | undefined): Entry | undefined {
    const file = this.#opened();
    // Another process may have replaced or erased what this one knows.
    if (file !== undefined && (this.kind.keep === 'newest' || group !== undefined)) {
      return firstOf(keys, (key) => file.get(keyInGroup(group, key), group));
    }
    const known = firstOf(keys, (key) => this.#memory.get(keyInGroup(group, key)));
    if (known !== undefined || file === undefined) return known;
    this.#forgetMissing(file);
    for (const key of keys) {
      if (this.#missing.has(key)) continue;
      const entry = file.get(key, undefined);
      if (entry !== undefined) {
        this.#remember(key, entry, this.kind.sizeOf?.(entry) ?? 0);
        return entry;
      }
      this.#missing.add(key);
    }
    return undefined;
  }

  put(keys: readonly string[], entry: Entry, group: string | undefined, epoch: string): void {
    if (this.#isClosed || (group !== undefined && this.epochOf(group) !== epoch)) return;
    const file = this.#opened();
    const free =
      this.kind.keep === 'newest'
        ? keys
        : keys.filter((key) => this.find([key], group) === undefined);
    if (free.length === 0) return;
    const names = free.map((key) => keyInGroup(group, key));
    if (file === undefined || (this.kind.keep === 'first' && group === undefined)) {
      const bytes = (this.kind.sizeOf?.(entry) ?? 0) / names.length;
      for (const name of names) this.#remember(name, entry, bytes);
    }
    file?.put(names, entry, group === undefined ? undefined : { group, epoch });
  }

  prefetch(): undefined {
    return undefined;
  }

  settled(): undefined {
    this.#file?.flush();
  }

  epochOf(group: string): string {
    const file = this.#opened();
    return file === undefined ? String(this.#erased.get(group) ?? 0) : file.epochOf(group);
  }

  eraseGroup(group: string): void {
    if (this.kind.hasGroups !== true || this.#isClosed) return;
    this.#memory.deleteWhere((name) => name.startsWith(keyInGroup(group, '')));
    const file = this.#opened();
    if (file === undefined) this.#erased.set(group, preciseNow());
    else file.eraseGroup(group);
  }

  flush(): void {
    this.#file?.flush();
  }

  open(): void {
    this.#opened();
  }

  close(): void {
    this.#isClosed = true;
    this.#file?.close();
    this.#memory.clear();
  }

  #opened(): RoomFile<Entry> | undefined {
    if (this.#file !== undefined || performance.now() < this.#openAt) return this.#file;
    const { folder } = this.options;
    const { file } = this.kind;
    this.#openAt = Number.POSITIVE_INFINITY;
    if (folder === undefined || file === undefined || this.#isClosed) return undefined;
    const path = join(folder, file.name);
    try {
      this.#file = new RoomFile(this.kind, file, {
        path,
        warn: this.options.warn,
        now: this.#now,
        onRefused: (name) => this.#memory.delete(name),
      });
      this.#takeIn(this.#file);
    } catch (thrown) {
      const ends = isPassing(thrown);
      if (ends) this.#openAt = performance.now() + RETRY_MS;
      const until = ends ? 'until it can be opened' : 'only';
      this.#warnOnce(`cannot open ${path}; keeping it in memory ${until} (${messageOf(thrown)})`);
    }
    return this.#file;
  }

  /** What was put and erased before the file could be opened. */
  #takeIn(file: RoomFile<Entry>): void {
    for (const [group] of this.#erased) file.eraseGroup(group);
    this.#erased.clear();
    // Of a room with groups, another process may have erased one meanwhile.
    if (this.kind.hasGroups !== true)
      for (const [name, entry] of this.#memory) file.put([name], entry, undefined);
    if (this.kind.keep === 'newest') this.#memory.clear();
  }

  #warnOnce(message: string): void {
    if (!this.#hasWarned) this.options.warn?.(`${this.kind.title}: ${message}`);
    this.#hasWarned = true;
  }

  #remember(name: string, entry: Entry, bytes: number): void {
    this.#memory.set(name, entry, bytes);
    this.#missing.delete(name);
  }

  /** Another process may have written missing entries. */
  #forgetMissing(file: RoomFile<Entry>): void {
    const now = this.#now();
    if (now - this.#versionAt < RECHECK_AFTER) return;
    this.#versionAt = now;
    const { version } = file;
    if (version !== this.#version || this.#missing.size > MAX_MISSING) this.#missing.clear();
    this.#version = version;
  }
}

function firstOf<Entry>(
  keys: readonly string[],
  get: (key: string) => Entry | undefined,
): Entry | undefined {
  for (const key of keys) {
    const entry = get(key);
    if (entry !== undefined) return entry;
  }
  return undefined;
}
