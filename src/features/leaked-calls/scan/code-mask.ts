/** Tracks quoted material in a text, character by character: fences, inline code, block quotes, strings, heredocs. */

const NEWLINE = 0x0a;
const TICK = 0x60;
const TILDE = 0x7e;
const QUOTE = 0x22;
const LESS = 0x3c;
const GREATER = 0x3e;

/** Classes of characters: start of a leak, part of quoting, start of a stripped header. */
const SUSPECT = 1;
const SPECIAL = 2;
const HEADER = 4;
const KIND = new Uint8Array(128);
for (const char of '<[]{') KIND[char.charCodeAt(0)]! |= SUSPECT;
for (const char of '`~"<>\n') KIND[char.charCodeAt(0)]! |= SPECIAL;
// `commentary to=`, `assistantcommentary to=`
for (const char of 'ca') KIND[char.charCodeAt(0)]! |= HEADER;
/** Characters before a stripped header: the start of a line, the end of a sentence or tag. */
const BEFORE_HEADER = new Uint8Array(128);
const BEFORE = '\0\n.!?>:)';
for (const char of BEFORE) BEFORE_HEADER[char.charCodeAt(0)] = 1;

const TRIANGLE = 0x25c1;
/** The start of a heredoc. Only quoted and capital tags count, since `a << b` is arithmetic. */
const HEREDOC = /<<-?\s*(?:(["'])([A-Za-z_]\w*)\1|([A-Z_][A-Z0-9_]*)(?![\w(]))/;
const MAX_LINE = 1000;

/** The first letters of a stripped header. */
const HEADER_BEGINS = /^(?:c(?:$|om?$|omm)|a(?:$|ss?$|ssi))/;
const LEAKY = new RegExp(`[<[\\]{\u25c1]|[\\0\\n.!?>:)]${HEADER_BEGINS.source.slice(1)}`);

/** The beginning of a line, which tells lists and tables from other text. */
enum Lead {
  /** Only white space so far. */
  None,
  /** The number of a list item. */
  Digits,
  /** A list marker with nothing after it. */
  Marker,
  /** A row of a table. */
  Row,
  Words,
}

/** Columns of indentation that make a line code. */
const CODE_INDENT = 4;

/** Text without these characters begins no leak, unless it comes where a header may begin. */
export const LEAKY_CHARACTERS = `<[]{\u25c1${BEFORE}`;

export class CodeMask {
  /** The character before the position; 0 at the start of the text. */
  previous = 0;
  /** Only white space comes before the position on its line. */
  lineStart = true;
  private fence = 0;
  private fenceLength = 0;
  private fenceLine = false;
  private closing = false;
  private run = 0;
  private runChar = 0;
  private runAtStart = false;
  private inline = 0;
  private blockQuote = false;
  private quoted = false;
  /** Every character must be read, not only the special ones. */
  private watchful = true;
  /** The line so far. Stored only for the start of a heredoc and for its lines. */
  private line: string | undefined;
  private heredoc: string | undefined;
  /** Columns of indentation of the line. */
  private indent = 0;
  private lead = Lead.None;

  /** An independent copy with the same state, which is why its fields are not `#private`. */
  copy(): CodeMask {
    return Object.assign(new CodeMask(), this);
  }

  /** Reads a whole text in which no leak begins. */
  read(text: string): void {
    for (let at = 0; at < text.length; ) at = this.advance(text, at, true);
  }

  /** The line is indented like code. */
  get indented(): boolean {
    return this.indent >= CODE_INDENT;
  }

  /** The position is directly after a list marker, or in a row of a table. */
  get listed(): boolean {
    return this.lead === Lead.Marker || this.lead === Lead.Row;
  }

  /** The position is inside quoted material. */
  get masked(): boolean {
    return (
      this.fence !== 0 ||
      this.inline !== 0 ||
      this.blockQuote ||
      this.quoted ||
      this.heredoc !== undefined
    );
  }

  /**
   * Reads on from `from`. Returns the index of the next unquoted character that may begin a leak (that
   * character is not read yet), or the text's length. `past`: the first character begins no leak.
   */
  advance(text: string, from: number, past: boolean): number {
    const { length } = text;
    let i = from;
    while (i < length) {
      let code = text.charCodeAt(i);
      if (!this.watchful) {
        // Nearly all characters take this path.
        let before = this.previous;
        while (
          code < 128
            ? KIND[code] === 0 ||
              (KIND[code] === HEADER && (before > 127 || !BEFORE_HEADER[before]))
            : code !== TRIANGLE
        ) {
          before = code;
          if (++i === length) break;
          code = text.charCodeAt(i);
        }
        this.previous = before;
        if (i === length) return length;
      } else if (this.run !== 0 && code !== this.runChar) this.#endRun();
      const kind = code < 128 ? KIND[code]! : code === TRIANGLE ? SUSPECT : 0;
      if (kind !== 0 && kind !== SPECIAL && (i > from || !past) && !this.masked) {
        const { previous } = this;
        if (kind !== HEADER || (previous < 128 && BEFORE_HEADER[previous] === 1)) return i;
      }
      this.#read(code, kind);
      i++;
    }
    return length;
  }

  /** No leak can begin in this text if it comes next. Does not change the state. */
  isPlain(text: string): boolean {
    return !LEAKY.test(text) && !(this.mayBeHeader && HEADER_BEGINS.test(text));
  }

  /** A stripped header may come next. */
  get mayBeHeader(): boolean {
    const { previous } = this;
    return previous < 128 && BEFORE_HEADER[previous] === 1;
  }

  /** Reads one character and updates the state of quoting. */
  #read(code: number, kind: number): void {
    if (this.line !== undefined && code !== NEWLINE && this.line.length < MAX_LINE) {
      this.line += String.fromCharCode(code);
    }
    if (this.lead < Lead.Words && code !== NEWLINE) this.#lineBegins(code);
    if ((kind & SPECIAL) !== 0) this.#special(code);
    else if (code !== 0x20 && code !== 0x09 && code !== 0x0d) {
      this.lineStart = false;
      this.closing = false;
    }
    this.previous = code;
    this.watchful =
      this.lead < Lead.Row || this.closing || this.run !== 0 || this.line !== undefined;
  }

  /** Reads a character at the beginning of a line, where a marker may stand. */
  #lineBegins(code: number): void {
    if (code === 0x0d) return;
    if (code === 0x20 || code === 0x09) {
      if (this.lead === Lead.None) this.indent += code === 0x09 ? CODE_INDENT : 1;
      else if (this.lead === Lead.Digits) this.lead = Lead.Words;
      return;
    }
    const digit = code >= 0x30 && code <= 0x39;
    switch (this.lead) {
      case Lead.None:
        if (code === 0x7c) this.lead = Lead.Row;
        else if (code === 0x2d || code === 0x2a || code === 0x2b || code === 0x2022) {
          this.lead = Lead.Marker;
        } else this.lead = digit ? Lead.Digits : Lead.Words;
        break;
      case Lead.Digits:
        if (code === 0x2e || code === 0x29) this.lead = Lead.Marker;
        else if (!digit) this.lead = Lead.Words;
        break;
      case Lead.Marker:
        this.lead = Lead.Words;
        break;
      default:
    }
  }

  /** Markup was skipped. */
  jump(): void {
    this.previous = GREATER;
    this.lineStart = false;
    this.lead = Lead.Words;
  }

  quoteLine(): void {
    this.blockQuote = true;
  }

  #special(code: number): void {
    if (code === NEWLINE) {
      this.#endLine();
      return;
    }
    if (code === TICK || code === TILDE) {
      if (this.run === 0) {
        this.runChar = code;
        this.runAtStart = this.lineStart;
      }
      this.run++;
    } else if (code === GREATER && this.lineStart && this.fence === 0) {
      this.blockQuote = true;
    } else if (code === QUOTE && this.fence === 0 && this.inline === 0) {
      this.quoted = !this.quoted;
    } else if (code === LESS && this.previous === LESS && this.line === undefined) {
      this.line = '<<';
    }
    this.lineStart = false;
    if (code !== this.fence) this.closing = false;
  }

  /** A run of backticks or tildes has ended. */
  #endRun(): void {
    const length = this.run;
    const code = this.runChar;
    this.run = 0;
    if (this.fence !== 0) {
      if (code === this.fence && length >= this.fenceLength) {
        // A fence closes on a separate line. Backticks that close on the opening line are no fence.
        if (this.runAtStart) this.closing = true;
        else if (this.fenceLine && code === TICK) this.fence = 0;
      }
      return;
    }
    if (this.runAtStart && length >= 3) {
      this.fence = code;
      this.fenceLength = length;
      this.fenceLine = true;
    } else if (code === TICK) {
      if (this.inline === 0) this.inline = length;
      else if (this.inline === length) this.inline = 0;
    }
  }

  #endLine(): void {
    if (this.closing) this.fence = 0;
    this.closing = false;
    this.fenceLine = false;
    this.inline = 0;
    this.blockQuote = false;
    this.quoted = false;
    this.lineStart = true;
    this.indent = 0;
    this.lead = Lead.None;
    if (this.heredoc !== undefined) {
      if (this.line?.trim() === this.heredoc) {
        this.heredoc = undefined;
        this.line = undefined;
      } else this.line = '';
    } else if (this.line !== undefined) {
      const found = HEREDOC.exec(this.line);
      this.heredoc = found?.[2] ?? found?.[3];
      this.line = this.heredoc === undefined ? undefined : '';
    }
  }
}
