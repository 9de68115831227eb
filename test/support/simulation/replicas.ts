/** Many replicas with many streams on one budget, in virtual time: the code of the leases, and a model of the bank behind them. */

import type { Bank, Draw, Drawn } from '../../../src/limits/bank.ts';
import { boundsAt } from '../../../src/limits/calendar.ts';
import type { Admission, Ticket, WindowLimit } from '../../../src/limits/limits.ts';
import { ProcessLimits } from '../../../src/limits/process-limits.ts';
import { EngineAway } from '../../../src/state/engines/engine.ts';
import { BankModel } from './bank-model.ts';
import { VirtualTime } from './virtual-time.ts';

/** What one stream is reserved with, and what it costs: whole units, the cost at most what is reserved. */
export type Costs = (random: () => number) => { readonly reserved: number; readonly cost: number };

export interface Simulation {
  readonly replicas: number;
  readonly streamsOfEach: number;
  readonly costs: Costs;
  /** Of all that the streams would cost, this part is the budget. */
  readonly part: number;
  readonly per: WindowLimit['per'];
  readonly seed: number;
  /** Replicas that are killed, and started anew. */
  readonly kills: number;
  /** Of the draws, so many have no answer: before they reach the bank or after. */
  readonly lost: number;
}

export interface Outcome {
  readonly admitted: number;
  readonly refused: number;
  /** Requests that waited for the bank. */
  readonly waited: number;
  /** Virtual milliseconds of the waits, ascending. */
  readonly waits: readonly number[];
  readonly draws: number;
  readonly drawsASecond: number;
  /** In the busiest second. */
  readonly mostDraws: number;
  /** The most by which what is spent and held was above the amount, after any draw; 0 or less. */
  readonly overshoot: number;
  /** The most by which what streams really cost was above the amount of their period; 0 or less. */
  readonly trueOvershoot: number;
  /** Of the amount of the fullest period, at the end. */
  readonly spentPart: number;
  /** At the first refusal, this part of the amount was neither spent nor reserved by a stream. */
  readonly unusedAtRefusal: number | undefined;
  /** What is held, or counts as spent without having been used, when all is over. */
  readonly held: number;
  readonly uncounted: number;
}

/** Arrivals are spread over so long; what is left is for the leases of killed ones to end. */
const ARRIVALS_MS = 300_000;
const END_MS = ARRIVALS_MS + 200_000;
const STREAM_MS = 4000;
/** As measured on a loopback: one way, and the work of one draw, which are done one after the other. */
const SESSION_MS = 60_000;
const WAY_MS = 0.5;
const DRAW_MS = 0.3;

