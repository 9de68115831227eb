/** A JSON body in pieces: its members, and the items of its lists. What another body holds byte for byte keeps that body's values. */

import { runAtOnce, type Steps } from '../loop/steps.ts';
import { type Json, type JsonObject, type Member, parseJson } from './json.ts';
import { put } from './json-members.ts';
import {
  afterSpace,
  BRACE_CLOSE,
  BRACE_OPEN,
  BRACKET_CLOSE,
  BRACKET_OPEN,
  COLON,
  COMMA,
  endsValue,
  stringEnd,
  valueEnd,
} from './scan-values.ts';
import { QUOTE } from './string-ends.ts';

/** Shared by all bodies that hold the piece. */
interface Box {
  value: Json | undefined;
}

/** A value that is no list, or an item of a list: offsets into the body. */
interface Piece {
  readonly start: number;
  readonly end: number;
  readonly box: Box;
}

interface PiecedMember extends Member {
  readonly key: string;
  /** Its pieces are those from `from` up to `to`. */
  readonly from: number;
  readonly to: number;
  /** A list; the array is made once, and is the earlier body's where all items are. */
  readonly list: Box | undefined;
}

/** As `Members` of `json.ts`. */
type PiecedMembers = Map<string, PiecedMember> & { repeated?: string | undefined };

/** Bytes between two yields. */
const STEP_BYTES = 64 * 1024;
/** A body of more pieces is no conversation; it is read in one. */
const MAX_PIECES = 20_000;

// A byte order mark is part of the text here: before a value it is an error.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export class BodyPieces {
  readonly #members: readonly PiecedMember[];
  readonly #pieces: readonly Piece[];
  #value: JsonObject | undefined;
  #byKey: PiecedMembers | undefined;

  constructor(
    readonly bytes: Buffer,
    members: readonly PiecedMember[],
    pieces: readonly Piece[],

    /** Bytes that were taken from the earlier body. */
    readonly kept: number,

    /** Ranges of bytes that the earlier body does not hold: start, end, start, end … */
    readonly fresh: readonly number[],
  ) {
    this.#members = members;
    this.#pieces = pieces;
  }

  get pieces(): readonly Piece[] {
    return this.#pieces;
  }

  /** How many of its first pieces stand at the same place in other bytes; some are looked at, not all. */
  sharedWith(other: Buffer): number {
    const pieces = this.#pieces;
    let shared = 0;
    // Neighbours differ where they fork: a few of the first and then ever fewer tell them apart.
    for (let i = 0; i < pieces.length; i += i < 8 ? 1 : Math.ceil(i / 4)) {
      const { start, end } = pieces[i]!;
      if (end > other.length || this.bytes.compare(other, start, end, start, end) !== 0) break;
      shared = i + 1;
    }
    return shared;
  }

  /** Where the members stand; a duplicate key has its last place, as for JSON.parse. */
  get members(): PiecedMembers {
    if (this.#byKey !== undefined) return this.#byKey;
    const members: PiecedMembers = new Map();
    for (const member of this.#members) {
      if (members.has(member.key)) members.repeated ??= member.key;
      members.set(member.key, member);
    }
    this.#byKey = members;
    return members;
  }

  /** The whole value, frozen by convention: lists and items may be those of other bodies. @throws as {@link member} */
  get value(): JsonObject {
    return runAtOnce(this.valueSteps());
  }

  /** {@link value} in steps; the value is kept. */
  *valueSteps(): Steps<JsonObject> {
    if (this.#value !== undefined) return this.#value;
    let parsed = 0;
    for (const piece of this.#pieces) {
      if (piece.box.value !== undefined) continue;
      this.#parse(piece);
      parsed += piece.end - piece.start;
      if (parsed < STEP_BYTES) continue;
      parsed = 0;
      yield;
    }
    const value: Record<string, Json | undefined> = {};
    for (const member of this.#members) put(value, member.key, this.#valueOf(member));
    this.#value = value;
    return value;
  }

  #valueOf(member: PiecedMember): Json {
    const { list, from, to } = member;
    if (list === undefined) return this.#parse(this.#pieces[from]!);
    list.value ??= this.#pieces.slice(from, to).map((piece) => this.#parse(piece));
    return list.value;
  }

  #parse({ box, start, end }: Piece): Json {
    box.value ??= parseJson(utf8.decode(this.bytes.subarray(start, end)));
    return box.value;
  }
}

