/** Validates streamed JSON and finds the first invalid character; reads each character once. */

enum Expected {
  Value,
  FirstKey,
  Key,
  Colon,
  Comma,
  FirstItem,
  End,
}

const isSpace = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
const LITERALS = ['true', 'false', 'null'];
// Prefixes of numbers are accepted too, since the rest may follow.
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/;
const NUMBER_SO_FAR = /^-?(?:(?:0|[1-9]\d*)(?:\.\d*)?(?:(?<=\d)[eE][-+]?\d*)?)?$/;
const MAX_SCALAR = 400;
const LEAD = 4;
/** A path of Windows whose backslashes are not escaped. */
const DRIVE = /^[A-Za-z]:\\[^\\]/;

/** Checks the text of one JSON object. */
export class JsonCheck {
  #at: Expected = Expected.Value;
  #stack: number[] = [];
  #string = false;
  #key = false;
  #escape = 0;
  #scalar = '';
  #valid = true;
  #empty = true;
  #comma = false;
  /** The first characters of the open string, and whether a repair could change what was read of it. */
  #lead = '';
  #doubtful = false;

  /** Everything so far may be the beginning of a JSON object. */
  get valid(): boolean {
    return this.#valid;
  }

  /** A whole object was read, followed by nothing but white space. */
  get complete(): boolean {
    return this.#valid && this.#at === Expected.End;
  }

  /** The text so far ends with a comma. */
  get atComma(): boolean {
    return this.#comma;
  }

  /** An escape of the open string may turn out to be a backslash that was not escaped. */
  get unsure(): boolean {
    return this.#doubtful || this.#escape > 1;
  }

  /** Only white space so far. */
  get empty(): boolean {
    return this.#empty;
  }

  /** Reads a piece of text; false once the text is invalid. */
  push(text: string): boolean {
    for (let i = 0; this.#valid && i < text.length; i++) {
      if (this.#string) i = this.#inString(text, i);
      else this.#next(text.charCodeAt(i), text[i]!);
    }
    return this.#valid;
  }

  #inString(text: string, from: number): number {
    const { length } = this.#lead;
    if (length < LEAD) this.#lead += text.slice(from, from + LEAD - length);
    for (let i = from; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (this.#escape === 0 && code !== 0x22 && code !== 0x5c && code >= 0x20) continue;
      if (this.#escape > 1) {
        if (!/[0-9a-fA-F]/.test(text[i]!)) this.#valid = false;
        this.#escape--;
        if (this.#escape === 1) this.#escape = 0;
      } else if (this.#escape === 1) {
        this.#escape = code === 0x75 ? 5 : 0;
        if (!'"\\/bfnrtu'.includes(text[i]!)) this.#valid = false;
        if (code === 0x62 || code === 0x66 || (code >= 0x6e && DRIVE.test(this.#lead))) {
          this.#doubtful = true;
        }
      } else if (code === 0x5c) this.#escape = 1;
      else if (code < 0x20) this.#valid = false;
      else if (code === 0x22) {
        this.#string = false;
        this.#doubtful = false;
        this.#at = this.#key ? Expected.Colon : this.#after();
        return i;
      }
    }
    return text.length;
  }

  #next(code: number, char: string): void {
    if (this.#scalar !== '') {
      if (!isSpace(code) && code !== 0x2c && code !== 0x7d && code !== 0x5d) {
        this.#scalar += char;
        this.#valid = this.#scalar.length < MAX_SCALAR && mayBecomeScalar(this.#scalar);
        return;
      }
      this.#valid = LITERALS.includes(this.#scalar) || NUMBER.test(this.#scalar);
      this.#scalar = '';
      this.#at = this.#after();
      if (!this.#valid) return;
    }
    if (isSpace(code)) return;
    this.#empty = false;
    this.#comma = false;
    switch (this.#at) {
      case Expected.FirstKey:
      case Expected.Key:
        if (code === 0x22) this.#open(true);
        else if (code === 0x7d && this.#at === Expected.FirstKey) this.#close(code);
        else this.#valid = false;
        return;
      case Expected.Colon:
        this.#valid = code === 0x3a;
        this.#at = Expected.Value;
        return;
      case Expected.Comma:
        if (code === 0x2c) {
          this.#at = this.#stack.at(-1) === 0x7b ? Expected.Key : Expected.Value;
          this.#comma = true;
        } else this.#close(code);
        return;
      case Expected.FirstItem:
        if (code === 0x5d) this.#close(code);
        else this.#value(code, char);
        return;
      case Expected.Value:
        this.#value(code, char);
        return;
      case Expected.End:
        this.#valid = false;
    }
  }

  #value(code: number, char: string): void {
    if (this.#stack.length === 0 && code !== 0x7b) this.#valid = false;
    else if (code === 0x22) this.#open(false);
    else if (code === 0x7b || code === 0x5b) {
      this.#stack.push(code);
      this.#at = code === 0x7b ? Expected.FirstKey : Expected.FirstItem;
    } else {
      this.#scalar = char;
      this.#valid = mayBecomeScalar(char);
    }
  }

  #open(key: boolean): void {
    this.#string = true;
    this.#lead = '';
    this.#key = key;
  }

  #close(code: number): void {
    const open = this.#stack.pop();
    this.#valid = code === (open === 0x7b ? 0x7d : 0x5d) && open !== undefined;
    this.#at = this.#after();
  }

  #after(): Expected {
    return this.#stack.length === 0 ? Expected.End : Expected.Comma;
  }
}

const mayBecomeScalar = (scalar: string): boolean =>
  LITERALS.some((literal) => literal.startsWith(scalar)) || NUMBER_SO_FAR.test(scalar);
