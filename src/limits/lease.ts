/** Leases: the part of each window of a budget that a process holds. The draws of `leases.ts` change it. */

import type { Draw, Grant, Settlement, Want, WindowKey } from './bank.ts';
import { type Clock, type LimitUsage, MAX_UNITS, type WindowLimit } from './limits.ts';

/** The share of the rest of a budget that all processes together may hold ahead of use. */
const HELD_AHEAD = 0.1;

/** The part of one window that a session holds. */
export class Lease {
  /** Drawn and not used; reserved units are among them. Below 0: more was used than was drawn. */
  drawn = 0;
  reserved = 0;
  /** Units for requests that wait for a draw, which asks only for the missing ones: others must not take these. */
  promised = 0;
  /** For the next draw. `used` below 0: more was counted before than it was. */
  used = 0;
  freed = 0;
  /** Tickets that are not settled. */
  open = 0;
  /** By all sessions, as last heard. */
  spent = 0;
  /** Held by other sessions. */
  others = 0;
  heardAt = Number.NEGATIVE_INFINITY;
  reported = 0;
  ahead = 0;
  /** Units of the last request, and whether it could not be refused. */
  charge = 0;
  isSoft = false;
  lastUse = 0;

  constructor(
    public limit: WindowLimit,
    readonly session: Session,
    readonly start: number,
    public end: number,
  ) {}

  get free(): number {
    return this.drawn - this.reserved;
  }

  /** The rest of the window, as far as it is known here. */
  get remaining(): number {
    return this.limit.amount - this.spent - this.used - this.others - this.reserved;
  }

  /** Units that soft charges drew beyond the amount are not for others. */
  has(units: number): boolean {
    return this.free >= units && this.remaining >= units;
  }

  /** Units that should be free here. @param ahead the part of this process of all that is worth drawing ahead */
  target(sessions: number, ahead: number): number {
    const { remaining, isSoft, charge } = this;
    // The first request shows the cost. Less than that lets no request through, and another process may need it.
    if (charge === 0) return 0;
    const left = isSoft && remaining <= 0 ? MAX_UNITS : Math.max(0, remaining);
    const most = Math.min(ahead, (left * HELD_AHEAD) / sessions);
    return Math.floor(most / charge) * charge;
  }

  isOf(session: Session, wall: number): boolean {
    return this.session === session && wall >= this.start && wall < this.end;
  }

  /** With the next draw. @param but units that stay */
  giveBack(but: number): void {
    const units = this.free - this.promised - but;
    if (units <= 0) return;
    this.freed += units;
    this.drawn -= units;
  }

  /** The bank does not know all of it. */
  get hasNews(): boolean {
    return this.used !== 0 || this.freed > 0;
  }

  /** The news for the bank, which the draw carries from now on. */
  report(): Settlement {
    const { used, freed } = this;
    this.spent += used;
    this.used = 0;
    this.freed = 0;
    return { ...this.window, used, freed };
  }

  /** @param units that requests need; undefined: nothing is needed */
  want(units: number | undefined, target: number): Want {
    // Use beyond the drawn units is settled by the same draw.
    const free = Math.max(0, this.drawn) - this.reserved;
    const need = units === undefined ? 0 : Math.max(0, units - free);
    const ahead = units === undefined ? 0 : Math.max(0, target - Math.max(0, free));
    const most = this.isSoft && free < 0 ? MAX_UNITS : this.limit.amount;
    return { ...this.window, most, need, ahead };
  }

  granted({ spent, held, own }: Grant, heardAt: number): void {
    // Use since the draw was made is not in it.
    this.drawn = own - this.used - this.freed;
    this.spent = spent;
    this.others = Math.max(0, held - own);
    this.heardAt = heardAt;
  }

  get isEmpty(): boolean {
    return this.open === 0 && this.drawn === 0 && !this.hasNews;
  }

  get window(): WindowKey {
    const keepUntil = Math.min(MAX_UNITS, this.end + (this.end - this.start));
    return { law: this.limit.id, start: this.start, keepUntil };
  }

  usage(wall: number): LimitUsage {
    const { limit, end } = this;
    const held = this.others + this.reserved;
    const used = this.spent + this.used + held;
    const remaining = Math.max(0, limit.amount - used);
    if (limit.per === 'total') return { limit, used, held, remaining, resetMs: undefined };
    return { limit, used, held, remaining, resetMs: Math.max(0, end - wall), resetAt: end };
  }
}

/** A draw that was sent, and its leases in the order of what is wanted. */
export interface SentDraw {
  readonly draw: Draw;
  readonly leases: readonly Lease[];
}

/**
 * One incarnation at the bank. Its draws are numbered: one whose answer was lost is sent again as it was. When its
 * time is over, a new one begins, and this one only settles what it has admitted.
 */
export class Session {
  readonly leases = new Map<string, Lease>();
  /** Leases that are used, or that the bank does not know wholly. */
  readonly active = new Set<Lease>();
  number = 0;
  /** Sent, and not answered. */
  sent: SentDraw | undefined;
  /** The draws before: one at a time. */
  turn: Promise<unknown> | undefined;
  /** Its leases are valid until then, by both clocks. */
  validWall: number;
  validMonotonic: number;
  lastDraw = Number.NEGATIVE_INFINITY;
  over = false;

  constructor(
    readonly id: string,
    clock: Clock,
    validMs: number,
  ) {
    this.validWall = clock.wall() + validMs;
    this.validMonotonic = clock.monotonic() + validMs;
  }

  /** A machine that slept stops one clock, and a clock that is set moves the other: the stricter one counts. */
  isValid(clock: Clock): boolean {
    return !this.over && clock.wall() < this.validWall && clock.monotonic() < this.validMonotonic;
  }

  get isEmpty(): boolean {
    if (this.sent !== undefined) return false;
    for (const { open, used } of this.leases.values()) if (open > 0 || used !== 0) return false;
    return true;
  }
}