/**
 * Finds the pieces of a body: an object with lists in it. What `before` holds too is compared and not looked
 * through; the values of such pieces are the same objects. The bytes of both must not change any more.
 * @returns undefined where the bytes are not a JSON object, as far as the scan can tell, or have too many pieces
 */
export function* bodyPieces(bytes: Buffer, before?: BodyPieces): Steps<BodyPieces | undefined> {
  const scan = new PieceScan(bytes, before);
  let at = afterSpace(bytes, 0);
  if (bytes[at] !== BRACE_OPEN) return undefined;
  at = afterSpace(bytes, at + 1);
  let stepped = 0;
  if (bytes[at] === BRACE_CLOSE) at++;
  else {
    for (;;) {
      if (bytes[at] !== QUOTE) return undefined;
      const keyStart = at;
      const keyEnd = stringEnd(bytes, at);
      at = afterSpace(bytes, keyEnd);
      if (keyEnd < 0 || bytes[at] !== COLON) return undefined;
      const key = keyOf(bytes, keyStart, keyEnd);
      if (key === undefined) return undefined;
      const valueStart = afterSpace(bytes, at + 1);
      const from = scan.count;
      scan.begin(key);
      const isList = bytes[valueStart] === BRACKET_OPEN;
      if (isList) {
        at = afterSpace(bytes, valueStart + 1);
        if (bytes[at] === BRACKET_CLOSE) at++;
        else {
          for (;;) {
            const end = scan.piece(at);
            if (end < 0) return undefined;
            at = afterSpace(bytes, end);
            if (bytes[at] === BRACKET_CLOSE) break;
            if (bytes[at] !== COMMA) return undefined;
            at = afterSpace(bytes, at + 1);
            if (scan.scanned - stepped < STEP_BYTES) continue;
            stepped = scan.scanned;
            yield;
          }
          at++;
        }
      } else {
        at = scan.piece(valueStart);
        if (at < 0) return undefined;
      }
      scan.member({ key, keyStart, valueStart, valueEnd: at, from, to: scan.count }, isList);
      at = afterSpace(bytes, at);
      if (bytes[at] === BRACE_CLOSE) break;
      if (bytes[at] !== COMMA) return undefined;
      at = afterSpace(bytes, at + 1);
    }
    at++;
  }
  return afterSpace(bytes, at) === bytes.length ? scan.done() : undefined;
}

class PieceScan {
  readonly #pieces: Piece[] = [];
  readonly #members: PiecedMember[] = [];
  /** Where the next piece is expected among the earlier ones. */
  #cursor = 0;
  /** Earlier pieces that were taken: equal ones stay two, as if read anew. */
  readonly #taken: Uint8Array;
  #byLength: Map<number, number[]> | undefined;
  /** How often it was asked for pieces of a length. */
  #asked = 0;
  #kept = 0;
  readonly #fresh: number[] = [];
  /** Up to here the bytes are known or listed as fresh. */
  #seen = 0;
  /** Bytes that were looked through. */
  scanned = 0;

  constructor(
    private readonly bytes: Buffer,
    private readonly before: BodyPieces | undefined,
  ) {
    this.#taken = new Uint8Array(before?.pieces.length ?? 0);
  }

  get count(): number {
    return this.#pieces.length;
  }

  /** The pieces of this member follow. */
  begin(key: string): void {
    this.#cursor = this.before?.members.get(key)?.from ?? this.#cursor;
  }

