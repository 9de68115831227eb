/** What one incarnation has drawn at the bank: a lease for each window, and the draws under way. */

import { boundsAt } from '../engine/calendar.ts';
import type { Clock } from '../engine/local-limits.ts';
import { windowStanding } from '../engine/window.ts';
import type { Standing, WindowLaw } from '../limits.ts';
import type { Settlement, Want, WindowPlace } from './bank.ts';

/** Charges like the present one, and the part of a window, that are drawn ahead. */
const CHARGES_AHEAD = 8;
const SHARE_AHEAD = 0.01;
/** The share of the rest of a budget that all replicas together may hold ahead of use. */
const HELD_AHEAD = 0.1;
const ALL_UNITS = Number.MAX_SAFE_INTEGER;

/** What a session has of one window. */
export class Lease {
  readonly law: WindowLaw;
  readonly start: number;
  readonly end: number;
  /** Drawn and not used; reserved units are among them. Below 0: more was used than was drawn. */
  drawn = 0;
  reserved = 0;
  /** Reserved for requests that wait for a draw. The draw asks only for what is missing, so others must not take this. */
  promised = 0;
  /** For the next draw. */
  used = 0;
  freed = 0;
  /** Tickets that are not settled. */
  open = 0;
  /** As last heard, of all replicas. */
  spent = 0;
  /** Held by other replicas. */
  others = 0;
  reported = 0;
  ahead = 0;
  /** What the last request asked for. */
  charge = 1;
  lastUse = 0;
  refusedAt = Number.NEGATIVE_INFINITY;
  refusedUnits = 0;

  constructor(law: WindowLaw, start: number, end: number) {
    this.law = law;
    this.start = start;
    this.end = end;
  }

  get free(): number {
    return this.drawn - this.reserved;
  }

  /** What this replica should hold beyond what is reserved. */
  target(replicas: number): number {
    const { law, spent, used, others, reserved, ahead } = this;
    const left = Math.max(0, law.amount - spent - used - others - reserved);
    const most = Math.min(ahead, (left * HELD_AHEAD) / replicas);
    // A part of a request serves none here, and another replica may lack it.
    return Math.floor(most / this.charge) * this.charge;
  }

  /** With the next draw. @param but what stays */
  giveBack(but: number): void {
    const units = this.free - this.promised - but;
    if (units <= 0) return;
    this.freed += units;
    this.drawn -= units;
  }

  get place(): WindowPlace {
    const keepUntil = Math.min(ALL_UNITS, this.end + (this.end - this.start));
    return { law: this.law.id, start: this.start, keepUntil };
  }

  standing(wall: number): Standing {
    const held = this.others + this.reserved;
    return windowStanding(this.law, this.spent + this.used + held, held, this.end, wall);
  }
}

export interface Draw {
  readonly number: number;
  readonly settled: readonly Settlement[];
  readonly wanted: readonly Want[];
  /** In the order of what is wanted. */
  readonly leases: readonly Lease[];
  readonly closes: boolean;
}

/**
 * One incarnation at the bank. Its draws are numbered: one whose answer was lost is sent again as it was. When its
 * time is over, a new one begins, and this one only settles what it has admitted.
 */
export class Session {
  readonly id: string;
  readonly leases = new Map<string, Lease>();
  number = 0;
  /** Sent, and not answered. */
  pending: Draw | undefined;
  /** The draws before: one at a time. */
  turn: Promise<unknown> = Promise.resolve();
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

  leaseOf(law: WindowLaw, wall: number): Lease {
    const { start, end } = boundsAt(wall, law.per, law.timeZone);
    const key = `${start} ${law.id}`;
    let lease = this.leases.get(key);
    if (lease === undefined || lease.law !== law) {
      const next = new Lease(law, start, end);
      if (lease !== undefined) Object.assign(next, lease, { law });
      this.leases.set(key, next);
      lease = next;
    }
    return lease;
  }

  get isEmpty(): boolean {
    return (
      this.pending === undefined &&
      [...this.leases.values()].every((one) => one.open === 0 && one.used === 0)
    );
  }
}

/** What is worth drawing beyond a charge. */
export const aheadOf = ({ amount }: WindowLaw, charge: number): number =>
  Math.max(CHARGES_AHEAD * charge, Math.ceil(amount * SHARE_AHEAD));
