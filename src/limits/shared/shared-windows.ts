/** Budgets of all replicas: a lease of each window is drawn from the bank ahead of use, and never more than is left. */

import { GatewayError } from '../../conversation/errors.ts';
import { EngineAway, type Sql } from '../../state/engines/engine.ts';
import type { Clock, Reached } from '../engine/local-limits.ts';
import type {
  Admission,
  Charge,
  Law,
  Limits,
  Refusal,
  Standing,
  Ticket,
  WindowLaw,
} from '../limits.ts';
import { Bank, type Drawn, SESSION_MS, type Settlement } from './bank.ts';
import { aheadOf, type Draw, type Lease, Session } from './bank-session.ts';
import { wholeUnits } from './shared-rates.ts';

export interface SharedWindowsOptions {
  readonly database: Sql;
  /** Tells this process from all others, those before it too. */
  readonly replica: string;
  readonly clock: Clock;
  /** A mark is reached, for the first time in its period over all replicas. */
  readonly onReached: (reached: Reached) => void;
  /** How long leases are valid after each draw; for tests. */
  readonly sessionMs?: number;
}

const DRAW_MS = 1000;
/** Of the time of leases: they are not used in its last part, and renewed after the first. */
const MARGIN = 1 / 12;
const RENEW = 1 / 3;
const TURN_MS = 1000;
const RETRY_MS = 500;
const FLUSH_MS = 200;
/** A lease that is not used is given back after this time. */
const IDLE_MS = 10_000;
const REFUSED_MS = 100;

/** An admission that waits for the next draw. */
interface Waiting {
  readonly charges: readonly Charge[];
  resolve(admission: Admission): void;
  reject(error: unknown): void;
}

