/** The engine: all limits admit or none, windows count exactly under any clock, and what is as new leaves the memory. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { OwnBank, type TotalRows, type Totals } from '../../src/limits/bank.ts';
import type { Charge, Limit, Refusal, Ticket, WindowLimit } from '../../src/limits/limits.ts';
import type { Reached } from '../../src/limits/notices.ts';
import { LocalLimits } from '../support/local-limits.ts';

/** A clock that the test sets. */
class TestClock {
  now = Date.parse('2026-03-28T12:00:00Z');
  ticks = 0;
  wall = () => this.now;
  monotonic = () => this.ticks;
  pass(ms: number) {
    this.now += ms;
    this.ticks += ms;
  }
}

/** The file of several processes, in memory. */
class TestFile implements Totals {
  readonly totals = new Map<string, number>();
  away = false;
  reads = 0;

  bank(): OwnBank {
    return new OwnBank(this);
  }

  update(work: (rows: TotalRows) => void): boolean {
    if (this.away) return false;
    const totals = new Map(this.totals);
    work({
      get: ({ law, start }) => {
        this.reads++;
        return totals.get(`${law} ${start}`);
      },
      set: ({ law, start }, total) => totals.set(`${law} ${start}`, total),
    });
    for (const [key, total] of totals) this.totals.set(key, total);
    return true;
  }

  isNew(): boolean {
    return true;
  }
}

const window = (amount: number, more: Partial<WindowLimit> = {}): WindowLimit => ({
  kind: 'window',
  id: 'w',
  unit: 'nano_usd',
  amount,
  per: 'day',
  timeZone: 'Europe/Berlin',
  ...more,
});
const rate = (amount: number, id = 'r'): Limit => ({
  kind: 'rate',
  id,
  unit: 'requests',
  amount,
  periodMs: 60_000,
});
const slots = (amount: number, id = 's'): Limit => ({
  kind: 'slots',
  id,
  unit: 'exchanges',
  amount,
});

const dayOf = (time: number) =>
  new Intl.DateTimeFormat('sv-SE', { timeZone: 'Europe/Berlin', dateStyle: 'short' }).format(time);

const admitted = (limits: LocalLimits, ...charges: Charge[]): Ticket => {
  const admission = limits.admit(charges);
  if (!admission.admitted) throw new Error(`refused by ${admission.limit.id}`);
  return admission;
};
const refused = (limits: LocalLimits, ...charges: Charge[]): Refusal => {
  const admission = limits.admit(charges);
  if (admission.admitted) throw new Error('admitted');
  return admission;
};

const action = fc.oneof(
  fc.record({ kind: fc.constant('ask' as const), units: fc.integer({ min: 0, max: 60 }) }),
  fc.record({
    kind: fc.constant('settle' as const),
    which: fc.nat(),
    used: fc.integer({ min: 0, max: 90 }),
  }),
  fc.record({ kind: fc.constant('abandon' as const), which: fc.nat() }),
  // Hours, back or forth.
  fc.record({
    kind: fc.constant('jump' as const),
    ms: fc.integer({ min: -40 * 3_600_000, max: 40 * 3_600_000 }),
  }),
  fc.record({ kind: fc.constant('save' as const) }),
);

