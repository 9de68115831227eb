/** The limits of the first process, with their file: what it counts outlives it, and it hands over to its successor. */

import { OwnBank } from './bank.ts';
import { SYSTEM_CLOCK } from './limit-state.ts';
import { LimitsStore } from './limits-store.ts';
import { ProcessLimits, type ProcessLimitsOptions } from './process-limits.ts';

export interface KeptLimitsOptions extends ProcessLimitsOptions {
  /** `state/limits.db` of the home folder: for what has no place elsewhere. */
  readonly path: string;
  readonly onProblem: (message: string) => void;
}

/** Turns between two looks at rates; those below the share are written only at the end. */
const RATES_TURNS = 5;
const RATES_SHARE = 0.25;
const CLEAN_TURNS = 60;
/** Turns for which a new process asks whether another one hands over to it. */
const HAND_OVER_TURNS = 60;
/** Milliseconds between two looks at what an old process still holds, while requests come. */
const LOOK_AT_OTHERS_MS = 50;
const RATES_AT_ONCE = 500;

export class KeptLimits extends ProcessLimits {
  readonly #store: LimitsStore;
  /** For budgets that are counted in the file. */
  readonly bank: OwnBank;
  readonly #keepsBudgets: boolean;
  readonly #keepsRates: boolean;
  #turns = 0;
  #isUsed = false;
  #handedOver = false;
  #closed = false;
  #hasOthers = false;
  #lookedAtOthers = Number.NEGATIVE_INFINITY;

  constructor({ path, onProblem, clock = SYSTEM_CLOCK, ...options }: KeptLimitsOptions) {
    const store = new LimitsStore({ path, clock, onProblem });
    const bank = new OwnBank(store);
    super({ bank, rate: (id) => store.rate(id), ...options, clock });
    this.#store = store;
    this.bank = bank;
    this.#keepsBudgets = options.bank === undefined;
    this.#keepsRates = options.counter === undefined;
  }

  /** A gateway without limits opens no file. */
  protected override wake(): void {
    super.wake();
    if (this.#closed || !this.#keepsRates) return;
    // A new process: streams of the old one must count from its first word on.
    if (!this.#isUsed) this.#followOthers();
    else if (this.#turns <= HAND_OVER_TURNS && !this.#handedOver) this.#lookAtOthers();
    this.#isUsed = true;
  }

  protected override turn(): void {
    super.turn();
    this.#turns++;
    this.bank.save();
    if (this.#keepsRates) {
      if (this.#handedOver) this.#saveSlots();
      else if (this.#hasOthers || this.#turns <= HAND_OVER_TURNS) this.#followOthers();
      if (this.#turns % RATES_TURNS === 0) this.#saveRates(this.#handedOver ? 0 : RATES_SHARE);
    }
    if (this.#turns % CLEAN_TURNS !== 1) return;
    this.bank.sweep(this.clock.wall());
    this.#store.clean();
  }

  /** Another process takes over: from now on it learns from the file what is still used here. */
  handOver(): void {
    if (this.#closed) return;
    this.#handedOver = true;
    if (this.isAwake) this.#writeAll();
  }

  override close(): void | Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const closed = super.close();
    if (this.isAwake) this.#writeAll();
    this.#store.close();
    return closed;
  }

  #writeAll(): void {
    if (this.#keepsBudgets) this.save(true);
    if (!this.#keepsRates) return;
    this.#saveRates(0);
    this.#saveSlots();
  }

  #saveRates(share: number): void {
    let slice: { id: string; debt: number }[] = [];
    for (const { limit, debt } of this.rates(share)) {
      slice.push({ id: limit.id, debt });
      if (slice.length < RATES_AT_ONCE) continue;
      this.#store.saveRates(slice);
      slice = [];
    }
    this.#store.saveRates(slice);
  }

  #saveSlots(): void {
    const held = [...this.slots()].map(({ limit, held }) => ({ id: limit.id, held }));
    this.#store.saveSlots(this.#closed ? [] : held);
  }

  #lookAtOthers(): void {
    if (this.clock.monotonic() - this.#lookedAtOthers >= LOOK_AT_OTHERS_MS) this.#followOthers();
  }

  #followOthers(): void {
    this.#lookedAtOthers = this.clock.monotonic();
    const others = this.#store.slotsOfOthers();
    if (others === undefined || (others.size === 0 && !this.#hasOthers)) return;
    this.#hasOthers = others.size > 0;
    this.setOthers(others);
  }
}
