/** The bank counts budgets: sessions draw leases from it, and settle them. With the bank of one machine. */

import { MAX_UNITS } from './limits.ts';

/** A limit, by the name of its column, in one period. */
export interface WindowKey {
  readonly law: string;
  readonly start: number;
  /** Milliseconds since 1970 from which on its row may go. */
  readonly keepUntil: number;
}

/** Units that were used, and units of the lease that are not needed any more. */
export interface Settlement extends WindowKey {
  readonly used: number;
  readonly freed: number;
}

export interface Want extends WindowKey {
  /** Units that all sessions together may have. */
  readonly most: number;
  /** Granted as far as there is some. */
  readonly need: number;
  /** Granted beyond that, up to a share of the rest. */
  readonly ahead: number;
}

export interface Draw {
  readonly session: string;
  /** The same number again gives the same answer, and changes nothing. */
  readonly number: number;
  readonly settled: readonly Settlement[];
  readonly wanted: readonly Want[];
  /** Everything is settled: the rest of the session's leases was never used. */
  readonly closes: boolean;
}

export interface Grant {
  /** By all sessions, with this draw. */
  readonly spent: number;
  readonly held: number;
  /** Held by this session, with the grant. */
  readonly own: number;
}

export interface Drawn {
  /** In the order of the wants. */
  readonly grants: readonly Grant[];
  /** The session's time was over: its held units count as spent, and it gets no more. */
  readonly lapsed: boolean;
  /** Sessions that live. */
  readonly sessions: number;
}

export interface Bank {
  /**
   * - `here`: it answers at once, and never fails
   * - `near`: in the first process of this machine, which hears everything at once
   * - `far`: in a database; draws wait for others to share a trip
   */
  readonly distance: 'here' | 'near' | 'far';
  /** Milliseconds for which leases are valid after each draw. */
  readonly sessionMs: number;
  /** Milliseconds by which its clock, which begins the periods, is ahead of this machine's. Left out: it is the same. */
  readonly aheadMs?: number;
  /** Before the first draw: its clock is known, or it is away. Never rejects. */
  ready?(): Promise<void>;
  /** One trip. @throws EngineAway, or its own error */
  draw(draw: Draw): Drawn | Promise<Drawn>;
  /** Whether this mark of a window is reached for the first time, over all sessions. */
  isNew(window: WindowKey, mark: number): boolean | Promise<boolean>;
  /** Sessions beside this one may draw from the same bank. */
  hasOthers(session: string): boolean;
  /** Writes what could not be written. */
  save?(): void;
  /** Forgets what is of no use any more. */
  sweep?(wall: number): void;
}

/** Units of a window that all sessions have. */
export interface WindowRow {
  spent: number;
  held: number;
}

/** Units of it that one session has. */
export interface LeaseRow {
  held: number;
  /** Held when its time was over, so it counts as spent: it may have been used. */
  lost: number;
}

/** A late settlement first takes units that count as lost, so that nothing counts twice. */
export function settleLease(
  row: WindowRow,
  lease: LeaseRow,
  { used, freed }: Pick<Settlement, 'used' | 'freed'>,
): void {
  const ofUsed = taken(lease, used);
  row.spent += used - ofUsed.lost;
  row.held = Math.max(0, row.held - ofUsed.held);
  const ofFreed = taken(lease, freed);
  row.spent = Math.max(0, row.spent - ofFreed.lost);
  row.held = Math.max(0, row.held - ofFreed.held);
}

/** Units come from what is held first. */
function taken(lease: LeaseRow, units: number): LeaseRow {
  const held = Math.min(lease.held, units);
  const lost = Math.min(lease.lost, units - held);
  lease.held -= held;
  lease.lost -= lost;
  return { held, lost };
}

/** All sessions together hold at most a tenth of the rest ahead of use. */
export function grantLease(
  row: WindowRow,
  lease: LeaseRow,
  { most, need, ahead }: Pick<Want, 'most' | 'need' | 'ahead'>,
  sessions: number,
): void {
  const free = Math.max(0, most - row.spent - row.held);
  const needed = Math.min(need, free);
  const part = Math.floor(Math.floor((free - needed) / 10) / Math.max(1, sessions));
  const granted = needed + Math.min(ahead, part);
  row.held += granted;
  lease.held += granted;
}

/** Sums that outlive the process: what each window has counted, of all processes of this machine. */
export interface Totals {
  /**
   * Reads and writes in one transaction.
   * @returns false: nothing can be written now, and nothing is changed
   */
  update(work: (rows: TotalRows) => void): boolean;
  isNew(window: WindowKey, mark: number): boolean;
}

export interface TotalRows {
  /** Undefined: there is none, or no more: a damaged file begins anew. */
  get(window: WindowKey): number | undefined;
  set(window: WindowKey, total: number): void;
}

/** A window as this process knows it. */
interface Counted extends WindowRow {
  readonly window: WindowKey;
  /** The part of spent and held units that the file has. */
  written: number;
  readonly leases: Map<string, LeaseRow>;
}

