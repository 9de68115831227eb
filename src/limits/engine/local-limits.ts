/** The engine of limits: all laws of one process. It does no I/O; the clock and the store are given. */

import type {
  Admission,
  Charge,
  Law,
  OwnLimits,
  RateLaw,
  Refusal,
  SlotsLaw,
  Standing,
  Ticket,
  WindowLaw,
} from '../limits.ts';
import type { Bank, Draw } from './bank.ts';
import { type RateHold, RateState } from './rate.ts';
import { SlotsState } from './slots.ts';
import { type Period, WindowState } from './window.ts';

export interface Clock {
  /** Milliseconds since 1970 by the system clock, which can be changed. Calendar periods use it. */
  wall(): number;
  /** Milliseconds of a monotonic clock, which changes of the system time do not affect. Rates use it. */
  monotonic(): number;
}

/** So much of a window is spent; reported once for each mark and period. */
export interface Reached {
  readonly law: WindowLaw;
  /** Units: one of the law's marks, or its amount. */
  readonly mark: number;
  /** Of the period, milliseconds since 1970. */
  readonly start: number;
  readonly end: number;
  /** Units. */
  readonly spent: number;
}

export interface LocalLimitsOptions {
  readonly clock: Clock;
  /** Left out: everything is forgotten with the process. */
  readonly bank?: Bank;
  /** Must not throw. */
  readonly onReached?: (reached: Reached) => void;
  /** More is used than the file knows: {@link LocalLimits.save} should be called soon. */
  readonly onUnsaved?: () => void;
}

type State = RateState | WindowState | SlotsState;

const OWN_STATE = Symbol('state');

/** A law with the state that it had when it was used last. */
interface Remembered {
  [OWN_STATE]?: { readonly engine: LocalLimits; readonly state: State };
}

/** Of the amount of a window, what is drawn ahead at least. */
const DRAWN_SHARE = 0.01;
/** Charges like the present one that are drawn ahead at least. */
const DRAWN_CHARGES = 8;
/** An unused part is given back after this time. */
const IDLE_MS = 10_000;
/** A window that is written down leaves the memory after this time. */
const FORGOTTEN_MS = 600_000;
/** Between two looks at what others use of a window that refuses. */
const REFRESH_MS = 100;
/** Periods that one call of {@link LocalLimits.save} writes: some milliseconds. */
const SAVED_AT_ONCE = 500;
const ALL_UNITS = Number.MAX_SAFE_INTEGER;

export class LocalLimits implements OwnLimits {
  readonly #clock: Clock;
  readonly #bank: Bank | undefined;
  readonly #onReached: ((reached: Reached) => void) | undefined;
  readonly #onUnsaved: (() => void) | undefined;
  readonly #states = new Map<string, State>();
  /** Periods of which the file does not know exactly what is used. */
  readonly #unsaved = new Map<Period, WindowState>();
  /** Slots of a process that hands over. */
  readonly #others = new Map<string, number>();
  #sweeping: Iterator<[string, State]> | undefined;

  constructor({ clock, bank, onReached, onUnsaved }: LocalLimitsOptions) {
    this.#clock = clock;
    this.#bank = bank;
    this.#onReached = onReached;
    this.#onUnsaved = onUnsaved;
  }

