/** Finds executed-tool records in a model's own text, whole or broken off. */

import { ENVELOPE_MARK } from './envelope.ts';

/** Keys that identify the end of a record whose beginning is missing. */
const TAIL = /"(executed|result|stdout|exit_code|success)\\?"\s*:/g;

/** A part of a text; `end` is exclusive. */
export interface TextRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Removes records and pieces of records. Returns the same string if there are none. Prose that only
 * names the format stays.
 */
export function withoutResidue(text: string): string {
  if (!text.includes(ENVELOPE_MARK) && !text.includes('"executed')) return text;
  return withoutTail(withoutRanges(text, recordsIn(text)));
}

/** The text before the mark: the key and the value's opening quote, perhaps escaped. */
const BEFORE_MARK = /(\\?)"version\\?"\s{0,64}:\s{0,64}\\?"$/;
const MAX_BEFORE = 150;
/** Bounds the search from marks back to the beginnings of their records. */
const STEPS_PER_CHARACTER = 4;

/**
 * The records in a text, in order. A record within another belongs to the outer range; one that broke off
 * extends to the end. Takes linear time, because found records are skipped.
 */
export function recordsIn(text: string): readonly TextRange[] {
  const found: TextRange[] = [];
  /** The beginnings of found records, by the index of their last brace. */
  const byLast = new Map<number, number>();
  const steps = { left: STEPS_PER_CHARACTER * text.length + 1000 };
  let from = 0;
  for (;;) {
    const mark = text.indexOf(ENVELOPE_MARK, from);
    if (mark < 0) return found;
    from = mark + ENVELOPE_MARK.length;
    const before = BEFORE_MARK.exec(text.slice(Math.max(0, mark - MAX_BEFORE), mark));
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

/** Searches backwards from a position inside an object for the brace that opens it; -1 if there is none. */
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

/** The index after the brace that closes this mark's record; -1 if the record is broken off. */
function closeBrace(text: string, mark: number, start: number): number {
  const scan = new ObjectScan(isEscaped(text, start), 1, true);
  return scan.feed(text, mark);
}

/** Removes these ranges, and code fences that held nothing else. */
function withoutRanges(text: string, ranges: readonly TextRange[]): string {
  if (ranges.length === 0) return text;
  /** Remaining pieces. The last one has no trailing white space if a removed range follows. */
  const remaining: string[] = [];
  let from = 0;
  for (const { start, end } of ranges) {
    if (start < from) continue;
    remaining.push(text.slice(from, start));
    from = end;
    let newline = trimPieces(remaining);
    for (;;) {
      const fence = /(?:^|\n)[ \t]*(?:```|~~~)[a-zA-Z]{0,40}$/.exec(
        remaining.at(-1)?.slice(-80) ?? '',
      );
      if (fence === null) break;
      const close = closingFence(text, from);
      if (close < 0) break;
      from = close;
      const last = remaining.pop()!;
      remaining.push(last.slice(0, last.length - fence[0].length));
      if (fence[0].startsWith('\n')) remaining.push('\n');
      newline = trimPieces(remaining);
    }
    const next = notSpace(text, from);
    newline ||= text.slice(from, next).includes('\n');
    from = next;
    if (remaining.length > 0 && from < text.length) remaining.push(newline ? '\n' : ' ');
  }
  remaining.push(text.slice(from));
  return remaining.join('');
}

/** Removes white space from the end of the pieces. True if it contained a line break. */
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

/** The index after a closing fence at this position, or -1. The end of the text counts as a closing fence. */
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

/** Removes the end of a record whose beginning is missing: everything up to the first unmatched brace. */
function withoutTail(text: string): string {
  const first = text.search(/"(tool|arguments|executed|result|meta)\\?"\s*:/);
  if (first < 0 || first > 200) return text;
  // An odd number of quotes means that the text begins inside a string.
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

/** The index of the first unmatched closing brace, or -1. */
function unmatchedClose(text: string, inString: boolean): number {
  const end = new ObjectScan(isEscaped(text, 0), 1, inString).feed(text, 0);
  return end < 0 ? -1 : end - 1;
}

/** Is this a record inside a JSON string, with escaped quotes: `{\"version\":…`? */
export const isEscaped = (text: string, start: number): boolean =>
  /^\{?\s*\\"/.test(text.slice(start, start + 20));

/**
 * Finds the end of an object whose text arrives in pieces. Braces inside strings do not count. If quotes
 * are escaped, a backslash and a quote delimit a string.
 */
export class ObjectScan {
  #depth: number;
  #inString: boolean;
  #slashes = 0;

  /** @param depth number of braces that are open at the start */
  constructor(
    private readonly escaped: boolean,
    depth = 0,
    inString = false,
  ) {
    this.#depth = depth;
    this.#inString = inString;
  }

  /** The index after the brace that closes the object; -1 if more text is needed. */
  feed(text: string, from: number): number {
    for (let at = from; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === 0x5c) {
        // With plain quotes a backslash matters only inside strings.
        if (this.escaped || this.#inString) this.#slashes++;
        continue;
      }
      const slashes = this.#slashes;
      this.#slashes = 0;
      if (code === 0x22) {
        // One backslash: a quote of the record. Three or more: a quote inside its strings.
        const isQuote = this.escaped ? slashes === 1 : slashes % 2 === 0;
        if (isQuote) this.#inString = !this.#inString;
      } else if (this.#inString) continue;
      else if (code === 0x7b) this.#depth++;
      else if (code === 0x7d && --this.#depth === 0) return at + 1;
    }
    return -1;
  }
}
