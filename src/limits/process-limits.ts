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
  type Refusal,
  Ticket,
  usagesOf,
} from './limits.ts';
import type { LimitsStore } from './limits-store.ts';
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
  /** For what is counted here, so that it outlives the process. A gateway without limits does not open it. */
  readonly store?: LimitsStore | undefined;
  /** A mark is reached, for the first time in its period. Must not throw. */
  readonly onReached?: (reached: Reached) => void;
}

const TURN_MS = 1000;
const SWEPT_AT_ONCE = 2000;
/** Turns between two looks at rates; those below the share are written only at the end. */
const RATES_TURNS = 5;
const RATES_SHARE = 0.25;
const RATES_AT_ONCE = 500;
const CLEAN_TURNS = 60;
/** Turns for which a new process asks whether another one hands over to it. */
const HAND_OVER_TURNS = 60;
/** Milliseconds between two looks at what an old process still holds, while requests come. */
const LOOK_AT_OTHERS_MS = 50;
const RESOLVED = Symbol('resolved');

/** States of a list of charges. A key keeps its lists: with many keys, a search for each limit misses the processor's cache. */
interface Resolved {
  readonly limits: ProcessLimits;
  readonly states: readonly LimitState[];
  readonly amounts: readonly number[];
}

type ChargeList = readonly Charge[] & { [RESOLVED]?: Resolved };

/** An admission that has begun; all lists are in the order of the charges. */
interface Admitting {
  readonly charges: readonly Charge[];
  readonly amounts: readonly number[];
  readonly states: readonly LimitState[];
  readonly tentative: boolean;
  readonly now: number;
  readonly wall: number;
}

export class ProcessLimits implements Limits {
  readonly clock: Clock;
  readonly #bank: Bank;
  readonly #leases: Leases;
  readonly #counters: Counters | undefined;
  /** The store, if rates and slots are counted here. */
  readonly #store: LimitsStore | undefined;
  readonly #states = new Map<string, LimitState>();
  /** Slots of a process that hands over. */
  readonly #others = new Map<string, number>();
  #lookedAtOthers = Number.NEGATIVE_INFINITY;
  #sweeping: Iterator<[string, LimitState]> | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;
  #turns = 0;
  #handedOver = false;
  #closed = false;

  constructor(private readonly options: ProcessLimitsOptions = {}) {
    const { clock: own = SYSTEM_CLOCK, process = 'own', store, onReached } = options;
    const bank: Bank = options.bank ?? new OwnBank(store);
    const clock: Clock = {
      wall: () => own.wall() + (bank.aheadMs ?? 0),
      monotonic: () => own.monotonic(),
    };
    this.#bank = bank;
    this.clock = clock;
    this.#leases = new Leases({ bank, process, clock, onReached });
    this.#counters = options.counter && new Counters({ ...options.counter, clock });
    this.#store = options.counter === undefined ? store : undefined;
  }

  admit(
    charges: ChargeList,
    given?: readonly number[],
    tentative = false,
  ): Admission | Promise<Admission> {
    this.#wake();
    const wall = this.clock.wall();
    const now = this.clock.monotonic();
    const known = charges[RESOLVED];
    const isInForce = known?.limits === this && areInForce(known, charges);
    const { states, amounts: own } = isInForce ? known : this.#resolve(charges, now);
    const amounts = given ?? own;
    for (let i = 0; i < states.length; i++) {
      if (charges[i]!.soft !== true && states[i]!.wait(amounts[i]!, now, wall) !== 0)
        return this.#askOrRefuse({ charges, amounts, states, tentative, now, wall });
    }
    const holds = new Array<Hold>(states.length);
    for (let i = 0; i < states.length; i++) {
      const { checks, soft } = charges[i]!;
      if (checks !== true) holds[i] = states[i]!.take(amounts[i]!, now, wall, soft === true);
    }
    return new Ticket(this.clock, charges, amounts, states, holds);
  }

