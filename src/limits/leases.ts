/** Budgets of a process: units are drawn from the bank ahead of use, admitted from memory, settled, and given back. */

import { atTickEnd, type TickTask } from '../lib/loop/tick-end.ts';
import { EngineAway } from '../state/engines/engine.ts';
import type { Bank, Drawn, Settlement } from './bank.ts';
import { boundsAt } from './calendar.ts';
import { Lease, type SentDraw, Session } from './lease.ts';
import { ASK, after, type Need, Soon, type Source, unavailable } from './limit-state.ts';
import {
  type Clock,
  type LimitState,
  type LimitUsage,
  MAX_UNITS,
  type WindowLimit,
} from './limits.ts';
import { Marks, type Reached } from './notices.ts';

/** A draw takes so many charges like the present one ahead, and at least this share of the window. */
const CHARGES_AHEAD = 8;
const SHARE_AHEAD = 0.01;
/** Shares of a lease's time: it is not used in the last twelfth, and renewed after the first third. */
const MARGIN = 1 / 12;
const RENEW = 1 / 3;
const RETRY_MS = 500;
const FLUSH_MS = 200;
/** A lease that is not used is given back after this time. */
const IDLE_MS = 10_000;
/** A window that the bank knows leaves the memory after this time. */
const FORGOTTEN_MS = 600_000;
/** A window whose bank has no more is not asked again for so long. */
const HEARD_MS = 100;
/** Leases of one draw: some milliseconds. */
const MAX_LEASES = 500;

/** The state of a budget: one lease for each period, also when the clock is set back. */
export class Window implements LimitState {
  isDropped = false;
  #current: Lease | undefined;
  #other: Lease | undefined;

  constructor(
    public limit: WindowLimit,
    private readonly leases: Leases,
  ) {}

  at(wall: number): Lease {
    const { session } = this.leases;
    let lease = this.#current;
    if (lease?.isOf(session, wall) !== true) {
      const other = this.#other;
      this.#other = lease;
      lease = other?.isOf(session, wall) === true ? other : this.leases.leaseOf(this.limit, wall);
      this.#current = lease;
    }
    lease.limit = this.limit;
    return lease;
  }

  wait(units: number, now: number, wall: number): number {
    const { amount, per } = this.limit;
    if (Math.max(1, units) > amount) return Number.POSITIVE_INFINITY;
    const lease = this.at(wall);
    if (lease.has(Math.max(1, units) + lease.promised)) return 0;
    const isKnown = now - lease.heardAt < HEARD_MS && this.leases.isAloneOrFar;
    if (lease.remaining >= Math.max(1, units) || !isKnown) return ASK;
    return per === 'total' ? Number.POSITIVE_INFINITY : lease.end - wall;
  }

  take(units: number, now: number, wall: number, soft: boolean): Lease {
    const lease = this.at(wall);
    this.leases.take(lease, units, now, soft);
    return lease;
  }

  settle(lease: Lease, used: number, now: number, reserved: number): void {
    this.leases.settle(lease, used, now, reserved);
  }

  isSamePeriod(lease: Lease, wall: number): boolean {
    return wall >= lease.start && wall < lease.end;
  }

  remaining(_now: number, wall: number): number {
    return Math.max(0, this.at(wall).remaining);
  }

  usage(_now: number, wall: number): LimitUsage {
    return this.at(wall).usage(wall);
  }

  isAsNew(now: number, wall: number): boolean {
    const known = [this.#current, this.#other].filter((one) => one !== undefined);
    return known.every((lease) => this.leases.isOver(lease, now, wall));
  }
}

interface Times {
  readonly wall: number;
  /** Monotonic. */
  readonly now: number;
}

/** A request that waits for a draw. */
interface Waiting {
  readonly needs: readonly Need[];
  resolve(): void;
  reject(error: unknown): void;
}

export interface LeasesOptions {
  readonly bank: Bank;
  /** Tells this process from all others, those before it too. */
  readonly process: string;
  readonly clock: Clock;
  /** A mark is reached, for the first time in its period over all processes. Must not throw. */
  readonly onReached?: ((reached: Reached) => void) | undefined;
}

export class Leases implements Source, TickTask {
  readonly #bank: Bank;
  readonly #marks: Marks;
  readonly #isHere: boolean;
  readonly #isFar: boolean;
  #session: Session | undefined;
  /** Sessions whose time is over, with tickets that are not settled. */
  readonly #former = new Set<Session>();
  #sessions = 0;
  /** Processes that draw from the bank, as last heard. */
  #living = 1;
  #waiting: Waiting[] = [];
  #running = false;
  readonly #soon = new Soon(() => this.#run());
  readonly #noted = new Set<Lease>();
  /** Another process takes over: nothing stays drawn that is not used. */
  #exact = false;
  #closed = false;

