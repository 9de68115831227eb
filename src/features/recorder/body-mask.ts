/** Credentials out of a body that comes in pieces: masked at equal length, byte for byte otherwise. */

import { redactText } from '../../lib/redact.ts';

/** Longest credential that may lie across two pieces (a private key in PEM). */
const HOLD = 4096;
/** What stands before a credential and tells that it is one: `Authorization: Bearer `. */
const CONTEXT = 64;
const FORCED = 65_536;

/** Shorter ones would be found in ordinary words. */
const LEAST_LITERAL = 8;

/** Every spelling in which a known secret can stand in a body, as bytes read one to a character. */
export function spellings(secret: string): readonly string[] {
  if (secret.length < LEAST_LITERAL) return [];
  const all = [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)];
  return [...new Set(all)].map((text) => Buffer.from(text, 'utf8').toString('latin1'));
}

/** The text with patterns and known secrets masked; the very text when there are none. */
export function maskText(text: string, literals: readonly string[]): string {
  let masked = redactText(text).text;
  for (const literal of literals) {
    if (masked.includes(literal)) masked = masked.replaceAll(literal, '*'.repeat(literal.length));
  }
  return masked;
}

/** Runs of masked characters from `from` on. */
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
 * Masks a stream of bytes. Bytes are read as Latin-1, one to a character, so that anything, broken
 * UTF-8 included, comes out as it went in. The last few kilobytes are held back until `end`.
 */
export class BodyMask {
  /** Credentials masked so far. */
  count = 0;
  readonly #literals: () => readonly string[];
  /** Raw text; the first `#told` characters of it are out already and serve as context. */
  #text = '';
  #told = 0;

  /** @param literals known secrets, as of {@link spellings}; asked for each piece */
  constructor(literals: () => readonly string[]) {
    this.#literals = literals;
  }

  /** What of it can be written now. */
  push(bytes: Uint8Array): Uint8Array {
    this.#text += Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
    // A scan for every few bytes would scan what is held back again and again.
    if (this.#text.length < this.#told + 2 * HOLD) return NOTHING;
    return this.#emit(this.#text.length - HOLD);
  }

  end(): Uint8Array {
    return this.#emit(this.#text.length);
  }

  #emit(upTo: number): Uint8Array {
    const raw = this.#text;
    const masked = maskText(raw, this.#literals());
    let cut = upTo;
    // Never in the middle of a credential, of which the rest may still be to come.
    if (cut < raw.length) {
      while (cut > this.#told && raw.charCodeAt(cut - 1) !== masked.charCodeAt(cut - 1)) cut--;
      if (raw.length - cut > FORCED) cut = upTo;
    }
    const out = masked.slice(this.#told, cut);
    this.count += countMasked(raw.slice(0, cut), masked.slice(0, cut), this.#told);
    const keep = Math.max(0, cut - CONTEXT);
    this.#text = raw.slice(keep);
    this.#told = cut - keep;
    return Buffer.from(out, 'latin1');
  }
}

const NOTHING = new Uint8Array(0);
