/** Writes Markdown piece by piece: blocks, lists, quotations, and marks such as `**` around text. */

/** The prefix of lines in a list item or quotation: `first` on the first line, then `rest`. */
interface LinePrefix {
  readonly first: string;
  readonly rest: string;
  used: boolean;
}

/** A pair of marks around text, such as `**`; written only where there is text. */
export interface InlineMark {
  readonly open: string;
  readonly close: string;
}

/** Deeper levels get no prefix, so that lines do not consist of prefixes. */
const MAX_INDENT = 12;

export class MarkdownWriter {
  readonly #parts: string[] = [];
  #length = 0;
  /** Line breaks before the next text. */
  #breaks = 0;
  #space = false;
  /** The current line has text. */
  #begun = false;
  readonly #levels: LinePrefix[] = [];
  /** Marks of open elements, and how many of them have been written. */
  #marks: InlineMark[] = [];
  #writtenMarks = 0;

  /** Characters so far. */
  get length(): number {
    return this.#length;
  }

  toString(): string {
    return this.#parts.join('').trim();
  }

  /** Text in which white space is collapsed. */
  text(text: string): void {
    const folded = text.replace(/[ \t\n\f\r]+/g, ' ');
    if (folded === ' ' || folded === '') {
      if (folded === ' ') this.#space = true;
      return;
    }
    if (folded.startsWith(' ')) this.#space = true;
    this.#write(folded.trim());
    this.#space = folded.endsWith(' ');
  }

  /** Starts a new line (1), or a new line after an empty one (2). */
  break(lines: 1 | 2): void {
    this.#closeMarks(0);
    this.#breaks = Math.max(this.#breaks, lines);
    this.#space = false;
  }

  /** A line break within a block. */
  newline(): void {
    if (!this.#begun || this.#breaks > 0) return;
    this.#put('  ');
    this.#breaks = 1;
    this.#space = false;
  }

  /** Text as it is, with its Markdown. */
  verbatim(text: string): void {
    if (text !== '') this.#write(text);
  }

  lines(text: string): void {
    this.break(2);
    for (const line of text.split('\n')) this.line(line);
    this.break(2);
  }

  /** A line as it is, without the marks of open elements. */
  line(text: string): void {
    this.break(1);
    this.#startLine();
    this.#put(text);
    this.#begun = true;
    this.#breaks = 1;
  }

  begin(mark: InlineMark): void {
    this.#marks.push(mark);
  }

  /** Ends a mark, and with it the marks that began after it. */
  end(mark: InlineMark): void {
    const at = this.#marks.lastIndexOf(mark);
    if (at < 0) return;
    this.#closeMarks(at);
    this.#marks = this.#marks.filter((one) => one !== mark);
    this.#writtenMarks = Math.min(this.#writtenMarks, at);
  }

  /** Starts a list item or quotation, whose lines get these prefixes. */
  indent(first: string, rest: string): void {
    const deep = this.#levels.length >= MAX_INDENT;
    this.#levels.push({ first: deep ? '' : first, rest: deep ? '' : rest, used: false });
  }

  outdent(): void {
    this.#levels.pop();
  }

  #write(text: string): void {
    const fresh = this.#breaks > 0 || !this.#begun;
    this.#startLine();
    if (this.#space && !fresh) this.#put(' ');
    this.#space = false;
    for (; this.#writtenMarks < this.#marks.length; this.#writtenMarks++)
      this.#put(this.#marks[this.#writtenMarks]!.open);
    this.#put(text);
    this.#begun = true;
  }

  /** Closes the written marks from this one on; the next text opens them again. */
  #closeMarks(from: number): void {
    for (; this.#writtenMarks > from; this.#writtenMarks--)
      this.#put(this.#marks[this.#writtenMarks - 1]!.close);
  }

  #startLine(): void {
    if (this.#begun && this.#breaks === 0) return;
    if (this.#parts.length > 0) {
      for (; this.#breaks > 1; this.#breaks--) {
        const blank = this.#levels.map(({ rest, used }) => (used ? rest : '')).join('');
        this.#put(`\n${blank.trimEnd()}`);
      }
      this.#put('\n');
    }
    this.#breaks = 0;
    let begin = '';
    for (const level of this.#levels) {
      begin += level.used ? level.rest : level.first;
      level.used = true;
    }
    if (begin !== '') this.#put(begin);
  }

  #put(text: string): void {
    this.#parts.push(text);
    this.#length += text.length;
  }
}
