/** Credentials out of a body that comes in pieces: masked at equal length, byte for byte otherwise. */

import { redactPart, redactText } from '../../lib/text/redact.ts';
import { maskSecrets, secretSpellings } from '../../lib/text/secret-spellings.ts';

/** The end of a piece that is held back: a known secret may lie across two of them. */
const HOLD = 4096;
/** What stands before a credential and tells that it is one: `Authorization: Bearer `. */
const CONTEXT = 64;
/** Of that the characters by which the left border of a word is told. */
const BORDER = 6;
/** What could still become a credential is held back up to this much. */
const FORCED = 65_536;

/** Text as bytes read one to a character. */
export const latin1Of = (text: string) => Buffer.from(text, 'utf8').toString('latin1');

/**
 * Every spelling in which a known secret can stand in a body, as bytes read one to a character.
 * @param plain as of {@link secretSpellings}
 */
export function spellings(secret: string, plain = true): readonly string[] {
  return secretSpellings(secret, plain).map(latin1Of);
}

/** The text with patterns and known secrets masked; the very text when there are none. */
export function maskText(text: string, literals: readonly string[]): string {
  // Known ones first: a pattern may take a part of one, and the rest of it would be found by nobody.
  return redactText(maskSecrets(text, literals)).text;
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
 * UTF-8 included, comes out as it went in. The last few kilobytes are held back until `end`, and more
 * where a credential is not over yet.
 */
export class BodyMask {
  /** Credentials masked so far. */
  count = 0;
  readonly #literals: () => readonly string[];
  /** Raw text; the first `#told` characters of it are out already and serve as context. */
  #text = '';
  #told = 0;
  /** `#text` is not the beginning. */
  #cut = false;
  /** The text is scanned again at this length: what is held back is not scanned for every few bytes. */
  #next = 2 * HOLD;

  /** @param literals known secrets, as of {@link spellings}; asked for each piece */
  constructor(literals: () => readonly string[]) {
    this.#literals = literals;
  }

  /** What of it can be written now. */
  push(bytes: Uint8Array): Uint8Array {
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
    let cut = upTo;
    // Never in the middle of a credential, of which the rest may still be to come.
    if (cut < raw.length) {
      cut = Math.max(this.#told, Math.min(cut, open));
      while (cut > this.#told && raw.charCodeAt(cut - 1) !== masked.charCodeAt(cut - 1)) cut--;
      if (raw.length - cut > FORCED) cut = upTo;
    }
    const out = masked.slice(this.#told, cut);
    this.count += countMasked(raw.slice(0, cut), masked.slice(0, cut), this.#told);
    const keep = Math.max(0, cut - CONTEXT);
    this.#text = raw.slice(keep);
    this.#told = cut - keep;
    this.#cut ||= keep > 0;
    this.#next = Math.max(this.#told + 2 * HOLD, 2 * this.#text.length);
    return Buffer.from(out, 'latin1');
  }
}

const NOTHING = new Uint8Array(0);
