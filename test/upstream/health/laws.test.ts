/** Laws of places that hold for every history of requests, signs and times, some against a plain model of the table. */

import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import fc from 'fast-check';
import { AVAILABLE, COOLING, type Cooldown, DUE } from '../../../src/upstream/health/cooldown.ts';
import type { Lease, Place } from '../../../src/upstream/health/place.ts';
import type { Sign } from '../../../src/upstream/health/signs.ts';
import { OVERLOADED, QUOTA, RATE_LIMIT, REFUSED, session, testRing } from './places.ts';

setDefaultTimeout(60_000);

const sign: fc.Arbitrary<Sign> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Sign>('answered') },
  { weight: 6, arbitrary: fc.constant<Sign>('failed') },
  fc.constantFrom<Sign>('neither', 'no_model'),
  fc.constantFrom<Sign>(RATE_LIMIT, OVERLOADED, REFUSED, QUOTA),
  fc.nat(500_000).map((askedMs): Sign => ({ ...RATE_LIMIT, askedMs })),
  fc.nat(500_000).map((askedMs): Sign => ({ ...OVERLOADED, askedMs })),
);
const passing = fc.oneof(fc.nat(900), fc.nat(9000), fc.nat(400_000));

type Step =
  | { readonly do: 'send'; readonly session: number; readonly model: string }
  | { readonly do: 'end'; readonly which: number; readonly sign: Sign }
  | { readonly do: 'wait'; readonly ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('send' as const),
      session: fc.integer(),
      model: fc.constantFrom('m', 'n'),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('end' as const), which: fc.nat(), sign }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: passing }) },
);

const restsOf = ({ cooldowns }: Place): readonly Cooldown[] => cooldowns;

const MAX_LENGTH: Readonly<Record<string, number>> = {
  rate_limit: 300_000,
  overloaded: 300_000,
  key_refused: 3_600_000,
  quota: 3_600_000,
  failures: 300_000,
};

describe('requests that overlap in any way', () => {
  test('one trial at a time, no rest beyond its bound, and what rests is not chosen while another place does not', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.array(step, { maxLength: 80 }),
        (keys, steps) => {
          const world = testRing(keys);
          const { ring } = world;
          const open: Lease[] = [];
          // Who tries what: a place that was due when it was lent.
          const trials = new Map<Lease, readonly Cooldown[]>();
          for (const one of steps) {
            if (one.do === 'wait') world.pass(one.ms);
            else if (one.do === 'end') {
              const [lease] = open.splice(one.which % Math.max(1, open.length), 1);
              if (lease === undefined) continue;
              trials.delete(lease);
              lease.settle(one.sign, world.now);
              lease.settle('failed', world.now);
            } else {
              ring.placeFor(one.model, session(one.session));
              const places = [...ring.models].find(({ name }) => name === one.model)!.places;
              const before = new Map(places.map((place) => [place, place.availability(world.now)]));
              const due = new Map(
                places.map((place) => [
                  place,
                  restsOf(place).filter((rest) => rest.availability(world.now) === DUE),
                ]),
              );
              const lease = ring.lease(one.model, session(one.session));
              open.push(lease);
              const chosen = lease.place!;
              if (before.get(chosen) === COOLING) {
                expect([...before.values()].every((standing) => standing === COOLING)).toBe(true);
                const soonest = Math.min(...places.map(({ until }) => until));
                expect(chosen.until).toBe(soonest);
              }
              if (before.get(chosen) === DUE) {
                const tried = due.get(chosen)!;
                for (const others of trials.values()) {
                  for (const rest of tried) expect(others).not.toContain(rest);
                }
                trials.set(lease, tried);
                expect(chosen.availability(world.now)).toBe(COOLING);
              }
            }
            for (const model of ring.models) {
              for (const place of model.places) {
                expect(place.load.waiting).toBe(
                  open.filter((lease) => lease.place === place).length,
                );
                for (const rest of restsOf(place)) {
                  if (rest.until === 0) continue;
                  expect(rest.until - world.now).toBeLessThanOrEqual(MAX_LENGTH[rest.reason!]!);
                }
              }
            }
          }
          // Nothing is left behind by requests that have ended.
          for (const lease of open) lease.settle('neither', world.now);
          world.pass(3_600_000);
          for (const model of ring.models) {
            for (const place of model.places) {
              expect(place.load.waiting).toBe(0);
              expect(place.availability(world.now)).not.toBe(COOLING);
            }
          }
        },
      ),
      { numRuns: 400 },
    );
  });
});