  /** Takes the piece that begins at `start`; its end, -1 where there is none. */
  piece(start: number): number {
    if (this.#pieces.length >= MAX_PIECES) return -1;
    const before = this.before?.pieces;
    // The next one, as it was; or the one behind it, where one was put in or taken out.
    if (before !== undefined) {
      for (let i = this.#cursor; i < this.#cursor + 2 && i < before.length; i++) {
        const end = start + before[i]!.end - before[i]!.start;
        if (endsValue(this.bytes[end]) && this.#same(i, start, end))
          return this.#take(i, start, end);
      }
    }
    const end = valueEnd(this.bytes, start);
    if (end < 0) return -1;
    this.scanned += end - start;
    if (before !== undefined) {
      for (const i of this.#ofLength(end - start)) {
        if (this.#same(i, start, end)) return this.#take(i, start, end);
      }
      this.#cursor++;
    }
    this.#pieces.push({ start, end, box: { value: undefined } });
    return end;
  }

  /** Earlier pieces that are as long. */
  #ofLength(length: number): readonly number[] {
    // A turn has a few new pieces: the index is for those that have many.
    if (this.#byLength === undefined && this.#asked++ < UNINDEXED) {
      const found: number[] = [];
      const pieces = this.before!.pieces;
      for (let i = 0; i < pieces.length && found.length < MAX_ALIKE; i++) {
        const { start, end } = pieces[i]!;
        if (end - start === length) found.push(i);
      }
      return found;
    }
    this.#byLength ??= byLength(this.before!.pieces);
    return this.#byLength.get(length) ?? NONE;
  }

  #same(i: number, start: number, end: number): boolean {
    if (this.#taken[i] === 1) return false;
    const { pieces, bytes } = this.before!;
    const old = pieces[i]!;
    return bytes.compare(this.bytes, start, end, old.start, old.end) === 0;
  }

  #take(i: number, start: number, end: number): number {
    const { pieces, bytes } = this.before!;
    const follows = i > 0 && i === this.#cursor && this.#pieces.length > 0;
    const gap = follows ? pieces[i]!.start - pieces[i - 1]!.end : -1;
    // What stands between two neighbours is kept with them.
    const whole =
      start - this.#seen === gap &&
      bytes.compare(this.bytes, this.#seen, start, pieces[i - 1]!.end, pieces[i]!.start) === 0;
    if (!whole) this.#fresh.push(this.#seen, start);
    this.#cursor = i + 1;
    this.#taken[i] = 1;
    this.#kept += end - start;
    this.#seen = end;
    this.#pieces.push({ start, end, box: pieces[i]!.box });
    return end;
  }

  member(found: Omit<PiecedMember, 'list'>, isList: boolean): void {
    const list = isList ? (this.#listBefore(found) ?? { value: undefined }) : undefined;
    this.#members.push({ ...found, list });
  }

  /** The earlier list of the same items. */
  #listBefore({ key, from, to }: Omit<PiecedMember, 'list'>): Box | undefined {
    const before = this.before;
    const old = before?.members.get(key);
    if (before === undefined || old?.list === undefined || old.to - old.from !== to - from)
      return undefined;
    for (let i = from; i < to; i++) {
      if (this.#pieces[i]!.box !== before.pieces[old.from + i - from]!.box) return undefined;
    }
    return old.list;
  }

  done(): BodyPieces {
    if (this.#seen < this.bytes.length) this.#fresh.push(this.#seen, this.bytes.length);
    return new BodyPieces(this.bytes, this.#members, this.#pieces, this.#kept, this.#fresh);
  }
}

const NONE: readonly number[] = [];
/** So many new pieces are looked for without an index. */
const UNINDEXED = 16;
/** Pieces of one length that are compared; others with it are read anew. */
const MAX_ALIKE = 8;

/** Says what it is without being parsed. */
const PLAIN = /^\w*$/;

function byLength(pieces: readonly Piece[]): Map<number, number[]> {
  const found = new Map<number, number[]>();
  pieces.forEach(({ start, end }, i) => {
    const alike = found.get(end - start);
    if (alike === undefined) found.set(end - start, [i]);
    else if (alike.length < MAX_ALIKE) alike.push(i);
  });
  return found;
}

function keyOf(bytes: Buffer, start: number, end: number): string | undefined {
  const plain = bytes.toString('latin1', start + 1, end - 1);
  if (PLAIN.test(plain)) return plain;
  try {
    const key: unknown = JSON.parse(utf8.decode(bytes.subarray(start, end)));
    return typeof key === 'string' ? key : undefined;
  } catch {
    return undefined;
  }
}
