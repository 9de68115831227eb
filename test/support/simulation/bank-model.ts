/** What the bank's function in Postgres does, in memory: held against the real one by a test, for simulations without servers. */

interface Row {
  spent: number;
  held: number;
}

interface Lease {
  held: number;
  lost: number;
}

interface Session {
  seq: number;
  answer: Answer;
  until: number;
  lapsed: boolean;
}

interface Answer {
  readonly grants: readonly (readonly [spent: number, held: number, own: number])[];
  readonly lapsed: boolean;
  readonly replicas: number;
}

type Settled = readonly [limit: string, start: number, keep: number, used: number, freed: number];
type Wanted = readonly [
  limit: string,
  start: number,
  keep: number,
  most: number,
  need: number,
  ahead: number,
];

export class BankModel {
  readonly windows = new Map<string, Row>();
  readonly #sessions = new Map<string, Session>();
  readonly #leases = new Map<string, Map<string, Lease>>();
  readonly #now: () => number;
  /** The most by which any window was above its amount after a draw. */
  overshoot = Number.NEGATIVE_INFINITY;
  draws = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  draw(
    me: string,
    number: number,
    leaseMs: number,
    settled: readonly Settled[],
    wanted: readonly Wanted[],
    closes: boolean,
  ): Answer {
    const before = this.#sessions.get(me);
    if (before?.seq === number) return before.answer;
    if (before !== undefined && before.seq > number) throw new Error('a draw out of order');
    for (const one of [...settled, ...wanted].flat()) {
      if (typeof one === 'number' && !Number.isSafeInteger(one))
        throw new Error(`no bigint: ${one}`);
    }
    this.draws++;
    const now = this.#now();
    for (const [id, session] of this.#sessions) {
      if (!session.lapsed && session.until < now) this.#lapse(id, session);
    }
    const lapsed = before?.lapsed ?? false;
    let replicas = before === undefined ? 1 : 0;
    for (const session of this.#sessions.values()) if (!session.lapsed) replicas++;
    const leases = this.#leases.get(me) ?? new Map<string, Lease>();
    this.#leases.set(me, leases);
    for (const [limit, start, , used, freed] of settled) {
      const place = `${limit} ${start}`;
      const row = this.#row(place);
      const lease = leases.get(place) ?? { held: 0, lost: 0 };
      const ofUsed = take(lease, used);
      row.spent += used - ofUsed.lost;
      row.held -= ofUsed.held;
      const ofFreed = take(lease, freed);
      row.spent -= ofFreed.lost;
      row.held -= ofFreed.held;
    }
    const grants = wanted.map(([limit, start, , most, need, ahead]) => {
      const place = `${limit} ${start}`;
      const row = this.#row(place);
      const free = Math.max(0, most - row.spent - row.held);
      let granted = Math.min(need, free);
      granted += Math.min(ahead, Math.floor(Math.floor((free - granted) / 10) / replicas));
      if (lapsed || closes) granted = 0;
      row.held += granted;
      const lease = leases.get(place) ?? { held: 0, lost: 0 };
      lease.held += granted;
      leases.set(place, lease);
      this.overshoot = Math.max(this.overshoot, row.spent + row.held - most);
      return [row.spent, row.held, lease.held] as const;
    });
    if (closes) {
      for (const [place, { held, lost }] of leases) {
        const row = this.#row(place);
        row.held -= held;
        row.spent -= lost;
      }
      this.#leases.delete(me);
    }
    const answer = { grants, lapsed, replicas };
    const until = lapsed ? before!.until : now + leaseMs;
    this.#sessions.set(me, { seq: number, answer, until, lapsed: lapsed || closes });
    return answer;
  }

  #row(place: string): Row {
    const row = this.windows.get(place) ?? { spent: 0, held: 0 };
    this.windows.set(place, row);
    return row;
  }

  #lapse(id: string, session: Session): void {
    session.lapsed = true;
    for (const [place, lease] of this.#leases.get(id) ?? []) {
      const row = this.#row(place);
      row.spent += lease.held;
      row.held -= lease.held;
      lease.lost += lease.held;
      lease.held = 0;
    }
  }
}

/** Units come from what is held first, then from what counts as lost. */
function take(lease: Lease, units: number): Lease {
  const held = Math.min(lease.held, units);
  const lost = Math.min(lease.lost, units - held);
  lease.held -= held;
  lease.lost -= lost;
  return { held, lost };
}
