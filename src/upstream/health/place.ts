/** A place: one key of an upstream with one model. What is known of it, and the requests that are sent to it. */

import type { ReadonlyHeaders } from '../../lib/http/headers.ts';
import { FailureWindow } from './failure-window.ts';
import { Load } from './load.ts';
import { quotasIn, type VendorQuota } from './reset-headers.ts';
import {
  AWAKE,
  type Cause,
  changesSoFar,
  type Prober,
  RESTING,
  Rest,
  type RestLimits,
  type Standing,
} from './rest.ts';
import { type Sign, signOfStatus } from './signs.ts';

/** Between two looks at the limits in a vendor's headers, per place. */
const QUOTA_EVERY_MS = 1000;

/** The last failure of a place that was not the client's fault. */
export interface PlaceFailure {
  /** Milliseconds since 1970. */
  readonly time: number;
  /** Of the vendor's answer; 0: there was none. */
  readonly status: number;
  readonly kind: string;
  readonly message: string;
}

/** What the vendor said last about its limits. */
export interface SeenQuotas {
  /** Milliseconds since 1970. */
  readonly time: number;
  readonly quotas: readonly VendorQuota[];
}

/** Anything that shows its text only on purpose. */
export interface Revealing {
  reveal(): string;
  /** A name for logs that gives nothing away. */
  readonly label?: string;
}

/** A key of an upstream; one that needs none has a single one without text. */
export class Key {
  readonly secret: Revealing | undefined;
  /** For the choice among keys by session. */
  readonly hash: number;
  /** A vendor that refuses the key refuses it for every model. */
  readonly rest = new Rest();

  constructor(secret: Revealing | undefined, hash: number) {
    this.secret = secret;
    this.hash = hash;
  }
}

/** A model of an upstream, with the place of each key. */
export class Model {
  readonly name: string;
  /** A vendor without capacity refuses every key. */
  readonly rest: Rest;
  /** In the order of the keys; never empty. */
  readonly places: readonly Place[];

  constructor(name: string, keys: readonly Key[], before?: Model) {
    this.name = name;
    this.rest = before?.rest ?? new Rest();
    this.places = keys.map(
      (key) => before?.places.find((place) => place.key === key) ?? new Place(key, name, this.rest),
    );
  }

  /** Nothing is known of it that would be lost with it. */
  get idle(): boolean {
    if (this.rest.until !== 0) return false;
    return this.places.every(({ rest, load }) => rest.until === 0 && load.waiting === 0);
  }
}

export class Place {
  readonly key: Key;
  readonly model: string;
  readonly modelRest: Rest;
  readonly rest = new Rest();
  readonly failures = new FailureWindow();
  readonly load = new Load();
  lastFailure: PlaceFailure | undefined;
  /** The vendor said so last. */
  noModel = false;
  seen: SeenQuotas | undefined;
  /** When the vendor's headers were looked at last, by the clock of the places. */
  #looked = Number.NEGATIVE_INFINITY;

  constructor(key: Key, model: string, modelRest: Rest) {
    this.key = key;
    this.model = model;
    this.modelRest = modelRest;
  }

  standing(now: number): Standing {
    const { key, modelRest, rest } = this;
    if (key.rest.until === 0 && modelRest.until === 0 && rest.until === 0) return AWAKE;
    const most = Math.max(key.rest.standing(now), modelRest.standing(now), rest.standing(now));
    return most as Standing;
  }

  /** An answer came to a request that was sent at this time: what does the vendor say is left? */
  sawHeaders(headers: ReadonlyHeaders, now: number): void {
    if (now - this.#looked < QUOTA_EVERY_MS) return;
    this.#looked = now;
    const time = Date.now();
    const quotas = quotasIn(headers, time);
    if (quotas.length > 0) this.seen = { time, quotas };
  }

  /** When none of its rests lasts any more. */
  get until(): number {
    return Math.max(this.key.rest.until, this.modelRest.until, this.rest.until);
  }

  /** The share of its usual traffic that it gets now: 0 to 1. */
  share(now: number): number {
    return Math.min(this.key.rest.share(now), this.modelRest.share(now), this.rest.share(now));
  }
}

/** What a ring of keys hears of its places. */
export interface PlaceEvents {
  readonly limits: RestLimits;
  /** A rest began or ended; `place` is left out if the key was used without a model. */
  onChange(rest: Rest, begins: boolean, place: Place | undefined, key: Key): void;
  /** A rest began, or became longer. */
  onRest?(rest: Rest, place: Place | undefined, key: Key): void;
}

/** A key on loan for one try, at one place. Report the outcome with {@link settle}. */
export class Loan implements Prober {
  readonly #events: PlaceEvents;
  #key: Key;
  #place: Place | undefined;
  #set = 0;
  #sentAt = 0;
  #open = true;

