/** A value that must not be seen: it prints as `***` wherever it is logged, inspected or serialized. */

import { createHash, timingSafeEqual } from 'node:crypto';

const MASK = '***';
const inspect = Symbol.for('nodejs.util.inspect.custom');
const digest = (text: string) => createHash('sha256').update(text).digest();

/** Wraps a credential. Only {@link Secret.reveal} gives it out; call that where the bytes are sent. */
export class Secret {
  readonly #value: string;
  /** The reference that it came from, as the file has it; '' when it stands in the file itself. */
  readonly #origin: string;

  constructor(value: string, origin = '') {
    this.#value = value;
    this.#origin = origin;
  }

  /** A name for people: where it came from (`${ZHIPU_API_KEY}`), else its {@link label}. */
  get origin(): string {
    return this.#origin === '' ? this.label : this.#origin;
  }

  /** The credential itself. */
  reveal(): string {
    return this.#value;
  }

  /** Whether the credential is this text; takes the same time wherever they differ. */
  equals(candidate: string): boolean {
    return timingSafeEqual(digest(this.#value), digest(candidate));
  }

  /** A short name for logs and metrics that tells keys apart and gives none away: `key-` + 6 hex digits. */
  get label(): string {
    return `key-${digest(this.#value).toString('hex').slice(0, 6)}`;
  }

  toString(): string {
    return MASK;
  }

  toJSON(): string {
    return MASK;
  }

  [inspect](): string {
    return MASK;
  }
}

// Shorter ones would be found in ordinary words.
const LEAST_SECRET = 8;

/**
 * The credentials anywhere in a value, for masks: those that are long enough to be told from words, and
 * no hashes of keys. They must go nowhere else.
 */
export function secretsIn(value: unknown): readonly string[] {
  const found = new Set<string>();
  const walk = (part: unknown): void => {
    if (part instanceof Secret) found.add(part.reveal());
    else if (typeof part === 'object' && part !== null) Object.values(part).forEach(walk);
  };
  walk(value);
  return [...found].filter((text) => text.length >= LEAST_SECRET && !/^sha256:/i.test(text));
}
