/** Writes Markdown piece by piece: blocks, lists and quotations by the line, marks around words. */

/** What a line begins with: once as `first`, then as `rest`. */
interface LinePrefix {
  readonly first: string;
  readonly rest: string;
  used: boolean;
}

/** A pair of marks around words, such as `**`; told only where there are words. */
export interface InlineMark {
  readonly open: string;
  readonly close: string;
}

/** Deeper ones are written without a sign of it: lines would be nothing but their beginnings. */
const MAX_INDENT = 12;

export class MarkdownWriter {
  readonly #parts: string[] = [];
  #length = 0;
  /** Line breaks before the next word. */
  #breaks = 0;
  #space = false;
  /** The line has words on it. */
  #begun = false;
  readonly #levels: LinePrefix[] = [];
  /** Marks of elements that are open, and how many of them stand in the text. */
  #marks: InlineMark[] = [];
  #told = 0;

  /** Characters so far. */
  get length(): number {
    return this.#length;
  }

  toString(): string {
    return this.#parts.join('').trim();
  }

  /** Running text: white space is folded. */
  text(text: string): void {
    const folded = text.replace(/[ \t\n\f\r]+/g, ' ');
    if (folded === ' ' || folded === '') {
      if (folded === ' ') this.#space = true;
      return;
    }
    if (folded.startsWith(' ')) this.#space = true;
    this.#words(folded.trim());
    this.#space = folded.endsWith(' ');
  }

  /** The next words stand on a line of their own (1), behind an empty one (2). */
  break(lines: 1 | 2): void {
    this.#tellCloses(0);
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

  /** Words as they are, marks and all. */
  verbatim(text: string): void {
    if (text !== '') this.#words(text);
  }

  /** Lines as they are. */
  lines(text: string): void {
    this.break(2);
    for (const line of text.split('\n')) this.line(line);
    this.break(2);
  }

  /** A line as it is, on which no mark of words around it is told. */
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

  /** The words of a mark are over. Marks that were begun behind it end with it. */
  end(mark: InlineMark): void {
    const at = this.#marks.lastIndexOf(mark);
    if (at < 0) return;
    this.#tellCloses(at);
    this.#marks = this.#marks.filter((one) => one !== mark);
    this.#told = Math.min(this.#told, at);
  }

  /** Lines of a list item or a quotation begin with this from now on. */
  indent(first: string, rest: string): void {
    const deep = this.#levels.length >= MAX_INDENT;
    this.#levels.push({ first: deep ? '' : first, rest: deep ? '' : rest, used: false });
  }

  outdent(): void {
    this.#levels.pop();
  }

  #words(text: string): void {
    const fresh = this.#breaks > 0 || !this.#begun;
    this.#startLine();
    if (this.#space && !fresh) this.#put(' ');
    this.#space = false;
    for (; this.#told < this.#marks.length; this.#told++) this.#put(this.#marks[this.#told]!.open);
    this.#put(text);
    this.#begun = true;
  }

  /** Closes marks that stand in the text from this one on; they begin anew with the next words. */
  #tellCloses(from: number): void {
    for (; this.#told > from; this.#told--) this.#put(this.#marks[this.#told - 1]!.close);
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