  admit(charges: readonly Charge[]): Admission {
    const wall = this.#clock.wall();
    const now = this.#clock.monotonic();
    const states: State[] = [];
    for (const { law } of charges) states.push(this.#stateOf(law, now));
    if (this.#bank !== undefined) this.#drawFor(charges, states, wall, now);
    let refusal: Omit<Refusal, 'standings'> | undefined;
    let longest = 0;
    for (let i = 0; i < charges.length; i++) {
      const charge = charges[i]!;
      if (charge.soft === true) continue;
      const state = states[i]!;
      const wait = waitOf(state, charge.amount, wall, now);
      if (wait === 0) continue;
      const isWindow = state instanceof WindowState;
      if (isWindow && charge.tentative !== true && charge.amount <= state.law.amount) {
        this.#report(state.law, state.at(wall), state.law.amount);
      }
      const refusedBy: Law[] = [...(refusal?.refusedBy ?? []), charge.law];
      if (refusal === undefined || wait > longest) {
        longest = wait;
        refusal = refused(state, charge, wait, wall, now, refusedBy);
      } else refusal = { ...refusal, refusedBy };
    }
    if (refusal === undefined) return this.#taken(charges, states, wall, now);
    return { ...refusal, standings: () => this.standingsNow(states) };
  }

  standing(laws: readonly Law[]): readonly Standing[] {
    const wall = this.#clock.wall();
    const now = this.#clock.monotonic();
    return laws.map((law) => {
      const state = this.#stateOf(law, now);
      if (this.#bank !== undefined && state instanceof WindowState) {
        const period = state.at(wall);
        this.#refresh(state, period, now);
      }
      return standingOf(state, wall, now);
    });
  }

  /**
   * Writes down what the file does not know yet.
   * @param exact nothing stays drawn that is not used, as before the process ends
   * @returns whether something is left to write
   */
  save(exact = false): boolean {
    const bank = this.#bank;
    if (bank === undefined || this.#unsaved.size === 0) return false;
    const wall = this.#clock.wall();
    const now = this.#clock.monotonic();
    const draws: Draw[] = [];
    for (const [period, state] of this.#unsaved) {
      const idle = exact || now - period.lastUse > IDLE_MS || wall >= period.end;
      const ahead = idle ? 0 : leaseOf(state.law, 0);
      const left = period.drawn - period.used;
      if (left === ahead || (!idle && left >= ahead / 2)) {
        if (idle) this.#unsaved.delete(period);
        continue;
      }
      draws.push({ period, want: period.used + ahead, most: state.law.amount });
      if (draws.length >= SAVED_AT_ONCE) break;
    }
    if (draws.length === 0 || !bank.draw(draws)) return false;
    return draws.length >= SAVED_AT_ONCE;
  }

  /** The rates that owe something, for writing them down; a share of 0.25 leaves out those below a quarter. */
  *rates(share: number): Iterable<{ readonly law: RateLaw; readonly debt: number }> {
    const now = this.#clock.monotonic();
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
    const wall = this.#clock.wall();
    const now = this.#clock.monotonic();
    for (let i = 0; i < count; i++) {
      this.#sweeping ??= this.#states.entries();
      const next = this.#sweeping.next();
      if (next.done === true) {
        this.#sweeping = undefined;
        return;
      }
      const [id, state] = next.value;
      if (!this.#isAsNew(state, wall, now)) continue;
      this.#states.delete(id);
      delete (state.law as Remembered)[OWN_STATE];
    }
  }

  /** Laws in memory. */
  get size(): number {
    return this.#states.size;
  }

  #isAsNew(state: State, wall: number, now: number): boolean {
    if (state instanceof RateState) return state.open === 0 && state.debt(now) === 0;
    if (state instanceof SlotsState) return state.held === 0;
    return state.periods.every((period) => {
      if (period.open > 0 || this.#unsaved.has(period)) return false;
      const written = this.#bank !== undefined && now - period.lastUse > FORGOTTEN_MS;
      return written || wall >= period.end || period.others + period.used === 0;
    });
  }

  #stateOf(law: Law, now: number): State {
    // Many keys have more laws than a cache has room for: the object itself leads to its state.
    const { [OWN_STATE]: own } = law as Remembered;
    if (own !== undefined && own.engine === this && own.state.law === law) return own.state;
    let state = this.#states.get(law.id);
    if (state === undefined || !isSameKind(state.law, law)) {
      state = this.#newState(law, now);
      this.#states.set(law.id, state);
    } else state.law = law;
    if (Object.isExtensible(law)) (law as Remembered)[OWN_STATE] = { engine: this, state };
    return state;
  }

  #newState(law: Law, now: number): State {
    if (law.kind === 'window')
      return new WindowState(law, this.#bank === undefined ? ALL_UNITS : 0);
    if (law.kind === 'slots') {
      const state = new SlotsState(law);
      state.others = this.#others.get(law.id) ?? 0;
      return state;
    }
    const state = new RateState(law, now);
    const written = this.#bank?.rate(law.id);
    if (written !== undefined) state.restore(written.debt, written.passed, now);
    return state;
  }

  /** Draws for the windows that have not drawn enough, all in one transaction. */
  #drawFor(charges: readonly Charge[], states: readonly State[], wall: number, now: number): void {
    let draws: Draw[] | undefined;
    for (let i = 0; i < states.length; i++) {
      const state = states[i]!;
      if (!(state instanceof WindowState)) continue;
      const { amount, soft } = charges[i]!;
      const period = state.at(wall);
      const next = period.used + Math.max(1, amount);
      if (next <= period.drawn) continue;
      const most = soft === true ? ALL_UNITS : state.law.amount;
      // What is refused in any case draws nothing; it looks at the others now and then.
      const refused = soft !== true && state.wait(amount, wall) > 0;
      if (refused && !this.#isStale(period, now)) continue;
      const ahead = refused ? 0 : leaseOf(state.law, amount);
      const want = refused ? period.used : Math.min(next + ahead, Math.max(next, most));
      draws ??= [];
      draws.push({ period, want, most });
      period.lastUse = now;
      period.lastRefresh = now;
      this.#unsaved.set(period, state);
    }
    if (draws !== undefined) this.#bank?.draw(draws);
  }

  #isStale(period: Period, now: number): boolean {
    return now - period.lastRefresh >= REFRESH_MS;
  }

  /** Looks at what others use. */
  #refresh(state: WindowState, period: Period, now: number): void {
    if (!this.#isStale(period, now)) return;
    period.lastRefresh = now;
    const { drawn, used } = period;
    const want = Math.max(drawn, used);
    this.#bank?.draw([{ period, want, most: Math.max(want, state.law.amount) }]);
  }

  #taken(charges: readonly Charge[], states: readonly State[], wall: number, now: number): Ticket {
    const holds: Hold[] = [];
    for (let i = 0; i < charges.length; i++) {
      const state = states[i]!;
      const { amount } = charges[i]!;
      if (state instanceof RateState) {
        state.open++;
        holds.push(state.take(amount, now));
      } else if (state instanceof SlotsState) {
        state.held += amount;
        holds.push(undefined);
      } else {
        const period = state.at(wall);
        period.held += amount;
        period.open++;
        period.lastUse = now;
        if (period.used > period.drawn) this.#noteOverdrawn(period, state);
        holds.push(period);
      }
    }
    return new LocalTicket(charges, states, holds, this);
  }

  /** For tickets alone: one charge is over. */
  settled(state: State, hold: Hold, reserved: number, used: number, now: number): void {
    if (state instanceof SlotsState) {
      state.held -= reserved;
      return;
    }
    if (state instanceof RateState) {
      state.open--;
      state.settle(hold as RateHold, used, now);
      return;
    }
    const period = hold as Period;
    period.open--;
    period.held -= reserved;
    period.spent = Math.min(ALL_UNITS - period.held, period.spent + used);
    period.lastUse = now;
    if (this.#bank !== undefined) {
      if (period.used > period.drawn) this.#noteOverdrawn(period, state);
      else this.#unsaved.set(period, state);
    }
    const { law } = state;
    const spent = period.others + period.spent;
    if (spent <= period.reported) return;
    let reached = spent >= law.amount ? law.amount : 0;
    if (reached === 0) {
      for (const mark of law.marks ?? []) if (mark <= spent) reached = mark;
    }
    if (reached > 0) this.#report(law, period, reached);
  }

  /** For tickets and refusals alone. */
  standingsNow(states: readonly State[], count = states.length): readonly Standing[] {
    const wall = this.#clock.wall();
    const now = this.#clock.monotonic();
    const standings: Standing[] = [];
    for (let i = 0; i < count; i++) standings.push(standingOf(states[i]!, wall, now));
    return standings;
  }

  /** For tickets alone: the clock of rates, in milliseconds. */
  get now(): number {
    return this.#clock.monotonic();
  }

  /** More is used than was drawn: it has to be written down soon. */
  #noteOverdrawn(period: Period, state: WindowState): void {
    if (this.#bank === undefined) return;
    this.#unsaved.set(period, state);
    this.#onUnsaved?.();
  }

  /** Reports marks up to this one that are not reported yet. */
  #report(law: WindowLaw, period: Period, upTo: number): void {
    if (upTo <= period.reported || this.#onReached === undefined) return;
    const { start, end } = period;
    const spent = period.others + period.spent;
    const last = period.reported;
    period.reported = upTo;
    for (const mark of [...(law.marks ?? []), law.amount]) {
      if (mark <= last || mark > upTo) continue;
      // A reservation can use up a window before any of its marks is spent.
      if (mark === law.amount || spent >= mark) {
        this.#onReached({ law, mark, start, end, spent });
      }
    }
  }
}

/** What a ticket holds of a law: a reservation, a part of a period, or (slots) nothing more. */
type Hold = RateHold | Period | undefined;

class LocalTicket implements Ticket {
  readonly admitted = true;
  readonly #charges: readonly Charge[];
  readonly #states: readonly State[];
  readonly #holds: readonly Hold[];
  readonly #engine: LocalLimits;
  #settled = false;

