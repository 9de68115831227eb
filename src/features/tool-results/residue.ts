/** Finds what is left of executed-tool records in a model's own text, whole or broken off. */

import { ENVELOPE_MARK } from './envelope.ts';

/** Keys with which such a record, or what is left of its end, can be told. */
const TAIL = /"(executed|result|stdout|exit_code|success)\\?"\s*:/g;

/** A place in a text, from `start` to before `end`. */
export interface TextRange {
  readonly start: number;
  readonly end: number;
}

/**
 * The text without records and pieces of them; the same string when it holds none. Prose that only
 * names the format stays.
 */
export function withoutResidue(text: string): string {
  if (!text.includes(ENVELOPE_MARK) && !text.includes('"executed')) return text;
  return withoutTail(withoutRanges(text, recordsIn(text)));
}

/** What stands in front of the mark: the key and the value's quote, perhaps escaped. */
const BEFORE_MARK = /(\\?)"version\\?"\s{0,64}:\s{0,64}\\?"$/;
const LONGEST_BEFORE = 150;
/** Steps back from marks to the beginnings of their records, for each character of the text. */
const STEPS_PER_CHARACTER = 4;

/**
 * The records in a text that hold the mark at their own level, in order; one that holds another is one
 * range, one that broke off goes to the end. Linear: what has been found is jumped over.
 */
export function recordsIn(text: string): readonly TextRange[] {
  const found: TextRange[] = [];
  /** The beginnings of those found, by the index of their last brace. */
  const byLast = new Map<number, number>();
  const steps = { left: STEPS_PER_CHARACTER * text.length + 1000 };
  let from = 0;
  for (;;) {
    const mark = text.indexOf(ENVELOPE_MARK, from);
    if (mark < 0) return found;
    from = mark + ENVELOPE_MARK.length;
    const before = BEFORE_MARK.exec(text.slice(Math.max(0, mark - LONGEST_BEFORE), mark));
    if (before === null) continue;
    const key = mark - before[0].length;
    const start = openBrace(text, key - 1, before[1] !== '', byLast, steps);
    if (start < 0) continue;
    const end = closeBrace(text, mark, start);
    while (found.length > 0 && found.at(-1)!.start >= start) found.pop();
    found.push({ start, end: end < 0 ? text.length : end });
    if (end < 0) return found;
    byLast.set(end - 1, start);
    from = end;
  }
}

/** Going back from a place between the members of an object: the brace that opens it, or -1. */
function openBrace(
  text: string,
  at: number,
  escaped: boolean,
  byLast: ReadonlyMap<number, number>,
  steps: { left: number },
): number {
  let depth = 0;
  let inString = false;
  for (let i = at; i >= 0; i--) {
    if (--steps.left < 0) return -1;
    const char = text[i];
    if (char === '"') {
      let slashes = 0;
      while (i > slashes && text[i - slashes - 1] === '\\') slashes++;
      steps.left -= slashes;
      if (escaped ? slashes === 1 : slashes % 2 === 0) inString = !inString;
      i -= slashes;
    } else if (inString) continue;
    else if (char === '}') {
      const start = byLast.get(i);
      if (start === undefined) depth++;
      else i = start;
    } else if (char === '{' && depth-- === 0) return i;
  }
  return -1;
}

/** The index behind the brace that closes the record of this mark, -1 where it is broken off. */
function closeBrace(text: string, mark: number, start: number): number {
  const scan = new ObjectScan(isEscaped(text, start), 1, true);
  return scan.feed(text, mark);
}

