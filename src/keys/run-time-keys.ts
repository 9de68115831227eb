/** The keys of the file in memory: found without a query, and brought up to date when any process changes them. */

import { existsSync } from 'node:fs';
import { type KeyRecord, KeyStore, type SecretRecord } from './key-store.ts';

/** A key of the file, and what another part has made of it. */
export interface LoadedKey {
  readonly record: KeyRecord;
  readonly secrets: readonly SecretRecord[];
}

export interface LoadedSecret {
  readonly digest: Uint8Array;
  readonly until: number | undefined;
  readonly key: LoadedKey;
}

/** Milliseconds between two looks at the file; a look without a change is one call that reads no page. */
const POLL_MS = 2000;
/** Between two attempts to open a file that is not there or cannot be read. */
const LOOK_MS = 1000;

export interface RunTimeKeysOptions {
  readonly path: string;
  /** Trouble with the file, once until it is over. */
  readonly warn: (message: string) => void;
}

/**
 * What is in memory stays valid while the file cannot be read. No request waits for the file but the first one
 * that shows a key of its form.
 */
export class RunTimeKeys {
  readonly #options: RunTimeKeysOptions;
  readonly #bySecret = new Map<string, LoadedSecret>();
  readonly #byId = new Map<string, LoadedKey>();
  #store: KeyStore | undefined;
  #dataVersion = -1;
  #change = 0;
  #looked = Number.NEGATIVE_INFINITY;
  #trouble = false;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: RunTimeKeysOptions) {
    this.#options = options;
  }

  /** The file could not be read when it was last looked at. */
  get unreadable(): boolean {
    return this.#trouble;
  }

  /** Looks at the file now and from time to time. */
  follow(): void {
    if (this.#timer !== undefined) return;
    this.refresh();
    this.#timer = setInterval(() => this.refresh(), POLL_MS);
    this.#timer.unref();
  }

  /** @param digest SHA-256 in hex */
  find(digest: string): LoadedSecret | undefined {
    return this.#bySecret.get(digest);
  }

  /**
   * The same after a look at the file, which another process may have changed a moment ago. Unknown keys cost no
   * query: the look is one call that tells whether anything was written since.
   */
  findAnew(digest: string): LoadedSecret | undefined {
    const isOpen = this.#store !== undefined && !this.#trouble;
    if (isOpen || performance.now() - this.#looked >= LOOK_MS) this.refresh();
    return this.#bySecret.get(digest);
  }

  byId(id: string): LoadedKey | undefined {
    return this.#byId.get(id);
  }

  /** All that are in memory, revoked ones too. */
  get all(): Iterable<LoadedKey> {
    return this.#byId.values();
  }

  /** Takes over what has changed in the file. Never throws. */
  refresh(): void {
    this.#looked = performance.now();
    try {
      if (this.#store === undefined) {
        if (!existsSync(this.#options.path)) return;
        this.#store = new KeyStore(this.#options.path);
      }
      this.#takeOver(this.#store);
      this.#trouble = false;
    } catch (thrown) {
      this.#reportTrouble(thrown);
    }
  }

  /** The file, made if there is none; call {@link changed} after a change. @throws as {@link KeyStore} */
  get store(): KeyStore {
    this.#store ??= new KeyStore(this.#options.path);
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

  #takeOver(store: KeyStore): void {
    const version = store.dataVersion;
    if (version === this.#dataVersion) return;
    const { keys, change } = store.changesSince(this.#change);
    for (const { record, secrets } of keys) {
      for (const { digest } of this.#byId.get(record.id)?.secrets ?? []) {
        this.#bySecret.delete(digest);
      }
      const key: LoadedKey = { record, secrets };
      this.#byId.set(record.id, key);
      if (record.revoked !== undefined) continue;
      for (const { digest, until } of secrets) {
        this.#bySecret.set(digest, { digest: Buffer.from(digest, 'hex'), until, key });
      }
    }
    this.#change = change;
    this.#dataVersion = version;
  }

  #reportTrouble(thrown: unknown): void {
    const first = !this.#trouble;
    this.#trouble = true;
    if (first) this.#options.warn(thrown instanceof Error ? thrown.message : String(thrown));
  }
}