  constructor(private readonly options: LeasesOptions) {
    this.#bank = options.bank;
    this.#marks = new Marks(options.bank, options.onReached);
    this.#isHere = options.bank.distance === 'here';
    this.#isFar = options.bank.distance === 'far';
  }

  get session(): Session {
    const { clock, process } = this.options;
    const session = this.#session;
    if (session !== undefined && (this.#isHere || session.isValid(clock))) return session;
    if (session !== undefined) {
      this.#former.add(session);
      session.over = true;
    }
    this.#session = new Session(`${process}-${++this.#sessions}`, clock, this.#validMs);
    return this.#session;
  }

  #times(): Times {
    const { clock } = this.options;
    return { wall: clock.wall(), now: clock.monotonic() };
  }

  get #validMs(): number {
    return this.#bank.sessionMs * (1 - MARGIN);
  }

  /** For windows alone. */
  leaseOf(limit: WindowLimit, wall: number): Lease {
    const { session } = this;
    const { start, end } = boundsAt(wall, limit.per, limit.timeZone);
    const key = `${start} ${limit.id}`;
    let lease = session.leases.get(key);
    if (lease === undefined) {
      lease = new Lease(limit, session, start, end);
      session.leases.set(key, lease);
    }
    lease.end = end;
    return lease;
  }

  /** A bank that has no more need not be asked each time: others give back slowly, or there are none. */
  get isAloneOrFar(): boolean {
    return this.#isFar || (this.#isHere && !this.#bank.hasOthers(this.session.id));
  }

  take(lease: Lease, units: number, now: number, isSoft: boolean): void {
    lease.reserved += units;
    lease.open++;
    lease.isSoft = isSoft;
    this.#used(lease, units, now);
    if (this.#isHere) {
      if (lease.free < 0) this.#tellAtTickEnd(lease);
    } else if (lease.free < this.#target(lease) / 2) this.#run();
  }

  #used(lease: Lease, units: number, now: number): void {
    lease.lastUse = now;
    if (units > 0) lease.charge = units;
    const ahead = Math.max(CHARGES_AHEAD * units, Math.ceil(lease.limit.amount * SHARE_AHEAD));
    lease.ahead = Math.max(lease.ahead * 0.9, ahead);
    lease.session.active.add(lease);
  }

