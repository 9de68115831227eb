/** The keys of the file in memory: found without a query, and brought up to date when any process changes them. */

import { existsSync } from 'node:fs';
import { FileKeyStore } from './file-key-store.ts';
import { type LoadedKey, LoadedKeys, type LoadedSecret } from './loaded-keys.ts';
import type { RunTimeKeys } from './run-time-keys.ts';

/** Milliseconds between two looks at the file; a look without a change is one call that reads no page. */
const POLL_MS = 2000;
/** Between two attempts to open a file that is not there or cannot be read. */
const LOOK_MS = 1000;

export interface FileKeysOptions {
  readonly path: string;
  /** Trouble with the file, once until it is over. */
  readonly warn: (message: string) => void;
}

/** No request waits for the file but the first one that shows a key of its form. */
export class FileKeys implements RunTimeKeys {
  readonly #options: FileKeysOptions;
  readonly #keys = new LoadedKeys();
  #store: FileKeyStore | undefined;
  #dataVersion = -1;
  #change = 0;
  #looked = Number.NEGATIVE_INFINITY;
  #trouble = false;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: FileKeysOptions) {
    this.#options = options;
  }

  get unreadable(): boolean {
    return this.#trouble;
  }

  /** Without a file there are no keys: that is known at once. */
  get unready(): undefined {
    return undefined;
  }

  /** Looks at the file now and from time to time. */
  follow(): void {
    if (this.#timer !== undefined) return;
    this.refresh();
    this.#timer = setInterval(() => this.refresh(), POLL_MS);
    this.#timer.unref();
  }

  find(digest: string): LoadedSecret | undefined {
    return this.#keys.find(digest);
  }

  /**
   * Unknown keys cost no query: the look is one call that tells whether anything was written since.
   */
  findAnew(digest: string): LoadedSecret | undefined {
    const isOpen = this.#store !== undefined && !this.#trouble;
    if (isOpen || performance.now() - this.#looked >= LOOK_MS) this.refresh();
    return this.#keys.find(digest);
  }

  byId(id: string): LoadedKey | undefined {
    return this.#keys.byId(id);
  }

  get all(): Iterable<LoadedKey> {
    return this.#keys.all;
  }

  /** Takes over what has changed in the file. Never throws. */
  refresh(): void {
    this.#looked = performance.now();
    try {
      if (this.#store === undefined) {
        if (!existsSync(this.#options.path)) return;
        this.#store = new FileKeyStore(this.#options.path);
      }
      this.#takeOver(this.#store);
      this.#trouble = false;
    } catch (thrown) {
      this.#reportTrouble(thrown);
    }
  }

  /** The file, made if there is none; call {@link changed} after a change. @throws as {@link FileKeyStore} */
  get store(): FileKeyStore {
    this.#store ??= new FileKeyStore(this.#options.path);
    return this.#store;
  }

  /** This process has changed the file itself. */
  changed(): void {
    // A change of its own does not show in the version that SQLite counts.
    this.#dataVersion = -1;
    this.refresh();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#store?.close();
    this.#store = undefined;
  }

  #takeOver(store: FileKeyStore): void {
    const version = store.dataVersion;
    if (version === this.#dataVersion) return;
    const { keys, change } = store.changesSince(this.#change);
    this.#keys.take(keys);
    this.#change = change;
    this.#dataVersion = version;
  }

  #reportTrouble(thrown: unknown): void {
    const first = !this.#trouble;
    this.#trouble = true;
    if (first) this.#options.warn(thrown instanceof Error ? thrown.message : String(thrown));
  }
}
