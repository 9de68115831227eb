/** The limits of the first process: the engine with its file, its timer and its warnings. */

import { atTickEnd, type TickTask } from '../lib/loop/tick-end.ts';
import { type Clock, LocalLimits, type Reached } from './engine/local-limits.ts';
import type { Admission, Charge, Law, OwnLimits, Standing } from './limits.ts';
import { LimitsStore } from './limits-store.ts';

export interface KeptLimitsOptions {
  /** `state/limits.db` of the home folder. */
  readonly path: string;
  readonly onProblem: (message: string) => void;
  /** A mark is reached, for the first time in its period. */
  readonly onReached: (reached: Reached) => void;
  readonly clock?: Clock;
}

const TURN_MS = 1000;
/** Turns between two looks at rates; those below the share are written only at the end. */
const RATES_TURNS = 5;
const RATES_SHARE = 0.25;
const CLEAN_TURNS = 60;
/** Turns for which a new process asks whether another one hands over to it. */
const HAND_OVER_TURNS = 60;
/** Milliseconds between two looks at what an old process still holds, while requests come. */
const LOOK_AT_OTHERS_MS = 50;
const SWEPT_AT_ONCE = 2000;
const RATES_AT_ONCE = 500;

export const SYSTEM_CLOCK: Clock = {
  wall: () => Date.now(),
  monotonic: () => Math.floor(performance.now()),
};

export class KeptLimits implements OwnLimits, TickTask {
  readonly #store: LimitsStore;
  readonly #engine: LocalLimits;
  #timer: ReturnType<typeof setInterval> | undefined;
  #turns = 0;
  #saving = false;
  #handedOver = false;
  #closed = false;
  #hasOthers = false;
  readonly #clock: Clock;
  #lookedAtOthers = Number.NEGATIVE_INFINITY;

  constructor({ path, onProblem, onReached, clock = SYSTEM_CLOCK }: KeptLimitsOptions) {
    this.#clock = clock;
    this.#store = new LimitsStore({ path, clock, onProblem });
    this.#engine = new LocalLimits({
      clock,
      bank: this.#store,
      onReached: (reached) => {
        if (this.#store.isNew(reached)) onReached(reached);
      },
      onUnsaved: () => this.#saveSoon(),
    });
  }

  admit(charges: readonly Charge[]): Admission {
    this.#wake();
    return this.#engine.admit(charges);
  }

  standing(laws: readonly Law[]): readonly Standing[] {
    this.#wake();
    return this.#engine.standing(laws);
  }

  /** Another process takes over: from now on it learns from the file what is still used here. */
  handOver(): void {
    if (this.#closed) return;
    this.#handedOver = true;
    if (this.#timer !== undefined) this.#writeAll();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#timer);
    if (this.#timer !== undefined) this.#writeAll();
    this.#store.close();
  }

  onTickEnd(): void {
    this.#saving = false;
    this.#save(false);
  }

  onExit(): void {
    this.#engine.save();
  }

  /** More was used than was reserved, or nothing could be drawn. */
  #saveSoon(): void {
    if (this.#saving) return;
    this.#saving = true;
    atTickEnd(this);
  }

  /** The first use starts the timer: a gateway without limits has none, and opens no file. */
  #wake(): void {
    if (this.#closed) return;
    if (this.#timer !== undefined) {
      // A new process: streams of the old one must count from its first word on.
      if (this.#turns <= HAND_OVER_TURNS && !this.#handedOver) this.#lookAtOthers();
      return;
    }
    this.#timer = setInterval(() => this.#turn(), TURN_MS);
    this.#timer.unref();
    this.#followOthers();
  }

  #turn(): void {
    this.#turns++;
    this.#save(this.#handedOver);
    this.#engine.sweep(SWEPT_AT_ONCE);
    if (this.#handedOver) this.#saveSlots();
    else if (this.#hasOthers || this.#turns <= HAND_OVER_TURNS) this.#followOthers();
    if (this.#turns % RATES_TURNS === 0) this.#saveRates(this.#handedOver ? 0 : RATES_SHARE);
    if (this.#turns % CLEAN_TURNS === 1) this.#store.clean();
  }

  /** In slices, so that requests come in between. */
  #save(exact: boolean): void {
    if (this.#closed) return;
    if (this.#engine.save(exact)) setImmediate(() => this.#save(exact));
  }

  #writeAll(): void {
    while (this.#engine.save(true));
    this.#saveRates(0);
    this.#saveSlots();
  }

  #saveRates(share: number): void {
    let slice: { id: string; debt: number }[] = [];
    for (const { law, debt } of this.#engine.rates(share)) {
      slice.push({ id: law.id, debt });
      if (slice.length < RATES_AT_ONCE) continue;
      this.#store.saveRates(slice);
      slice = [];
    }
    this.#store.saveRates(slice);
  }

  #saveSlots(): void {
    const held = [...this.#engine.slots()].map(({ law, held }) => ({ id: law.id, held }));
    this.#store.saveSlots(this.#closed ? [] : held);
  }

  #lookAtOthers(): void {
    if (this.#clock.monotonic() - this.#lookedAtOthers >= LOOK_AT_OTHERS_MS) this.#followOthers();
  }

  #followOthers(): void {
    this.#lookedAtOthers = this.#clock.monotonic();
    const others = this.#store.slotsOfOthers();
    if (others === undefined || (others.size === 0 && !this.#hasOthers)) return;
    this.#hasOthers = others.size > 0;
    this.#engine.setOthers(others);
  }
}
