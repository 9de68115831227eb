/** Rates and slots that are counted elsewhere: taken ahead of use, so that a request mostly asks nothing. */

import { EngineAway } from '../state/engines/engine.ts';
import { ASK, type Need, Soon, type Source, unavailable } from './limit-state.ts';
import type { Clock, Hold, LimitState, LimitUsage, RateLimit, SlotsLimit } from './limits.ts';
import { RateState, SlotsState } from './rates.ts';

export type CountedLimit = RateLimit | SlotsLimit;

/** Units that were taken together, how many of them were used, and the answer to the take. */
export type Refund = readonly [
  units: number,
  used: number,
  at: number,
  offset: number,
  refunded: number,
  wraps: number,
];

/** A question of one process about a limit, with its news. Debts, refunds and returned units count in any case. */
export interface Take {
  readonly limit: CountedLimit;
  /** Granted for all limits of a call or for none. */
  readonly need: number;
  readonly ahead: number;
  /** Units of a rate that were used and not taken. */
  readonly debt: number;
  readonly refunds: readonly Refund[];
  /** Slots that are free again. */
  readonly given: number;
  /** Slots of this process in all, where it knows; -1: as they are counted. */
  readonly held: number;
}

export interface Taken {
  readonly granted: number;
  /** Milliseconds; 0: it is granted. */
  readonly wait: number;
  /** The debt of a rate that the take found, and the sum of refunds then. */
  readonly offset: number;
  readonly refunded: number;
  readonly wraps: number;
  /** Of all processes. */
  readonly left: number;
}

export interface Answer {
  readonly processes: number;
  /** By the clock that counts. */
  readonly at: number;
  readonly taken: readonly Taken[];
}

/** The place where they are counted. */
export interface Counter {
  /** A request waits for it so long at most. */
  readonly deadlineMs: number;
  /** Settlements wait for so long, for others that go with them. */
  readonly flushMs: number;
  /** @throws EngineAway, or its own error */
  take(takes: readonly Take[], deadlineMs: number): Promise<Answer>;
}

export interface CountersOptions {
  readonly counter: Counter;
  readonly clock: Clock;
  /** While it cannot be asked: the share of this process, no limit, or nothing. */
  readonly onError: 'local' | 'open' | 'closed';
  /** A process and its slots count for so long after its last word. */
  readonly leaseMs?: number | undefined;
}

/** Units are taken ahead for so long. */
const AHEAD_MS = 2000;
const BACKGROUND_MS = 1000;
export const LEASE_MS = 30_000;
/** A refusal is repeated without a question for so long. */
const REFUSED_MS = 100;
const FORGOTTEN_MS = 60_000;
const MAX_REFUNDS = 1000;
const MAX_TAKES = 500;

/** Units of a rate that were taken together. */
interface Chunk {
  readonly taken: number;
  left: number;
  /** As they were answered. */
  readonly at: number;
  readonly offset: number;
  readonly refunded: number;
  readonly wraps: number;
  /** Monotonic milliseconds. */
  readonly until: number;
}

/** Units of a request: a part of a chunk, or of this process's share of the limit while the cache is away. */
type Own = Slice | Share;

interface Slice {
  readonly chunk: Chunk;
  /** Units of the chunk that went before. */
  readonly before: number;
}

interface Share {
  readonly share: RateState | SlotsState | undefined;
  readonly hold: Hold;
}

export class AheadState implements LimitState {
  isDropped = false;
  chunk: Chunk | undefined;
  /** Slots that this process has, used or not. */
  leased = 0;
  used = 0;
  /** Calls under way that may change the slots. */
  calls = 0;
  /** For the next call. */
  #debt = 0;
  #given = 0;
  #refunds: Refund[] = [];
  /** Units of the refunds. */
  #refunding = 0;
  /** Of all processes, as last heard. */
  left: number;
  refusedAt = Number.NEGATIVE_INFINITY;
  refusedUnits = 0;
  refusedWait = 0;
  lastUse = 0;
  /** Units used in this span and in the one before, for what is taken ahead. */
  #spanStart = 0;
  #spanUnits = 0;
  #lastSpanUnits = 0;
  #share: RateState | SlotsState | undefined;

