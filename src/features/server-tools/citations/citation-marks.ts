/** Finds `[n]` in text that arrives in pieces: which source it means, and what of the text is told. */

import type { NumberedSource } from './sources.ts';

export type Piece = { readonly type: 'text'; readonly text: string } | CitePiece;

/** Sources of the words before. */
export interface CitePiece {
  readonly type: 'cite';
  readonly sources: readonly NumberedSource[];
  /** What stood there, without the blanks before it. */
  readonly mark: string;
  readonly gap: string;
  /** Where the mark is left out, the gap may go as well. */
  readonly tight: boolean;
}

// [1] · [1, 2] · 【3】, as models write them.
const MARK = /^(?:\[(\d{1,3}(?:\s*[,，、]\s*\d{1,3})*)\]|【(\d{1,3}(?:\s*[,，、]\s*\d{1,3})*)】)/;
const BEGUN = /^[[【][\d\s,，、]{0,40}$/;
const NEXT = /[[【`\n]/g;
/** Characters; a longer list of numbers is no citation. */
const LONGEST_MARK = 64;
/** Blanks and backticks that wait for what follows them; longer runs are told as they come. */
const MOST_HELD = 64;
/** Blanks before a mark go with it where what follows needs none. */
const NO_BLANK_BEFORE = /^(?:[\s.,;:!?)\]}。，；：！？）】[【]|$)/;

/**
 * A reader of one text block. Marks inside code, links (`[1](…)`) and definitions (`[1]: …`) are text.
 * Other marks without a source are dropped: they would point at nothing.
 */
export class CitationMarks {
  readonly #source: (n: number) => NumberedSource | undefined;
  #held = '';
  /** The backticks that opened the code we are in. */
  #code = '';

  constructor(source: (n: number) => NumberedSource | undefined) {
    this.#source = source;
  }

  push(text: string): readonly Piece[] {
    const pieces: Piece[] = [];
    this.#held = this.#read(this.#held + text, false, pieces);
    return pieces;
  }

  /** The block is over: what was held is only text, or a mark at the very end. */
  end(): readonly Piece[] {
    const pieces: Piece[] = [];
    this.#held = this.#read(this.#held, true, pieces);
    return pieces;
  }

  /** Says what can be told and returns what must wait. */
  #read(text: string, ended: boolean, pieces: Piece[]): string {
    let from = 0;
    let at = 0;
    const tell = (to: number) => {
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
        if (end === text.length && !ended && end - at < MOST_HELD) {
          tell(at);
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
      const rest = text.slice(at, at + LONGEST_MARK);
      const blanks = blanksBefore(text, from, at);
      const mark = MARK.exec(rest);
      if (mark === null) {
        if (!ended && BEGUN.test(rest)) {
          tell(at - blanks);
          return text.slice(from);
        }
        at++;
        continue;
      }
      const after = text[at + mark[0].length];
      if (after === undefined && !ended) {
        tell(at - blanks);
        return text.slice(from);
      }
      const numbers = mark[1] ?? mark[2] ?? '';
      if (isOther(after, numbers)) {
        at += mark[0].length;
        continue;
      }
      const sources = this.#cited(numbers);
      const tight = NO_BLANK_BEFORE.test(after ?? '');
      tell(tight || sources.length > 0 ? at - blanks : at);
      if (sources.length > 0) {
        pieces.push({ type: 'cite', sources, mark: mark[0], gap: text.slice(from, at), tight });
      }
      from = at + mark[0].length;
      at = from;
    }
    const tail = ended ? 0 : blanksBefore(text, from, text.length);
    tell(text.length - tail);
    return text.slice(text.length - tail);
  }

  #cited(numbers: string): readonly NumberedSource[] {
    const sources: NumberedSource[] = [];
    for (const number of numbers.split(/[,，、]/)) {
      const source = this.#source(Number(number.trim()));
      if (source !== undefined && !sources.includes(source)) sources.push(source);
    }
    return sources;
  }
}

function blanksBefore(text: string, from: number, at: number): number {
  let start = at;
  while (
    start > from &&
    at - start < MOST_HELD &&
    (text[start - 1] === ' ' || text[start - 1] === '\t')
  )
    start--;
  return at - start;
}

/** A bracketed number that is no citation: a link, a definition, an index (results count from 1). */
function isOther(after: string | undefined, numbers: string): boolean {
  return after === '(' || after === ':' || numbers.trim() === '0';
}