  #resolve(charges: ChargeList, now: number): Resolved {
    const states = charges.map(({ limit }) => this.stateOf(limit, now));
    const resolved = { limits: this, states, amounts: charges.map(({ amount }) => amount) };
    charges[RESOLVED] = resolved;
    return resolved;
  }

  /** What this process does not have is asked for, unless a limit refuses already. What it has is held meanwhile. */
  #askOrRefuse(admitting: Admitting): Admission | Promise<Admission> {
    const { charges, amounts, states, now, wall } = admitting;
    const waits = charges.map(({ soft }, i) =>
      soft === true ? 0 : states[i]!.wait(amounts[i]!, now, wall),
    );
    if (waits.some((wait) => wait > 0)) return this.#refusal(admitting, waits);
    const needs: (Need & { readonly at: number })[] = [];
    const holds = states.map((state, at): Hold => {
      const amount = amounts[at]!;
      if (waits[at] === ASK) {
        const units = Math.max(1, amount);
        needs.push({ at, state, amount, units, granted: false, hold: undefined, wait: 0 });
        return undefined;
      }
      const { checks, soft } = charges[at]!;
      return checks === true ? undefined : state.take(amount, now, wall, soft === true);
    });
    const bySource = Map.groupBy(needs, ({ state }) => this.#sourceOf(state)!);
    const asked = [...bySource].map(([source, own]) => source.ask(own));
    const decide = (failure?: PromiseRejectedResult): Admission => {
      for (const { at, hold, wait } of needs) {
        holds[at] = hold;
        waits[at] = wait;
      }
      if (failure === undefined && needs.every(({ granted }) => granted))
        return new Ticket(this.clock, charges, amounts, states, holds);
      const refused = new Set(needs.flatMap(({ at, granted }) => (granted ? [] : [at])));
      const ofTaken = <T>(all: readonly T[]) => all.filter((_, at) => !refused.has(at));
      new Ticket(
        this.clock,
        ofTaken(charges),
        ofTaken(amounts),
        ofTaken(states),
        ofTaken(holds),
      ).abandon();
      if (failure !== undefined) throw failure.reason;
      return this.#refusal(admitting, waits);
    };
    if (!asked.some((one) => one instanceof Promise)) return decide();
    return Promise.allSettled(asked).then((results) =>
      decide(results.find((one) => one.status === 'rejected')),
    );
  }

  usage(limits: readonly Limit[]): readonly LimitUsage[] | Promise<readonly LimitUsage[]> {
    this.#wake();
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
    let state = this.#states.get(limit.id);
    if (state === undefined || !isSameKind(state.limit, limit)) {
      state = this.#newState(limit, now);
      this.#states.set(limit.id, state);
    } else state.limit = limit;
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
    const written = this.#store?.rate(limit.id);
    if (written !== undefined) state.restore(written.debt, written.passed, now);
    return state;
  }

  #sourceOf(state: LimitState): Source | undefined {
    if (state instanceof Window) return this.#leases;
    return this.#counters;
  }

  #refusal({ charges, amounts, states, tentative }: Admitting, waits: readonly number[]): Refusal {
    const wall = this.clock.wall();
    const now = this.clock.monotonic();
    const refusedBy: Limit[] = [];
    let longest = -1;
    charges.forEach(({ limit }, i) => {
      if (waits[i]! <= 0) return;
      refusedBy.push(limit);
      if (longest < 0 || waits[i]! > waits[longest]!) longest = i;
      if (!tentative && amounts[i]! <= limit.amount) this.#leases.reportRefused(states[i]!);
    });
    const usageOf = (state: LimitState, i: number) =>
      state.usage(now, wall, waits[i]! > 0 ? Math.max(1, amounts[i]!) - 1 : undefined);
    const wait = waits[longest]!;
    return {
      admitted: false,
      limit: charges[longest]!.limit,
      retryAfterMs: Number.isFinite(wait) ? wait : undefined,
      usage: usageOf(states[longest]!, longest),
      asked: amounts[longest]!,
      refusedBy,
      usages: () => states.map(usageOf),
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
  #wake(): void {
    if (this.#timer !== undefined) {
      const mayHaveOthers = this.#turns <= HAND_OVER_TURNS && !this.#handedOver;
      if (mayHaveOthers) this.#followOthers(LOOK_AT_OTHERS_MS);
    } else if (!this.#closed) {
      this.#timer = setInterval(() => this.#turn(), TURN_MS).unref();
      // Streams of an old process must count from its first word on.
      this.#followOthers();
    }
  }

  #turn(): void {
    this.#turns++;
    this.#leases.turn();
    this.#bank.save?.();
    this.sweep(SWEPT_AT_ONCE);
    if (this.#handedOver) this.#saveSlots();
    else if (this.#others.size > 0 || this.#turns <= HAND_OVER_TURNS) this.#followOthers();
    if (this.#turns % RATES_TURNS === 0) this.#saveRates(this.#handedOver ? 0 : RATES_SHARE);
    if (this.#turns % CLEAN_TURNS !== 1) return;
    this.#bank.sweep?.(this.clock.wall());
    this.options.store?.clean();
  }

  /** Another process takes over: from now on it learns from the file what is still used here. */
  handOver(): void {
    if (this.#closed) return;
    this.#handedOver = true;
    this.#writeAll();
  }

  #writeAll(): void {
    if (this.#timer === undefined) return;
    this.save(true);
    this.#saveRates(0);
    this.#saveSlots();
  }

  /** @param share rates that owe less of their amount are left out */
  #saveRates(share: number): void {
    const store = this.#store;
    if (store === undefined) return;
    const now = this.clock.monotonic();
    const owing: { id: string; debt: number }[] = [];
    for (const state of this.#states.values()) {
      if (!(state instanceof RateState)) continue;
      const debt = state.debt(now);
      const { id, amount, periodMs } = state.limit;
      if (debt > 0 && debt >= share * amount * periodMs) owing.push({ id, debt });
    }
    for (let at = 0; at < owing.length; at += RATES_AT_ONCE)
      store.saveRates(owing.slice(at, at + RATES_AT_ONCE));
  }

  #saveSlots(): void {
    const held: { id: string; held: number }[] = [];
    for (const state of this.#closed ? [] : this.#states.values()) {
      if (state instanceof SlotsState && state.held > 0)
        held.push({ id: state.limit.id, held: state.held });
    }
    this.#store?.saveSlots(held);
  }

  /** A worker that has ended had so many. */
  giveSlots(id: string, count: number): void {
    const state = this.#states.get(id);
    if (state instanceof SlotsState) state.held = Math.max(0, state.held - count);
  }

  /** @param pauseMs not sooner after the last look */
  #followOthers(pauseMs = 0): void {
    if (this.#store === undefined) return;
    const now = this.clock.monotonic();
    if (now - this.#lookedAtOthers < pauseMs) return;
    this.#lookedAtOthers = now;
    const others = this.#store.slotsOfOthers();
    if (others !== undefined) this.setOthers(others);
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
      state.isDropped = true;
    }
  }

  /** Limits in memory. */
  get size(): number {
    return this.#states.size;
  }

  close(): void | Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#timer);
    const closed = [this.#leases.close(), this.#counters?.close()];
    this.#writeAll();
    this.options.store?.close();
    if (closed.some((one) => one instanceof Promise)) return Promise.all(closed).then(() => {});
  }
}

function areInForce({ states }: Resolved, charges: readonly Charge[]): boolean {
  for (let i = 0; i < states.length; i++) {
    const state = states[i]!;
    if (state.isDropped || state.limit !== charges[i]!.limit) return false;
  }
  return true;
}

function isSameKind(a: Limit, b: Limit): boolean {
  if (a.kind === 'rate') return b.kind === 'rate' && a.unit === b.unit && a.periodMs === b.periodMs;
  if (a.kind === 'slots') return b.kind === 'slots';
  return b.kind === 'window' && a.unit === b.unit && a.per === b.per && a.timeZone === b.timeZone;
}
