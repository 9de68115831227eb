/** A credential that prints as `***` wherever it is logged, inspected or serialized. */

import { createHash, timingSafeEqual } from 'node:crypto';
import { credentialsIn } from '../lib/text/secret-literals.ts';

const MASK = '***';
const inspect = Symbol.for('nodejs.util.inspect.custom');
const digest = (text: string) => createHash('sha256').update(text).digest();

/** Wraps a credential. Only {@link Secret.reveal} returns it; call that where the bytes are sent. */
export class Secret {
  readonly #value: string;
  /** The reference in the file that it came from; '' when it stands in the file itself. */
  readonly #origin: string;
  #label: string | undefined;

  constructor(value: string, origin = '') {
    this.#value = value;
    this.#origin = origin;
  }

  /** A name for people: the reference that it came from (`${ZHIPU_API_KEY}`), else its {@link label}. */
  get origin(): string {
    return this.#origin === '' ? this.label : this.#origin;
  }

  /** The credential itself. */
  reveal(): string {
    return this.#value;
  }

  /** Whether the credential is this text, in a time that does not depend on where they differ. */
  equals(candidate: string): boolean {
    return timingSafeEqual(digest(this.#value), digest(candidate));
  }

  /** A short name for logs and metrics that identifies a key without revealing it: `key-` + 6 hex digits. */
  get label(): string {
    this.#label ??= `key-${digest(this.#value).toString('hex').slice(0, 6)}`;
    return this.#label;
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

// Shorter ones occur in ordinary text.
const MIN_SECRET = 8;

/**
 * The credentials anywhere in a value, for masking: those that are long enough to differ from ordinary
 * words, without hashes of keys, and their parts as of {@link credentialsIn}. Use them for nothing else.
 * @param isWanted by its path and text
 */
export function secretsIn(
  value: unknown,
  isWanted: (path: readonly string[], text: string) => boolean = () => true,
): readonly string[] {
  const found = new Set<string>();
  const path: string[] = [];
  const walk = (part: unknown): void => {
    if (part instanceof Secret) {
      if (!isWanted(path, part.reveal())) return;
      for (const one of credentialsIn(part.reveal(), path.at(-1) ?? '')) found.add(one);
    } else if (typeof part === 'object' && part !== null) {
      for (const [key, inner] of Object.entries(part)) {
        path.push(key);
        walk(inner);
        path.pop();
      }
    }
  };
  walk(value);
  return [...found].filter((text) => text.length >= MIN_SECRET && !/^sha256:/i.test(text));
}
