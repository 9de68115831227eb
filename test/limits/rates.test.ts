/** Rates: the engine decides as a reference with absolute times does, and no refund lets more through than the rate. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { RateLimit } from '../../src/limits/limits.ts';
import { type RateHold, RateState } from '../../src/limits/rates.ts';

const limit = (amount: number, periodMs = 60_000): RateLimit => ({
  kind: 'rate',
  id: 'r',
  unit: 'tokens',
  amount,
  periodMs,
});

const later = (a: bigint, b: bigint): bigint => {
  if (a > b) return a;
  return b;
};

/** The textbook: times are in 1/amount milliseconds, so that all of them are integers. */
class Reference {
  #tat = 0n;
  #refunds = 0n;
  readonly #amount: bigint;
  readonly #period: bigint;

  constructor({ amount, periodMs }: RateLimit) {
    this.#amount = BigInt(amount);
    this.#period = BigInt(periodMs);
  }

  admit(units: number, ms: number) {
    const now = BigInt(ms) * this.#amount;
    const start = later(this.#tat, now);
    const next = start + BigInt(units) * this.#period;
    if (next - now > this.#amount * this.#period) return undefined;
    this.#tat = next;
    return { units, start, admittedAt: now, refunds: this.#refunds };
  }

  settle(
    hold: { units: number; start: bigint; admittedAt: bigint; refunds: bigint },
    used: number,
    ms: number,
  ) {
    const now = BigInt(ms) * this.#amount;
    if (used > hold.units) {
      const from = later(this.#tat, now);
      this.#tat = from + BigInt(used - hold.units) * this.#period;
      return;
    }
    const moved = hold.start - (this.#refunds - hold.refunds);
    const start = later(moved, hold.admittedAt);
    const usedUntil = start + BigInt(used) * this.#period;
    const floor = later(usedUntil, now);
    const refund = start + BigInt(hold.units) * this.#period - floor;
    if (refund <= 0n) return;
    this.#tat -= refund;
    this.#refunds += refund;
  }
}

const step = fc.record({
  pause: fc.oneof(
    fc.constant(0),
    fc.integer({ min: 0, max: 2000 }),
    fc.integer({ min: 0, max: 90_000 }),
  ),
  /** Thousandths of the amount. */
  units: fc.integer({ min: 0, max: 1100 }),
  /** Thousandths of what was reserved. */
  used: fc.oneof(fc.constant(0), fc.constant(1000), fc.integer({ min: 0, max: 1000 })),
  over: fc.oneof(
    { weight: 5, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 3000 }) },
  ),
  /** Which open reservation ends before this one asks. */
  ends: fc.option(fc.nat()),
});

describe('a rate', () => {
  test('decides as the reference does, whatever is reserved, used and given back', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.array(step, { maxLength: 120 }),
        (amount, steps) => {
          const state = new RateState(limit(amount), 0);
          const reference = new Reference(limit(amount));
          const open: {
            own: RateHold;
            known: NonNullable<ReturnType<Reference['admit']>>;
            used: number;
          }[] = [];
          let now = 0;
          for (const { pause, units, used, over, ends } of steps) {
            now += pause;
            if (ends !== null && open.length > 0) {
              const [ended] = open.splice(ends % open.length, 1);
              state.settle(ended!.own, ended!.used, now);
              reference.settle(ended!.known, ended!.used, now);
            }
            const asked = Math.max(1, Math.floor((amount * units) / 1000));
            const known = reference.admit(asked, now);
            expect(state.wait(asked, now) === 0).toBe(known !== undefined);
            if (known === undefined) continue;
            const spent = Math.floor((asked * used) / 1000) + Math.floor((amount * over) / 1000);
            open.push({ own: state.take(asked, now), known, used: spent });
          }
        },
      ),
      { numRuns: 400 },
    );
  });

  test('never lets more through than a burst and what has refilled, refunds included', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50_000 }),
        fc.array(step, { maxLength: 80 }),
        (amount, steps) => {
          const state = new RateState(limit(amount), 0);
          const done: { at: number; used: number }[] = [];
          const open: { hold: RateHold; used: number }[] = [];
          let now = 0;
          for (const { pause, units, used, ends } of steps) {
            now += pause;
            if (ends !== null && open.length > 0) {
              const [ended] = open.splice(ends % open.length, 1);
              state.settle(ended!.hold, ended!.used, now);
            }
            const asked = Math.max(1, Math.floor((amount * units) / 1000));
            if (state.wait(asked, now) > 0) continue;
            const spent = Math.floor((asked * used) / 1000);
            open.push({ hold: state.take(asked, now), used: spent });
            done.push({ at: now, used: spent });
          }
          for (let i = 0; i < done.length; i++) {
            let sum = 0;
            for (let j = i; j < done.length; j++) {
              sum += done[j]!.used;
              const refilled = ((done[j]!.at - done[i]!.at) * amount) / 60_000;
              expect(sum).toBeLessThanOrEqual(amount + refilled + 1e-6);
            }
          }
        },
      ),
      { numRuns: 600 },
    );
  });

  test('waits as long as it says, and not a millisecond less', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5000 }),
        fc.array(fc.tuple(fc.integer({ min: 0, max: 30_000 }), fc.integer({ min: 1, max: 5000 })), {
          maxLength: 30,
        }),
        (amount, asks) => {
          const state = new RateState(limit(amount), 0);
          let now = 0;
          for (const [pause, units] of asks) {
            now += pause;
            const wait = state.wait(units, now);
            if (wait === 0) state.take(units, now);
            else if (units > amount) expect(wait).toBe(Number.POSITIVE_INFINITY);
            else {
              expect(state.wait(units, now + wait - 1)).toBe(1);
              now += wait;
              expect(state.wait(units, now)).toBe(0);
            }
          }
        },
      ),
    );
  });

  test('saturated by reservations of twice the use, most of the rate is usable', () => {
    const amount = 60_000;
    const state = new RateState(limit(amount), 0);
    const open: { hold: RateHold; ends: number }[] = [];
    let used = 0;
    for (let now = 0; now < 600_000; now += 50) {
      while (open.length > 0 && open[0]!.ends <= now) state.settle(open.shift()!.hold, 500, now);
      while (state.wait(1000, now) === 0) {
        open.push({ hold: state.take(1000, now), ends: now + 5000 });
        used += 500;
      }
    }
    const share = used / (amount * 11);
    expect(share).toBeGreaterThan(0.7);
    expect(share).toBeLessThanOrEqual(1);
  });

  test('a debt is waited for, and all of its numbers stay safe integers', () => {
    const state = new RateState(limit(1_000_000_000), 0);
    const hold = state.take(1_000_000_000, 0);
    state.settle(hold, Number.MAX_SAFE_INTEGER, 10);
    expect(Number.isSafeInteger(state.debt(11))).toBe(true);
    expect(state.wait(1, 11)).toBeGreaterThan(60_000);
    expect(Number.isSafeInteger(state.usage(11).used)).toBe(true);
  });

  test('a clock that stands still or goes back gives nothing', () => {
    const state = new RateState(limit(60), 1000);
    for (let i = 0; i < 60; i++) state.take(1, 1000);
    expect(state.wait(1, 500)).toBe(1000);
    expect(state.wait(1, 1000)).toBe(1000);
    expect(state.wait(1, 2000)).toBe(0);
  });

  test('a refund wraps around without a trace', () => {
    const state = new RateState(limit(1_000_000_000), 0);
    let now = 0;
    for (let i = 0; i < 200; i++) {
      const hold = state.take(1_000_000_000, now);
      state.settle(hold, 0, now);
      expect(state.usage(now).used).toBe(0);
      now += 1;
    }
  });
});
