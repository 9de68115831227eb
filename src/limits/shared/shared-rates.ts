/** Rates and slots of all replicas: taken from the cache ahead of use, so that a request mostly asks nothing. */

import { GatewayError } from '../../conversation/errors.ts';
import { EngineAway, type KeyValue } from '../../state/engines/engine.ts';
import { type Clock, LocalLimits } from '../engine/local-limits.ts';
import type { Admission, Charge, Law, Limits, Refusal, Standing, Ticket } from '../limits.ts';
import { TAKE } from './rate-script.ts';
import { AHEAD_MS, type CountedLaw, type Held, LawState, type Slice } from './taken-ahead.ts';

export interface SharedRatesOptions {
  readonly cache: KeyValue;
  /** Tells this process from all others. */
  readonly replica: string;
  readonly clock: Clock;
  readonly onError: 'local' | 'open' | 'closed';
  /** A replica and its slots count for so long after its last word; for tests. */
  readonly leaseMs?: number;
}

/** What a request waits for the cache at most. */
const DEADLINE_MS = 100;
const BACKGROUND_MS = 1000;
const LEASE_MS = 30_000;
/** Settlements wait for so long, for others that go with them. */
const FLUSH_MS = 200;
/** What was refused is refused again without a question for so long. */
const REFUSED_MS = 100;
const FORGOTTEN_MS = 60_000;
const REPLICAS = '{hopgate}:replicas';

interface Take {
  readonly state: LawState;
  readonly need: number;
  readonly ahead: number;
}

export class SharedRates implements Limits {
  readonly #options: SharedRatesOptions;
  readonly #states = new Map<string, LawState>();
  /** Where the cache is away: the share of this replica. */
  readonly #local: LocalLimits;
  readonly #shares = new WeakMap<Law, { readonly of: number; readonly law: Law }>();
  readonly #leaseMs: number;
  #replicas = 1;
  #flushing: ReturnType<typeof setTimeout> | undefined;
  #heartbeat: ReturnType<typeof setInterval> | undefined;
  #closed = false;

  constructor(options: SharedRatesOptions) {
    this.#options = options;
    this.#local = new LocalLimits({ clock: options.clock });
    this.#leaseMs = options.leaseMs ?? LEASE_MS;
  }

