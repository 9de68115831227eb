/** Masks credentials that a stream spreads over several events, while it runs. */

import { EventWalk } from './event-walk.ts';
import { TextMask } from './text-mask.ts';

/** Bytes of the stream that are held back for a match that is open, or for the end of an event. */
const MAX_HELD = 16_384;
/** Texts of a stream that are followed by themselves; further ones are one text for each member. */
const MAX_TEXTS = 32;
/** Most pieces of one text that wait; then they are taken for a credential. */
const MAX_PIECES = 16_384;
const STAR = 0x2a;
const BACKSLASH = 0x5c;
const NOTHING = Buffer.alloc(0);

/** Bytes that were given out masked before they were decided, as they have to be. */
export interface Patch {
  readonly at: number;
  readonly bytes: Uint8Array;
}

/** A text that comes in pieces, and where those of its pieces stand that are not decided. */
class SplitText {
  readonly mask: TextMask;
  touched = false;
  #from: number[] = [];
  #to: number[] = [];
  #first = 0;
  /** Pieces before this one were given out, masked. */
  #given = 0;
  /** Decided characters of the first piece. */
  #within = 0;

  constructor(literals: () => readonly string[]) {
    this.mask = new TextMask(literals);
  }

  get pieces(): number {
    return this.#from.length - this.#first;
  }

  /** Where the first piece begins that is held back. */
  get heldFrom(): number {
    return this.#from[Math.max(this.#first, this.#given)] ?? Number.POSITIVE_INFINITY;
  }

  add(from: number, to: number, text: string): void {
    this.#from.push(from);
    this.#to.push(to);
    this.mask.add(text);
  }

