/** Limits of several processes: a worker asks the first process, in one message for each turn of the event loop. */

import { GatewayError } from '../conversation/errors.ts';
import { atTickEnd, type TickTask } from '../lib/loop/tick-end.ts';
import type {
  Admission,
  Charge,
  Law,
  Limits,
  OwnLimits,
  Refusal,
  Standing,
  Ticket,
} from './limits.ts';

/** Used, held, remaining, milliseconds to the reset (null: never), its time (null: none). */
type WireStanding = readonly [number, number, number, number | null, number | null];
/** Number of the law, amount, 1 for a soft charge, 2 for a tentative one. */
type WireCharge = readonly [number, number, 0 | 1 | 2];

/** What a worker sends. Laws are numbered by the worker, and sent once. */
export interface LimitsQuestion {
  /** All numbers of before are void. */
  readonly anew?: true;
  readonly laws: readonly (readonly [number, Law])[];
  readonly asks: readonly (readonly [number, readonly WireCharge[]])[];
  /** Null: abandoned. */
  readonly ends: readonly (readonly [number, readonly (number | null)[] | null])[];
  readonly standings: readonly (readonly [number, readonly number[]])[];
}

/** What the first process answers, by the numbers of the questions. */
export interface LimitsAnswer {
  readonly admitted: readonly (readonly [number, readonly WireStanding[]])[];
  readonly refused: readonly (readonly [
    number,
    {
      /** Place among the charges. */
      readonly law: number;
      readonly refusedBy: readonly number[];
      readonly retryAfterMs: number | null;
      readonly standings: readonly WireStanding[];
      readonly asked: number;
    },
  ])[];
  readonly standings: readonly (readonly [number, readonly WireStanding[]])[];
}

const toWire = ({ used, held, remaining, resetMs, resetAt }: Standing): WireStanding => [
  used,
  held,
  remaining,
  resetMs ?? null,
  resetAt ?? null,
];
const fromWire = (law: Law, [used, held, remaining, resetMs, resetAt]: WireStanding): Standing => ({
  law,
  used,
  held,
  remaining,
  resetMs: resetMs ?? undefined,
  ...(resetAt !== null && { resetAt }),
});

/** In the first process: what one worker has asked and not ended. */
export class WorkerLimits {
  readonly #limits: OwnLimits;
  readonly #laws = new Map<number, Law>();
  readonly #tickets = new Map<number, Ticket>();

  constructor(limits: OwnLimits) {
    this.#limits = limits;
  }

  answer({ anew, laws, asks, ends, standings }: LimitsQuestion): LimitsAnswer | undefined {
    if (anew === true) this.#laws.clear();
    for (const [number, law] of laws) this.#laws.set(number, law);
    for (const [number, used] of ends) {
      const ticket = this.#tickets.get(number);
      this.#tickets.delete(number);
      if (used === null) ticket?.abandon();
      else ticket?.settle(used.map((units) => units ?? Number.NaN));
    }
    const admitted: LimitsAnswer['admitted'][number][] = [];
    const refused: LimitsAnswer['refused'][number][] = [];
    for (const [number, wire] of asks) {
      const charges = wire.map(([law, amount, soft]) => ({
        law: this.#law(law),
        amount,
        soft: soft === 1,
        tentative: soft === 2,
      }));
      const admission = this.#limits.admit(charges);
      if (admission.admitted) {
        this.#tickets.set(number, admission);
        admitted.push([number, admission.standings().map(toWire)]);
        continue;
      }
      const { law, refusedBy, retryAfterMs, asked } = admission;
      const place = (one: Law) => charges.findIndex((charge) => charge.law === one);
      refused.push([
        number,
        {
          law: place(law),
          refusedBy: refusedBy.map(place),
          retryAfterMs: retryAfterMs ?? null,
          standings: admission.standings().map(toWire),
          asked,
        },
      ]);
    }
    const shown = standings.map(([number, ids]) => {
      const found = this.#limits.standing(ids.map((id) => this.#law(id)));
      return [number, found.map(toWire)] as const;
    });
    if (asks.length === 0 && standings.length === 0) return undefined;
    return { admitted, refused, standings: shown };
  }

