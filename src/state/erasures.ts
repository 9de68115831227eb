/** Recent erasures by key: work that began before an erasure must not bring the erased data back. */

/** Milliseconds for which erasures are remembered: longer than any exchange takes. */
export const ERASURES_KEPT_MS = 3_600_000;

/** A name of which only the hash is known: what replicas tell each other of an erasure. No client can send one. */
export class HashedName {
  /** SHA-256 in hex. */
  readonly hash: string;

  constructor(hash: string) {
    this.hash = hash;
  }
}

/** The hash under which a name is stored where the name itself may be personal data. */
export const nameHash = (name: string | HashedName): string =>
  typeof name === 'string' ? new Bun.CryptoHasher('sha256').update(name).digest('hex') : name.hash;

/** The erasures that this process made. Times are those of `instant`. */
export class RecentErasures {
  readonly #times = new Map<string, number>();

  add(key: string, at: number): void {
    for (const [one, before] of this.#times) {
      if (before < at - ERASURES_KEPT_MS) this.#times.delete(one);
    }
    this.#times.set(key, at);
  }

  /** Was the key erased at this time or later? */
  hasSince(key: string, began: number): boolean {
    return (this.#times.get(key) ?? 0) >= began;
  }
}
