/** The keys of a provider, and its places (a key with a model): which one a request gets. */

import { hashOf, scoreOf } from '../lib/text/rendezvous.ts';
import { Key, Loan, Model, type Place, type PlaceEvents, type Revealing } from './health/place.ts';
import { AWAKE, DUE, RESTING, type Rest, type RestLimits } from './health/rest.ts';

/** Identifies a client's session: the same number for all its requests. */
export interface Session {
  /** 32 bits; computed when it is first read. */
  readonly hash: number;
}

export interface KeyRingOptions {
  readonly limits: RestLimits;
  /** Milliseconds that only grow. */
  readonly clock?: () => number;
  readonly onChange?: PlaceEvents['onChange'];
  readonly onRest?: PlaceEvents['onRest'];
  /** The ring of the configuration before this one; a key that was in it keeps what is known of it. */
  readonly before?: KeyRing | undefined;
}

// Clients choose the names of models.
const MAX_MODELS = 1000;

export class KeyRing implements PlaceEvents {
  readonly limits: RestLimits;
  readonly #keys: readonly Key[];
  readonly #isKeyless: boolean;
  readonly #models: Map<string, Model>;
  readonly #clock: () => number;
  readonly #onChange: PlaceEvents['onChange'] | undefined;
  readonly #onRest: PlaceEvents['onRest'] | undefined;
  #next = 0;

  constructor(secrets: readonly Revealing[], options: KeyRingOptions) {
    const { limits, clock = () => performance.now(), onChange, onRest, before } = options;
    const known = before === undefined ? [] : before.#keys;
    this.limits = limits;
    this.#clock = clock;
    this.#onChange = onChange;
    this.#onRest = onRest;
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
   * The next key in turn that does not rest, for what is no matter of a model. When all rest, the one that is due
   * first: a rest is a guess about the vendor, and a refusal costs less than a request that is never tried.
   */
  lendAny(): Loan {
    const now = this.#clock();
    const keys = this.#keys;
    let chosen: Key | undefined;
    for (let i = 0; i < keys.length; i++) {
      const at = (this.#next + i) % keys.length;
      const key = keys[at]!;
      if (key.rest.until <= now) {
        chosen = key;
        this.#next = (at + 1) % keys.length;
        break;
      }
      if (chosen === undefined || key.rest.until < chosen.rest.until) chosen = key;
    }
    return new Loan(this, chosen!, undefined, now);
  }

  /** The key of a request to a model, to be settled in any case. */
  lend(model: string, session: Session): Loan {
    const now = this.#clock();
    const place = this.#choose(model, session, now);
    return new Loan(this, place.key, place, now);
  }

  /** Another key for the same model as this loan's; undefined where none is awake. */
  lendAnother(loan: Loan): Loan | undefined {
    const now = this.#clock();
    const model = loan.place && this.#models.get(loan.place.model);
    const place = model?.places.find(
      (one) => one !== loan.place && one.standing(now) === AWAKE && one.share(now) === 1,
    );
    return place && new Loan(this, place.key, place, now);
  }

  /**
   * The place of a request to a model: that of its session, which keeps the vendor's prompt cache warm; another one
   * if that one rests or is much slower. When all rest, the one that is due first.
   */
  placeFor(model: string, session: Session): Place {
    return this.#choose(model, session, this.#clock());
  }

  /** Before it is sent: its place may have begun to rest while the request waited in line. */
  renew(loan: Loan, session: Session): void {
    const now = this.#clock();
    if (loan.place === undefined || !loan.isBarred(now)) return;
    loan.moveTo(this.#choose(loan.place.model, session, now), now);
  }

  /** How many keys could be tried now. */
  awake(now = this.#clock()): number {
    return this.#isKeyless ? 0 : this.#keys.filter(({ rest }) => rest.until <= now).length;
  }

  get keys(): readonly Key[] {
    return this.#keys;
  }

  get models(): Iterable<Model> {
    return this.#models.values();
  }

  onChange(...change: Parameters<PlaceEvents['onChange']>): void {
    this.#onChange?.(...change);
  }

  onRest(...rest: Parameters<NonNullable<PlaceEvents['onRest']>>): void {
    this.#onRest?.(...rest);
  }

  /**
   * What another replica says of this upstream.
   * @param key as `isKey` knows it; undefined: of every key
   * @param model undefined: of every model
   * @returns the rest; undefined: there is no such key
   */
  restOf(isKey: ((key: Key) => boolean) | undefined, model: string | undefined): Rest | undefined {
    if (isKey === undefined) return model === undefined ? undefined : this.#model(model).rest;
    if (model === undefined) return this.#keys.find(isKey)?.rest;
    return this.#model(model).places.find((place) => isKey(place.key))?.rest;
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
    const standing = place.standing(now);
    if (standing === RESTING) {
      if (soonest === undefined || place.until < soonest.until) soonest = place;
      continue;
    }
    // One that is due gets no ramp: its share begins when it has answered.
    const share = standing === DUE ? 1 : place.share(now);
    const score = scoreOf(hash, place.key.hash, share);
    if (score > bestScore) {
      [second, secondScore] = [best, bestScore];
      [best, bestScore] = [place, score];
    } else if (score > secondScore) [second, secondScore] = [place, score];
  }
  if (best === undefined) return soonest!;
  const slow =
    second !== undefined &&
    best.standing(now) === AWAKE &&
    second.standing(now) === AWAKE &&
    best.load.isSlowerThan(second.load, now);
  return slow ? second! : best;
}