  /** The worker has ended: what it had reserved counts as used, since it was sent. */
  ended(): void {
    for (const ticket of this.#tickets.values()) ticket.settle([]);
    this.#tickets.clear();
  }

  #law(number: number): Law {
    const law = this.#laws.get(number);
    if (law === undefined) throw new Error(`a worker named law ${number} and never sent it`);
    return law;
  }
}

const markOf = ({ soft, tentative }: Charge) => {
  if (soft === true) return 1;
  return tentative === true ? 2 : 0;
};

/** How a worker reaches the first process. */
export interface LimitsChannel {
  /** False: the channel is broken. */
  send(question: LimitsQuestion): boolean;
  /** The listener gets every answer, and undefined when the channel breaks. */
  listen(listener: (answer: LimitsAnswer | undefined) => void): void;
}

/** A first process that is busy for longer is taken as lost. */
const ANSWER_MS = 5000;
/** Laws that are numbered before the numbers begin anew. */
const MAX_LAWS = 50_000;

interface Waiting {
  readonly charges: readonly Charge[];
  resolve(admission: Admission): void;
  reject(error: GatewayError): void;
}

interface WaitingStanding {
  readonly laws: readonly Law[];
  resolve(standings: readonly Standing[]): void;
  reject(error: GatewayError): void;
}

/** In a worker. Where the first process does not answer, nothing is admitted: it could be over a limit. */
export class RemoteLimits implements Limits, TickTask {
  readonly #channel: LimitsChannel;
  #broken = false;
  #numbers = 0;
  readonly #laws = new Map<Law, number>();
  #anew = false;
  #newLaws: [number, Law][] = [];
  #asks: LimitsQuestion['asks'][number][] = [];
  #ends: LimitsQuestion['ends'][number][] = [];
  #standings: LimitsQuestion['standings'][number][] = [];
  #scheduled = false;
  readonly #waiting = new Map<number, Waiting>();
  readonly #waitingStandings = new Map<number, WaitingStanding>();

