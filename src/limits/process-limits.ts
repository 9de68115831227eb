/** The limits as one process sees them: all laws of a request admit it, or nothing is taken from any of them. */

import { type Bank, OwnBank } from './bank.ts';
import { Counters, type CountersOptions } from './counters.ts';
import { Leases, Window } from './leases.ts';
import { ASK, type Need, type Source, SYSTEM_CLOCK } from './limit-state.ts';
import {
  type Admission,
  type Charge,
  type Clock,
  type Hold,
  type Law,
  type LimitState,
  type Limits,
  type RateLaw,
  type Refusal,
  type SlotsLaw,
  type Standing,
  standingsOf,
  Ticket,
} from './limits.ts';
import type { Reached } from './marks.ts';
import { RateState, SlotsState } from './rates.ts';

export interface ProcessLimitsOptions {
  readonly clock?: Clock;
  /** Tells this process from all others. */
  readonly process?: string;
  /** Where budgets are counted; left out: in this process, which forgets them with its end. */
  readonly bank?: Bank;
  /** Where rates and slots are counted; left out: in this process. */
  readonly counter?: Omit<CountersOptions, 'clock'> | undefined;
  /** How a rate stood that this process does not know yet: its debt, and how many milliseconds ago that was. */
  readonly rate?: (id: string) => { readonly debt: number; readonly passed: number } | undefined;
  /** A mark is reached, for the first time in its period. Must not throw. */
  readonly onReached?: (reached: Reached) => void;
}

const TURN_MS = 1000;
const SWEPT_AT_ONCE = 2000;
const OWN_STATE = Symbol('state');

/** A law with the state that it had when it was used last. */
interface Remembered {
  [OWN_STATE]?: { readonly limits: ProcessLimits; readonly state: LimitState };
}

export class ProcessLimits implements Limits {
  readonly #options: ProcessLimitsOptions;
  readonly clock: Clock;
  readonly #bank: Bank;
  readonly #leases: Leases;
  readonly #counters: Counters | undefined;
  readonly #states = new Map<string, LimitState>();
  /** Slots of a process that hands over. */
  readonly #others = new Map<string, number>();
  #sweeping: Iterator<[string, LimitState]> | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;
  #closed = false;

  constructor(options: ProcessLimitsOptions = {}) {
    const { clock = SYSTEM_CLOCK, bank = new OwnBank(), process = 'own', onReached } = options;
    this.#options = options;
    this.#bank = bank;
    this.clock = clock;
    this.#leases = new Leases({ bank, process, clock, onReached });
    this.#counters = options.counter && new Counters({ ...options.counter, clock });
  }

  admit(charges: readonly Charge[]): Admission | Promise<Admission> {
    this.wake();
    const wall = this.clock.wall();
    const now = this.clock.monotonic();
    const states: LimitState[] = [];
    const waits: number[] = [];
    let isRefused = false;
    let asks = false;
    for (const { law, amount, soft } of charges) {
      const state = this.stateOf(law, now);
      const wait = soft === true ? 0 : state.wait(Math.max(1, amount), now, wall);
      states.push(state);
      waits.push(wait);
      if (wait === ASK) asks = true;
      else if (wait > 0) isRefused = true;
    }
    if (isRefused) return this.#refusal(charges, states, waits);
    const holds: Hold[] = [];
    for (let i = 0; i < charges.length; i++) {
      const { amount, soft } = charges[i]!;
      holds.push(waits[i] === 0 ? states[i]!.take(amount, now, wall, soft === true) : undefined);
    }
    return asks
      ? this.#askAndAdmit(charges, states, waits, holds)
      : new Ticket(this.clock, charges, states, holds);
  }

