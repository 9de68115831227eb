/** Finds the pieces of texts in the events of a stream, byte by byte as they come, without parsing them. */

import { words } from '../../lib/text/words.ts';

/**
 * Members in which streams send texts and arguments in pieces. `stringValue`: Gemini's arguments; `summary`: OpenRouter's
 * summaries of reasoning; `transcript`: what is said in audio.
 */
const PIECES = words(`
  content text delta arguments partial_json thinking reasoning_content reasoning input refusal
  stringValue summary transcript
`);
/** The same by their lengths: most names of a stream are others, and no string is made of them. */
const BY_LENGTH: readonly (readonly string[])[] = Array.from({ length: 32 }, (_, length) =>
  PIECES.filter((name) => name.length === length),
);
/** Ends of names whose numbers tell texts apart: `index`, `output_index`. */
const INDEX = 'index';

/** Where a piece of a text stands in the stream, and which text it is a part of. */
export interface Piece {
  readonly from: number;
  readonly to: number;
  /** Its member, with the numbers of choice, call and block. */
  readonly text: string;
  readonly member: string;
}

/** An object or list that is open. */
class Level {
  /** The member whose value comes; of a list, the member that holds it. '' for one that holds no pieces. */
  key: string;
  expectsKey: boolean;
  /** Its members that number choices, calls and blocks. */
  index = '';
  /** The value that comes is one of those. */
  numbers = false;

  constructor(
    readonly above: Level | undefined,
    readonly list: boolean,
  ) {
    this.key = list && above !== undefined ? above.key : '';
    this.expectsKey = !list;
  }

  /** Its next member has this name. */
  name(bytes: Buffer, from: number, to: number): void {
    this.expectsKey = false;
    this.numbers = stands(INDEX, bytes, to - INDEX.length, from) && this.index.length < MAX_KEY;
    if (this.numbers) this.index += ` ${bytes.toString('latin1', from, to).slice(-MAX_KEY)} `;
    this.key = BY_LENGTH[to - from]?.find((name) => stands(name, bytes, from, from)) ?? '';
  }

  /** The numbers that say which text a string at this level belongs to. */
  get numbered(): string {
    let all = '';
    for (let level: Level | undefined = this; level !== undefined; level = level.above) {
      if (level.index !== '') all += level.index;
    }
    return all;
  }
}

function stands(name: string, bytes: Buffer, at: number, from: number): boolean {
  if (at < from) return false;
  for (let i = 0; i < name.length; i++) if (bytes[at + i] !== name.charCodeAt(i)) return false;
  return true;
}

/** Deeper values are passed over: no client reads a text there. */
const MAX_DEPTH = 64;
/** Longer than any member name that is looked for, and than all numbers of one object. */
const MAX_KEY = 64;

const DATA = [...Buffer.from('data:')];
const LF = 0x0a;
const CR = 0x0d;
const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;

/** Bytes between strings that mean nothing here: colons, spaces, literals. */
const SAYS_NOTHING = new Uint8Array(256).fill(1);
for (const char of '\n\r"{}[],0123456789') SAYS_NOTHING[char.charCodeAt(0)] = 0;

const LINE_START = 0;
const OTHER_LINE = 1;
const VALUES = 2;
const STRING = 3;

