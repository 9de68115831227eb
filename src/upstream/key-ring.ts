/** The keys of a provider, and its places (a key with a model): which one a request gets. */

import { hashOf, scoreOf } from '../lib/text/rendezvous.ts';
import { COOLING, type Cooldown, type CooldownLimits, DUE } from './health/cooldown.ts';
import { Key, Lease, type LeaseTerms, Model, type Place, type Revealing } from './health/place.ts';

/** Identifies a client's session: the same number for all its requests. */
export interface Session {
  /** 32 bits; computed when it is first read. */
  readonly hash: number;
  /** The principal's id. Left out: all requests count as one owner's. */
  readonly owner?: string;
}

export interface KeyRingOptions {
  readonly limits: CooldownLimits;
  /** Milliseconds that only grow. */
  readonly clock?: (() => number) | undefined;
  readonly onChange?: LeaseTerms['onChange'];
  /** The ring of the configuration before this one; a key that was in it keeps what is known of it. */
  readonly before?: KeyRing | undefined;
}

// Clients choose the names of models.
const MAX_MODELS = 1000;

export class KeyRing {
  readonly limits: CooldownLimits;
  readonly onChange: LeaseTerms['onChange'];
  readonly #keys: readonly Key[];
  readonly #isKeyless: boolean;
  readonly #models: Map<string, Model>;
  readonly #clock: () => number;
  #next = 0;

  constructor(secrets: readonly Revealing[], options: KeyRingOptions) {
    const { limits, clock = () => performance.now(), onChange, before } = options;
    const known = before === undefined ? [] : before.#keys;
    this.limits = limits;
    this.#clock = clock;
    this.onChange = onChange;
    this.#isKeyless = secrets.length === 0;
    const wanted = this.#isKeyless ? [undefined] : secrets;
    this.#keys = wanted.map((secret) => {
      const text = secret?.reveal();
      const last = known.find((key) => key.secret?.reveal() === text);
      return last ?? new Key(secret, hashOf(text ?? ''));
    });
    const same =
      known.length === this.#keys.length && this.#keys.every((key, i) => key === known[i]);
    this.#models = same ? before!.#models : new Map();
    if (same || before === undefined) return;
    for (const [name, model] of before.#models) {
      this.#models.set(name, new Model(name, this.#keys, model));
    }
  }

  get size(): number {
    return this.#isKeyless ? 0 : this.#keys.length;
  }

  get now(): number {
    return this.#clock();
  }

  /**
   * The next key in turn that is available, for what is no matter of a model. When all cool down, the one that is due
   * first: a cooldown is a guess about the vendor, and a refusal costs less than a request that is never tried.
   */
  leaseAny(): Lease {
    const now = this.#clock();
    const keys = this.#keys;
    let chosen: Key | undefined;
    for (let i = 0; i < keys.length; i++) {
      const at = (this.#next + i) % keys.length;
      const key = keys[at]!;
      if (key.cooldown.until <= now) {
        chosen = key;
        this.#next = (at + 1) % keys.length;
        break;
      }
      if (chosen === undefined || key.cooldown.until < chosen.cooldown.until) chosen = key;
    }
    return new Lease(this, chosen!, undefined, now);
  }

  /** The key of this name, for what it alone can see; undefined: it is no longer configured. */
  leaseNamed(label: string | undefined): Lease | undefined {
    const key = this.#keys.find(({ secret }) => secret?.label === label);
    return key && new Lease(this, key, undefined, this.#clock());
  }

  /** The key of a request to a model, to be settled in any case. */
  lease(model: string, session: Session): Lease {
    const now = this.#clock();
    const place = this.#choose(model, session, now);
    return new Lease(this, place.key, place, now, session.owner);
  }

  /** Another key for the same model as this lease's; undefined where none is available. */
  leaseAnother(lease: Lease): Lease | undefined {
    const now = this.#clock();
    const model = lease.place && this.#models.get(lease.place.model);
    const place = model?.places.find(
      (one) => one !== lease.place && one.isAvailable && one.share(now) === 1,
    );
    return place && new Lease(this, place.key, place, now, lease.owner);
  }

  /**
   * The place of a request to a model: that of its session, which keeps the vendor's prompt cache warm; another one
   * if that one cools down or is much slower. When all do, the one that is due first.
   */
  placeFor(model: string, session: Session): Place {
    return this.#choose(model, session, this.#clock());
  }

  /** Before it is sent: its place may cool down since the request began to wait in line. */
  renew(lease: Lease, session: Session): void {
    const now = this.#clock();
    if (lease.place === undefined || !lease.isBarred(now)) return;
    lease.moveTo(this.#choose(lease.place.model, session, now), now);
  }

  /** How many keys could be tried now. */
  available(now = this.#clock()): number {
    return this.#isKeyless ? 0 : this.#keys.filter(({ cooldown }) => cooldown.until <= now).length;
  }

  get keys(): readonly Key[] {
    return this.#keys;
  }

  get models(): Iterable<Model> {
    return this.#models.values();
  }

  /**
   * What another replica says of this upstream.
   * @param key as `isKey` knows it; undefined: of every key
   * @param model undefined: of every model
   * @returns undefined: there is no such key
   */
  cooldownOf(
    isKey: ((key: Key) => boolean) | undefined,
    model: string | undefined,
  ): Cooldown | undefined {
    if (isKey === undefined) return model === undefined ? undefined : this.#model(model).cooldown;
    if (model === undefined) return this.#keys.find(isKey)?.cooldown;
    return this.#model(model).places.find((place) => isKey(place.key))?.cooldown;
  }

  /** When an answer came from this place last, by the clock of the ring. */
  answeredAt(isKey: (key: Key) => boolean, model: string): number {
    const place = this.#models.get(model)?.places.find((one) => isKey(one.key));
    return place?.failures.answeredAt ?? Number.NEGATIVE_INFINITY;
  }

  #choose(model: string, session: Session, now: number): Place {
    const { places } = this.#model(model);
    return places.length === 1 ? places[0]! : choose(places, session, now);
  }

  #model(name: string): Model {
    const known = this.#models.get(name);
    if (known !== undefined) return known;
    if (this.#models.size >= MAX_MODELS) this.#forgetOne();
    const model = new Model(name, this.#keys);
    this.#models.set(name, model);
    return model;
  }

  /** The oldest one of which nothing is known, else the oldest. */
  #forgetOne(): void {
    let first: string | undefined;
    for (const [name, model] of this.#models) {
      first ??= name;
      if (!model.idle) continue;
      first = name;
      break;
    }
    if (first !== undefined) this.#models.delete(first);
  }
}

/** The session's place; places that are due take part, so that a request tries them. */
function choose(places: readonly Place[], session: Session, now: number): Place {
  const { hash } = session;
  let best: Place | undefined;
  let second: Place | undefined;
  let bestScore = -1;
  let secondScore = -1;
  let soonest: Place | undefined;
  for (const place of places) {
    const availability = place.availability(now);
    if (availability === COOLING) {
      if (soonest === undefined || place.until < soonest.until) soonest = place;
      continue;
    }
    // One that is due gets no ramp: its share begins when it has answered.
    const share = availability === DUE ? 1 : place.share(now);
    const score = scoreOf(hash, place.key.hash, share);
    if (score > bestScore) {
      [second, secondScore] = [best, bestScore];
      [best, bestScore] = [place, score];
    } else if (score > secondScore) [second, secondScore] = [place, score];
  }
  if (best === undefined) return soonest!;
  const slow =
    second !== undefined &&
    best.isAvailable &&
    second.isAvailable &&
    best.load.isSlowerThan(second.load, now);
  return slow ? second! : best;
}
