/** Credentials that run out: fetched once for all who wait, renewed before they end. */

import { noteFetched } from '../../lib/text/secret-literals.ts';

export interface Lease<T> {
  readonly value: T;
  /** Milliseconds since 1970; undefined: for good. */
  readonly until: number | undefined;
}

/** What is fetched, so that it is masked wherever the vendor repeats it. @param secretsIn a value */
export const noted =
  <T>(
    provider: string,
    fetch: () => Promise<Lease<T>>,
    secretsIn: (value: T) => readonly (string | undefined)[],
  ) =>
  async (): Promise<Lease<T>> => {
    const lease = await fetch();
    const secrets = secretsIn(lease.value).filter((secret) => secret !== undefined);
    noteFetched(provider, secrets);
    return lease;
  };

/** So long before the end, new ones are fetched while the old ones still serve. */
const AHEAD_MS = 5 * 60_000;
/** The last part of a short lease in which that happens. */
const AHEAD_PART = 0.2;
/** A request that sets out now must arrive before the end. */
const MARGIN_MS = 10_000;
/** After a failure, for as long as the old ones serve. */
const PAUSE_MS = 15_000;

export class Renewed<T> {
  #lease: Lease<T> | undefined;
  #renewAt = Number.POSITIVE_INFINITY;
  #fetching: Promise<T> | undefined;

  /** @param now milliseconds since 1970 */
  constructor(
    private readonly fetch: () => Promise<Lease<T>>,
    private readonly now: () => number = Date.now,
  ) {}

  /** Credentials that hold for a request that sets out now. Rejects as `fetch` does, where there are none. */
  get(): T | Promise<T> {
    const lease = this.#lease;
    const now = this.now();
    if (lease === undefined) return this.#renew();
    const { value, until = Number.POSITIVE_INFINITY } = lease;
    if (until - now > MARGIN_MS) {
      // The request that finds none left reports the failure.
      if (now >= this.#renewAt) this.#renew().catch(() => {});
      return value;
    }
    return this.#renew().catch((thrown: unknown) => {
      if (until > this.now()) return value;
      throw thrown;
    });
  }

  /** These are refused: the next request gets new ones. */
  discard(value: T): void {
    if (this.#lease?.value === value) this.#lease = undefined;
  }

  #renew(): Promise<T> {
    this.#fetching ??= this.fetch()
      .then(
        (lease) => {
          this.#lease = lease;
          this.#renewAt = this.#renewalOf(lease);
          return lease.value;
        },
        (thrown: unknown) => {
          this.#renewAt = this.now() + PAUSE_MS;
          throw thrown;
        },
      )
      .finally(() => {
        this.#fetching = undefined;
      });
    return this.#fetching;
  }

  #renewalOf({ until }: Lease<T>): number {
    if (until === undefined) return Number.POSITIVE_INFINITY;
    return until - Math.min(AHEAD_MS, (until - this.now()) * AHEAD_PART);
  }
}