  /** Takes the next characters as decided; `write` gets them by their places in the stream. */
  decide(
    text: string,
    write: (from: number, text: string, at: number, length: number) => void,
  ): void {
    if (text === '') return;
    for (let at = 0; at < text.length; ) {
      const from = this.#from[this.#first]! + this.#within;
      const left = this.#to[this.#first]! - from;
      const length = Math.min(left, text.length - at);
      write(from, text, at, length);
      at += length;
      this.#within += length;
      if (length < left) break;
      this.#first++;
      this.#within = 0;
    }
    if (this.#first < this.#from.length && this.#first < 1024) return;
    this.#from.splice(0, this.#first);
    this.#to.splice(0, this.#first);
    this.#given = Math.max(0, this.#given - this.#first);
    this.#first = 0;
  }

  /** Gives out the pieces that are held back: where each begins, from where on it is open, and its end. */
  *give(): Generator<readonly [from: number, open: number, to: number]> {
    for (let i = Math.max(this.#first, this.#given); i < this.#from.length; i++) {
      const from = this.#from[i]!;
      yield [from, from + (i === this.#first ? this.#within : 0), this.#to[i]!];
    }
    this.#given = this.#from.length;
  }
}

/**
 * Gets a stream whose events are masked one by one, and masks what is a credential once the pieces of each text are
 * joined. It holds back the stream from the first piece on that may belong to one. What would be more than 16 KB is given
 * out with that piece masked, and put right by a patch where it turns out to be no credential: a text may end in
 * what looks like a beginning, and never go on.
 */
export class SplitMask {
  readonly #walk = new EventWalk();
  readonly #texts = new Map<string, SplitText>();
  /** Further texts are one for each member. */
  #full = false;
  /** Credentials of texts that are followed no longer. */
  #counted = 0;
  /** What is held back: at first the caller's bytes, which must not change. */
  #held: Buffer = NOTHING;
  #own = false;
  /** The offset of its first byte in the stream. */
  #start = 0;
  #patches: Patch[] = [];

  constructor(private readonly literals: () => readonly string[]) {}

  /** Credentials masked so far; those within one event are masked already and do not count. */
  get count(): number {
    let count = this.#counted;
    for (const { mask } of this.#texts.values()) count += mask.count;
    return count;
  }

  /** Patches of bytes that were returned; they are taken away. */
  takePatches(): readonly Patch[] {
    const taken = this.#patches;
    if (taken.length > 0) this.#patches = [];
    return taken;
  }

  /** Adds bytes and returns those that can be written now. */
  push(bytes: Uint8Array): Uint8Array {
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#walk.walk(view, this.#end);
    this.#append(view);
    this.#read(false);
    if (this.#end - this.#eventFrom > MAX_HELD) {
      this.#walk.endEarly(this.#end);
      this.#read(false);
    }
    const from = this.#heldFrom;
    if (this.#end - from <= MAX_HELD) return this.#release(from);
    this.#star();
    return this.#release(this.#eventFrom);
  }

  end(): Uint8Array {
    this.#walk.endEarly(this.#end);
    this.#read(true);
    return this.#release(this.#end);
  }

  get #end(): number {
    return this.#start + this.#held.length;
  }

  /** The offset of the first piece of the event under way, whose text is not known yet. */
  get #eventFrom(): number {
    const { waitsFrom } = this.#walk;
    return waitsFrom < 0 ? this.#end : waitsFrom;
  }

  /** The offset from which on bytes are held back. */
  get #heldFrom(): number {
    let first = this.#eventFrom;
    for (const { heldFrom } of this.#texts.values()) first = Math.min(first, heldFrom);
    return first;
  }

  /** Gives the pieces that are ready to their texts, and writes what is decided. */
  #read(last: boolean): void {
    const { ready } = this.#walk;
    if (ready.length > 0) this.#walk.ready = [];
    const touched: SplitText[] = last ? [...this.#texts.values()] : [];
    for (const { from, to, text, member } of ready) {
      const said = this.#textOf(text, member);
      said.add(from, to, this.#held.toString('latin1', from - this.#start, to - this.#start));
      if (said.touched || (last && touched.includes(said))) continue;
      said.touched = true;
      touched.push(said);
    }
    for (const said of touched) {
      said.touched = false;
      said.decide(said.mask.settle(last), this.#write);
      if (said.pieces > MAX_PIECES) said.decide(said.mask.give(), this.#write);
    }
  }

  #textOf(name: string, member: string): SplitText {
    const known = this.#texts.get(name);
    if (known !== undefined) return known;
    if (!this.#full && this.#texts.size >= MAX_TEXTS) {
      for (const [old, { mask, pieces }] of this.#texts) {
        if (pieces > 0) continue;
        this.#counted += mask.count;
        this.#texts.delete(old);
      }
      this.#full = this.#texts.size >= MAX_TEXTS;
    }
    // From then on for good: a text that changed over in the middle of a secret would show it.
    const own = this.#full ? member : name;
    const said = this.#texts.get(own) ?? new SplitText(this.literals);
    this.#texts.set(own, said);
    return said;
  }

  readonly #write = (from: number, text: string, at: number, length: number): void => {
    if (from < this.#start) {
      const bytes = Buffer.from(text.slice(at, at + length), 'latin1');
      this.#patches.push({ at: from, bytes });
      return;
    }
    const to = from - this.#start;
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(at + i);
      if (this.#held[to + i] !== code) this.#owned()[to + i] = code;
    }
  };

  /** Masks all pieces that are held and not decided. An escape that is open in part stays. */
  #star(): void {
    for (const said of this.#texts.values()) {
      for (const [from, open, to] of said.give()) {
        for (let at = from; at < to; ) {
          const length = this.#unit(at, to);
          if (at >= open && length > 0)
            this.#owned().fill(STAR, at - this.#start, at + length - this.#start);
          at += Math.max(1, length);
        }
      }
    }
  }

  /** Length of the character or escape at an offset; 0 for an escape that the piece cuts. */
  #unit(at: number, to: number): number {
    const i = at - this.#start;
    if (this.#held[i] !== BACKSLASH) return 1;
    const length = this.#held[i + 1] === 0x75 ? 6 : 2;
    return at + length <= to ? length : 0;
  }

  #append(bytes: Buffer): void {
    if (this.#held.length === 0) {
      this.#held = bytes;
      this.#own = false;
      return;
    }
    const { buffer, byteOffset, length } = this.#held;
    const whole = length + bytes.length;
    if (this.#own && buffer.byteLength - byteOffset >= whole) {
      const longer = Buffer.from(buffer, byteOffset, whole);
      longer.set(bytes, length);
      this.#held = longer;
      return;
    }
    this.#copy(2 * whole, bytes);
  }

  /** Copies what is held, and what comes, into memory of its own. */
  #copy(room: number, more: Buffer = NOTHING): void {
    const whole = new Uint8Array(room);
    whole.set(this.#held);
    whole.set(more, this.#held.length);
    this.#held = Buffer.from(whole.buffer, 0, this.#held.length + more.length);
    this.#own = true;
  }

  #owned(): Buffer {
    if (!this.#own) this.#copy(this.#held.length);
    return this.#held;
  }

  #release(upTo: number): Uint8Array {
    const length = upTo - this.#start;
    const out = this.#held.subarray(0, length);
    this.#start = upTo;
    this.#held = this.#held.subarray(length);
    if (this.#held.length === 0) this.#held = NOTHING;
    // The rest of a large chunk would keep it in memory.
    else if (!this.#own) this.#copy(2 * this.#held.length);
    return out;
  }
}