export class SharedWindows implements Limits {
  readonly #options: SharedWindowsOptions;
  readonly #bank: Bank;
  readonly #sessionMs: number;
  #session: Session | undefined;
  /** Sessions whose time is over, with tickets that are not settled. */
  readonly #former = new Set<Session>();
  #sessions = 0;
  /** As last heard. */
  #replicas = 1;
  #waiting: Waiting[] = [];
  #running = false;
  #timer: ReturnType<typeof setInterval> | undefined;
  #soon: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor(options: SharedWindowsOptions) {
    this.#options = options;
    this.#sessionMs = options.sessionMs ?? SESSION_MS;
    this.#bank = new Bank(options.database, this.#sessionMs);
  }

  admit(charges: readonly Charge[]): Admission | Promise<Admission> {
    const { clock } = this.#options;
    const wall = clock.wall();
    const session = this.#current();
    const leases = charges.map(({ law }) => session.leaseOf(law as WindowLaw, wall));
    const now = clock.monotonic();
    const refusal = refusalOf(charges, leases, wall, (lease, units) => {
      if (units > lease.law.amount) return true;
      const again = now - lease.refusedAt < REFUSED_MS && units >= lease.refusedUnits;
      return again && lease.free < units;
    });
    if (refusal !== undefined) return refusal;
    const enough = charges.every(
      ({ amount, soft }, i) =>
        soft === true || leases[i]!.free - leases[i]!.promised >= Math.max(1, amount),
    );
    if (enough) {
      const ticket = this.#taken(charges, session, leases);
      if (leases.some((lease) => lease.free < lease.target(this.#replicas) / 2)) this.#run();
      return ticket;
    }
    const { promise, resolve, reject } = Promise.withResolvers<Admission>();
    this.#waiting.push({ charges, resolve, reject });
    this.#run();
    return promise;
  }

  async standing(laws: readonly Law[]): Promise<readonly Standing[]> {
    const { clock } = this.#options;
    const wall = clock.wall();
    const session = this.#current();
    const leases = laws.map((law) => session.leaseOf(law as WindowLaw, wall));
    for (const lease of leases) lease.lastUse = clock.monotonic();
    await this.#draw(session, leases);
    return leases.map((lease) => lease.standing(wall));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#timer);
    clearTimeout(this.#soon);
    for (const waiting of this.#waiting.splice(0)) waiting.reject(unavailable());
    const all = [...(this.#session === undefined ? [] : [this.#session]), ...this.#former];
    await Promise.all(
      all.map(async (session) => {
        // A draw that was sent may still be answered; it is repeated before the next one.
        await this.#draw(session, []);
        if (session.isEmpty) await this.#draw(session, [], true);
      }),
    );
  }

  #current(): Session {
    const { clock, replica } = this.#options;
    let session = this.#session;
    if (session?.isValid(clock) === true) return session;
    if (session !== undefined) {
      this.#former.add(session);
      session.over = true;
    }
    session = new Session(`${replica}-${++this.#sessions}`, clock, this.#validMs);
    this.#session = session;
    if (this.#timer === undefined && !this.#closed) {
      this.#timer = setInterval(() => this.#turn(), TURN_MS);
      this.#timer.unref();
    }
    return session;
  }

  get #validMs(): number {
    return this.#sessionMs * (1 - MARGIN);
  }

  #taken(charges: readonly Charge[], session: Session, leases: readonly Lease[]): Ticket {
    const now = this.#options.clock.monotonic();
    charges.forEach(({ amount }, i) => {
      const lease = leases[i]!;
      lease.reserved += amount;
      lease.open++;
      lease.lastUse = now;
      lease.ahead = Math.max(lease.ahead * 0.9, aheadOf(lease.law, amount));
      lease.charge = Math.max(1, amount);
    });
    return new WindowsTicket(this, charges, session, leases);
  }

  /** For tickets alone. */
  settled(session: Session, lease: Lease, reserved: number, used: number): void {
    lease.open--;
    lease.reserved -= reserved;
    lease.drawn -= used;
    lease.used += used;
    lease.lastUse = this.#options.clock.monotonic();
    this.#reportMarks(lease);
    if (session !== this.#session) void this.#draw(session, []);
    else this.#flushSoon(FLUSH_MS);
  }

  /** For tickets alone. */
  standingNow(lease: Lease): Standing {
    return lease.standing(this.#options.clock.wall());
  }

  #flushSoon(after: number): void {
    if (this.#soon !== undefined || this.#closed) return;
    this.#soon = setTimeout(() => {
      this.#soon = undefined;
      this.#run();
    }, after);
    this.#soon.unref();
  }

  #turn(): void {
    const { clock } = this.#options;
    const session = this.#session;
    if (session === undefined) return;
    const wall = clock.wall();
    const now = clock.monotonic();
    let idle = false;
    for (const [key, lease] of session.leases) {
      const isOver = wall >= lease.end || now - lease.lastUse > IDLE_MS;
      if (!isOver) continue;
      if (lease.free > 0) {
        lease.giveBack(0);
        lease.ahead = 0;
        idle = true;
      } else if (lease.open === 0 && lease.used === 0 && lease.freed === 0 && wall >= lease.end) {
        session.leases.delete(key);
      }
    }
    if (idle || (session.leases.size > 0 && now - session.lastDraw >= this.#sessionMs * RENEW))
      this.#run();
    for (const former of this.#former) {
      if (!former.isEmpty) void this.#draw(former, []);
      else void this.#draw(former, [], true).then((done) => done && this.#former.delete(former));
    }
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
    const session = this.#current();
    const waiting = this.#waiting.splice(0);
    const wall = this.#options.clock.wall();
    const wanting = new Map<Lease, number>();
    for (const { charges } of waiting) {
      for (const { law, amount, soft } of charges) {
        const lease = session.leaseOf(law as WindowLaw, wall);
        const need = soft === true ? 0 : Math.max(1, amount);
        wanting.set(lease, (wanting.get(lease) ?? 0) + need);
        lease.ahead = Math.max(lease.ahead, aheadOf(lease.law, amount));
        lease.charge = Math.max(1, amount);
      }
    }
    for (const lease of session.leases.values()) {
      if (lease.free < lease.target(this.#replicas) / 2 && !wanting.has(lease))
        wanting.set(lease, 0);
    }
    for (const [lease, units] of wanting) lease.promised = units;
    const isAnswered = await this.#draw(session, [...wanting.keys()], false, wanting);
    for (const lease of wanting.keys()) lease.promised = 0;
    if (isAnswered && session.over) {
      // Its time was over: a new session draws for them.
      this.#waiting.unshift(...waiting);
      return;
    }
    const refusing = new Set<Lease>();
    for (const one of waiting) {
      if (isAnswered) this.#decide(one, refusing);
      else one.reject(unavailable());
    }
    // Replicas that each hold a part of what is left would all refuse.
    for (const lease of refusing) {
      lease.ahead = 0;
      lease.giveBack(0);
      if (lease.freed > 0) this.#flushSoon(0);
    }
  }

  /**
   * After a draw: what cannot be admitted now is refused.
   * @param refusing takes the leases that do not have enough
   */
  #decide({ charges, resolve }: Waiting, refusing: Set<Lease>): void {
    const { clock } = this.#options;
    const wall = clock.wall();
    const session = this.#current();
    const leases = charges.map(({ law }) => session.leaseOf(law as WindowLaw, wall));
    const refusal = refusalOf(charges, leases, wall, (lease, units) => lease.free < units);
    if (refusal === undefined) {
      resolve(this.#taken(charges, session, leases));
      return;
    }
    charges.forEach(({ amount, tentative }, i) => {
      const lease = leases[i]!;
      if (tentative === true || !refusal.refusedBy.includes(lease.law)) return;
      refusing.add(lease);
      lease.refusedAt = clock.monotonic();
      lease.refusedUnits = Math.max(1, amount);
      if (amount <= lease.law.amount) this.#report(lease, lease.law.amount);
    });
    resolve(refusal);
  }

  /** @returns whether the bank answered; a draw without an answer is sent again first next time */
  #draw(
    session: Session,
    wanted: readonly Lease[],
    closes = false,
    needs?: ReadonlyMap<Lease, number>,
  ): Promise<boolean> {
    const drawn = session.turn.then(() => this.#drawNow(session, wanted, closes, needs));
    session.turn = drawn;
    return drawn;
  }

  async #drawNow(
    session: Session,
    wanted: readonly Lease[],
    closes: boolean,
    needs: ReadonlyMap<Lease, number> | undefined,
  ): Promise<boolean> {
    if (session.pending !== undefined && !(await this.#send(session, session.pending)))
      return false;
    session.pending = this.#prepare(session, wanted, closes, needs);
    return this.#send(session, session.pending);
  }

  #prepare(
    session: Session,
    wanted: readonly Lease[],
    closes: boolean,
    needs: ReadonlyMap<Lease, number> | undefined,
  ): Draw {
    const settled: Settlement[] = [];
    const leases = new Set(wanted);
    for (const lease of session.leases.values()) {
      // Near the limit, what is held here may be what another replica is refused for.
      if (needs?.has(lease) !== true) lease.giveBack(2 * lease.target(this.#replicas));
      const { used, freed } = lease;
      if (used === 0 && freed === 0) continue;
      settled.push({ ...lease.place, used, freed });
      leases.add(lease);
      // From now on the draw has them.
      lease.spent += used;
      lease.used = 0;
      lease.freed = 0;
    }
    const all = [...leases];
    const wants = all.map((lease) => {
      const need = Math.max(0, (needs?.get(lease) ?? 0) - Math.max(0, lease.free));
      const ahead = needs?.has(lease) ? Math.max(0, lease.target(this.#replicas) - lease.free) : 0;
      return { ...lease.place, most: lease.law.amount, need, ahead };
    });
    return { number: ++session.number, settled, wanted: wants, leases: all, closes };
  }

  async #send(session: Session, draw: Draw): Promise<boolean> {
    const { clock } = this.#options;
    const wall = clock.wall();
    const now = clock.monotonic();
    let drawn: Drawn;
    try {
      const { number, settled, wanted, closes } = draw;
      drawn = await this.#bank.draw(session.id, number, settled, wanted, closes, DRAW_MS);
    } catch (thrown) {
      if (!(thrown instanceof EngineAway)) session.over = true;
      this.#flushSoon(RETRY_MS);
      return false;
    }
    session.pending = undefined;
    session.lastDraw = now;
    this.#replicas = Math.max(1, drawn.replicas);
    if (drawn.lapsed) session.over = true;
    else {
      session.validWall = wall + this.#validMs;
      session.validMonotonic = now + this.#validMs;
    }
    draw.leases.forEach((lease, i) => {
      const { spent, held, own } = drawn.grants[i]!;
      // What was used since the draw was made is not in it yet.
      lease.drawn = own - lease.used - lease.freed;
      lease.spent = spent;
      lease.others = Math.max(0, held - own);
      this.#reportMarks(lease);
    });
    return true;
  }

  #reportMarks(lease: Lease): void {
    const { law, spent, used } = lease;
    const all = spent + used;
    let reached = all >= law.amount ? law.amount : 0;
    if (reached === 0) for (const mark of law.marks ?? []) if (mark <= all) reached = mark;
    if (reached > 0) this.#report(lease, reached);
  }

  #report(lease: Lease, upTo: number): void {
    if (upTo <= lease.reported) return;
    const last = lease.reported;
    lease.reported = upTo;
    const { law, start, end } = lease;
    const spent = lease.spent + lease.used;
    for (const mark of [...(law.marks ?? []), law.amount]) {
      if (mark <= last || mark > upTo || (mark !== law.amount && spent < mark)) continue;
      // Where the bank cannot say whether another replica was first, it is told once more.
      void this.#bank
        .isNew(lease.place, mark, DRAW_MS)
        .catch(() => true)
        .then((isNew) => isNew && this.#options.onReached({ law, mark, start, end, spent }));
    }
  }
}

const unavailable = () =>
  new GatewayError('overloaded', 'The budgets of this key cannot be checked now.', {
    code: 'limits_unavailable',
    retryAfter: 1,
  });

function refusalOf(
  charges: readonly Charge[],
  leases: readonly Lease[],
  wall: number,
  refuses: (lease: Lease, units: number) => boolean,
): Refusal | undefined {
  const refusing = charges.flatMap(({ amount, soft }, i) =>
    soft !== true && refuses(leases[i]!, Math.max(1, amount)) ? [i] : [],
  );
  if (refusing.length === 0) return undefined;
  const wait = (i: number) => {
    const { law, end } = leases[i]!;
    return law.per === 'total' || charges[i]!.amount > law.amount
      ? Number.POSITIVE_INFINITY
      : end - wall;
  };
  const place = refusing.toSorted((a, b) => wait(b) - wait(a))[0]!;
  const longest = wait(place);
  return {
    admitted: false,
    law: charges[place]!.law,
    retryAfterMs: Number.isFinite(longest) ? longest : undefined,
    standing: leases[place]!.standing(wall),
    asked: charges[place]!.amount,
    refusedBy: refusing.map((i) => charges[i]!.law),
    standings: () => leases.map((lease) => lease.standing(wall)),
  };
}

class WindowsTicket implements Ticket {
  readonly admitted = true;
  #windows: SharedWindows | undefined;
  readonly #read: SharedWindows;
  readonly #charges: readonly Charge[];
  readonly #session: Session;
  readonly #leases: readonly Lease[];

  constructor(
    windows: SharedWindows,
    charges: readonly Charge[],
    session: Session,
    leases: readonly Lease[],
  ) {
    this.#windows = windows;
    this.#read = windows;
    this.#charges = charges;
    this.#session = session;
    this.#leases = leases;
  }

  settle(used: readonly number[]): void {
    const windows = this.#windows;
    this.#windows = undefined;
    this.#charges.forEach(({ amount }, i) => {
      windows?.settled(this.#session, this.#leases[i]!, amount, wholeUnits(used[i], amount));
    });
  }

  abandon(): void {
    this.settle(this.#charges.map(() => 0));
  }

  standings(count?: number): readonly Standing[] {
    return this.#leases.slice(0, count).map((lease) => this.#read.standingNow(lease));
  }
}
