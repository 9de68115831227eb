/** Searches that vendors give for nothing in each day or month: how many of them are used. */

import type { FreeSearchesPrice } from '../config/sections/prices.ts';
import { localTime } from '../lib/text/calendar.ts';
import type { PriceBook, PriceVersion } from './price.ts';
import type { SpendSource } from './reports.ts';
import { usageBy } from './usage.ts';

const HOUR_MS = 3_600_000;
/** Other processes and replicas use them, too: what all have used is read from the book again after this time. */
const READ_MS = 5 * 60_000;
const MAX_MONTH_MS = 32 * 24 * HOUR_MS;

/** A day or a month, as the instant at which it began. */
function periodStart({ per, zone = 'UTC' }: FreeSearchesPrice, time: number): number {
  const local = localTime(zone, time);
  const date = new Date(local);
  const day = per === 'day' ? date.getUTCDate() : 1;
  return time - (local - Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), day));
}

interface Used {
  readonly start: number;
  count: number;
}

export class FreeSearches {
  readonly #used = new Map<string, Used>();
  #timer: ReturnType<typeof setInterval> | undefined;

  /**
   * Takes as many of the free searches as are left.
   * @returns how many of the searches cost something
   */
  paid(target: string, price: PriceVersion, searches: number, time: number): number {
    const { searchPer, freeSearches } = price.model;
    const counted = searchPer === 'request' ? Math.min(1, searches) : searches;
    if (freeSearches === undefined || counted === 0) return counted;
    const used = this.#at(target, freeSearches, time);
    const free = Math.min(counted, Math.max(0, freeSearches.count - used.count));
    used.count += counted;
    return counted - free;
  }

  #at(target: string, free: FreeSearchesPrice, time: number): Used {
    const key = keyOf(target, free);
    const start = periodStart(free, time);
    let used = this.#used.get(key);
    // Two readings of one beginning can differ by the hour that clocks change.
    if (used === undefined || start > used.start + HOUR_MS) {
      used = { start, count: 0 };
      this.#used.set(key, used);
    }
    return used;
  }

  /** Reads what the book has of the present periods, now and from time to time. */
  follow(spend: SpendSource, prices: () => PriceBook): void {
    const read = () => this.read(spend, prices(), Date.now()).catch(() => {});
    void read();
    this.#timer ??= setInterval(read, READ_MS);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** @throws as SpendSource.read */
  async read(spend: SpendSource, prices: PriceBook, time: number): Promise<void> {
    if (!prices.hasFreeSearches) return;
    const found = await searchesByTarget(spend, time - MAX_MONTH_MS, time);
    const periods = new Map<number, Map<string, number>>();
    const counts = new Map<string, { readonly free: FreeSearchesPrice; count: number }>();
    for (const target of found.keys()) {
      const model = prices.modelPrice(target, time);
      if (model?.freeSearches === undefined) continue;
      const free = model.freeSearches;
      const start = periodStart(free, time);
      const now =
        periods.get(start) ?? (await searchesByTarget(spend, start, time, model.searchPer));
      periods.set(start, now);
      const key = keyOf(target, free);
      const sum = counts.get(key) ?? { free, count: 0 };
      counts.set(key, { free, count: sum.count + (now.get(target) ?? 0) });
    }
    for (const [key, { free, count }] of counts)
      this.#used.set(key, { start: periodStart(free, time), count });
  }
}

/** A provider is an account at the vendor; models of a group share what is free. */
const keyOf = (target: string, { group }: FreeSearchesPrice): string =>
  group === undefined ? target : `${target.slice(0, target.indexOf('/'))} ${group}`;

async function searchesByTarget(
  spend: SpendSource,
  from: number,
  time: number,
  per: 'search' | 'request' = 'search',
): Promise<Map<string, number>> {
  const groups = await spend.read((reader) =>
    usageBy(reader, {
      by: 'target',
      from: Math.floor(from / HOUR_MS) * HOUR_MS,
      to: (Math.floor(time / HOUR_MS) + 1) * HOUR_MS,
      step: undefined,
      key: undefined,
      limit: 10_000,
      top: undefined,
    }),
  );
  return new Map(
    groups.flatMap(({ name, sums: { searches, tries } }) =>
      name === null || searches <= 0
        ? []
        : // How many requests made them is not summed: no more than there were.
          [[name, per === 'request' ? Math.min(searches, tries) : searches] as const],
    ),
  );
}
