/** Masks credentials in a text that arrives in pieces, and says no more than what is decided. */

import { BACKSLASH, type Span } from '../../lib/text/credential-kinds.ts';
import { redactPart } from '../../lib/text/redact.ts';
import { maskSecretsPart } from '../../lib/text/secret-spellings.ts';

/** Decided characters that are kept: they show where a word begins, and whether a backslash is escaped. */
const CONTEXT = 16;
/** The part of them that shows where a word begins. */
const BORDER = 6;
/** A match that is still open after so many characters is taken for a credential. */
const MAX_OPEN = 65_536;
/** An open match of so many characters is looked at again when it has grown by half: linear time. */
const PATIENT_FROM = 256;

/** What ends the run of a match that was taken for a credential. */
const ENDS_RUN = /["\\\s]/g;

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
 * The mask of a text of bytes, one per character. Joined, what {@link settle} returns is the mask of the whole text. It
 * holds back from where a match begins that more text could complete or extend. A match that is open for 65,536
 * characters is masked, and so is all that follows up to a space, a quotation mark or an escape.
 */
export class TextMask {
  /** Credentials masked so far. */
  count = 0;
  /** The first `#decided` characters are decided, and serve as context. */
  #text = '';
  #decided = 0;
  /** `#text` does not start at the beginning of the text. */
  #cut = false;
  /** The text is scanned again at this length. */
  #next = 0;
  /** Everything is masked until the run ends. */
  #inRun = false;

  /** @param literals known secrets in all their spellings; called for each scan */
  constructor(private readonly literals: () => readonly string[]) {}

  /** Number of characters that are not decided. */
  get waiting(): number {
    return this.#text.length - this.#decided;
  }

  /** Adds text, a character for each byte. */
  add(text: string): void {
    this.#text += text;
  }

  /**
   * What can be said now of the text that was added.
   * @param last no more text will come
   */
  settle(last = false): string {
    if (this.#inRun) this.#maskRun();
    const raw = this.#text;
    const decided = this.#decided;
    if (decided === raw.length || (!last && raw.length < this.#next)) return '';
    const known = maskSecretsPart(raw, this.literals());
    // Where a known secret may begin, it is not yet known what a pattern would find there.
    const sure = last ? raw.length : Math.max(decided, known.open);
    const found = redactPart(known.text.slice(0, sure), this.#cut ? BORDER : 0);
    let masked = found.text + known.text.slice(sure);
    let cut = raw.length;
    if (!last) {
      // A credential is never cut, also where another one may begin within it.
      cut = Math.max(decided, beforeAny(found.open, known.wholes, found.wholes));
      if (raw.length - cut > MAX_OPEN) {
        masked = masked.slice(0, cut) + starred(raw.slice(cut));
        cut = raw.length;
        this.#inRun = true;
      }
    }
    if (masked !== raw) this.count += countMasked(raw.slice(0, cut), masked.slice(0, cut), decided);
    this.#keep(known.text, raw, cut);
    return masked.slice(decided, cut);
  }

  /** Takes what waits for a credential: it is masked, and so is the rest of its run. */
  give(): string {
    if (this.#inRun) this.#maskRun();
    const out = starred(this.#text.slice(this.#decided));
    if (out === '') return out;
    this.count++;
    this.#inRun = true;
    this.#keep(this.#text, this.#text, this.#text.length);
    return out;
  }

  #maskRun(): void {
    ENDS_RUN.lastIndex = this.#decided;
    const end = ENDS_RUN.exec(this.#text)?.index ?? this.#text.length;
    this.#text =
      this.#text.slice(0, this.#decided) + '*'.repeat(end - this.#decided) + this.#text.slice(end);
    this.#inRun = end === this.#text.length;
  }

  /** @param known the text with known secrets masked: what is decided shows borders as the whole text would */
  #keep(known: string, raw: string, decided: number): void {
    const from = Math.max(0, decided - CONTEXT);
    this.#text = known.slice(from, decided) + raw.slice(decided);
    this.#decided = decided - from;
    this.#cut ||= from > 0;
    const waits = this.waiting;
    this.#next = waits < PATIENT_FROM ? 0 : this.#text.length + (waits >> 1);
  }
}

/** The offset, or where the first of those spans begins that it is within, or that lead to one another. */
function beforeAny(offset: number, ...spans: readonly (readonly Span[])[]): number {
  let at = offset;
  if (spans.every(({ length }) => length === 0)) return at;
  for (const [from, to] of spans.flat().toSorted((a, b) => b[0] - a[0])) {
    if (from < at && to > at) at = from;
  }
  return at;
}

/** Masked as a whole; backslashes at the end stay, because they belong to what follows. */
function starred(text: string): string {
  let end = text.length;
  while (end > 0 && text.charCodeAt(end - 1) === BACKSLASH) end--;
  return '*'.repeat(end) + text.slice(end);
}
