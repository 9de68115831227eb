/** An account of bytes that are kept for somebody: a bound on all, and a share of it for each owner. */

/** One owner may have so many times what is free for others: alone, three quarters of all. */
const TIMES_FREE = 3;

/**
 * One owner cannot fill the account: the more others hold, the less each may add, and a part is always free for an
 * owner that holds nothing. Only what comes first into an empty account may be larger than a share.
 */
export class KeptBytes {
  readonly #owners = new Map<string, number>();
  #total = 0;

  /** @param limit bytes of all owners together; 0 = no limit */
  constructor(private readonly limit: () => number) {}

  get total(): number {
    return this.#total;
  }

  /** Adds bytes to what an owner holds; false: that would be more than its share, and nothing is added. */
  take(owner: string, bytes: number): boolean {
    const limit = this.limit();
    const own = this.#owners.get(owner) ?? 0;
    const free = limit - this.#total - bytes;
    if (limit > 0 && this.#total > 0 && own + bytes > TIMES_FREE * free) return false;
    this.#total += bytes;
    this.#owners.set(owner, own + bytes);
    return true;
  }

  give(owner: string, bytes: number): void {
    if (bytes === 0) return;
    this.#total -= bytes;
    const own = (this.#owners.get(owner) ?? 0) - bytes;
    if (own > 0) this.#owners.set(owner, own);
    else this.#owners.delete(owner);
  }
}
