/** The part of a budget's window that a process holds of one window of a budget, and for how long: the state that the draws of `leases.ts` change. */

import type { Draw, WindowKey } from './bank.ts';
import { type Clock, type LimitUsage, MAX_UNITS, type WindowLimit } from './limits.ts';

/** The share of the rest of a budget that all processes together may hold ahead of use. */
const HELD_AHEAD = 0.1;
/** What a session has of one window. */
export class Lease {
  limit: WindowLimit;
  readonly session: Session;
  readonly start: number;
  end: number;
  /** Drawn and not used; reserved units are among them. Below 0: more was used than was drawn. */
  drawn = 0;
  reserved = 0;
  /** Of requests that wait for a draw. It asks only for what is missing, so others must not take this. */
  promised = 0;
  /** For the next draw. `used` below 0: more was counted before than it was. */
  used = 0;
  freed = 0;
  /** Tickets that are not settled. */
  open = 0;
  /** As last heard, of all sessions. */
  spent = 0;
  /** Held by other sessions. */
  others = 0;
  heardAt = Number.NEGATIVE_INFINITY;
  reported = 0;
  ahead = 0;
  /** What the last request asked for, and whether it could be refused. */
  charge = 0;
  isSoft = false;
  lastUse = 0;

  constructor(limit: WindowLimit, session: Session, start: number, end: number) {
    this.limit = limit;
    this.session = session;
    this.start = start;
    this.end = end;
  }

  get free(): number {
    return this.drawn - this.reserved;
  }

  /** Of the window, as far as it is known here. */
  get remaining(): number {
    return this.limit.amount - this.spent - this.used - this.others - this.reserved;
  }

  /** What soft charges drew ahead beyond the amount is not for others. */
  has(units: number): boolean {
    return this.free >= units && this.remaining >= units;
  }

  /** What should be here beyond what is reserved. @param ahead of all that is worth drawing ahead, the part of this process */
  target(sessions: number, ahead: number): number {
    const { remaining, isSoft, charge } = this;
    // A part of a request serves none here, and another process may lack it. How large one is, the first one says.
    if (charge === 0) return 0;
    const left = isSoft && remaining <= 0 ? MAX_UNITS : Math.max(0, remaining);
    const most = Math.min(ahead, (left * HELD_AHEAD) / sessions);
    return Math.floor(most / charge) * charge;
  }

  /** With the next draw. @param but what stays */
  giveBack(but: number): void {
    const units = this.free - this.promised - but;
    if (units <= 0) return;
    this.freed += units;
    this.drawn -= units;
  }

  /** The bank is to be told something. */
  get hasNews(): boolean {
    return this.used !== 0 || this.freed > 0;
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
  readonly id: string;
  readonly leases = new Map<string, Lease>();
  /** Those that are used, or of which the bank does not know all. */
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

  constructor(id: string, clock: Clock, validMs: number) {
    this.id = id;
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