  admit(charges: readonly Charge[]): Admission | Promise<Admission> {
    this.#wake();
    const now = this.#options.clock.monotonic();
    const states = charges.map(({ law }) => this.#stateOf(law as CountedLaw));
    const refusal = this.#refusedBefore(charges, states, now);
    if (refusal !== undefined) return refusal;
    const missing: Take[] = [];
    for (let i = 0; i < charges.length; i++) {
      const state = states[i]!;
      const { amount, soft } = charges[i]!;
      state.count(amount, now);
      const need = Math.max(1, amount);
      if (soft !== true && !state.has(need, now)) {
        missing.push({ state, need, ahead: state.ahead });
      }
    }
    if (missing.length === 0) return this.#taken(charges, states, now);
    return this.#takeAndAdmit(charges, states, missing);
  }

  standing(laws: readonly Law[]): readonly Standing[] | Promise<readonly Standing[]> {
    const states = laws.map((law) => this.#stateOf(law as CountedLaw));
    const look = states.map((state) => ({ state, need: 0, ahead: 0 }));
    const read = () => states.map((state) => state.standing());
    return this.#take(look, DEADLINE_MS).then(read, read);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#flushing);
    clearInterval(this.#heartbeat);
    for (const state of this.#states.values()) {
      state.dropChunk();
      state.given += state.leased;
      state.leased = 0;
    }
    await this.#sendNews();
  }

  #wake(): void {
    if (this.#heartbeat !== undefined || this.#closed) return;
    this.#heartbeat = setInterval(() => void this.#beat(), this.#leaseMs / 3);
    this.#heartbeat.unref();
  }

  #stateOf(law: CountedLaw): LawState {
    let state = this.#states.get(law.id);
    if (state === undefined || state.law.kind !== law.kind) {
      state = new LawState(law);
      this.#states.set(law.id, state);
    } else state.law = law;
    return state;
  }

  /** What is larger than a law, or was refused a moment ago. */
  #refusedBefore(
    charges: readonly Charge[],
    states: readonly LawState[],
    now: number,
  ): Refusal | undefined {
    const waits = charges.map(({ amount, soft, law }, i) => {
      if (soft === true) return 0;
      if (Math.max(1, amount) > law.amount) return Number.POSITIVE_INFINITY;
      const { refusedAt, refusedUnits, refusedWait } = states[i]!;
      const again = now - refusedAt < REFUSED_MS && Math.max(1, amount) >= refusedUnits;
      return again && !states[i]!.has(Math.max(1, amount), now)
        ? Math.max(1, refusedWait - (now - refusedAt))
        : 0;
    });
    return refusalOf(charges, states, waits);
  }

  async #takeAndAdmit(
    charges: readonly Charge[],
    states: readonly LawState[],
    missing: readonly Take[],
    held: Map<LawState, Held> = new Map(),
  ): Promise<Admission> {
    let waits: ReadonlyMap<LawState, number>;
    try {
      waits = await this.#take(missing, DEADLINE_MS, { held });
    } catch (thrown) {
      this.#giveBack(held);
      if (!(thrown instanceof EngineAway)) throw thrown;
      return this.#without(charges);
    }
    const now = this.#options.clock.monotonic();
    const refusal = refusalOf(
      charges,
      states,
      states.map((state) => waits.get(state) ?? 0),
    );
    if (refusal !== undefined) {
      this.#giveBack(held);
      return refusal;
    }
    // Another request may have used slots that were granted to this one, or a lease that was there at first.
    const again = charges.flatMap(({ amount, soft }, i) => {
      const state = states[i]!;
      const need = Math.max(1, amount);
      return soft === true || held.has(state) || state.has(need, now)
        ? []
        : [{ state, need, ahead: 0 }];
    });
    if (again.length > 0) return this.#takeAndAdmit(charges, states, again, held);
    return this.#taken(charges, states, now, held);
  }