describe('a window', () => {
  test('admits as a list of all charges by the day of their admission does, whatever the clock shows', () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 150 }), (actions) => {
        const clock = new TestClock();
        const limits = new LocalLimits({ clock, bank: new TestFile().bank() });
        const limit = window(100);
        const all: { day: string; counts: number }[] = [];
        const open: { ticket: Ticket; entry: { day: string; counts: number } }[] = [];
        for (const one of actions) {
          if (one.kind === 'jump') clock.now += one.ms;
          else if (one.kind === 'save') {
            clock.ticks += 6000;
            limits.save();
          } else if (one.kind === 'ask') {
            const day = dayOf(clock.now);
            const used = all
              .filter((entry) => entry.day === day)
              .reduce((sum, { counts }) => sum + counts, 0);
            const admission = limits.admit([{ limit, amount: one.units }]);
            expect(admission.admitted).toBe(used + Math.max(1, one.units) <= 100);
            if (!admission.admitted) continue;
            const entry = { day, counts: one.units };
            all.push(entry);
            open.push({ ticket: admission, entry });
          } else if (open.length > 0) {
            const [{ ticket, entry }] = open.splice(one.which % open.length, 1) as [
              (typeof open)[0],
            ];
            if (one.kind === 'settle') ticket.settle([one.used]);
            else ticket.abandon();
            entry.counts = one.kind === 'settle' ? one.used : 0;
            // Later calls do nothing.
            ticket.settle([50]);
            ticket.abandon();
          }
        }
      }),
      { numRuns: 400 },
    );
  });

  test('several processes and kills: never more than the amount, and nothing that was used is forgotten', () => {
    const ask = fc.record({
      process: fc.nat({ max: 2 }),
      kind: fc.constantFrom('ask', 'ask', 'ask', 'settle', 'kill', 'save'),
      units: fc.integer({ min: 1, max: 30 }),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(ask, { maxLength: 120 }), (asks) => {
        const clock = new TestClock();
        const file = new TestFile();
        const limit = window(1000);
        const start = () => new LocalLimits({ clock, bank: file.bank() });
        const processes = [start(), start(), start()];
        const open: { ticket: Ticket; units: number }[][] = [[], [], []];
        let settled = 0;
        for (const { process, kind, units, share } of asks) {
          clock.pass(50);
          const mine = open[process]!;
          if (kind === 'kill') {
            // What was in flight was sent: it counts as reserved.
            for (const one of mine.splice(0)) settled += one.units;
            processes[process] = start();
          } else if (kind === 'save') {
            clock.pass(11_000);
            processes[process]!.save();
          } else if (kind === 'settle') {
            const one = mine.shift();
            if (one === undefined) continue;
            const used = Math.floor(one.units * share);
            one.ticket.settle([used]);
            settled += used;
          } else {
            const admission = processes[process]!.admit([{ limit, amount: units }]);
            if (admission.admitted) mine.push({ ticket: admission, units });
          }
          const held = open.flat().reduce((sum, one) => sum + one.units, 0);
          const total = [...file.totals.values()][0] ?? 0;
          expect(settled + held).toBeLessThanOrEqual(1000);
          expect(total).toBeGreaterThanOrEqual(settled + held);
          expect(total).toBeLessThanOrEqual(1000);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('a killed process leaves at most a hundredth of the amount, or eight charges, beyond what it used', () => {
    const clock = new TestClock();
    const file = new TestFile();
    const limit = window(1_000_000);
    const limits = new LocalLimits({ clock, bank: file.bank() });
    for (let i = 0; i < 500; i++) admitted(limits, { limit, amount: 100 }).settle([100]);
    const [total] = [...file.totals.values()];
    expect(total).toBeGreaterThanOrEqual(50_000);
    expect(total).toBeLessThanOrEqual(50_000 + 10_000 + 100);
    limits.save(true);
    expect([...file.totals.values()]).toEqual([50_000]);
  });

  test('an unused part that was drawn goes back after some seconds', () => {
    const clock = new TestClock();
    const file = new TestFile();
    const limits = new LocalLimits({ clock, bank: file.bank() });
    admitted(limits, { limit: window(1000), amount: 5 }).settle([5]);
    expect([...file.totals.values()][0]).toBeGreaterThan(5);
    clock.pass(11_000);
    limits.save();
    expect([...file.totals.values()]).toEqual([5]);
    limits.save();
    // Nothing is left to write.
    const { reads } = file;
    limits.save();
    expect(file.reads).toBe(reads);
  });

  test('without its file it counts in memory, and writes down what it missed', () => {
    const clock = new TestClock();
    const file = new TestFile();
    const limits = new LocalLimits({ clock, bank: file.bank() });
    const limit = window(100);
    file.away = true;
    for (let i = 0; i < 10; i++) admitted(limits, { limit, amount: 10 }).settle([10]);
    expect(refused(limits, { limit, amount: 1 }).limit).toBe(limit);
    file.away = false;
    limits.save();
    expect([...file.totals.values()]).toEqual([100]);
  });

  test('says what is spent, what is reserved, and when it begins anew', () => {
    const clock = new TestClock();
    const limits = new LocalLimits({ clock });
    const limit = window(100);
    admitted(limits, { limit, amount: 30 }).settle([25]);
    const ticket = admitted(limits, { limit, amount: 40 });
    const usage = {
      limit,
      used: 65,
      held: 40,
      remaining: 35,
      resetMs: 11 * 3_600_000,
      resetAt: clock.now + 11 * 3_600_000,
    };
    expect(ticket.usages()).toEqual([usage]);
    expect(limits.usage([limit])).toEqual([usage]);
    const { usages, ...refusal } = refused(limits, { limit, amount: 36 });
    expect(usages()).toEqual([usage]);
    expect(refusal).toEqual({
      admitted: false,
      limit,
      retryAfterMs: 11 * 3_600_000,
      usage,
      asked: 36,
      refusedBy: [limit],
    });
    // No day is long enough for that.
    expect(refused(limits, { limit, amount: 101 }).retryAfterMs).toBeUndefined();
    const total = window(10, { id: 't', per: 'total' });
    admitted(limits, { limit: total, amount: 10 });
    expect(refused(limits, { limit: total, amount: 1 }).retryAfterMs).toBeUndefined();
  });

  test('the newest definition counts, and keeps what is spent', () => {
    const limits = new LocalLimits({ clock: new TestClock() });
    admitted(limits, { limit: window(100), amount: 100 }).settle([100]);
    expect(refused(limits, { limit: window(100), amount: 1 }).usage.used).toBe(100);
    expect(admitted(limits, { limit: window(150), amount: 50 }).usages()[0]!.used).toBe(150);
  });

  test('reports each mark once a period, and that it is used up', () => {
    const clock = new TestClock();
    const reached: Reached[] = [];
    const limits = new LocalLimits({ clock, onReached: (one) => reached.push(one) });
    const limit = window(100, { marks: [50, 80] });
    const marks = () => reached.splice(0).map(({ mark, spent }) => [mark, spent]);
    const open = admitted(limits, { limit, amount: 60 });
    expect(marks()).toEqual([]);
    open.settle([55]);
    expect(marks()).toEqual([[50, 55]]);
    admitted(limits, { limit, amount: 30 }).settle([30]);
    expect(marks()).toEqual([[80, 85]]);
    refused(limits, { limit, amount: 20 });
    refused(limits, { limit, amount: 20 });
    expect(marks()).toEqual([[100, 85]]);
    clock.pass(24 * 3_600_000);
    admitted(limits, { limit, amount: 100, soft: true }).settle([130]);
    expect(marks()).toEqual([
      [50, 130],
      [80, 130],
      [100, 130],
    ]);
  });

  test('a soft charge counts and never refuses', () => {
    const limits = new LocalLimits({ clock: new TestClock() });
    const limit = window(10);
    admitted(limits, { limit, amount: 25, soft: true });
    expect(limits.usage([limit])[0]).toMatchObject({ used: 25, remaining: 0 });
    expect(refused(limits, { limit, amount: 0 }).limit).toBe(limit);
    admitted(limits, { limit, amount: 0, soft: true });
  });

  test('what cannot be read as a number counts as it was reserved', () => {
    const limits = new LocalLimits({ clock: new TestClock() });
    const limit = window(100);
    admitted(limits, { limit, amount: 10 }).settle([Number.NaN]);
    admitted(limits, { limit, amount: 10 }).settle([]);
    admitted(limits, { limit, amount: 10 }).settle([-5]);
    admitted(limits, { limit, amount: 10 }).settle([0.2]);
    expect(limits.usage([limit])[0]!.used).toBe(21);
  });
});

describe('slots', () => {
  test('so many at a time', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.array(fc.option(fc.nat()), { maxLength: 60 }),
        (amount, asks) => {
          const limits = new LocalLimits({ clock: new TestClock() });
          const open: Ticket[] = [];
          for (const ends of asks) {
            if (ends !== null && open.length > 0) {
              const [ticket] = open.splice(ends % open.length, 1);
              if (ends % 2 === 0) ticket!.settle([1]);
              else ticket!.abandon();
              ticket!.abandon();
            }
            const admission = limits.admit([{ limit: slots(amount), amount: 1 }]);
            expect(admission.admitted).toBe(open.length < amount);
            if (admission.admitted) open.push(admission);
          }
        },
      ),
    );
  });

  test('those of a process that hands over count', () => {
    const limits = new LocalLimits({ clock: new TestClock() });
    limits.setOthers(new Map([['s', 2]]));
    admitted(limits, { limit: slots(3), amount: 1 });
    expect(refused(limits, { limit: slots(3), amount: 1 }).usage.used).toBe(3);
    limits.setOthers(new Map());
    admitted(limits, { limit: slots(3), amount: 1 });
  });
});

describe('several limits', () => {
  test('all admit, or nothing is taken from any', () => {
    const all: Limit[] = [rate(5, 'a'), rate(9, 'b'), window(20), slots(3), slots(4, 'z')];
    const amountsOf = fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 5, maxLength: 5 });
    fc.assert(
      fc.property(fc.array(fc.tuple(amountsOf, fc.option(fc.nat())), { maxLength: 60 }), (asks) => {
        const clock = new TestClock();
        const limits = new LocalLimits({ clock });
        const alone = all.map(() => new LocalLimits({ clock }));
        const open: { ticket: Ticket; own: Ticket[] }[] = [];
        for (const [amounts, ends] of asks) {
          clock.pass(1500);
          if (ends !== null && open.length > 0) {
            const [ended] = open.splice(ends % open.length, 1);
            ended!.ticket.abandon();
            for (const own of ended!.own) own.abandon();
          }
          const charges = all.map((limit, i) => ({ limit, amount: amounts[i]! }));
          const before = limits.usage(all);
          expect(before).toEqual(all.map((limit, i) => alone[i]!.usage([limit])[0]!));
          const admission = limits.admit(charges);
          const fits = charges.map(({ amount }, i) => Math.max(1, amount) <= before[i]!.remaining);
          expect(admission.admitted).toBe(fits.every(Boolean));
          if (admission.admitted) {
            const own = charges.map((charge, i) => admitted(alone[i]!, charge));
            open.push({ ticket: admission, own });
            continue;
          }
          expect(limits.usage(all)).toEqual(before);
          expect(admission.refusedBy).toEqual(all.filter((_, i) => !fits[i]));
          const waits = charges.map((charge, i) =>
            fits[i] ? 0 : (refused(alone[i]!, charge).retryAfterMs ?? Number.POSITIVE_INFINITY),
          );
          expect(admission.retryAfterMs ?? Number.POSITIVE_INFINITY).toBe(Math.max(...waits));
        }
      }),
      { numRuns: 200 },
    );
  });
});