/** One key with one model by the words of the table, with a list of everything that happened. */
class PlainModel {
  readonly #log: { readonly at: number; readonly failed: boolean }[] = [];
  #until = 0;
  #reason = '';
  #times = 0;
  #backAt = Number.NEGATIVE_INFINITY;

  availability(now: number): number {
    return this.#until === 0 ? AVAILABLE : now >= this.#until ? DUE : COOLING;
  }

  /** A request that was sent and ended at this moment. */
  ends(sign: Sign, now: number): void {
    if (sign === 'neither' || sign === 'no_model') return;
    if (sign === 'answered') {
      this.#log.push({ at: now, failed: false });
      if (this.#until === 0) return;
      this.#until = 0;
      this.#backAt = now;
      this.#log.length = 0;
      return;
    }
    if (sign === 'failed') {
      if (this.#until === 0) {
        this.#log.push({ at: now, failed: true });
        const inRow = this.#log.slice(-5);
        const second = Math.floor(now / 1000);
        const recent = this.#log.filter(({ at }) => second - Math.floor(at / 1000) < 30);
        const failed = recent.filter((one) => one.failed).length;
        const five = inRow.length === 5 && inRow.every((one) => one.failed);
        if (!five && !(recent.length >= 10 && failed * 2 > recent.length)) return;
      }
      this.#log.length = 0;
      this.#rest('failures', 5000, 300_000, undefined, now);
      return;
    }
    this.#rest('rate_limit', 2000, 60_000, sign.askedMs, now);
  }

  #rest(reason: string, first: number, most: number, asked: number | undefined, now: number): void {
    const again = this.#reason === reason && (this.#until !== 0 || now - this.#backAt < 10_000);
    this.#times = again ? this.#times + 1 : 0;
    this.#reason = reason;
    this.#until =
      now +
      (asked === undefined ? Math.min(first * 2 ** this.#times, most) : Math.min(asked, 300_000));
  }
}

test('one request after the other: the place stands where the table says', () => {
  const own: fc.Arbitrary<Sign> = fc.oneof(
    { weight: 4, arbitrary: fc.constant<Sign>('answered') },
    { weight: 8, arbitrary: fc.constant<Sign>('failed') },
    fc.constant<Sign>('neither'),
    fc.constant<Sign>(RATE_LIMIT),
    fc.nat(500_000).map((askedMs): Sign => ({ ...RATE_LIMIT, askedMs })),
  );
  const history = fc.array(fc.record({ ms: passing, sign: own }), { maxLength: 120 });
  fc.assert(
    fc.property(history, (all) => {
      const world = testRing(1);
      const plain = new PlainModel();
      for (const { ms, sign: ending } of all) {
        world.pass(ms);
        expect(world.ring.placeFor('m', session(0)).availability(world.now)).toBe(
          plain.availability(world.now) as 0,
        );
        world.ring.lease('m', session(0)).settle(ending, world.now);
        plain.ends(ending, world.now);
      }
    }),
    { numRuns: 600 },
  );
});

test('sessions are spread evenly over keys and keep theirs while another one rests and returns', () => {
  const world = testRing(4);
  const keyOf = (who: number) => world.ring.placeFor('m', session(who)).key;
  const people = Array.from({ length: 4000 }, (_, i) => Math.imul(i, 0x9e3779b1));
  const before = people.map(keyOf);
  const counts = new Map<unknown, number>();
  for (const key of before) counts.set(key, (counts.get(key) ?? 0) + 1);
  for (const count of counts.values()) expect(Math.abs(count / 1000 - 1)).toBeLessThan(0.1);
  const rested = before[0]!;
  world.ring.lease('m', session(people[0]!)).settle(RATE_LIMIT, world.now);
  const during = people.map(keyOf);
  people.forEach((_, i) => {
    if (before[i] !== rested) expect(during[i]).toBe(before[i]!);
    else expect(during[i]).not.toBe(rested);
  });
  world.pass(2000);
  world.ring.lease('m', session(people[0]!)).settle('answered', world.now);
  world.pass(10_000);
  expect(people.map(keyOf)).toEqual(before);
});