  #giveBack(held: ReadonlyMap<LawState, Held>): void {
    for (const [state, { slice, units }] of held) state.settleRate(slice, units, 0);
    if (held.size > 0) this.#flushSoon();
  }

  /**
   * One trip.
   * @param held gets what rates granted of the need
   * @returns milliseconds to wait, by law; of none that is granted
   */
  async #take(
    takes: readonly Take[],
    deadlineMs: number,
    {
      renews = false,
      held,
    }: { readonly renews?: boolean; readonly held?: Map<LawState, Held> } = {},
  ): Promise<ReadonlyMap<LawState, number>> {
    const { cache, replica, clock } = this.#options;
    const keys = [REPLICAS];
    const args: (string | number)[] = [replica, this.#leaseMs];
    const sent = takes.map(({ state, need, ahead }) => {
      const { law, leased, calls } = state;
      const news = state.takeNews();
      const { debt, refunds, given } = news;
      keys.push(`{hopgate}:${law.kind}:${law.id}`);
      if (law.kind === 'rate') {
        args.push('r', law.amount, law.periodMs, need, ahead, debt, refunds.length);
        for (const refund of refunds) args.push(...refund);
      } else {
        // With no call under way, this replica knows exactly what it holds: a lost answer is put right.
        args.push('s', law.amount, need, ahead, given, renews && calls === 0 ? leased + given : -1);
      }
      state.calls++;
      return news;
    });
    let answer: readonly number[];
    try {
      answer = (await cache.run(TAKE, keys, args, deadlineMs)) as readonly number[];
    } catch (thrown) {
      takes.forEach(({ state }, i) => {
        state.tellAgain(sent[i]!);
      });
      throw thrown;
    } finally {
      for (const { state } of takes) state.calls--;
    }
    const now = clock.monotonic();
    const [replicas = 1, at = 0, ...rest] = answer;
    this.#replicas = Math.max(1, replicas);
    const waits = new Map<LawState, number>();
    takes.forEach(({ state, need }, i) => {
      const [granted = 0, wait = 0, offset = 0, refunded = 0, left = 0] = rest.slice(i * 5);
      state.remaining = left;
      if (wait > 0) {
        waits.set(state, wait);
        state.refusedAt = now;
        state.refusedUnits = need;
        state.refusedWait = wait;
      }
      if (granted === 0) return;
      if (state.law.kind === 'slots') state.leased += granted;
      else {
        state.dropChunk();
        const until = now + AHEAD_MS;
        const units = held === undefined ? 0 : need;
        const chunk = { taken: granted, left: granted - units, at, offset, refunded, until };
        state.chunk = chunk;
        if (units > 0) held?.set(state, { slice: { chunk, before: 0 }, units });
      }
    });
    this.#flushSoon();
    return waits;
  }

  #taken(
    charges: readonly Charge[],
    states: readonly LawState[],
    now: number,
    held?: ReadonlyMap<LawState, Held>,
  ): Ticket {
    const slices = charges.map(({ amount }, i): Slice | undefined => {
      const state = states[i]!;
      if (state.law.kind === 'slots') {
        state.used += amount;
        return undefined;
      }
      const own = held?.get(state);
      if (own !== undefined) {
        if (amount > 0) return own.slice;
        // A charge of nothing is admitted by one unit, and uses none.
        state.settleRate(own.slice, own.units, 0);
        return undefined;
      }
      const { chunk } = state;
      if (chunk === undefined || chunk.left < amount || amount === 0) {
        // Only soft charges come here without units.
        if (amount > 0) state.debt += amount;
        return undefined;
      }
      const before = chunk.taken - chunk.left;
      chunk.left -= amount;
      return { chunk, before };
    });
    for (const state of states) this.#refill(state, now);
    return new RatesTicket(this, charges, states, slices);
  }

  /** Takes more in the background before the lease is empty. */
  #refill(state: LawState, now: number): void {
    const { law, chunk, ahead } = state;
    if (law.kind !== 'rate' || chunk === undefined || state.calls > 0) return;
    const most = Math.min(ahead, Math.floor((state.remaining * 0.1) / this.#replicas));
    if (most < 2 || chunk.left > most / 2 || now - state.refusedAt < REFUSED_MS) return;
    void this.#take([{ state, need: 0, ahead: most }], BACKGROUND_MS).catch(() => {});
  }

  /** For tickets alone. */
  settled(state: LawState, slice: Slice | undefined, reserved: number, used: number): void {
    if (state.law.kind === 'rate') {
      if (slice !== undefined) state.settleRate(slice, reserved, used);
      else if (used > reserved) state.debt += used - reserved;
    } else {
      state.used -= reserved;
      const keep = Math.floor((state.remaining * 0.1) / this.#replicas);
      const spare = Math.max(0, state.leased - state.used - keep);
      state.leased -= spare;
      state.given += spare;
      // A free slot is wanted at once, by whoever waits for it.
      if (spare > 0) this.#flushSoon(0);
    }
    this.#flushSoon();
  }

  #flushSoon(after = FLUSH_MS): void {
    if (this.#closed || (this.#flushing !== undefined && after > 0)) return;
    clearTimeout(this.#flushing);
    this.#flushing = setTimeout(() => {
      this.#flushing = undefined;
      void this.#sendNews();
    }, after);
    this.#flushing.unref();
  }

  async #sendNews(): Promise<void> {
    const now = this.#options.clock.monotonic();
    const news: Take[] = [];
    for (const state of this.#states.values()) {
      if (state.chunk !== undefined && now >= state.chunk.until) state.dropChunk();
      if (state.hasNews) news.push({ state, need: 0, ahead: 0 });
      if (news.length === 500) break;
    }
    if (news.length === 0) return;
    await this.#take(news, BACKGROUND_MS).catch(() => this.#flushSoon(BACKGROUND_MS));
  }

  async #beat(): Promise<void> {
    const now = this.#options.clock.monotonic();
    const held: Take[] = [];
    for (const [id, state] of this.#states) {
      const { law, leased } = state;
      if (law.kind === 'slots' && leased > 0) held.push({ state, need: 0, ahead: 0 });
      else if (now - state.lastUse > FORGOTTEN_MS && !state.hasNews && state.calls === 0) {
        this.#states.delete(id);
      }
    }
    await this.#take(held, BACKGROUND_MS, { renews: true }).catch(() => {});
  }

  /** The cache is away. */
  #without(charges: readonly Charge[]): Admission {
    const { onError } = this.#options;
    if (onError === 'closed') {
      throw new GatewayError('overloaded', 'The limits of this key cannot be checked now.', {
        code: 'limits_unavailable',
        retryAfter: 1,
      });
    }
    if (onError === 'open') return new OpenTicket(charges);
    const shares = charges.map((charge) => ({ ...charge, law: this.#shareOf(charge.law) }));
    return this.#local.admit(shares);
  }

  #shareOf(law: Law): Law {
    const of = this.#replicas;
    let share = this.#shares.get(law);
    if (share === undefined || share.of !== of) {
      share = { of, law: { ...law, amount: Math.max(1, Math.floor(law.amount / of)) } };
      this.#shares.set(law, share);
    }
    return share.law;
  }
}

