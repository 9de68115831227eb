/** Masks credentials in a body that arrives in pieces; lengths and all other bytes stay. */

import { redactPart, redactText } from '../../lib/text/redact.ts';
import { maskSecrets, secretSpellings } from '../../lib/text/secret-spellings.ts';

/** Bytes held back at the end of a piece: a known secret may span two pieces. */
const HOLD = 4096;
/** Bytes before a credential by which it is recognized: `Authorization: Bearer `. */
const CONTEXT = 64;
/** The part of them that shows where a word begins. */
const BORDER = 6;
/** Most bytes held back for a credential that may not be complete. */
const FORCED = 65_536;

/** The UTF-8 bytes of a text, one character per byte. */
export const latin1Of = (text: string) => Buffer.from(text, 'utf8').toString('latin1');

/**
 * Every spelling in which a known secret can occur in a body, one character per byte.
 * @param plain as of {@link secretSpellings}
 */
export function spellings(secret: string, plain = true): readonly string[] {
  return secretSpellings(secret, plain).map(latin1Of);
}

/** The text with patterns and known secrets masked; the same string when there are none. */
export function maskText(text: string, literals: readonly string[]): string {
  // Known secrets first: a pattern may mask a part of one, and the rest would no longer be found.
  return redactText(maskSecrets(text, literals)).text;
}

/** Number of masked runs from `from` on. */
export function countMasked(raw: string, masked: string, from = 0): number {
  if (raw === masked) return 0;
  let count = 0;
  for (let i = from; i < raw.length; i++) {
    const here = raw.charCodeAt(i) !== masked.charCodeAt(i);
    if (here && (i === 0 || raw.charCodeAt(i - 1) === masked.charCodeAt(i - 1))) count++;
  }
  return count;
}

/**
 * Masks a stream of bytes. Bytes are read as Latin-1, one per character, so that everything else, broken
 * UTF-8 included, stays as it is. The last few kilobytes are held back until `end`, and more where a
 * credential may not be complete.
 */
export class BodyMask {
  /** Credentials masked so far. */
  count = 0;
  readonly #literals: () => readonly string[];
  /** Raw text; its first `#emitted` characters are written already and serve as context. */
  #text = '';
  #emitted = 0;
  /** The whole body so far as it came, where that is one piece of which nothing is written. */
  #piece: Uint8Array | undefined;
  /** `#text` does not start at the beginning of the body. */
  #cut = false;
  /** The text is scanned again at this length, so that a held-back part is not scanned for every few bytes. */
  #next = 2 * HOLD;

  /** @param literals known secrets, as of {@link spellings}; called for each piece */
  constructor(literals: () => readonly string[]) {
    this.#literals = literals;
  }

  /** Adds bytes and returns those that can be written now. */
  push(bytes: Uint8Array): Uint8Array {
    this.#piece = this.#text === '' && !this.#cut ? bytes : undefined;
    this.#text += Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
    if (this.#text.length < this.#next) return NOTHING;
    return this.#emit(this.#text.length - HOLD);
  }

  end(): Uint8Array {
    return this.#emit(this.#text.length);
  }

  #emit(upTo: number): Uint8Array {
    const raw = this.#text;
    const { text: masked, open } = redactPart(
      maskSecrets(raw, this.#literals()),
      this.#cut ? BORDER : 0,
    );
    // Most bodies are one small piece without a credential: its bytes are no different.
    const piece = this.#piece;
    this.#piece = undefined;
    if (piece !== undefined && upTo === raw.length && masked === raw) {
      this.#text = '';
      return piece;
    }
    let cut = upTo;
    // Never cut a credential: its rest may still come.
    if (cut < raw.length) {
      cut = Math.max(this.#emitted, Math.min(cut, open));
      while (cut > this.#emitted && raw.charCodeAt(cut - 1) !== masked.charCodeAt(cut - 1)) cut--;
      if (raw.length - cut > FORCED) cut = upTo;
    }
    const out = masked.slice(this.#emitted, cut);
    this.count += countMasked(raw.slice(0, cut), masked.slice(0, cut), this.#emitted);
    const keep = Math.max(0, cut - CONTEXT);
    this.#text = raw.slice(keep);
    this.#emitted = cut - keep;
    this.#cut ||= keep > 0;
    this.#next = Math.max(this.#emitted + 2 * HOLD, 2 * this.#text.length);
    return Buffer.from(out, 'latin1');
  }
}

const NOTHING = new Uint8Array(0);
