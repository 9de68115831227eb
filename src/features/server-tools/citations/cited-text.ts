/** Text with citations in the client's protocol: separate blocks on Messages, offsets on the others. */

import type { BlockHead, StreamEvent } from '../../../conversation/events.ts';
import type { Citation, ProtocolName } from '../../../conversation/types.ts';
import { MINT, type NumberedSource } from './sources.ts';

/** Characters that Anthropic quotes of a page at most. */
const MAX_QUOTE = 150;

/** Hands out block indexes on the client's side. */
export interface BlockCounter {
  /** The next free index. */
  take(): number;
}

/**
 * One text block of the upstream for a client that declared the search. On Messages a cited span is a
 * block of its own and its mark is removed; on the other protocols the mark stays and the citation
 * points to it.
 */
export class CitedText {
  readonly #marks: CitationMarks;
  readonly #splits: boolean;
  #index: number;
  /** UTF-16 units in this block so far. */
  #length = 0;
  #cited = false;

  constructor(
    client: ProtocolName,
    source: (n: number) => NumberedSource | undefined,
    private readonly blocks: BlockCounter,
  ) {
    this.#marks = new CitationMarks(source);
    this.#splits = client === 'anthropic-messages';
    this.#index = blocks.take();
  }

  get index(): number {
    return this.#index;
  }

