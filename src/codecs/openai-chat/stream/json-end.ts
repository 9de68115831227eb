/** Finds the end of a JSON value in text that arrives in pieces, reading each character once. */

import { tryParse } from '../../../lib/json/json.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** A longer text that is neither an object nor an array is not parsed before it ends. */
const SHORT = 64;

/** Collects pieces. They are scanned only when `whole` is read. */
export class JsonEnd {
  readonly #pieces: string[] = [];
  #length = 0;
  /** The index of the first piece that is not scanned yet. */
  #next = 0;
  #depth = 0;
  #inString = false;
  #escaped = false;
  #bracketed: boolean | undefined;
  /** `over`: the last bracket is closed. `never`: the text cannot become JSON. */
  #state: 'open' | 'over' | 'whole' | 'never' = 'open';

  push(piece: string): void {
    this.#pieces.push(piece);
    this.#length += piece.length;
    // A number may continue, and only white space may follow a whole value.
    if (this.#state === 'whole') this.#state = this.#bracketed ? 'over' : 'open';
  }

  get pieces(): readonly string[] {
    return this.#pieces;
  }

  /** Is the text so far a whole JSON value? */
  get whole(): boolean {
    for (; this.#next < this.#pieces.length; this.#next++) this.#look(this.#pieces[this.#next]!);
    if (this.#state === 'over') {
      this.#state = tryParse(this.#text) === undefined ? 'never' : 'whole';
    } else if (this.#state === 'open' && this.#bracketed === false && this.#length <= SHORT) {
      return tryParse(this.#text) !== undefined;
    }
    return this.#state === 'whole';
  }

  get #text(): string {
    return this.#pieces.join('');
  }

  #look(piece: string): void {
    for (let i = 0; i < piece.length && this.#state !== 'never'; i++) {
      const code = piece.charCodeAt(i);
      if (this.#inString) this.#inside(code);
      else if (code > 0x20) this.#outside(code);
    }
  }

  #inside(code: number): void {
    if (this.#escaped) this.#escaped = false;
    else if (code === BACKSLASH) this.#escaped = true;
    else if (code === QUOTE) this.#inString = false;
  }

  #outside(code: number): void {
    if (this.#state === 'over') {
      this.#state = 'never';
      return;
    }
    const opens = code === 0x7b || code === 0x5b;
    this.#bracketed ??= opens;
    if (!this.#bracketed) return;
    if (opens) this.#depth++;
    else if (code === QUOTE) this.#inString = true;
    else if ((code === 0x7d || code === 0x5d) && --this.#depth === 0) this.#state = 'over';
  }
}