/** The text without these ranges, and without code fences that held nothing else. */
function withoutRanges(text: string, ranges: readonly TextRange[]): string {
  if (ranges.length === 0) return text;
  /** What is kept; the last piece ends with no whitespace where a hole follows it. */
  const kept: string[] = [];
  let from = 0;
  for (const { start, end } of ranges) {
    if (start < from) continue;
    kept.push(text.slice(from, start));
    from = end;
    let newline = trimPieces(kept);
    for (;;) {
      const fence = /(?:^|\n)[ \t]*(?:```|~~~)[a-zA-Z]{0,40}$/.exec(kept.at(-1)?.slice(-80) ?? '');
      if (fence === null) break;
      const close = closingFence(text, from);
      if (close < 0) break;
      from = close;
      const last = kept.pop()!;
      kept.push(last.slice(0, last.length - fence[0].length));
      if (fence[0].startsWith('\n')) kept.push('\n');
      newline = trimPieces(kept);
    }
    const words = notSpace(text, from);
    newline ||= text.slice(from, words).includes('\n');
    from = words;
    if (kept.length > 0 && from < text.length) kept.push(newline ? '\n' : ' ');
  }
  kept.push(text.slice(from));
  return kept.join('');
}

/** Takes whitespace off the end of the pieces. True: there was a line break in it. */
function trimPieces(pieces: string[]): boolean {
  let newline = false;
  for (let last = pieces.pop(); last !== undefined; last = pieces.pop()) {
    const rest = last.trimEnd();
    newline ||= last.includes('\n', rest.length);
    if (rest === '') continue;
    pieces.push(rest);
    break;
  }
  return newline;
}

/** The index behind the fence that closes here (the end of the text closes too), or -1. */
function closingFence(text: string, from: number): number {
  const at = notSpace(text, from);
  if (at === text.length) return at;
  const close = /(?:```|~~~)[ \t]{0,80}(?:\n|$)/y;
  close.lastIndex = at;
  return close.exec(text) === null ? -1 : close.lastIndex;
}

function notSpace(text: string, from: number): number {
  const found = /\S/g;
  found.lastIndex = from;
  return found.exec(text)?.index ?? text.length;
}

/** The end of a record whose beginning was lost: everything up to the brace that closes nothing. */
function withoutTail(text: string): string {
  const first = text.search(/"(tool|arguments|executed|result|meta)\\?"\s*:/);
  if (first < 0 || first > 200) return text;
  // Broken off inside a string, its quotes do not come in pairs.
  const end = unmatchedClose(text, quotesIn(text) % 2 === 1);
  if (end >= 0) {
    const keys = new Set<string>();
    for (const [, key] of text.slice(0, end).matchAll(TAIL)) keys.add(key!);
    if (keys.has('result') && keys.size >= 3) return text.slice(end).replace(/^[}\]\s]+/, '');
  }
  return text;
}

/** Quotation marks without a backslash. */
function quotesIn(text: string): number {
  let count = 0;
  for (let at = text.indexOf('"'); at >= 0; at = text.indexOf('"', at + 1)) {
    if (text[at - 1] !== '\\') count++;
  }
  return count;
}

/** The index of the first brace that closes nothing, -1 where there is none. */
function unmatchedClose(text: string, inString: boolean): number {
  const end = new ObjectScan(isEscaped(text, 0), 1, inString).feed(text, 0);
  return end < 0 ? -1 : end - 1;
}

/** A record that was written into a JSON string once more has its quotes escaped, `{\"version\":…`. */
export const isEscaped = (text: string, start: number): boolean =>
  /^\{?\s*\\"/.test(text.slice(start, start + 20));

/**
 * Walks the text of an object piece by piece and finds its end; knows when it is inside a string. Where
 * quotes are escaped, a quote is a backslash and a quote.
 */
export class ObjectScan {
  readonly #escaped: boolean;
  #depth: number;
  #inString: boolean;
  #slashes = 0;

  /** @param depth braces that are open where it begins */
  constructor(escaped: boolean, depth = 0, inString = false) {
    this.#escaped = escaped;
    this.#depth = depth;
    this.#inString = inString;
  }

  /** The index behind the brace that closes the object, -1 where it goes on. */
  feed(text: string, from: number): number {
    for (let at = from; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === 0x5c) {
        // Outside strings a backslash means nothing where quotes are plain.
        if (this.#escaped || this.#inString) this.#slashes++;
        continue;
      }
      const slashes = this.#slashes;
      this.#slashes = 0;
      if (code === 0x22) {
        // One backslash is a quote of the record, three and more a quote inside its strings.
        const isQuote = this.#escaped ? slashes === 1 : slashes % 2 === 0;
        if (isQuote) this.#inString = !this.#inString;
      } else if (this.#inString) continue;
      else if (code === 0x7b) this.#depth++;
      else if (code === 0x7d && --this.#depth === 0) return at + 1;
    }
    return -1;
  }
}