function refusalOf(
  charges: readonly Charge[],
  states: readonly LawState[],
  waits: readonly number[],
): Refusal | undefined {
  const longest = Math.max(...waits);
  if (longest === 0) return undefined;
  const place = waits.indexOf(longest);
  const { law, amount } = charges[place]!;
  const standingOf = (i: number) =>
    states[i]!.standing(waits[i]! > 0 ? Math.max(1, charges[i]!.amount) - 1 : undefined);
  return {
    admitted: false,
    law,
    retryAfterMs: Number.isFinite(longest) ? longest : undefined,
    standing: standingOf(place),
    asked: amount,
    refusedBy: charges.filter((_, i) => waits[i]! > 0).map((charge) => charge.law),
    standings: () => charges.map((_, i) => standingOf(i)),
  };
}

class RatesTicket implements Ticket {
  readonly admitted = true;
  #rates: SharedRates | undefined;
  readonly #charges: readonly Charge[];
  readonly #states: readonly LawState[];
  readonly #slices: readonly (Slice | undefined)[];

  constructor(
    rates: SharedRates,
    charges: readonly Charge[],
    states: readonly LawState[],
    slices: readonly (Slice | undefined)[],
  ) {
    this.#rates = rates;
    this.#charges = charges;
    this.#states = states;
    this.#slices = slices;
  }

  settle(used: readonly number[]): void {
    const rates = this.#rates;
    this.#rates = undefined;
    this.#charges.forEach(({ amount }, i) => {
      rates?.settled(this.#states[i]!, this.#slices[i], amount, wholeUnits(used[i], amount));
    });
  }

  abandon(): void {
    this.settle(this.#charges.map(() => 0));
  }

  standings(count?: number): readonly Standing[] {
    return this.#states.slice(0, count).map((state) => state.standing());
  }
}

/** Nothing is limited at the moment. */
class OpenTicket implements Ticket {
  readonly admitted = true;
  readonly #charges: readonly Charge[];

  constructor(charges: readonly Charge[]) {
    this.#charges = charges;
  }

  settle(): void {}

  abandon(): void {}

  standings(count?: number): readonly Standing[] {
    return this.#charges.slice(0, count).map(({ law }) => ({
      law,
      used: 0,
      held: 0,
      remaining: law.amount,
      resetMs: undefined,
    }));
  }
}

/** A number of units; what is none counts as it was reserved. */
export function wholeUnits(used: number | undefined, reserved: number): number {
  if (used === undefined || Number.isNaN(used)) return reserved;
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.ceil(used)));
}