  settle(lease: Lease, used: number, now: number, reserved: number): void {
    lease.open--;
    lease.reserved -= reserved;
    lease.drawn -= used;
    lease.used = Math.min(MAX_UNITS, lease.used + used);
    // Units that come back are written down at once.
    if (used < 0) lease.giveBack(0);
    lease.lastUse = now;
    lease.session.active.add(lease);
    this.#marks.spent(lease);
    if (!this.#isHere && lease.session !== this.#session) {
      void this.#draw(lease.session, new Map());
      return;
    }
    // Near the limit, the other processes of this machine wait for what is free.
    const isWanted =
      !this.#isFar &&
      this.#bank.hasOthers(lease.session.id) &&
      lease.free > 2 * this.#target(lease);
    if (!this.#isHere) this.#soon.in(isWanted ? 0 : FLUSH_MS);
    else if (isWanted || lease.free < 0 || used < 0) this.#tellAtTickEnd(lease);
  }

  ask(needs: readonly Need[]): void | Promise<void> {
    if (!this.#isHere) {
      if (this.#closed) return Promise.reject(unavailable('budgets'));
      return new Promise((resolve, reject) => {
        this.#waiting.push({ needs, resolve, reject });
        this.#run();
      });
    }
    const times = this.#times();
    void this.#drawFor(this.session, [needs], times);
    this.#decide(needs, times.wall);
  }

  look(states: readonly LimitState[]): void | Promise<void> {
    const { wall, now } = this.#times();
    const { session } = this;
    const leases = (states as readonly Window[]).map((window) => window.at(wall));
    // Other sessions of a bank that is here are seen at once.
    const isAlone = this.#isHere && !this.#bank.hasOthers(session.id);
    const asked = leases.filter(({ heardAt }) => !isAlone || now - heardAt >= HEARD_MS);
    if (asked.length === 0) return;
    for (const lease of asked) lease.lastUse = now;
    return after(this.#draw(session, new Map(asked.map((lease) => [lease, 0]))), () => {});
  }

  /** Each second: gives back units that are over or not used, and reports those that were used. */
  turn(): void {
    const session = this.#session;
    if (session === undefined || this.#closed) return;
    if (this.#isHere) {
      this.#tellSoon(this.#toTell(session));
      return;
    }
    const now = this.options.clock.monotonic();
    if (this.#freeIdle(session).size > 0 || this.#needsRenewal(session, now)) this.#run();
    for (const former of this.#former) {
      const done = this.#draw(former, new Map(), former.isEmpty);
      if (former.isEmpty) void after(done, (isDone) => isDone && this.#former.delete(former));
    }
  }

  #tellSoon(leases: readonly Lease[]): void {
    this.#tell(leases.slice(0, MAX_LEASES));
    if (leases.length > MAX_LEASES) setImmediate(() => this.#tellSoon(leases.slice(MAX_LEASES)));
  }

  #needsRenewal(session: Session, now: number): boolean {
    return session.leases.size > 0 && now - session.lastDraw >= this.#bank.sessionMs * RENEW;
  }

  /** Frees units that are not used. @returns idle leases that the bank must hear of */
  #freeIdle(session: Session): Set<Lease> {
    const { wall, now } = this.#times();
    const idle = new Set<Lease>();
    for (const lease of session.active) {
      if (!this.#exact && wall < lease.end && now - lease.lastUse <= IDLE_MS) continue;
      lease.giveBack(0);
      lease.ahead = 0;
      if (lease.hasNews) idle.add(lease);
      else if (lease.free === 0) {
        session.active.delete(lease);
        if (lease.isEmpty && wall >= lease.end) this.#forget(lease);
      }
    }
    return idle;
  }

  /** Leases that a bank that is here must hear of. Use of units that were drawn need not be written down. */
  #toTell(session: Session): readonly Lease[] {
    const isAlone = !this.#bank.hasOthers(session.id);
    const found = this.#freeIdle(session);
    for (const lease of session.active) {
      const { free, freed, used } = lease;
      if (freed > 0 || free < 0 || (used !== 0 && !isAlone) || free < this.#target(lease) / 2)
        found.add(lease);
    }
    return [...found];
  }

  #tell(leases: readonly Lease[]): void {
    const session = this.#session;
    if (session === undefined || leases.length === 0) return;
    const wanted = new Map<Lease, number>();
    for (const lease of leases) {
      if (lease.free < 0 || lease.free < this.#target(lease) / 2) wanted.set(lease, 0);
    }
    void this.#drawNow(session, wanted, false, leases);
  }

  #target(lease: Lease): number {
    if (this.#exact) return 0;
    // Units that a machine holds ahead may count as used when it dies: no more for several processes than for one.
    const ahead = this.#isFar ? lease.ahead : lease.ahead / this.#living;
    return lease.target(this.#living, ahead);
  }

  /**
   * Reports everything to a bank that is here, so that it can be written down.
   * @param exact another process takes over: from now on nothing stays drawn that is not used
   */
  save(exact: boolean): void {
    if (!this.#isHere) return;
    this.#exact ||= exact;
    const session = this.#session;
    if (session === undefined) return;
    const all = this.#toTell(session);
    for (let at = 0; at < all.length; at += MAX_LEASES) this.#tell(all.slice(at, at + MAX_LEASES));
  }

  onTickEnd(): void {
    if (!this.#closed) this.#tellNoted();
  }

  onExit(): void {
    this.#tellNoted();
  }

  #tellNoted(): void {
    const leases = [...this.#noted];
    this.#noted.clear();
    this.#tell(leases);
  }

  /** Tells the bank soon: more is used than was drawn, or others wait for a part. */
  #tellAtTickEnd(lease: Lease): void {
    if (this.#noted.size === 0) atTickEnd(this);
    this.#noted.add(lease);
  }

  /** For windows alone: the bank knows all of it, so it can be forgotten. */
  isOver(lease: Lease, now: number, wall: number): boolean {
    if (lease.open > 0 || lease.promised > 0) return false;
    if (lease.session.sent?.leases.includes(lease) === true) return false;
    const isPast = wall >= lease.end;
    if (isPast && this.#isHere && !lease.isEmpty) {
      lease.giveBack(0);
      this.#tell([lease]);
    }
    if (!lease.isEmpty) return false;
    const isOver = isPast || lease.spent + lease.others === 0 || now - lease.lastUse > FORGOTTEN_MS;
    if (isOver) this.#forget(lease);
    return isOver;
  }

  #forget(lease: Lease): void {
    lease.session.active.delete(lease);
    lease.session.leases.delete(`${lease.start} ${lease.limit.id}`);
  }

  /** Draws until nobody waits; one at a time. */
  #run(): void {
    if (this.#running || this.#closed) return;
    this.#running = true;
    void this.#runAll().finally(() => {
      this.#running = false;
      if (this.#waiting.length > 0) this.#run();
    });
  }

  async #runAll(): Promise<void> {
    await this.#bank.ready?.();
    const { session } = this;
    const waiting = this.#waiting.splice(0);
    const times = this.#times();
    const isAnswered = await this.#drawFor(
      session,
      waiting.map(({ needs }) => needs),
      times,
    );
    if (isAnswered && session.over) {
      // Its time was over: a new session draws for them.
      this.#waiting.unshift(...waiting);
      return;
    }
    const refusing = new Set<Lease>();
    for (const { needs, resolve, reject } of waiting) {
      if (!isAnswered) {
        reject(unavailable('budgets'));
        continue;
      }
      for (const lease of this.#decide(needs, times.wall)) refusing.add(lease);
      resolve();
    }
    // Processes that each hold a part of what is left would all refuse.
    for (const lease of refusing) {
      lease.ahead = 0;
      lease.giveBack(0);
      if (lease.freed > 0) this.#soon.in(0);
    }
  }

  /** One draw for several requests. */
  #drawFor(
    session: Session,
    requests: readonly (readonly Need[])[],
    { wall, now }: Times,
  ): boolean | Promise<boolean> {
    const wanting = new Map<Lease, number>();
    for (const { state, amount } of requests.flat()) {
      const lease = (state as Window).at(wall);
      if (lease.session !== session) continue;
      // A need of 0 only asks whether something is left.
      wanting.set(lease, (wanting.get(lease) ?? 0) + amount);
      lease.isSoft = false;
      this.#used(lease, amount, now);
    }
    if (!this.#isHere) {
      for (const lease of session.active) {
        if (lease.free < this.#target(lease) / 2 && !wanting.has(lease)) wanting.set(lease, 0);
      }
    }
    for (const [lease, units] of wanting) lease.promised = units;
    return after(this.#draw(session, wanting), (isAnswered) => {
      for (const lease of wanting.keys()) lease.promised = 0;
      return isAnswered;
    });
  }

  /**
   * After a draw: refuses needs that cannot be admitted.
   * @param wall when it was made: a period that began meanwhile has nothing yet
   * @returns leases that do not have enough
   */
  #decide(needs: readonly Need[], wall: number): readonly Lease[] {
    const { now } = this.#times();
    const lacking: Lease[] = [];
    for (const need of needs) {
      const window = need.state as Window;
      const lease = window.at(wall);
      if (need.amount === 0 ? lease.remaining > 0 : lease.has(need.amount)) continue;
      const { per } = lease.limit;
      need.wait = per === 'total' ? Number.POSITIVE_INFINITY : Math.max(1, lease.end - wall);
      lacking.push(lease);
    }
    if (lacking.length > 0) return lacking;
    for (const need of needs) {
      need.granted = true;
      need.hold = need.state.take(need.amount, now, wall, false);
    }
    return lacking;
  }

  /** @returns whether the bank answered; a draw without an answer is sent again first next time */
  #draw(
    session: Session,
    wanted: ReadonlyMap<Lease, number>,
    closes = false,
  ): boolean | Promise<boolean> {
    // A request waits for a bank that is here: it hears of the other leases in their turn.
    if (this.#isHere) return this.#drawNow(session, wanted, closes, wanted.keys());
    const drawn =
      session.turn === undefined
        ? this.#drawNow(session, wanted, closes)
        : session.turn.then(() => this.#drawNow(session, wanted, closes));
    if (!(drawn instanceof Promise)) return drawn;
    session.turn = drawn;
    void drawn.finally(() => {
      if (session.turn === drawn) session.turn = undefined;
    });
    return drawn;
  }

  /** @param told leases of which the bank hears; left out: all that are active */
  #drawNow(
    session: Session,
    wanted: ReadonlyMap<Lease, number>,
    closes: boolean,
    told?: Iterable<Lease>,
  ): boolean | Promise<boolean> {
    const unanswered = session.sent;
    if (unanswered !== undefined) {
      return after(
        this.#send(session, unanswered),
        (isAnswered) => isAnswered && this.#drawNow(session, wanted, closes),
      );
    }
    const sent = this.#prepare(session, wanted, closes, told ?? session.active);
    if (this.#isHere) {
      const { settled, wanted: wants } = sent.draw;
      if (settled.length === 0 && wants.length === 0 && !closes) return true;
    }
    session.sent = sent;
    return this.#send(session, sent);
  }

  #prepare(
    session: Session,
    needs: ReadonlyMap<Lease, number>,
    closes: boolean,
    told: Iterable<Lease>,
  ): SentDraw {
    const settled: Settlement[] = [];
    const leases = new Set(needs.keys());
    for (const lease of told) {
      // Near the limit, what is held here may be what another process is refused for.
      if ((needs.get(lease) ?? 0) === 0) lease.giveBack(2 * this.#target(lease));
      if (!lease.hasNews) continue;
      settled.push(lease.report());
      if (!this.#isHere) leases.add(lease);
      if (settled.length === MAX_LEASES) break;
    }
    const all = [...leases];
    const wanted = all.map((lease) => lease.want(needs.get(lease), this.#target(lease)));
    const draw = { session: session.id, number: ++session.number, settled, wanted, closes };
    return { draw, leases: all };
  }

  #send(session: Session, sent: SentDraw): boolean | Promise<boolean> {
    const { wall, now } = this.#times();
    const failed = (thrown: unknown) => {
      if (!(thrown instanceof EngineAway)) session.over = true;
      this.#soon.in(RETRY_MS);
      return false;
    };
    const answered = (drawn: Drawn) => {
      this.#answered(session, sent, drawn, wall, now);
      return true;
    };
    try {
      const drawn = this.#bank.draw(sent.draw);
      return drawn instanceof Promise ? drawn.then(answered, failed) : answered(drawn);
    } catch (thrown) {
      return failed(thrown);
    }
  }

  /** @param wall when it was sent, as `now` */
  #answered(
    session: Session,
    { leases }: SentDraw,
    { grants, lapsed, sessions }: Drawn,
    wall: number,
    now: number,
  ): void {
    session.sent = undefined;
    session.lastDraw = now;
    this.#living = Math.max(1, sessions);
    if (lapsed) session.over = true;
    else {
      session.validWall = wall + this.#validMs;
      session.validMonotonic = now + this.#validMs;
    }
    const heardAt = this.options.clock.monotonic();
    leases.forEach((lease, i) => {
      lease.granted(grants[i]!, heardAt);
      this.#marks.spent(lease);
    });
  }

  /** A request was refused for which the window is large enough: it is used up. */
  reportRefused(state: LimitState): void {
    if (state instanceof Window)
      this.#marks.report(state.at(this.options.clock.wall()), state.limit.amount);
  }

  close(): void | Promise<void> {
    if (this.#closed) return;
    this.#exact = true;
    if (this.#isHere) {
      this.save(true);
      this.#closed = true;
      return;
    }
    this.#closed = true;
    this.#soon.close();
    for (const { reject } of this.#waiting.splice(0)) reject(unavailable('budgets'));
    const all = [...(this.#session === undefined ? [] : [this.#session]), ...this.#former];
    return Promise.all(
      all.map(async (session) => {
        // A draw that was sent may still be answered; it is repeated before the next one.
        await this.#draw(session, new Map());
        if (session.isEmpty) await this.#draw(session, new Map(), true);
      }),
    ).then(() => {});
  }
}