/** Windows of one write, when failed writes are tried again. */
const MAX_WRITTEN = 500;
const NONE: LeaseRow = { held: 0, lost: 0 };

/**
 * The bank of one machine, in the memory of its first process. Its file has one number for each window: what is spent,
 * and what sessions hold. What a process holds that is killed stays counted.
 */
export class OwnBank implements Bank {
  readonly distance = 'here';
  readonly sessionMs = Number.POSITIVE_INFINITY;
  readonly #windows = new Map<string, Counted>();
  readonly #unwritten = new Set<Counted>();
  readonly #sessions = new Set<string>();
  /** Processes that may draw here, beside the first one. */
  workers = 0;

  /** @param totals left out: all is forgotten with the process */
  constructor(private readonly totals?: Totals) {}

  draw({ session, settled, wanted, closes }: Draw): Drawn {
    if (closes) this.#sessions.delete(session);
    else this.#sessions.add(session);
    const settling = settled.map((one) => [this.#at(one), one] as const);
    const wanting = wanted.map((one) => [this.#at(one), one] as const);
    const closing = closes
      ? [...this.#windows.values()].filter(({ leases }) => leases.has(session))
      : [];
    const grants: Grant[] = [];
    const apply = () => {
      for (const [row, one] of settling) settleLease(row, leaseOf(row, session), one);
      for (const [row, one] of wanting) {
        const lease = leaseOf(row, session);
        grantLease(row, lease, one, this.#living);
        grants.push({ spent: row.spent, held: row.held, own: lease.held });
      }
      for (const row of closing) {
        row.held -= leaseOf(row, session).held;
        row.leases.delete(session);
      }
    };
    const rows = [...[...settling, ...wanting].map(([row]) => row), ...closing];
    if (this.totals === undefined) apply();
    else this.#write(rows, wanting.length > 0, apply);
    return { grants, lapsed: false, sessions: this.#living };
  }

  get #living(): number {
    return Math.max(1 + this.workers, this.#sessions.size);
  }

  isNew(window: WindowKey, mark: number): boolean {
    return this.totals?.isNew(window, mark) ?? true;
  }

  hasOthers(session: string): boolean {
    return this.workers > 0 || this.#sessions.size > (this.#sessions.has(session) ? 1 : 0);
  }

  /** A process has ended without a word: its held units count as spent. */
  ended(session: string): void {
    this.#sessions.delete(session);
    for (const row of this.#windows.values()) {
      row.spent += row.leases.get(session)?.held ?? 0;
      row.held -= row.leases.get(session)?.held ?? 0;
      row.leases.delete(session);
    }
  }

  /** Writes what could not be written. */
  save(): void {
    if (this.#unwritten.size > 0) this.#write([], true, () => {});
  }

  /** Forgets windows of which nobody holds a part, and which the file has. */
  sweep(wall: number): void {
    for (const [key, row] of this.#windows) {
      const isKnown = this.totals !== undefined && !this.#unwritten.has(row);
      if (row.held === 0 && (isKnown || wall >= row.window.keepUntil)) this.#windows.delete(key);
    }
  }

  /** @param reads others may have written: false where nothing depends on them */
  #write(rows: readonly Counted[], reads: boolean, apply: () => void): void {
    let isApplied = false;
    const applyOnce = () => {
      if (!isApplied) apply();
      isApplied = true;
    };
    if (!reads) {
      applyOnce();
      if (rows.every((row) => row.spent + row.held === row.written)) return;
    }
    const all = new Set(rows);
    for (const row of this.#unwritten) if (all.size < MAX_WRITTEN + rows.length) all.add(row);
    const totals = new Map<Counted, number>();
    const done = this.totals!.update(({ get, set }) => {
      const found = new Map<Counted, number | undefined>();
      for (const row of all) {
        const total = get(row.window);
        found.set(row, total);
        row.spent = Math.max(0, row.spent + (total ?? row.written) - row.written);
        row.written = total ?? row.written;
      }
      applyOnce();
      for (const row of all) {
        const total = Math.min(MAX_UNITS, row.spent + row.held);
        totals.set(row, total);
        if (total !== (found.get(row) ?? 0)) set(row.window, total);
      }
    });
    applyOnce();
    for (const row of all) {
      const total = totals.get(row);
      if (done && total !== undefined) row.written = total;
      if (done) this.#unwritten.delete(row);
      else if (row.spent + row.held !== row.written) this.#unwritten.add(row);
    }
  }

  #at(window: WindowKey): Counted {
    const key = `${window.start} ${window.law}`;
    let row = this.#windows.get(key);
    if (row === undefined) {
      const { law, start, keepUntil } = window;
      row = { window: { law, start, keepUntil }, spent: 0, held: 0, written: 0, leases: new Map() };
      this.#windows.set(key, row);
    }
    return row;
  }
}

function leaseOf(row: Counted, session: string): LeaseRow {
  let lease = row.leases.get(session);
  if (lease === undefined) {
    lease = { ...NONE };
    row.leases.set(session, lease);
  }
  return lease;
}