  constructor(channel: LimitsChannel) {
    this.#channel = channel;
    channel.listen((answer) => (answer === undefined ? this.#break() : this.#answered(answer)));
  }

  admit(charges: readonly Charge[]): Promise<Admission> {
    const { promise, resolve, reject } = Promise.withResolvers<Admission>();
    if (this.#broken) return Promise.reject(lost());
    const number = ++this.#numbers;
    this.#waiting.set(number, { charges, resolve, reject });
    this.#asks.push([
      number,
      charges.map((charge) => [this.#numberOf(charge.law), charge.amount, markOf(charge)]),
    ]);
    this.#schedule();
    return promise;
  }

  standing(laws: readonly Law[]): Promise<readonly Standing[]> {
    if (this.#broken) return Promise.reject(lost());
    const { promise, resolve, reject } = Promise.withResolvers<readonly Standing[]>();
    const number = ++this.#numbers;
    this.#waitingStandings.set(number, { laws, resolve, reject });
    this.#standings.push([number, laws.map((law) => this.#numberOf(law))]);
    this.#schedule();
    return promise;
  }

  onTickEnd(): void {
    this.#scheduled = false;
    const question: LimitsQuestion = {
      ...(this.#anew && { anew: true as const }),
      laws: this.#newLaws,
      asks: this.#asks,
      ends: this.#ends,
      standings: this.#standings,
    };
    this.#anew = this.#laws.size >= MAX_LAWS;
    if (this.#anew) this.#laws.clear();
    this.#newLaws = [];
    this.#asks = [];
    this.#ends = [];
    this.#standings = [];
    if (!this.#channel.send(question)) {
      this.#break();
      return;
    }
    const asked = [...question.asks, ...question.standings].map(([number]) => number);
    if (asked.length > 0) setTimeout(() => this.#giveUp(asked), ANSWER_MS).unref();
  }

  /** For tickets alone: what was admitted is over. Null: nothing was done. */
  ended(number: number, used: readonly number[] | null): void {
    if (this.#broken) return;
    // What is not a number cannot be sent as one.
    const sent = used?.map((units) => (Number.isNaN(units) ? null : units)) ?? null;
    this.#ends.push([number, sent]);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    atTickEnd(this);
  }

  #numberOf(law: Law): number {
    const known = this.#laws.get(law);
    if (known !== undefined) return known;
    const number = ++this.#numbers;
    this.#laws.set(law, number);
    this.#newLaws.push([number, law]);
    return number;
  }

  #answered({ admitted, refused, standings }: LimitsAnswer): void {
    for (const [number, wire] of admitted) {
      const waiting = this.#waiting.get(number);
      this.#waiting.delete(number);
      // It came too late: the request was refused meanwhile.
      if (waiting === undefined) this.ended(number, null);
      else waiting.resolve(new RemoteTicket(this, number, waiting.charges, wire));
    }
    for (const [number, wire] of refused) {
      const waiting = this.#waiting.get(number);
      this.#waiting.delete(number);
      waiting?.resolve(refusalOf(waiting.charges, wire));
    }
    for (const [number, wire] of standings) {
      const waiting = this.#waitingStandings.get(number);
      this.#waitingStandings.delete(number);
      waiting?.resolve(waiting.laws.map((law, i) => fromWire(law, wire[i]!)));
    }
  }

  #giveUp(numbers: readonly number[]): void {
    for (const number of numbers) {
      const waiting = this.#waiting.get(number) ?? this.#waitingStandings.get(number);
      this.#waiting.delete(number);
      this.#waitingStandings.delete(number);
      waiting?.reject(lost());
    }
  }

  #break(): void {
    this.#broken = true;
    this.#giveUp([...this.#waiting.keys(), ...this.#waitingStandings.keys()]);
  }
}

const lost = () =>
  new GatewayError('overloaded', 'The limits of this key cannot be checked at the moment.', {
    code: 'limits_unavailable',
    retryAfter: 1,
  });

function refusalOf(
  charges: readonly Charge[],
  { law, refusedBy, retryAfterMs, standings: wire, asked }: LimitsAnswer['refused'][number][1],
): Refusal {
  const standings = wire.map((one, place) => fromWire(charges[place]!.law, one));
  return {
    admitted: false,
    law: charges[law]!.law,
    retryAfterMs: retryAfterMs ?? undefined,
    standing: standings[law]!,
    asked,
    refusedBy: refusedBy.map((place) => charges[place]!.law),
    standings: () => standings,
  };
}

/** As it stands once these units, which it counts, are given back. */
function without(standing: Standing, units: number): Standing {
  const { law, used, held, remaining, resetMs } = standing;
  const left = Math.max(0, used - units);
  return {
    ...standing,
    used: left,
    held: Math.max(0, held - units),
    remaining: Math.min(law.amount, remaining + units),
    // A rate fills evenly; a window ends when it ends.
    ...(law.kind === 'rate' &&
      resetMs !== undefined && { resetMs: Math.ceil((resetMs * left) / Math.max(1, used)) }),
  };
}

class RemoteTicket implements Ticket {
  readonly admitted = true;
  #limits: RemoteLimits | undefined;
  readonly #number: number;
  readonly #charges: readonly Charge[];
  readonly #wire: readonly WireStanding[];
  #abandoned = false;

  constructor(
    limits: RemoteLimits,
    number: number,
    charges: readonly Charge[],
    wire: readonly WireStanding[],
  ) {
    this.#limits = limits;
    this.#number = number;
    this.#charges = charges;
    this.#wire = wire;
  }

  settle(used: readonly number[]): void {
    this.#limits?.ended(this.#number, used);
    this.#limits = undefined;
  }

  abandon(): void {
    this.#abandoned ||= this.#limits !== undefined;
    this.#limits?.ended(this.#number, null);
    this.#limits = undefined;
  }

  standings(count?: number): readonly Standing[] {
    return this.#charges.slice(0, count).map(({ law, amount }, i) => {
      const admitted = fromWire(law, this.#wire[i]!);
      return this.#abandoned ? without(admitted, amount) : admitted;
    });
  }
}
