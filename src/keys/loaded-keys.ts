/** Keys made at run time in memory: found by the digest of a secret, without a query. */

import type { KeyChange } from './key-records.ts';

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
