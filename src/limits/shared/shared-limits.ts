/** Limits where each kind of law has its place: rates and slots in the cache, windows at the bank, the rest here. */

import type { Admission, Charge, Law, Limits, Refusal, Standing, Ticket } from '../limits.ts';

/** A place, and which laws it has. */
export interface LimitsPlace {
  readonly limits: Limits;
  readonly has: (law: Law) => boolean;
}

export class SharedLimits implements Limits {
  readonly #places: readonly LimitsPlace[];

  /** @param places the first that has a law counts; the last has all */
  constructor(places: readonly LimitsPlace[]) {
    this.#places = places;
  }

  admit(charges: readonly Charge[]): Admission | Promise<Admission> {
    const parts = this.#split(charges, ({ law }) => law);
    if (parts.length === 1) return parts[0]!.limits.admit(charges);
    const asked = parts.map(({ limits, items }) => limits.admit(items));
    const positions = parts.map((part) => part.positions);
    if (!asked.some((one) => one instanceof Promise))
      return joined(asked as Admission[], positions);
    return Promise.allSettled(asked).then((results) => {
      const admissions = results.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      const failed = results.find((one) => one.status === 'rejected');
      if (failed === undefined) return joined(admissions, positions);
      giveBack(admissions);
      throw failed.reason;
    });
  }

  async standing(laws: readonly Law[]): Promise<readonly Standing[]> {
    const all: Standing[] = [];
    await Promise.all(
      this.#split(laws, (law) => law).map(async ({ limits, items, positions }) => {
        const found = await limits.standing(items);
        positions.forEach((position, i) => {
          all[position] = found[i]!;
        });
      }),
    );
    return all;
  }

  #split<T>(items: readonly T[], lawOf: (item: T) => Law) {
    const parts: { limits: Limits; items: T[]; positions: number[] }[] = [];
    items.forEach((item, position) => {
      const { limits } = this.#places.find(({ has }) => has(lawOf(item)))!;
      let part = parts.find((one) => one.limits === limits);
      if (part === undefined) {
        part = { limits, items: [], positions: [] };
        parts.push(part);
      }
      part.items.push(item);
      part.positions.push(position);
    });
    // Nothing at all is asked of the place that is here.
    return parts.length > 0
      ? parts
      : [{ limits: this.#places.at(-1)!.limits, items: [], positions: [] }];
  }
}

function giveBack(admissions: readonly Admission[]): void {
  for (const one of admissions) if (one.admitted) one.abandon();
}

/** All or nothing. */
function joined(
  admissions: readonly Admission[],
  positions: readonly (readonly number[])[],
): Admission {
  const refusals = admissions.filter((one): one is Refusal => !one.admitted);
  if (refusals.length === 0) return new JoinedTicket(admissions as readonly Ticket[], positions);
  giveBack(admissions);
  const wait = ({ retryAfterMs }: Refusal) => retryAfterMs ?? Number.POSITIVE_INFINITY;
  const [longest] = refusals.toSorted((a, b) => wait(b) - wait(a));
  return {
    ...longest!,
    refusedBy: refusals.flatMap(({ refusedBy }) => refusedBy),
    standings: () => standingsOf(admissions, positions),
  };
}

/** The standings of all parts, each at its place. */
function standingsOf(
  parts: readonly Admission[],
  positions: readonly (readonly number[])[],
): readonly Standing[] {
  const all: Standing[] = [];
  parts.forEach((part, i) => {
    const found = part.standings();
    positions[i]!.forEach((position, j) => {
      all[position] = found[j]!;
    });
  });
  return all;
}

class JoinedTicket implements Ticket {
  readonly admitted = true;
  readonly #tickets: readonly Ticket[];
  /** The places of each ticket's charges among all. */
  readonly #positions: readonly (readonly number[])[];

  constructor(tickets: readonly Ticket[], positions: readonly (readonly number[])[]) {
    this.#tickets = tickets;
    this.#positions = positions;
  }

  settle(used: readonly number[]): void {
    this.#tickets.forEach((ticket, i) => {
      // What is left out counts as it was reserved.
      ticket.settle(this.#positions[i]!.map((position) => used[position] ?? Number.NaN));
    });
  }

  abandon(): void {
    for (const ticket of this.#tickets) ticket.abandon();
  }

  standings(count?: number): readonly Standing[] {
    return standingsOf(this.#tickets, this.#positions).slice(0, count);
  }
}