  /** What is enough here is held already. */
  #askAndAdmit(
    charges: readonly Charge[],
    states: readonly LimitState[],
    waits: number[],
    holds: Hold[],
  ): Admission | Promise<Admission> {
    const needs = new Map<Source, Need[]>();
    const needOf = new Map<number, Need>();
    charges.forEach(({ amount }, i) => {
      if (waits[i] !== ASK) return;
      const state = states[i]!;
      const units = Math.max(1, amount);
      const need: Need = { state, amount, units, hold: undefined, wait: 0 };
      const source = this.#sourceOf(state)!;
      needOf.set(i, need);
      needs.set(source, [...(needs.get(source) ?? []), need]);
    });
    /** Of one source, all is granted or nothing. */
    const isGranted = (source: Source) => needs.get(source)!.every(({ wait }) => wait === 0);
    const giveBack = (failed: ReadonlySet<Source>) => {
      const now = this.clock.monotonic();
      charges.forEach(({ amount }, i) => {
        const source = needOf.has(i) ? this.#sourceOf(states[i]!)! : undefined;
        if (source !== undefined && (failed.has(source) || !isGranted(source))) return;
        states[i]!.settle(holds[i], 0, now, amount);
      });
    };
    const decide = (): Admission => {
      for (const [i, need] of needOf) {
        holds[i] = need.hold;
        waits[i] = need.wait;
      }
      if (waits.every((wait) => wait === 0)) return new Ticket(this.clock, charges, states, holds);
      giveBack(new Set());
      return this.#refusal(charges, states, waits);
    };
    const asked = [...needs].map(([source, own]) => source.ask(own));
    if (!asked.some((one) => one instanceof Promise)) return decide();
    return Promise.allSettled(asked).then((results) => {
      const failures = results.filter((one) => one.status === 'rejected');
      if (failures.length === 0) return decide();
      for (const [i, need] of needOf) holds[i] = need.hold;
      const sources = [...needs.keys()];
      giveBack(new Set(sources.filter((_, i) => results[i]!.status === 'rejected')));
      throw failures[0]!.reason;
    });
  }

  standing(laws: readonly Law[]): readonly Standing[] | Promise<readonly Standing[]> {
    this.wake();
    const now = this.clock.monotonic();
    const states = laws.map((law) => this.stateOf(law, now));
    const looks = [...Map.groupBy(states, (state) => this.#sourceOf(state))].map(([source, own]) =>
      source?.look(own),
    );
    const isHere = !looks.some((one) => one instanceof Promise);
    const read = () => standingsOf(this.clock, states);
    return isHere ? read() : Promise.all(looks).then(read);
  }

  /** The state of a law, whose newest definition counts. */
  stateOf(law: Law, now: number): LimitState {
    // Many keys have more laws than a cache has room for: the object itself leads to its state.
    const { [OWN_STATE]: own } = law as Remembered;
    if (own !== undefined && own.limits === this && own.state.law === law) return own.state;
    let state = this.#states.get(law.id);
    if (state === undefined || !isSameKind(state.law, law)) {
      state = this.#newState(law, now);
      this.#states.set(law.id, state);
    } else state.law = law;
    if (Object.isExtensible(law)) (law as Remembered)[OWN_STATE] = { limits: this, state };
    return state;
  }

  #newState(law: Law, now: number): LimitState {
    if (law.kind === 'window') return new Window(law, this.#leases);
    if (this.#counters !== undefined) return this.#counters.newState(law);
    if (law.kind === 'slots') {
      const state = new SlotsState(law);
      state.others = this.#others.get(law.id) ?? 0;
      return state;
    }
    const state = new RateState(law, now);
    const written = this.#options.rate?.(law.id);
    if (written !== undefined) state.restore(written.debt, written.passed, now);
    return state;
  }

  #sourceOf(state: LimitState): Source | undefined {
    if (state instanceof Window) return this.#leases;
    return this.#counters;
  }

  #refusal(
    charges: readonly Charge[],
    states: readonly LimitState[],
    waits: readonly number[],
  ): Refusal {
    const wall = this.clock.wall();
    const now = this.clock.monotonic();
    const refusedBy: Law[] = [];
    let longest = -1;
    charges.forEach(({ law, amount, tentative }, i) => {
      if (waits[i]! <= 0) return;
      refusedBy.push(law);
      if (longest < 0 || waits[i]! > waits[longest]!) longest = i;
      if (tentative !== true && amount <= law.amount) this.#leases.reportRefused(states[i]!);
    });
    const standingOf = (i: number) =>
      states[i]!.standing(
        now,
        wall,
        waits[i]! > 0 ? Math.max(1, charges[i]!.amount) - 1 : undefined,
      );
    const wait = waits[longest]!;
    const { law, amount } = charges[longest]!;
    return {
      admitted: false,
      law,
      retryAfterMs: Number.isFinite(wait) ? wait : undefined,
      standing: standingOf(longest),
      asked: amount,
      refusedBy,
      standings: () => charges.map((_, i) => standingOf(i)),
    };
  }

  /**
   * Of a bank that is here: tells it what was used, so that it can be written down.
   * @param exact nothing stays drawn that is not used, as before the process ends
   */
  save(exact = false): void {
    this.#leases.save(exact);
    this.#bank.save?.();
  }

  /** The first use starts the timer: a gateway without limits has none. */
  protected wake(): void {
    if (this.#timer !== undefined || this.#closed) return;
    this.#timer = setInterval(() => this.turn(), TURN_MS);
    this.#timer.unref();
  }

  protected get isAwake(): boolean {
    return this.#timer !== undefined;
  }

  protected turn(): void {
    this.#leases.turn();
    this.sweep(SWEPT_AT_ONCE);
  }

  /** The rates that owe something, for writing them down; a share of 0.25 leaves out those below a quarter. */
  *rates(share: number): Iterable<{ readonly law: RateLaw; readonly debt: number }> {
    const now = this.clock.monotonic();
    for (const state of this.#states.values()) {
      if (!(state instanceof RateState)) continue;
      const debt = state.debt(now);
      const { law } = state;
      if (debt > 0 && debt >= share * law.amount * law.periodMs) yield { law, debt };
    }
  }

  /** The slots that are taken. */
  *slots(): Iterable<{ readonly law: SlotsLaw; readonly held: number }> {
    for (const state of this.#states.values()) {
      if (state instanceof SlotsState && state.held > 0) yield { law: state.law, held: state.held };
    }
  }

  /** A worker that has ended had so many. */
  giveSlots(id: string, count: number): void {
    const state = this.#states.get(id);
    if (state instanceof SlotsState) state.held = Math.max(0, state.held - count);
  }

  /** What a process that hands over still holds, by the id of the law; what is left out is 0. */
  setOthers(slots: ReadonlyMap<string, number>): void {
    for (const [id, count] of slots) this.#others.set(id, count);
    for (const [id] of this.#others) {
      const count = slots.get(id) ?? 0;
      if (count === 0) this.#others.delete(id);
      const state = this.#states.get(id);
      if (state instanceof SlotsState) state.others = count;
    }
  }

  /** Looks at some laws, and drops those that are as new: nothing would change for them. */
  sweep(count: number): void {
    const wall = this.clock.wall();
    const now = this.clock.monotonic();
    for (let i = 0; i < count; i++) {
      this.#sweeping ??= this.#states.entries();
      const next = this.#sweeping.next();
      if (next.done === true) {
        this.#sweeping = undefined;
        return;
      }
      const [id, state] = next.value;
      if (!state.isAsNew(now, wall)) continue;
      this.#states.delete(id);
      delete (state.law as Remembered)[OWN_STATE];
    }
  }

  /** Laws in memory. */
  get size(): number {
    return this.#states.size;
  }

  close(): void | Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    const closed = this.#leases.close();
    if (this.#counters === undefined) return closed;
    return Promise.all([closed, this.#counters.close()]).then(() => {});
  }
}

function isSameKind(a: Law, b: Law): boolean {
  if (a.kind === 'rate') return b.kind === 'rate' && a.unit === b.unit && a.periodMs === b.periodMs;
  if (a.kind === 'slots') return b.kind === 'slots';
  return b.kind === 'window' && a.unit === b.unit && a.per === b.per && a.timeZone === b.timeZone;
}
