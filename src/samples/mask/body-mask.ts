/** Masks credentials in a body that arrives in pieces; lengths and all other bytes stay. */

import { redactText } from '../../lib/text/redact.ts';
import { fetchedSecrets } from '../../lib/text/secret-literals.ts';
import { maskSecrets, secretSpellings } from '../../lib/text/secret-spellings.ts';
import { type Patch, SplitMask } from './split-mask.ts';
import { TextMask } from './text-mask.ts';

/** The UTF-8 bytes of a text, one character per byte. */
export const latin1Of = (text: string) => Buffer.from(text, 'utf8').toString('latin1');

/**
 * Every spelling in which a known secret can occur in a body, one character per byte.
 * @param plain as of {@link secretSpellings}
 */
export function spellings(secret: string, plain = true): readonly string[] {
  return secretSpellings(secret, plain).map(latin1Of);
}

/** The spellings of these secrets and of those that were fetched so far. */
export function knownLiterals(secrets: readonly string[] = []): () => readonly string[] {
  let fetched: readonly string[] | undefined;
  let literals: readonly string[] = [];
  return () => {
    if (fetched !== fetchedSecrets()) {
      fetched = fetchedSecrets();
      literals = [...secrets, ...fetched].flatMap((secret) => spellings(secret));
    }
    return literals;
  };
}

/** The text with patterns and known secrets masked; the same string when there are none. */
export function maskText(text: string, literals: readonly string[]): string {
  // Known secrets first: a pattern may mask a part of one, and the rest would no longer be found.
  return redactText(maskSecrets(text, literals)).text;
}

/**
 * Masks a stream of bytes. Bytes are read as Latin-1, one per character, so that everything else, broken
 * UTF-8 included, stays as it is. Only what may become a credential is held back. In an event stream, that is also
 * what several events spell together.
 */
export class BodyMask {
  readonly #text: TextMask;
  readonly #split: SplitMask | undefined;

  /**
   * @param literals known secrets, as of {@link spellings}; called for each piece
   * @param sse the body is an event stream
   */
  constructor(literals: () => readonly string[], sse = false) {
    this.#text = new TextMask(literals);
    this.#split = sse ? new SplitMask(literals) : undefined;
  }

  /** Credentials masked so far. */
  get count(): number {
    return this.#text.count + (this.#split?.count ?? 0);
  }

  /** Adds bytes and returns those that can be written now: the same ones where nothing is masked or held back. */
  push(bytes: Uint8Array): Uint8Array {
    const alone = this.#text.waiting === 0;
    const raw = latin1(bytes);
    this.#text.add(raw);
    const said = this.#text.settle();
    const out = alone && said === raw ? bytes : Buffer.from(said, 'latin1');
    return this.#split?.push(out) ?? out;
  }

  end(): Uint8Array {
    const out = Buffer.from(this.#text.settle(true), 'latin1');
    if (this.#split === undefined) return out;
    return Buffer.concat([this.#split.push(out), this.#split.end()]);
  }

  /** Corrections of bytes that were returned masked because they were not decided yet; they are taken away. */
  takePatches(): readonly Patch[] {
    return this.#split?.takePatches() ?? NONE;
  }
}

const NONE: readonly Patch[] = [];

const latin1 = (bytes: Uint8Array) =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
