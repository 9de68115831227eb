/** The limits as one process sees them: all limits of a request admit it, or nothing is taken from any of them. */

import { type Bank, OwnBank } from './bank.ts';
import { Counters, type CountersOptions } from './counters.ts';
import { Leases, Window } from './leases.ts';
import { ASK, type Need, type Source, SYSTEM_CLOCK } from './limit-state.ts';
import {
  type Admission,
  type Charge,
  type Clock,
  type Hold,
  type Limit,
  type LimitState,
  type Limits,
  type LimitUsage,
  type RateLimit,
  type Refusal,
  type SlotsLimit,
  Ticket,
  usagesOf,
} from './limits.ts';
import type { Reached } from './notices.ts';
import { RateState, SlotsState } from './rates.ts';

export interface ProcessLimitsOptions {
  readonly clock?: Clock;
  /** Tells this process from all others. */
  readonly process?: string;
  /** Where budgets are counted; left out: in this process, which forgets them with its end. */
  readonly bank?: Bank;
  /** Where rates and slots are counted; left out: in this process. */
  readonly counter?: Omit<CountersOptions, 'clock'> | undefined;
  /** A rate that this process does not know yet: its debt, and how many milliseconds ago that was. */
  readonly rate?: (id: string) => { readonly debt: number; readonly passed: number } | undefined;
  /** A mark is reached, for the first time in its period. Must not throw. */
  readonly onReached?: (reached: Reached) => void;
}

const TURN_MS = 1000;
const SWEPT_AT_ONCE = 2000;
const OWN_STATE = Symbol('state');

/** A limit with the state that it had when it was used last. */
interface Remembered {
  [OWN_STATE]?: { readonly limits: ProcessLimits; readonly state: LimitState };
}

export class ProcessLimits implements Limits {
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

  constructor(private readonly options: ProcessLimitsOptions = {}) {
    const { clock: own = SYSTEM_CLOCK, process = 'own', onReached } = options;
    const bank: Bank = options.bank ?? new OwnBank();
    const clock: Clock = {
      wall: () => own.wall() + (bank.aheadMs ?? 0),
      monotonic: () => own.monotonic(),
    };
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
    for (const { limit, amount, soft } of charges) {
      const state = this.stateOf(limit, now);
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

  usage(limits: readonly Limit[]): readonly LimitUsage[] | Promise<readonly LimitUsage[]> {
    this.wake();
    const now = this.clock.monotonic();
    const states = limits.map((limit) => this.stateOf(limit, now));
    const looks = [...Map.groupBy(states, (state) => this.#sourceOf(state))].map(([source, own]) =>
      source?.look(own),
    );
    const isHere = !looks.some((one) => one instanceof Promise);
    const read = () => usagesOf(this.clock, states);
    return isHere ? read() : Promise.all(looks).then(read);
  }

  /** The state of a limit, whose newest definition counts. */
  stateOf(limit: Limit, now: number): LimitState {
    // Many keys have more limits than a cache has room for: the object itself leads to its state.
    const { [OWN_STATE]: own } = limit as Remembered;
    if (own !== undefined && own.limits === this && own.state.limit === limit) return own.state;
    let state = this.#states.get(limit.id);
    if (state === undefined || !isSameKind(state.limit, limit)) {
      state = this.#newState(limit, now);
      this.#states.set(limit.id, state);
    } else state.limit = limit;
    if (Object.isExtensible(limit)) (limit as Remembered)[OWN_STATE] = { limits: this, state };
    return state;
  }

  #newState(limit: Limit, now: number): LimitState {
    if (limit.kind === 'window') return new Window(limit, this.#leases);
    if (this.#counters !== undefined) return this.#counters.newState(limit);
    if (limit.kind === 'slots') {
      const state = new SlotsState(limit);
      state.others = this.#others.get(limit.id) ?? 0;
      return state;
    }
    const state = new RateState(limit, now);
    const written = this.options.rate?.(limit.id);
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
    const refusedBy: Limit[] = [];
    let longest = -1;
    charges.forEach(({ limit, amount, tentative }, i) => {
      if (waits[i]! <= 0) return;
      refusedBy.push(limit);
      if (longest < 0 || waits[i]! > waits[longest]!) longest = i;
      if (tentative !== true && amount <= limit.amount) this.#leases.reportRefused(states[i]!);
    });
    const usageOf = (i: number) =>
      states[i]!.usage(now, wall, waits[i]! > 0 ? Math.max(1, charges[i]!.amount) - 1 : undefined);
    const wait = waits[longest]!;
    const { limit, amount } = charges[longest]!;
    return {
      admitted: false,
      limit,
      retryAfterMs: Number.isFinite(wait) ? wait : undefined,
      usage: usageOf(longest),
      asked: amount,
      refusedBy,
      usages: (count = charges.length) => charges.slice(0, count).map((_, i) => usageOf(i)),
    };
  }

  /**
   * Reports use to a bank that is here, so that it can be written down.
   * @param exact nothing stays drawn that is not used, as before the process ends
   */
  save(exact = false): void {
    this.#leases.save(exact);
    this.#bank.save?.();
  }

  /** The first use starts the timer: a gateway without limits has none. */
  protected wake(): void {
    if (this.#timer !== undefined || this.#closed) return;
    this.#timer = setInterval(() => this.turn(), TURN_MS).unref();
  }

  protected get isAwake(): boolean {
    return this.#timer !== undefined;
  }

  protected turn(): void {
    this.#leases.turn();
    this.sweep(SWEPT_AT_ONCE);
  }

  /** The rates that owe something, for writing them down; a share of 0.25 leaves out those below a quarter. */
  *rates(share: number): Iterable<{ readonly limit: RateLimit; readonly debt: number }> {
    const now = this.clock.monotonic();
    for (const state of this.#states.values()) {
      if (!(state instanceof RateState)) continue;
      const debt = state.debt(now);
      const { limit } = state;
      if (debt > 0 && debt >= share * limit.amount * limit.periodMs) yield { limit, debt };
    }
  }

  /** The slots that are taken. */
  *slots(): Iterable<{ readonly limit: SlotsLimit; readonly held: number }> {
    for (const state of this.#states.values()) {
      if (state instanceof SlotsState && state.held > 0)
        yield { limit: state.limit, held: state.held };
    }
  }

  /** A worker that has ended had so many. */
  giveSlots(id: string, count: number): void {
    const state = this.#states.get(id);
    if (state instanceof SlotsState) state.held = Math.max(0, state.held - count);
  }

  /** Slots that a process that hands over still holds, by the id of the limit; others are 0. */
  setOthers(slots: ReadonlyMap<string, number>): void {
    for (const [id, count] of slots) this.#others.set(id, count);
    for (const [id] of this.#others) {
      const count = slots.get(id) ?? 0;
      if (count === 0) this.#others.delete(id);
      const state = this.#states.get(id);
      if (state instanceof SlotsState) state.others = count;
    }
  }

  /** Looks at some limits, and drops those that are as new: nothing would change for them. */
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
      delete (state.limit as Remembered)[OWN_STATE];
    }
  }

  /** Limits in memory. */
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

function isSameKind(a: Limit, b: Limit): boolean {
  if (a.kind === 'rate') return b.kind === 'rate' && a.unit === b.unit && a.periodMs === b.periodMs;
  if (a.kind === 'slots') return b.kind === 'slots';
  return b.kind === 'window' && a.unit === b.unit && a.per === b.per && a.timeZone === b.timeZone;
}
