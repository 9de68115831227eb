/** Blanks one string of a JSON text in place; it stays a valid string, and JSON inside it stays JSON. */

import type { Steps } from '../../lib/loop/steps.ts';

/** Bytes between two yields. */
const STRIDE = 65_536;

const BACKSLASH = 0x5c;
const QUOTE = 0x22;
const X = 0x78;
const ONE = 0x31;

const isLetter = (byte: number) => (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a;
const isDigit = (byte: number) => byte >= 0x30 && byte <= 0x39;

/**
 * Letters become `x`, digits `1`, bytes of other scripts `x`; spaces, punctuation and escapes stay. In a
 * string that holds JSON, member names and literals (true, null) stay as well.
 * @param from first byte after the opening quote
 * @param to the closing quote
 */
export function* blankText(bytes: Buffer, from: number, to: number): Steps<void> {
  const json = looksLikeJson(bytes, from, to);
  let inner = !json;
  // The end of an inner string is searched once per byte, however broken the JSON is.
  let known = from;
  let rest = from + STRIDE;
  for (let i = from; i < to; i++) {
    if (i >= rest) {
      rest = i + STRIDE;
      yield;
    }
    const byte = bytes[i]!;
    if (byte === BACKSLASH) {
      if (bytes[i + 1] === 0x75) {
        // \u0041 becomes another escaped letter.
        bytes.write('0078', i + 2, 'latin1');
        i += 5;
        continue;
      }
      // \" opens or closes a string of the inner JSON; \\\" is inside one.
      if (json && bytes[i + 1] === QUOTE) {
        inner = !inner;
        const end = inner && i >= known ? innerEnd(bytes, i + 2, to) : -1;
        if (inner && i >= known) known = end < 0 ? to : end;
        if (end >= 0 && isKey(bytes, end + 2, to)) {
          i = end + 1;
          inner = false;
          continue;
        }
      } else if (json && bytes[i + 1] === BACKSLASH) {
        i = innerEscape(bytes, i, to);
        continue;
      }
      i++;
    } else if (byte > 0x7f) bytes[i] = X;
    else if (isDigit(byte)) bytes[i] = ONE;
    else if (isLetter(byte)) {
      const kept = inner ? 0 : literalLength(bytes, i, to);
      if (kept === 0) bytes[i] = X;
      else i += kept - 1;
    }
  }
}

const LITERALS = ['true', 'false', 'null'].map((word) => Buffer.from(word));

/** Length of the literal, or of the sign of an exponent, that stands there between two values of JSON; 0 for any other word. */
function literalLength(bytes: Buffer, at: number, to: number): number {
  const isWord = (i: number) => i >= 0 && i < to && (isLetter(bytes[i]!) || isDigit(bytes[i]!));
  if (isExponent(bytes, at)) return 1;
  if (isWord(at - 1)) return 0;
  for (const { length } of LITERALS.filter((word) => stands(word, bytes, at, to))) {
    if (!isWord(at + length)) return length;
  }
  return 0;
}

const stands = (word: Buffer, bytes: Buffer, at: number, to: number): boolean =>
  at + word.length <= to && word.every((byte, i) => bytes[at + i] === byte);

const isExponent = (bytes: Buffer, at: number): boolean =>
  (bytes[at]! | 0x20) === 0x65 &&
  isDigit(bytes[at - 1]!) &&
  /[-+\d]/.test(String.fromCharCode(bytes[at + 1] ?? 0));

/** Where the inner string that began before `from` ends: at its `\"`, or -1. */
function innerEnd(bytes: Buffer, from: number, to: number): number {
  for (let i = from; i < to; i++) {
    if (bytes[i] !== BACKSLASH) continue;
    if (bytes[i + 1] === QUOTE) return i;
    i += bytes[i + 1] === BACKSLASH ? (bytes[i + 2] === BACKSLASH ? 3 : 2) : 1;
  }
  return -1;
}

/** Member names are structure and stay. */
function isKey(bytes: Buffer, from: number, to: number): boolean {
  let at = from;
  while (at < to && bytes[at] === 0x20) at++;
  return bytes[at] === 0x3a;
}

/** Skips an escape of the inner JSON (`\\n`, `\\\"`, `\\u0041`) and returns its last byte. */
function innerEscape(bytes: Buffer, at: number, to: number): number {
  const next = bytes[at + 2];
  if (next === BACKSLASH) return Math.min(at + 3, to - 1);
  if (next === 0x75) {
    bytes.write('0078', at + 3, Math.min(4, Math.max(0, to - at - 3)), 'latin1');
    return Math.min(at + 6, to - 1);
  }
  return Math.min(at + 2, to - 1);
}

function looksLikeJson(bytes: Buffer, from: number, to: number): boolean {
  let at = from;
  while (at < to && (bytes[at] === 0x20 || (bytes[at] === BACKSLASH && bytes[at + 1] === 0x6e))) {
    at += bytes[at] === 0x20 ? 1 : 2;
  }
  return bytes[at] === 0x7b || bytes[at] === 0x5b;
}
