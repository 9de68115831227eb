/** Reads JSON texts that differ from a learned one only in one string, and in numbers behind it, without parsing them. */

import { isObject, type JsonObject } from './json.ts';

/** What a template has to know of the texts that it reads. */
export interface TemplateForm {
  readonly key: string;
  /** The string of a value that says nothing else. What this does not look at is the same in all texts, or is a number. */
  readonly text: (value: unknown) => string | undefined;
  /**
   * The numbers behind the string may differ, and here a value says something by them. Left out: no number
   * may differ.
   */
  readonly counts?: (value: JsonObject) => boolean;
}

/** The form of a frame of server-sent events: `head`, the characters of the string, `foot`. */
export interface FrameForm {
  readonly head: string;
  readonly foot: string;
  /** What the caller gave. */
  readonly index: number;
}

const PROBE = 'probe';
const DIGITS = /\d+/g;
/** Numbers and characters behind the string. Vendors send about ten and 500. */
const MAX_NUMBERS = 64;
const MAX_TAIL = 8192;
/** Longer numbers are no counts. */
const MAX_DIGITS = 15;
// After so many learned texts that matched no other (random padding), learning stops.
const MAX_MISSES = 4;

const NUL = 0x30;
const NINE = 0x39;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;

/**
 * Vendors send the same JSON around every piece of an answer's text, some but for counts of the usage so far. What stands
 * before the string is stored, and what stands behind it, split at its numbers. By the grammar of JSON, a text with the
 * same around a valid string, and with other numbers at the places of numbers, has the same value but for these.
 */
export class JsonTemplate {
  /** Text before the learned place; empty where none is learned. */
  #before = '';
  /** Behind the string: the numbers of the learned text, what stands before each of them, and behind the last. */
  #numbers: readonly string[] = [];
  #between: readonly string[] = [];
  #last = '';
  #event = '';
  /** What stands before and behind the same in a frame. */
  #head = '';
  #foot = '';
  #counts = false;
  #tail: string | undefined;
  #misses = 0;
  #spoken = false;
  #frame: FrameForm | undefined;

  constructor(private readonly form: TemplateForm) {}

