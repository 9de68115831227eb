/** Recent erasures by key: work that began before an erasure must not bring the erased data back. */

/** Milliseconds for which erasures are remembered: longer than any exchange takes. */
export const ERASURES_KEPT_MS = 3_600_000;

/** The hash under which a name is stored where the name itself may be personal data. */
export const nameHash = (name: string): string =>
  new Bun.CryptoHasher('sha256').update(name).digest('hex');

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