  constructor(
    public limit: CountedLimit,
    private readonly counters: Counters,
  ) {
    this.left = limit.amount;
  }

  wait(asked: number, now: number): number {
    const units = Math.max(1, asked);
    if (units > this.limit.amount) return Number.POSITIVE_INFINITY;
    if (this.#has(units, now)) return 0;
    const passed = now - this.refusedAt;
    if (passed < REFUSED_MS && units >= this.refusedUnits)
      return Math.max(1, this.refusedWait - passed);
    return ASK;
  }

  #has(units: number, now: number): boolean {
    if (this.limit.kind === 'slots') return this.leased - this.used >= units;
    const { chunk } = this;
    return chunk !== undefined && chunk.left >= units && now < chunk.until;
  }

  take(units: number, now: number): Slice | undefined {
    this.count(units, now);
    if (this.limit.kind === 'slots') {
      this.used += units;
      return undefined;
    }
    const { chunk } = this;
    if (units === 0) return undefined;
    if (chunk === undefined || chunk.left < units) {
      // Only soft charges come here without units.
      this.#debt += units;
      return undefined;
    }
    const before = chunk.taken - chunk.left;
    chunk.left -= units;
    this.counters.refill(this, now);
    return { chunk, before };
  }

  /** Units granted to one request, which others leave alone. */
  grant(chunk: Chunk, units: number, amount: number): Slice | undefined {
    const own = { chunk, before: 0 };
    if (amount > 0) return own;
    // A charge of nothing is admitted by one unit, and uses none.
    this.#giveBack(own, units, 0);
    return undefined;
  }

  settle(hold: Own | undefined, used: number, now: number, reserved: number): void {
    if (hold !== undefined && 'share' in hold) {
      hold.share?.settle(hold.hold as never, used, now, reserved);
      return;
    }
    if (this.limit.kind === 'slots') {
      this.used -= reserved;
      this.counters.freed(this);
      return;
    }
    if (used > reserved) this.#debt += used - reserved;
    else if (hold !== undefined && used < reserved) this.#giveBack(hold, reserved, used);
    this.counters.flushSoon();
  }