  constructor(
    charges: readonly Charge[],
    states: readonly State[],
    holds: readonly Hold[],
    engine: LocalLimits,
  ) {
    this.#charges = charges;
    this.#states = states;
    this.#holds = holds;
    this.#engine = engine;
  }

  settle(used: readonly number[]): void {
    if (this.#settled) return;
    this.#settled = true;
    const engine = this.#engine;
    const { now } = engine;
    for (let i = 0; i < this.#states.length; i++) {
      const { amount } = this.#charges[i]!;
      engine.settled(this.#states[i]!, this.#holds[i], amount, whole(used[i], amount), now);
    }
  }

  abandon(): void {
    this.settle(this.#charges.map(() => 0));
  }

  standings(count?: number): readonly Standing[] {
    return this.#engine.standingsNow(this.#states, count);
  }
}

/** What is drawn ahead of use. */
const leaseOf = ({ amount }: WindowLaw, charge: number): number =>
  Math.min(amount, Math.max(Math.ceil(amount * DRAWN_SHARE), DRAWN_CHARGES * charge));

/** A number of units; what is none counts as it was reserved, so that a mistake makes nothing free. */
function whole(used: number | undefined, reserved: number): number {
  if (used === undefined || Number.isNaN(used)) return reserved;
  return Math.min(ALL_UNITS, Math.max(0, Math.ceil(used)));
}

function isSameKind(a: Law, b: Law): boolean {
  if (a.kind === 'rate') return b.kind === 'rate' && a.unit === b.unit && a.periodMs === b.periodMs;
  if (a.kind === 'slots') return b.kind === 'slots';
  return b.kind === 'window' && a.unit === b.unit && a.per === b.per && a.timeZone === b.timeZone;
}

function waitOf(state: State, units: number, wall: number, now: number): number {
  if (state instanceof RateState) return state.wait(units, now);
  return state instanceof WindowState ? state.wait(units, wall) : state.wait(units);
}

function standingOf(state: State, wall: number, now: number): Standing {
  if (state instanceof RateState) return state.standing(now);
  return state instanceof WindowState ? state.standing(wall) : state.standing();
}

const refused = (
  state: State,
  { law, amount }: Charge,
  wait: number,
  wall: number,
  now: number,
  refusedBy: readonly Law[],
): Omit<Refusal, 'standings'> => ({
  admitted: false,
  law,
  retryAfterMs: Number.isFinite(wait) ? wait : undefined,
  standing: standingOf(state, wall, now),
  asked: amount,
  refusedBy,
});