export async function simulate(options: Simulation): Promise<Outcome> {
  const { replicas, streamsOfEach, costs, kills, lost } = options;
  const time = new VirtualTime();
  const random = randomOf(options.seed);
  const bank = new BankModel(() => time.now);
  const drawsOf = new Map<number, number>();
  const streams = Array.from({ length: replicas * streamsOfEach }, () => ({
    at: random() * ARRIVALS_MS,
    by: Math.floor(random() * replicas),
    ms: -Math.log(1 - random()) * STREAM_MS,
    ...costs(random),
  }));
  const periods = options.per === 'minute' ? ARRIVALS_MS / 60_000 : 1;
  const all = streams.reduce((sum, { cost }) => sum + cost, 0);
  const amount = Math.floor((all * options.part) / periods);
  const limit: WindowLimit = {
    kind: 'window',
    id: 'budget:simulated',
    unit: 'nano_usd',
    amount,
    per: options.per,
    timeZone: 'UTC',
  };
  const later = (ms: number) => new Promise<void>((resolve) => time.after(ms, resolve));

  let free = 0;
  async function draw(asked: Draw, alive: () => boolean): Promise<Drawn> {
    if (!alive()) throw new EngineAway('database', 'killed');
    const fate = random();
    await later(WAY_MS);
    if (fate < lost / 2) {
      await later(DEADLINE_MS);
      throw new EngineAway('database', 'the draw was lost');
    }
    free = Math.max(free, time.now) + DRAW_MS;
    await later(free - time.now);
    const second = Math.floor(time.now / 1000);
    drawsOf.set(second, (drawsOf.get(second) ?? 0) + 1);
    const { session, number, settled, wanted, closes } = structuredClone(asked);
    const { grants, lapsed, replicas } = bank.draw(
      session,
      number,
      SESSION_MS,
      settled.map((one) => [one.law, one.start, one.keepUntil, one.used, one.freed]),
      wanted.map((one) => [one.law, one.start, one.keepUntil, one.most, one.need, one.ahead]),
      closes,
    );
    await later(fate < lost ? DEADLINE_MS : WAY_MS);
    if (fate < lost || !alive()) throw new EngineAway('database', 'the answer was lost');
    return {
      grants: grants.map(([spent, held, own]) => ({ spent, held, own })),
      lapsed,
      sessions: replicas,
    };
  }
  const bankOf = (alive: () => boolean): Bank => ({
    distance: 'far',
    sessionMs: SESSION_MS,
    draw: (asked) => draw(asked, alive),
    hasOthers: () => true,
    isNew: () => false,
  });

  let lives = 0;
  const start = (i: number) => {
    const id = `${i}-${++lives}`;
    const life = { alive: true };
    const windows = new ProcessLimits({
      bank: bankOf(() => life.alive),
      process: id,
      clock: time.clock,
      onReached: () => {},
    });
    return { windows, life };
  };
  const running = Array.from({ length: replicas }, (_, i) => start(i));

  let admitted = 0;
  let refused = 0;
  let unusedAtRefusal: number | undefined;
  const waits: number[] = [];
  const usedOf = new Map<number, number>();
  const reservedOf = new Map<number, number>();
  const add = (to: Map<number, number>, start: number, units: number) =>
    to.set(start, (to.get(start) ?? 0) + units);

  function admit({ by, ms, reserved, cost }: (typeof streams)[number]): void {
    const { windows, life } = running[by]!;
    const began = time.now;
    const admission = windows.admit([{ limit, amount: reserved }]);
    const decide = (decided: Admission) => {
      const { start: period } = boundsAt(time.clock.wall(), limit.per, limit.timeZone);
      if (!decided.admitted) {
        refused++;
        const taken = (usedOf.get(period) ?? 0) + (reservedOf.get(period) ?? 0);
        unusedAtRefusal ??= Math.max(0, amount - taken - reserved) / amount;
        return;
      }
      admitted++;
      add(reservedOf, period, reserved);
      time.after(ms, () => end(decided, period));
    };
    const end = (ticket: Ticket, period: number) => {
      add(reservedOf, period, -reserved);
      // A stream of a killed replica was paid for, and nobody is left who says so.
      add(usedOf, period, cost);
      if (life.alive) ticket.settle([cost]);
    };
    if (!(admission instanceof Promise)) {
      decide(admission);
      return;
    }
    admission.then(
      (decided) => {
        waits.push(time.now - began);
        if (life.alive) decide(decided);
      },
      () => {
        waits.push(time.now - began);
        refused++;
      },
    );
  }

  for (const stream of streams) time.after(stream.at, () => admit(stream));
  for (let i = 0; i < kills; i++) {
    time.after(random() * ARRIVALS_MS, () => {
      const which = Math.floor(random() * replicas);
      running[which]!.life.alive = false;
      running[which] = start(which);
    });
  }
  await time.run(END_MS);
  for (const { windows } of running) void windows.close();
  await time.run(END_MS + 10_000);

  const rows = [...bank.windows].map(([place, row]) => {
    const period = Number(place.slice(place.lastIndexOf(' ') + 1));
    return { ...row, used: usedOf.get(period) ?? 0 };
  });
  return {
    admitted,
    refused,
    waited: waits.length,
    waits: waits.sort((a, b) => a - b),
    draws: bank.draws,
    drawsASecond: bank.draws / (ARRIVALS_MS / 1000),
    mostDraws: Math.max(...drawsOf.values()),
    overshoot: bank.overshoot,
    trueOvershoot: Math.max(...rows.map(({ used }) => used - amount)),
    spentPart: Math.max(...rows.map(({ spent }) => spent / amount)),
    unusedAtRefusal,
    held: rows.reduce((sum, { held }) => sum + held, 0),
    uncounted: rows.reduce((sum, { spent, used }) => sum + spent - used, 0),
  };
}

const DEADLINE_MS = 1000;

/** Mulberry32: the same numbers for the same seed. */
export function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