  /** The string of a text like the learned one; undefined if the text must be parsed. */
  read(data: string, event: string): string | undefined {
    const before = this.#before;
    if (before === '' || event !== this.#event || !data.startsWith(before)) return undefined;
    const from = before.length;
    const plain = plainEnd(data, from);
    const end = stringEnd(data, plain);
    const last = this.#lastPart(data, end);
    if (last < 0 || last + this.#last.length !== data.length || !data.endsWith(this.#last)) {
      return undefined;
    }
    const inner = data.slice(from, end);
    const value = plain === end ? inner : unescaped(inner);
    if (value === undefined) return undefined;
    if (this.#counts) this.#tail = data.slice(end);
    this.#misses = 0;
    return value;
  }

  /** The strings of all frames from `at` on that are like the learned one, joined; undefined if there are none. */
  run(frames: string, at: number): { readonly text: string; readonly to: number } | undefined {
    if (this.#before === '') return undefined;
    const head = this.#head;
    const foot = this.#foot;
    let text = '';
    let to = at;
    let tail = 0;
    while (frames.startsWith(head, to)) {
      const from = to + head.length;
      const plain = plainEnd(frames, from);
      const end = stringEnd(frames, plain);
      const last = this.#lastPart(frames, end);
      if (last < 0 || !frames.startsWith(foot, last)) break;
      const inner = frames.slice(from, end);
      const piece = plain === end ? inner : unescaped(inner);
      if (piece === undefined) break;
      text += piece;
      tail = end;
      to = last + foot.length;
    }
    if (text === '') return undefined;
    if (this.#counts) this.#tail = frames.slice(tail, to - 2);
    return { text, to };
  }

  /** The value that was read last, with an empty string; once. Undefined: its numbers say nothing. */
  takeLast(): JsonObject | undefined {
    const tail = this.#tail;
    this.#tail = undefined;
    const value = tail === undefined ? undefined : parsed(this.#before + tail);
    return isObject(value) ? value : undefined;
  }

  /**
   * The form of the frames that `run` reads, where numbers say nothing. The same object for as long as the
   * form and the index are the same.
   */
  frame(index: number): FrameForm | undefined {
    if (this.#before === '' || this.#counts) return undefined;
    if (this.#frame?.index !== index) {
      const between = this.#between.map((part, i) => part + this.#numbers[i]!).join('');
      this.#frame = { head: this.#head, foot: between + this.#foot, index };
    }
    return this.#frame;
  }

  /** Learns a text that was parsed, if its value says nothing but a string. */
  learn(data: string, event: string, value: JsonObject): void {
    if (this.#misses >= MAX_MISSES) return;
    const { key, text, counts } = this.form;
    const string = text(value);
    if (string === undefined || string === PROBE) return;
    if (!this.#spoken) {
      // Not the first word: passthrough reads no further than that.
      this.#spoken = string !== '';
      return;
    }
    this.#misses++;
    const mark = data.includes(`"${key}":"`) ? `"${key}":"` : `"${key}": "`;
    const at = data.indexOf(mark);
    // A line break would end a line of a frame.
    if (at < 0 || data.includes('\n')) return;
    const from = at + mark.length;
    const to = stringEnd(data, plainEnd(data, from));
    const before = data.slice(0, from);
    const behind = data.slice(to);
    // Another string at this position changes the value's, so it is its position.
    if (text(parsed(before + PROBE + behind)) !== PROBE) return;
    if (counts === undefined) this.#last = behind;
    else if (!this.#split(before, behind)) return;
    this.#before = before;
    this.#event = event;
    this.#head = `${event === '' ? '' : `event: ${event}\n`}data: ${before}`;
    this.#foot = `${this.#last}\n\n`;
    this.#counts = counts?.(value) ?? false;
    this.#frame = undefined;
  }

  /**
   * Splits what stands behind the string at the numbers that may change. A number that decides what the value says, such
   * as an index, is no such number. False where there are too many of them.
   */
  #split(before: string, behind: string): boolean {
    const found = [...behind.matchAll(DIGITS)];
    // An escape may hold digits.
    if (found.length > MAX_NUMBERS || behind.length > MAX_TAIL || behind.includes('\\')) {
      return false;
    }
    const between: string[] = [];
    const numbers: string[] = [];
    let from = 0;
    for (const { 0: digits, index } of found) {
      const end = index + digits.length;
      const other = (Number(digits.at(-1)) + 1) % 10;
      const changed = behind.slice(0, end - 1) + other + behind.slice(end);
      if (this.form.text(parsed(before + PROBE + changed)) !== PROBE) continue;
      between.push(behind.slice(from, index));
      numbers.push(digits);
      from = end;
    }
    this.#numbers = numbers;
    this.#between = between;
    this.#last = behind.slice(from);
    return true;
  }

  /** Where the part behind the last number begins, of what stands behind the string; -1 where something else stands there. */
  #lastPart(text: string, end: number): number {
    let at = end;
    for (let i = 0; i < this.#numbers.length; i++) {
      const part = this.#between[i]!;
      if (!text.startsWith(part, at)) return -1;
      at += part.length;
      const number = at;
      while (isDigit(text.charCodeAt(at))) at++;
      const length = at - number;
      if (length === 0 || length > MAX_DIGITS) return -1;
      // JSON has no numbers with a zero before other digits; strings and fractions may.
      if (length > 1 && text.charCodeAt(number) === NUL) {
        const learned = this.#numbers[i]!;
        if (learned.length !== length || learned.charCodeAt(0) !== NUL) return -1;
      }
    }
    return at;
  }
}

const isDigit = (code: number): boolean => code >= NUL && code <= NINE;

/** The end of the unescaped characters of a JSON string: a quote, an escape or a control character. */
export function plainEnd(text: string, from: number): number {
  let at = from;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE || code === BACKSLASH || code < SPACE) break;
  }
  return at;
}

/** Where the string ends whose unescaped characters end at `from`: at its quote, or at what cannot be in a string. */
function stringEnd(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) === BACKSLASH) at = plainEnd(text, at + 2);
  return at;
}

/** The value of a JSON string given without its quotes; undefined if it is not valid. */
function unescaped(inner: string): string | undefined {
  const value = parsed(`"${inner}"`);
  return typeof value === 'string' ? value : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
