/** A place is one key of an upstream with one model; a lease is its use by one request. */

import type { ReadonlyHeaders } from '../../lib/http/headers.ts';
import {
  AVAILABLE,
  type Availability,
  type Cause,
  COOLING,
  Cooldown,
  type CooldownLimits,
  changesSoFar,
  FailureWindow,
} from './cooldown.ts';
import { Load } from './load.ts';
import { quotasIn, type VendorQuota } from './reset-headers.ts';
import { type Sign, signOfStatus } from './signs.ts';

/** Between two looks at the limits in a vendor's headers, per place. */
const QUOTA_EVERY_MS = 1000;

/** The last failure of a place that was not the client's fault. */
export interface PlaceFailure {
  /** Milliseconds since 1970. */
  readonly time: number;
  /** Status of the vendor's answer; 0: there was none. */
  readonly status: number;
  readonly kind: string;
  readonly message: string;
}

/** The limits that the vendor reported last. */
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
  readonly cooldown = new Cooldown();

  constructor(secret: Revealing | undefined, hash: number) {
    this.secret = secret;
    this.hash = hash;
  }
}

/** A model of an upstream, with the place of each key. */
export class Model {
  readonly name: string;
  /** A vendor without capacity refuses every key. */
  readonly cooldown: Cooldown;
  /** In the order of the keys; never empty. */
  readonly places: readonly Place[];

  constructor(name: string, keys: readonly Key[], before?: Model) {
    this.name = name;
    this.cooldown = before?.cooldown ?? new Cooldown();
    this.places = keys.map(
      (key) =>
        before?.places.find((place) => place.key === key) ?? new Place(key, name, this.cooldown),
    );
  }

  /** Nothing is known of it that would be lost with it. */
  get idle(): boolean {
    if (this.cooldown.until !== 0) return false;
    return this.places.every(({ cooldown, load }) => cooldown.until === 0 && load.waiting === 0);
  }
}

export class Place {
  readonly key: Key;
  readonly model: string;
  readonly modelCooldown: Cooldown;
  readonly cooldown = new Cooldown();
  readonly failures = new FailureWindow();
  readonly load = new Load();
  lastFailure: PlaceFailure | undefined;
  /** The vendor said so last. */
  noModel = false;
  seen: SeenQuotas | undefined;
  /** When the vendor's headers were looked at last, by the clock of the key ring. */
  #looked = Number.NEGATIVE_INFINITY;

  constructor(key: Key, model: string, modelCooldown: Cooldown) {
    this.key = key;
    this.model = model;
    this.modelCooldown = modelCooldown;
  }

  availability(now: number): Availability {
    const { key, modelCooldown, cooldown } = this;
    if (this.isAvailable) return AVAILABLE;
    return Math.max(
      key.cooldown.availability(now),
      modelCooldown.availability(now),
      cooldown.availability(now),
    ) as Availability;
  }

  get isAvailable(): boolean {
    return (
      this.key.cooldown.until === 0 && this.modelCooldown.until === 0 && this.cooldown.until === 0
    );
  }

  /** All that can keep it from being used. */
  get cooldowns(): readonly [Cooldown, Cooldown, Cooldown] {
    return [this.key.cooldown, this.modelCooldown, this.cooldown];
  }

  /** An answer came to a request that was sent at this time: what does the vendor say is left? */
  sawHeaders(headers: ReadonlyHeaders, now: number): void {
    if (now - this.#looked < QUOTA_EVERY_MS) return;
    this.#looked = now;
    const time = Date.now();
    const quotas = quotasIn(headers, time);
    if (quotas.length > 0) this.seen = { time, quotas };
  }

  /** When the last of its cooldowns is over. */
  get until(): number {
    return Math.max(this.key.cooldown.until, this.modelCooldown.until, this.cooldown.until);
  }

  /** The share of its usual traffic that it gets now: 0 to 1. */
  share(now: number): number {
    const { key, modelCooldown, cooldown } = this;
    return Math.min(key.cooldown.share(now), modelCooldown.share(now), cooldown.share(now));
  }
}

/** A cooldown began, became longer, or ended. */
export interface CooldownChange {
  readonly kind: 'began' | 'longer' | 'ended';
  readonly cooldown: Cooldown;
  /** Undefined if the key was used without a model. */
  readonly place: Place | undefined;
  readonly key: Key;
}

/** What a key ring knows and hears of its leases. */
export interface LeaseTerms {
  readonly limits: CooldownLimits;
  readonly onChange: ((change: CooldownChange) => void) | undefined;
}

const FAILURES: Cause = { reason: 'failures', status: 0 };

/** Many a 403 or 429 is about the model alone, which the client chooses. */
const isAboutKey = ({ reason, status }: Cause): boolean =>
  (reason === 'key_refused' || reason === 'quota') && status !== 403 && status !== 429;

/** One try's use of a key, at one place. Report the outcome with {@link settle}. */
export class Lease {
  readonly #terms: LeaseTerms;
  #key: Key;
  #place: Place | undefined;
  #set = 0;
  #sentAt = 0;
  #open = true;
  /** Who asks. */
  readonly owner: string;

