/** Finds the end of a JSON value or of a bracketed Python expression that arrives in pieces. */

const QUOTE = 0x22;
const APOSTROPHE = 0x27;
const BACKSLASH = 0x5c;
const LESS = 0x3c;

/** Takes text from the opening bracket on; reads each character once. */
export class BracketScan {
  #depth = 0;
  #quote = 0;
  #escaped = false;

  /** @param singleQuotes strings may also have single quotes (Python) */
  constructor(readonly singleQuotes = false) {}

  /** The last `feed` stopped at a `<` outside strings, which is not valid JSON. */
  halted = false;

  /**
   * The index after the bracket that closes the first one; -1 if the whole text belongs to the value. With
   * `halted`, the index of a `<` outside strings.
   */
  feed(text: string, from = 0): number {
    this.halted = false;
    for (let i = from; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (this.#quote !== 0) {
        if (this.#escaped) this.#escaped = false;
        else if (code === BACKSLASH) this.#escaped = true;
        else if (code === this.#quote) this.#quote = 0;
        continue;
      }
      switch (code) {
        case APOSTROPHE:
          if (!this.singleQuotes) break;
          this.#quote = code;
          break;
        case LESS:
          if (this.singleQuotes) break;
          this.halted = true;
          return i;
        case QUOTE:
          this.#quote = code;
          break;
        case 0x7b:
        case 0x5b:
          this.#depth++;
          break;
        case 0x28:
          if (this.singleQuotes) this.#depth++;
          break;
        case 0x29:
          if (this.singleQuotes && --this.#depth === 0) return i + 1;
          break;
        case 0x7d:
        case 0x5d:
          if (--this.#depth === 0) return i + 1;
          break;
      }
    }
    return -1;
  }
}
