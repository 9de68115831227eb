/** The keys of a provider: used in turn, left alone for a while after the vendor refused one. */

/** Anything that shows its text only on purpose. */
interface Revealing {
  reveal(): string;
  /** A name for logs that gives nothing away. */
  readonly label?: string;
}

interface Slot {
  readonly key: Revealing;
  restUntil: number;
}

/** A key on loan for one try. */
export interface LentKey {
  readonly text: string | undefined;
  /** A name for logs that gives nothing away; undefined: there is no key. */
  readonly label: string | undefined;
  /** The vendor refused it: leave it alone for so long. */
  rest(ms: number): void;
}

const NO_KEY: LentKey = { text: undefined, label: undefined, rest() {} };

class Lent implements LentKey {
  readonly text: string;
  readonly #slot: Slot;
  readonly #maxRestMs: number;

  constructor(slot: Slot, maxRestMs: number) {
    this.text = slot.key.reveal();
    this.#slot = slot;
    this.#maxRestMs = maxRestMs;
  }

  get label(): string | undefined {
    return this.#slot.key.label;
  }

  rest(ms: number): void {
    this.#slot.restUntil = Date.now() + Math.min(ms, this.#maxRestMs);
  }
}

export class KeyRing {
  readonly #slots: Slot[];
  readonly #maxRestMs: number;
  #next = 0;

  /** `before`: the ring of the configuration before this one; a key that was in it shares its rests with it. */
  constructor(keys: readonly Revealing[], maxRestMs: number, before?: KeyRing) {
    const known = before === undefined ? [] : before.#slots;
    this.#slots = keys.map(
      (key) => known.find((slot) => slot.key.reveal() === key.reveal()) ?? { key, restUntil: 0 },
    );
    this.#maxRestMs = maxRestMs;
  }

  get size(): number {
    return this.#slots.length;
  }

  /**
   * The next key in turn that is not resting. When all rest, the one that is due first: a rest is a
   * guess about the vendor, and a refusal costs less than a request that is never tried.
   */
  lease(at?: number): LentKey {
    const count = this.#slots.length;
    if (count === 0) return NO_KEY;
    const first = this.#slots[this.#next]!;
    if (first.restUntil === 0) {
      this.#next = (this.#next + 1) % count;
      return new Lent(first, this.#maxRestMs);
    }
    const now = at ?? Date.now();
    let chosen: Slot | undefined;
    for (let i = 0; i < count; i++) {
      const slot = this.#slots[(this.#next + i) % count]!;
      if (slot.restUntil <= now) {
        chosen = slot;
        this.#next = (this.#next + i + 1) % count;
        break;
      }
      if (chosen === undefined || slot.restUntil < chosen.restUntil) chosen = slot;
    }
    return new Lent(chosen!, this.#maxRestMs);
  }

  /** How many keys could be tried right now. */
  awake(now = Date.now()): number {
    return this.#slots.filter((slot) => slot.restUntil <= now).length;
  }
}