  /** `place` is left out for what is no matter of a model. */
  constructor(terms: LeaseTerms, key: Key, place: Place | undefined, now: number, owner = '') {
    this.owner = owner;
    this.#terms = terms;
    this.#key = key;
    this.#place = place;
    this.#begin(now);
  }

  get place(): Place | undefined {
    return this.#place;
  }

  /** When it began. */
  get sentAt(): number {
    return this.#sentAt;
  }

  /** The key itself; undefined: the upstream needs none. */
  get text(): string | undefined {
    return this.#key.secret?.reveal();
  }

  /** A name for logs that gives nothing away; undefined: there is no key. */
  get label(): string | undefined {
    return this.#key.secret?.label;
  }

  /** Its place was available or due when it was chosen, and no longer is. */
  isBarred(now: number): boolean {
    const place = this.#place;
    if (place === undefined || place.availability(now) !== COOLING) return false;
    return place.cooldowns.some((one) => one.hasChangedSince(this.#set));
  }

  /** To another place before the request was sent: meanwhile the vendor has refused others at this one. */
  moveTo(place: Place, now: number): void {
    this.#release();
    this.#key = place.key;
    this.#place = place;
    this.#begin(now);
  }

  /** The head of the vendor's answer has come. */
  sawHeaders(headers: ReadonlyHeaders): void {
    this.#place?.sawHeaders(headers, this.#sentAt);
  }

  /** Notes the last failure, for people. */
  noteFailure(failure: PlaceFailure): void {
    if (this.#place !== undefined) this.#place.lastFailure = failure;
  }

  /** The end of a request of whose answer nothing is read here but the status. */
  settleStatus(status: number, now: number): void {
    this.settle(signOfStatus(status), now);
  }

  /**
   * The end of the request. Only the first call counts.
   * @param streamed the time to the first content is comparable with that of other streams
   */
  settle(sign: Sign, now: number, streamed = false): void {
    if (!this.#open) return;
    this.#open = false;
    this.#release();
    const place = this.#place;
    if (sign === 'neither') return;
    if (sign === 'answered') {
      if (place !== undefined) this.#answered(place, now, streamed);
    } else if (sign === 'no_model') {
      if (place !== undefined) place.noModel = true;
    } else {
      place?.load.failed(now - this.#sentAt, now);
      if (sign === 'failed') {
        if (place !== undefined) this.#failed(place, now);
      } else if (isAboutKey(sign)) this.#refused(this.#key.cooldown, sign, now);
      else if (place !== undefined) {
        const { modelCooldown, cooldown } = place;
        this.#refused(sign.reason === 'overloaded' ? modelCooldown : cooldown, sign, now);
      }
    }
  }

  #answered(place: Place, now: number, streamed: boolean): void {
    place.failures.answered(now, this.owner);
    place.noModel = false;
    if (streamed) place.load.answered(now - this.#sentAt, now);
    if (place.isAvailable) return;
    for (const cooldown of place.cooldowns) {
      if (!cooldown.answered(this.#set, now)) continue;
      if (cooldown === place.cooldown) place.failures.clear();
      this.#report('ended', cooldown);
    }
  }

  #failed({ cooldown, failures }: Place, now: number): void {
    if (cooldown.hasChangedSince(this.#set)) return;
    // A place that is tried cools down again at the first failure.
    if (cooldown.until === 0 && !failures.failed(now, this.owner)) return;
    failures.clear();
    this.#refused(cooldown, FAILURES, now);
  }

  #refused(cooldown: Cooldown, cause: Cause, now: number): void {
    const change = cooldown.refused(cause, this.#set, now, this.#terms.limits);
    if (change !== undefined) this.#report(change, cooldown);
  }

  #report(kind: CooldownChange['kind'], cooldown: Cooldown): void {
    this.#terms.onChange?.({ kind, cooldown, place: this.#place, key: this.#key });
  }

  #begin(now: number): void {
    this.#sentAt = now;
    this.#set = changesSoFar();
    const place = this.#place;
    if (place === undefined) return;
    place.load.waiting++;
    // What cools down and is due is tried by this request alone.
    if (place.isAvailable) return;
    for (const cooldown of place.cooldowns) cooldown.claim(this, now);
  }

  #release(): void {
    const place = this.#place;
    if (place === undefined) return;
    place.load.waiting--;
    if (place.isAvailable) return;
    for (const cooldown of place.cooldowns) cooldown.release(this);
  }
}