  /** `place` is left out for what is no matter of a model. */
  constructor(events: PlaceEvents, key: Key, place: Place | undefined, now: number) {
    this.#events = events;
    this.#key = key;
    this.#place = place;
    this.#begin(now);
  }

  get place(): Place | undefined {
    return this.#place;
  }

  /** When it was given out. */
  get sentAt(): number {
    return this.#sentAt;
  }

  get set(): number {
    return this.#set;
  }

  /** To another place before the request was sent: meanwhile the vendor has refused others at this one. */
  moveTo(place: Place, now: number): void {
    this.#release();
    this.#key = place.key;
    this.#place = place;
    this.#begin(now);
  }

  #begin(now: number): void {
    this.#sentAt = now;
    this.#set = changesSoFar();
    const place = this.#place;
    if (place === undefined) return;
    place.load.waiting++;
    // What rests and is due is tried by this request alone.
    if (place.standing(now) === AWAKE) return;
    place.key.rest.claim(this, now);
    place.modelRest.claim(this, now);
    place.rest.claim(this, now);
  }

  #release(): void {
    const place = this.#place;
    if (place === undefined) return;
    place.load.waiting--;
    place.key.rest.release(this);
    place.modelRest.release(this);
    place.rest.release(this);
  }

  /** The key itself; undefined: the upstream needs none. */
  get text(): string | undefined {
    return this.#key.secret?.reveal();
  }

  /** A name for logs that gives nothing away; undefined: there is no key. */
  get label(): string | undefined {
    return this.#key.secret?.label;
  }

  /** The head of the vendor's answer has come. */
  sawHeaders(headers: ReadonlyHeaders): void {
    this.#place?.sawHeaders(headers, this.#sentAt);
  }

  /** What went wrong, for those who look at the place. */
  noteFailure(failure: PlaceFailure): void {
    if (this.#place !== undefined) this.#place.lastFailure = failure;
  }

  /** Its place was awake or due when it was chosen, and is not any more. */
  isBarred(now: number): boolean {
    const place = this.#place;
    if (place === undefined || place.standing(now) !== RESTING) return false;
    return [place.key.rest, place.modelRest, place.rest].some((rest) => rest.isOldNews(this));
  }

  /**
   * The end of the request. Only the first call counts.
   * @param streamed the time to the first content is comparable with that of other streams
   */
  settle(sign: Sign, now: number, streamed = false): void {
    if (!this.#open) return;
    this.#open = false;
    this.#release();
    if (sign === 'neither') return;
    const place = this.#place;
    if (sign === 'answered') {
      if (place !== undefined) this.#answered(place, now, streamed);
      return;
    }
    if (sign === 'no_model') {
      if (place !== undefined) place.noModel = true;
      return;
    }
    place?.load.failed(now - this.#sentAt, now);
    if (sign === 'failed') {
      if (place !== undefined) this.#failed(place, now);
    } else if (isAboutKey(sign)) this.#rest(this.#key.rest, sign, now);
    else if (place !== undefined) {
      this.#rest(sign.reason === 'overloaded' ? place.modelRest : place.rest, sign, now);
    }
  }

  /** The end of a request of whose answer nothing is read here but the status. */
  settleStatus(status: number, now: number): void {
    this.settle(signOfStatus(status), now);
  }

  #answered(place: Place, now: number, streamed: boolean): void {
    const { key, load, rest, modelRest, failures } = place;
    failures.answered(now);
    place.noModel = false;
    if (streamed) load.answered(now - this.#sentAt, now);
    if (key.rest.until === 0 && modelRest.until === 0 && rest.until === 0) return;
    for (const one of [key.rest, modelRest, rest]) {
      if (!one.end(this, now)) continue;
      if (one === rest) failures.clear();
      this.#events.onChange(one, false, place, key);
    }
  }

  #failed(place: Place, now: number): void {
    const { rest, failures } = place;
    if (rest.isOldNews(this)) return;
    // A place that is tried rests again at the first failure.
    if (rest.until === 0 && !failures.failed(now)) return;
    failures.clear();
    this.#rest(rest, FAILURES, now);
  }

  #rest(rest: Rest, cause: Cause, now: number): void {
    const { until } = rest;
    if (rest.begin(cause, this, now, this.#events.limits)) {
      this.#events.onChange(rest, true, this.#place, this.#key);
    }
    if (rest.until > until) this.#events.onRest?.(rest, this.#place, this.#key);
  }
}

const FAILURES: Cause = { reason: 'failures', status: 0 };

const isAboutKey = ({ reason }: Cause): boolean => reason === 'key_refused' || reason === 'quota';