  start(head: BlockHead = { type: 'text' }): StreamEvent {
    return { type: 'block-start', index: this.#index, head };
  }

  push(text: string): readonly StreamEvent[] {
    return this.#toEvents(this.#marks.push(text));
  }

  end(): readonly StreamEvent[] {
    return [...this.#toEvents(this.#marks.end()), { type: 'block-stop', index: this.#index }];
  }

  #toEvents(pieces: readonly CitedTextPiece[]): readonly StreamEvent[] {
    const events: StreamEvent[] = [];
    for (const piece of pieces) {
      if (piece.type === 'text') this.#addText(piece.text, events);
      else if (this.#splits) this.#closeSpan(piece, events);
      else this.#pointAt(piece, events);
    }
    return events;
  }

  #addText(text: string, events: StreamEvent[]): void {
    if (text === '') return;
    if (this.#cited) {
      events.push({ type: 'block-stop', index: this.#index });
      this.#index = this.blocks.take();
      this.#cited = false;
      this.#length = 0;
      events.push(this.start());
    }
    this.#length += text.length;
    events.push({ type: 'delta', index: this.#index, text });
  }

  #closeSpan({ sources, gap, tight }: CitationPiece, events: StreamEvent[]): void {
    // Without text before the mark there is nothing to cite the source for.
    if (this.#length > 0) {
      this.#cited = true;
      for (const source of sources) {
        events.push({ type: 'citation', index: this.#index, citation: minted(source) });
      }
    }
    if (!tight) this.#addText(gap, events);
  }

  #pointAt({ sources, gap, mark }: CitationPiece, events: StreamEvent[]): void {
    this.#addText(gap, events);
    const start = this.#length;
    this.#addText(mark, events);
    for (const source of sources) {
      const citation = { url: source.url, title: source.title, start, end: this.#length };
      events.push({ type: 'citation', index: this.#index, citation });
    }
  }
}

/** A citation of the Messages protocol, marked as this gateway's so that no vendor gets it. */
function minted(source: NumberedSource): Citation {
  const citedText = (source.text ?? source.title).slice(0, MAX_QUOTE);
  const value = {
    type: 'web_search_result_location',
    url: source.url,
    title: source.title,
    encrypted_index: `${MINT}${source.n}`,
    cited_text: citedText,
  };
  const wire = { protocol: 'anthropic-messages', value } as const;
  return { url: source.url, title: source.title, citedText, wire };
}

export type CitedTextPiece = { readonly type: 'text'; readonly text: string } | CitationPiece;

/** Cites sources for the text before it. */
export interface CitationPiece {
  readonly type: 'cite';
  readonly sources: readonly NumberedSource[];
  /** The mark as written, without the blanks before it. */
  readonly mark: string;
  /** The blanks before the mark. */
  readonly gap: string;
  /** Where the mark is left out, the gap can be left out too. */
  readonly tight: boolean;
}

// [1] · [1, 2] · 【3】, as models write them.
const MARK = /^(?:\[(\d{1,3}(?:\s*[,，、]\s*\d{1,3})*)\]|【(\d{1,3}(?:\s*[,，、]\s*\d{1,3})*)】)/;
const BEGUN = /^[[【][\d\s,，、]{0,40}$/;
const NEXT = /[[【`\n]/g;
/** A longer list of numbers is not a citation. */
const MAX_MARK = 64;
/** Blanks or backticks held until more text comes; longer runs are passed on. */
const MAX_HELD = 64;
/** Text that needs no blank before it: the blanks before a removed mark are removed too. */
const NO_BLANK_BEFORE = /^(?:[\s.,;:!?)\]}。，；：！？）】[【]|$)/;

/**
 * Reads one text block. Marks inside code, links (`[1](…)`) and definitions (`[1]: …`) are plain text.
 * Other marks without a known source are dropped.
 */
export class CitationMarks {
  #held = '';
  /** The backticks that opened the current code, '' outside of code. */
  #code = '';

  constructor(private readonly source: (n: number) => NumberedSource | undefined) {}

  push(text: string): readonly CitedTextPiece[] {
    const pieces: CitedTextPiece[] = [];
    this.#held = this.#read(this.#held + text, false, pieces);
    return pieces;
  }

  /** The block is over: held text is either plain text or a mark at the very end. */
  end(): readonly CitedTextPiece[] {
    const pieces: CitedTextPiece[] = [];
    this.#held = this.#read(this.#held, true, pieces);
    return pieces;
  }

  /** Appends the pieces that are certain and returns the text that must wait. */
  #read(text: string, ended: boolean, pieces: CitedTextPiece[]): string {
    let from = 0;
    let at = 0;
    const emitText = (to: number) => {
      if (to > from) pieces.push({ type: 'text', text: text.slice(from, to) });
      from = to;
    };
    for (;;) {
      NEXT.lastIndex = at;
      const found = NEXT.exec(text);
      if (found === null) break;
      at = found.index;
      if (found[0] === '\n') {
        // Inline code ends with its line.
        if (this.#code.length < 3) this.#code = '';
        at++;
        continue;
      }
      if (found[0] === '`') {
        let end = at;
        while (text[end] === '`') end++;
        if (end === text.length && !ended && end - at < MAX_HELD) {
          emitText(at);
          return text.slice(at);
        }
        const ticks = text.slice(at, end);
        if (this.#code === '') this.#code = ticks;
        else if (this.#code === ticks) this.#code = '';
        at = end;
        continue;
      }
      if (this.#code !== '') {
        at++;
        continue;
      }
      const rest = text.slice(at, at + MAX_MARK);
      const blanks = blanksBefore(text, from, at);
      const mark = MARK.exec(rest);
      if (mark === null) {
        if (!ended && BEGUN.test(rest)) {
          emitText(at - blanks);
          return text.slice(from);
        }
        at++;
        continue;
      }
      const after = text[at + mark[0].length];
      if (after === undefined && !ended) {
        emitText(at - blanks);
        return text.slice(from);
      }
      const numbers = mark[1] ?? mark[2] ?? '';
      if (isOther(after, numbers)) {
        at += mark[0].length;
        continue;
      }
      const sources = this.#cited(numbers);
      const tight = NO_BLANK_BEFORE.test(after ?? '');
      emitText(tight || sources.length > 0 ? at - blanks : at);
      if (sources.length > 0) {
        pieces.push({ type: 'cite', sources, mark: mark[0], gap: text.slice(from, at), tight });
      }
      from = at + mark[0].length;
      at = from;
    }
    const tail = ended ? 0 : blanksBefore(text, from, text.length);
    emitText(text.length - tail);
    return text.slice(text.length - tail);
  }

  #cited(numbers: string): readonly NumberedSource[] {
    const sources: NumberedSource[] = [];
    for (const number of numbers.split(/[,，、]/)) {
      const source = this.source(Number(number.trim()));
      if (source !== undefined && !sources.includes(source)) sources.push(source);
    }
    return sources;
  }
}

function blanksBefore(text: string, from: number, at: number): number {
  let start = at;
  while (
    start > from &&
    at - start < MAX_HELD &&
    (text[start - 1] === ' ' || text[start - 1] === '\t')
  )
    start--;
  return at - start;
}

/** Is the bracketed number not a citation: a link, a definition, or an index of 0? */
function isOther(after: string | undefined, numbers: string): boolean {
  return after === '(' || after === ':' || numbers.trim() === '0';
}