export class EventWalk {
  /** Pieces of complete events, in their order; the reader takes them away. */
  ready: Piece[] = [];
  #place = LINE_START;
  /** Bytes of `data:` that the line has begun with. */
  #matched = 0;
  #afterCr = false;
  #level: Level | undefined;
  #depth = 0;
  /** The open string: a piece from this offset on, a member name so far, or neither. */
  #pieceFrom = -1;
  #key: string | undefined;
  #escaped = false;
  /** Pieces of the event under way: its numbers may still come. */
  #pieces: {
    readonly from: number;
    readonly to: number;
    readonly member: string;
    readonly level: Level;
  }[] = [];

  /** The offset from which on pieces wait for the end of their event; -1: none do. */
  get waitsFrom(): number {
    return this.#pieces[0]?.from ?? this.#pieceFrom;
  }

  /** @param offset of the first byte in the stream */
  walk(bytes: Buffer, offset: number): void {
    for (let i = 0; i < bytes.length; i++) {
      if (this.#place === STRING) {
        i = this.#string(bytes, i, offset);
        if (i >= bytes.length) return;
      }
      const byte = bytes[i]!;
      if (this.#place === VALUES && SAYS_NOTHING[byte] === 1) continue;
      if (byte === LF || byte === CR) this.#lineEnd(byte);
      else if (this.#place === LINE_START) {
        if (byte !== DATA[this.#matched++]) this.#place = OTHER_LINE;
        else if (this.#matched === DATA.length) this.#place = VALUES;
      } else if (this.#place === OTHER_LINE) i = lineEnd(bytes, i) - 1;
      else this.#value(byte, offset + i);
    }
  }

  /** Makes the pieces of the event under way ready as far as they have come. */
  endEarly(offset: number): void {
    const level = this.#level;
    if (this.#pieceFrom >= 0 && level !== undefined) {
      if (offset > this.#pieceFrom) {
        this.#pieces.push({ from: this.#pieceFrom, to: offset, member: level.key, level });
      }
      this.#pieceFrom = offset;
    }
    this.#eventEnd();
  }

  /** Passes a string, or its rest; returns the offset of its closing quote, or of the line's end. */
  #string(bytes: Buffer, from: number, offset: number): number {
    let at = from;
    if (this.#escaped) at++;
    for (; at < bytes.length; at++) {
      const byte = bytes[at]!;
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE || byte === LF || byte === CR) break;
    }
    this.#escaped = at > bytes.length;
    const to = Math.min(at, bytes.length);
    if (at >= bytes.length) {
      if (this.#key !== undefined && this.#key.length < MAX_KEY) {
        this.#key += bytes.toString('latin1', from, Math.min(to, from + MAX_KEY));
      }
      return to;
    }
    const level = this.#level;
    if (level !== undefined && this.#key !== undefined) {
      const rest = this.#key === '' ? undefined : this.#key + bytes.toString('latin1', from, to);
      level.name(
        rest === undefined ? bytes : Buffer.from(rest, 'latin1'),
        rest === undefined ? from : 0,
        rest?.length ?? to,
      );
    } else if (level !== undefined && this.#pieceFrom >= 0 && this.#pieceFrom < offset + to) {
      this.#pieces.push({ from: this.#pieceFrom, to: offset + to, member: level.key, level });
    }
    this.#key = undefined;
    this.#pieceFrom = -1;
    this.#place = VALUES;
    if (bytes[at] === QUOTE) return at + 1 === bytes.length ? bytes.length : at + 1;
    // A line break within a string: what follows begins anew.
    this.#eventEnd();
    this.#level = undefined;
    this.#depth = 0;
    return at;
  }

  #value(byte: number, offset: number): void {
    const level = this.#depth > MAX_DEPTH ? undefined : this.#level;
    if (byte === QUOTE) {
      this.#place = STRING;
      if (level === undefined) return;
      if (level.expectsKey) this.#key = '';
      else if (level.key !== '') this.#pieceFrom = offset + 1;
    } else if (byte === 0x7b || byte === 0x5b) {
      if (++this.#depth <= MAX_DEPTH) this.#level = new Level(level, byte === 0x5b);
    } else if (byte === 0x7d || byte === 0x5d) {
      if (this.#depth === 0 || --this.#depth >= MAX_DEPTH) return;
      this.#level = this.#level?.above;
      if (this.#depth === 0) this.#eventEnd();
    } else if (level === undefined) return;
    else if (byte === COMMA) {
      level.expectsKey = !level.list;
      level.numbers = false;
    } else if (level.numbers && byte >= 0x30 && byte <= 0x39) {
      if (level.index.length < 2 * MAX_KEY) level.index += byte - 0x30;
    }
  }

  #lineEnd(byte: number): void {
    const blank = this.#place === LINE_START && this.#matched === 0;
    if (blank && !(byte === LF && this.#afterCr)) {
      this.#eventEnd();
      this.#level = undefined;
      this.#depth = 0;
    }
    this.#afterCr = byte === CR;
    this.#place = LINE_START;
    this.#matched = 0;
  }

  #eventEnd(): void {
    for (const { from, to, member, level } of this.#pieces) {
      this.ready.push({ from, to, member, text: member + level.numbered });
    }
    if (this.#pieces.length > 0) this.#pieces = [];
  }
}

function lineEnd(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== LF && bytes[at] !== CR) at++;
  return at;
}
