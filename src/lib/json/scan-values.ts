/** Finds where JSON values end by their bytes alone; what is inside of them is not checked. */

import { closingQuote, QUOTE } from './string-ends.ts';

export const BRACE_OPEN = 0x7b;
export const BRACE_CLOSE = 0x7d;
export const BRACKET_OPEN = 0x5b;
export const BRACKET_CLOSE = 0x5d;
export const COLON = 0x3a;
export const COMMA = 0x2c;

export const isSpace = (byte: number | undefined) =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

/** May this byte stand behind a value? Otherwise a number or a word may go on there. */
export const endsValue = (byte: number | undefined) =>
  byte === COMMA || byte === BRACKET_CLOSE || byte === BRACE_CLOSE || isSpace(byte);

/** The index of the value of the key that ends at `at`; -1 if the text was no key. */
export function valueBehindKey(bytes: Uint8Array, at: number): number {
  let i = at;
  while (isSpace(bytes[i])) i++;
  if (bytes[i] !== 0x3a) return -1;
  i++;
  while (isSpace(bytes[i])) i++;
  return i;
}

/** White space in one place that no program writes. */
const MAX_BLANK = 1024 * 1024;

/** The place of the first byte from `from` on that is no white space, or that stands behind a megabyte of it. */
export function afterSpace(bytes: Uint8Array, from: number): number {
  const end = from + MAX_BLANK;
  let at = from;
  while (at < end && isSpace(bytes[at])) at++;
  return at;
}

/** Behind the string that begins at `start`; -1 where it has no end. */
export function stringEnd(bytes: Buffer, start: number): number {
  const quote = closingQuote(bytes, start + 1);
  return quote < 0 ? -1 : quote + 1;
}

/** Behind the value that begins at `start`; -1 where it has no end. What is inside of it is not checked. */
export function valueEnd(bytes: Buffer, start: number): number {
  const first = bytes[start];
  if (first === QUOTE) return stringEnd(bytes, start);
  if (first !== BRACE_OPEN && first !== BRACKET_OPEN) {
    let at = start;
    while (at < bytes.length && !endsValue(bytes[at])) at++;
    return at === start ? -1 : at;
  }
  let depth = 0;
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) {
      at = stringEnd(bytes, at) - 1;
      if (at < 0) return -1;
    } else if (byte === BRACE_OPEN || byte === BRACKET_OPEN) depth++;
    else if ((byte === BRACE_CLOSE || byte === BRACKET_CLOSE) && --depth === 0) return at + 1;
  }
  return -1;
}

/** Where the value of a member of the object at the top begins; -1 where none is found. What stands behind it is not read. */
export function memberStart(bytes: Buffer, key: string): number {
  const quoted = JSON.stringify(key);
  let at = afterSpace(bytes, 0);
  if (bytes[at] !== BRACE_OPEN) return -1;
  for (;;) {
    at = afterSpace(bytes, at + 1);
    if (bytes[at] !== QUOTE) return -1;
    const end = stringEnd(bytes, at);
    const colon = afterSpace(bytes, end);
    if (end < 0 || bytes[colon] !== COLON) return -1;
    const start = afterSpace(bytes, colon + 1);
    if (end - at === quoted.length && bytes.toString('latin1', at, end) === quoted) return start;
    const behind = valueEnd(bytes, start);
    at = afterSpace(bytes, behind);
    if (behind < 0 || bytes[at] !== COMMA) return -1;
  }
}