  #giveBack({ chunk, before }: Slice, units: number, used: number): void {
    const { at, offset, refunded, wraps } = chunk;
    const { periodMs } = this.limit as RateLimit;
    this.#addRefund([units, used, at, offset + before * periodMs, refunded, wraps]);
  }

  #addRefund(refund: Refund): void {
    this.#refunds.push(refund);
    this.#refunding += refund[0] - refund[1];
  }

  /** Gives the rest of the chunk back. */
  dropChunk(): void {
    const { chunk } = this;
    this.chunk = undefined;
    if (chunk === undefined || chunk.left === 0) return;
    this.#giveBack({ chunk, before: chunk.taken - chunk.left }, chunk.left, 0);
    chunk.left = 0;
  }

  /** Slots that are not needed here. */
  give(slots: number): void {
    this.leased -= slots;
    this.#given += slots;
  }

  get hasNews(): boolean {
    return this.#debt > 0 || this.#refunds.length > 0 || this.#given > 0;
  }

  /** @param renews says how many slots it has: with no call under way it knows, and a lost answer is put right */
  takeWithNews(need: number, ahead: number, renews: boolean): Take {
    const held = renews && this.calls === 0 ? this.leased + this.#given : -1;
    const [debt, refunds, given] = [this.#debt, this.#refunds, this.#given];
    this.#debt = 0;
    this.#given = 0;
    this.#refunds = [];
    this.#refunding = 0;
    this.calls++;
    return { limit: this.limit, need, ahead, debt, refunds, given, held };
  }

  /** They could not be told. If the answer alone was lost, a debt counts twice: never too little. */
  tellAgain({ debt, refunds, given }: Take): void {
    this.#debt += debt;
    this.#given += given;
    if (refunds.length < MAX_REFUNDS) for (const refund of refunds) this.#addRefund(refund);
  }

  count(units: number, now: number): void {
    this.lastUse = now;
    const passed = now - this.#spanStart;
    if (passed >= AHEAD_MS) {
      this.#lastSpanUnits = passed >= 2 * AHEAD_MS ? 0 : this.#spanUnits;
      this.#spanUnits = 0;
      this.#spanStart = now;
    }
    this.#spanUnits += units;
  }

  aheadAt(now: number): number {
    this.count(0, now);
    return this.ahead;
  }

  /** Units that are worth taking beyond the present need. */
  get ahead(): number {
    return Math.max(this.#lastSpanUnits, this.#spanUnits);
  }

  remaining(): number {
    const { limit } = this;
    const own =
      limit.kind === 'slots'
        ? this.leased - this.used
        : (this.chunk?.left ?? 0) + this.#refunding - this.#debt;
    return Math.max(0, Math.min(limit.amount, this.left + own));
  }

  /** @param most other answers may have arrived since the request was refused */
  usage(_now: number, _wall: number, most = Number.POSITIVE_INFINITY): LimitUsage {
    const { limit } = this;
    const remaining = Math.max(0, Math.min(this.remaining(), most));
    const used = limit.amount - remaining;
    return limit.kind === 'slots'
      ? { limit, used, held: used, remaining, resetMs: undefined }
      : {
          limit,
          used,
          held: 0,
          remaining,
          resetMs: Math.ceil((used * limit.periodMs) / limit.amount),
        };
  }

  isAsNew(now: number): boolean {
    const isUsed = this.calls > 0 || this.used > 0 || this.leased > 0 || this.hasNews;
    return !isUsed && this.chunk === undefined && now - this.lastUse > FORGOTTEN_MS;
  }

  /** The limit of this process alone, of so many. */
  shareOf(processes: number, now: number): RateState | SlotsState {
    const amount = Math.max(1, Math.floor(this.limit.amount / processes));
    const limit = { ...this.limit, amount };
    if (limit.kind === 'rate') this.#share ??= new RateState(limit, now);
    else this.#share ??= new SlotsState(limit);
    this.#share.limit = limit as never;
    return this.#share;
  }
}

/** What one call asks of a limit; without units, it only tells. */
interface Asked {
  readonly state: AheadState;
  readonly units?: number;
  readonly ahead?: number;
  readonly need?: Need;
}

export class Counters implements Source {
  readonly #states = new Set<AheadState>();
  readonly #telling = new Soon(() => void this.#tell());
  #processes = 1;
  #heartbeat: ReturnType<typeof setInterval> | undefined;
  #closed = false;

  constructor(private readonly options: CountersOptions) {}

  newState(limit: CountedLimit): AheadState {
    const state = new AheadState(limit, this);
    this.#states.add(state);
    if (this.#heartbeat === undefined && !this.#closed) {
      this.#heartbeat = setInterval(() => void this.#beat(), this.#leaseMs / 3).unref();
    }
    return state;
  }

  get #leaseMs(): number {
    return this.options.leaseMs ?? LEASE_MS;
  }

  async ask(needs: readonly Need[]): Promise<void> {
    const { counter, clock } = this.options;
    const now = clock.monotonic();
    const takes = needs.map((need) => {
      const state = need.state as AheadState;
      // A first request takes nothing beyond its own need: that of others would show less than there is. So does one
      // beside another: many at once would take more ahead than they leave for each other.
      const ahead = state.calls > 0 ? 0 : state.aheadAt(now);
      state.count(need.amount, now);
      return { state, units: need.units, ahead, need };
    });
    try {
      await this.#take(takes, counter.deadlineMs);
    } catch (thrown) {
      if (!(thrown instanceof EngineAway)) throw thrown;
      this.#without(needs);
    }
  }

  async look(states: readonly LimitState[]): Promise<void> {
    const asked = states.map((state) => ({ state: state as AheadState }));
    try {
      await this.#take(asked, this.options.counter.deadlineMs);
    } catch (thrown) {
      if (!(thrown instanceof EngineAway)) throw thrown;
    }
  }

  /** One trip. What rates and slots grant of a need is the request's at once. */
  async #take(asked: readonly Asked[], deadlineMs: number, renews = false): Promise<void> {
    const { counter, clock } = this.options;
    const sent = asked.map(({ state, units = 0, ahead = 0 }) =>
      state.takeWithNews(units, ahead, renews),
    );
    let answer: Answer;
    try {
      answer = await counter.take(sent, deadlineMs);
    } catch (thrown) {
      asked.forEach(({ state }, i) => {
        state.tellAgain(sent[i]!);
      });
      throw thrown;
    } finally {
      for (const { state } of asked) state.calls--;
    }
    const now = clock.monotonic();
    this.#processes = Math.max(1, answer.processes);
    asked.forEach(({ state, units = 0, need }, i) => {
      const { granted, wait, offset, refunded, wraps, left } = answer.taken[i]!;
      state.left = left;
      if (need !== undefined) need.wait = wait;
      if (wait > 0) {
        state.refusedAt = now;
        state.refusedUnits = units;
        state.refusedWait = wait;
      }
      if (granted === 0) return;
      if (need !== undefined) need.granted = true;
      if (state.limit.kind === 'slots') {
        state.leased += granted;
        if (need !== undefined) state.used += need.amount;
        return;
      }
      const mine = need === undefined ? 0 : units;
      const more = { at: answer.at, offset, refunded, wraps, until: now + AHEAD_MS };
      const chunk = { taken: granted, left: granted - mine, ...more };
      if (chunk.left > 0) {
        state.dropChunk();
        state.chunk = chunk;
      }
      if (need !== undefined) need.hold = state.grant(chunk, units, need.amount);
    });
    this.flushSoon();
  }

  /** Takes more in the background before the units taken ahead are used up. */
  refill(state: AheadState, now: number): void {
    const { chunk, ahead, left, calls, refusedAt } = state;
    if (chunk === undefined || calls > 0) return;
    const most = Math.min(ahead, Math.floor((left * 0.1) / this.#processes));
    if (most < 2 || chunk.left > most / 2 || now - refusedAt < REFUSED_MS) return;
    void this.#take([{ state, ahead: most }], BACKGROUND_MS).catch(() => {});
  }

  /** Slots are not used any more. */
  freed(state: AheadState): void {
    const keep = Math.floor((state.left * 0.1) / this.#processes);
    const spare = Math.max(0, state.leased - state.used - keep);
    state.give(spare);
    // A free slot goes back at once: another process may wait for it.
    this.flushSoon(spare > 0 ? 0 : undefined);
  }

  flushSoon(pauseMs = this.options.counter.flushMs): void {
    this.#telling.in(pauseMs);
  }

  async #tell(): Promise<void> {
    const now = this.options.clock.monotonic();
    const asked: Asked[] = [];
    for (const state of this.#states) {
      if (state.chunk !== undefined && now >= state.chunk.until) state.dropChunk();
      if (state.hasNews) asked.push({ state });
      if (asked.length === MAX_TAKES) break;
    }
    if (asked.length === 0) return;
    await this.#take(asked, BACKGROUND_MS).catch(() => this.flushSoon(BACKGROUND_MS));
  }

  async #beat(): Promise<void> {
    const now = this.options.clock.monotonic();
    const asked: Asked[] = [];
    for (const state of this.#states) {
      if (state.leased > 0) asked.push({ state });
      else if (state.isAsNew(now)) this.#states.delete(state);
    }
    await this.#take(asked, BACKGROUND_MS, true).catch(() => {});
  }

  /** Nobody can be asked. */
  #without(needs: readonly Need[]): void {
    const { onError, clock } = this.options;
    if (onError === 'closed') throw unavailable('limits');
    const now = clock.monotonic();
    const shares = needs.map(({ state }) =>
      onError === 'open' ? undefined : (state as AheadState).shareOf(this.#processes, now),
    );
    needs.forEach((need, i) => {
      need.wait = shares[i]?.wait(need.units, now) ?? 0;
    });
    if (needs.some(({ wait }) => wait > 0)) return;
    needs.forEach((need, i) => {
      need.granted = true;
      need.hold = { share: shares[i], hold: shares[i]?.take(need.amount, now) };
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#telling.close();
    clearInterval(this.#heartbeat);
    for (const state of this.#states) {
      state.dropChunk();
      state.give(state.leased);
    }
    await this.#tell();
  }
}