describe('memory', () => {
  const sweep = (limits: LocalLimits) => {
    for (let i = 0; i < 10; i++) limits.sweep(1000);
  };

  test('limits that are as new are dropped, and those that still owe something stay', () => {
    const clock = new TestClock();
    const limits = new LocalLimits({ clock });
    for (let i = 0; i < 500; i++) {
      const charges = [
        { limit: rate(60, `r${i}`), amount: 1 },
        { limit: slots(2, `s${i}`), amount: 1 },
        { limit: window(100, { id: `w${i}`, per: 'minute' }), amount: 10 },
      ];
      const ticket = admitted(limits, ...charges);
      if (i > 0) ticket.settle([1, 1, 7]);
    }
    expect(limits.size).toBe(1500);
    sweep(limits);
    expect(limits.size).toBe(1001);
    clock.pass(120_000);
    sweep(limits);
    // The one request that still runs.
    expect(limits.size).toBe(3);
  });

  test('a window that the file knows is dropped after a while, and comes back with what is spent', () => {
    const clock = new TestClock();
    const file = new TestFile();
    const limits = new LocalLimits({ clock, bank: file.bank() });
    const limit = window(100);
    admitted(limits, { limit, amount: 60 }).settle([60]);
    clock.pass(11_000);
    limits.save();
    limits.save();
    clock.pass(600_000);
    sweep(limits);
    expect(limits.size).toBe(0);
    expect(refused(limits, { limit, amount: 41 }).usage.used).toBe(60);
    admitted(limits, { limit, amount: 40 });
  });

  test('a request that outlives its dropped rate still pays its debt', () => {
    const clock = new TestClock();
    const limits = new LocalLimits({ clock });
    const limit = rate(60);
    const ticket = admitted(limits, { limit, amount: 1 });
    clock.pass(120_000);
    sweep(limits);
    ticket.settle([70]);
    expect(refused(limits, { limit, amount: 1 }).retryAfterMs).toBe(10_000);
  });
});
