/** The ranking's facts of an event, stored with it so that no recall has to read its text again. */

import { type CheckedEvent, indexedText } from '../event.ts';
import { type EventKind, kindOf } from './event-kinds.ts';
import { folded, type Terms, termsOf } from './terms.ts';

export interface Digest {
  readonly kind: EventKind;
  /** Equal for events of one source whose texts differ in marks and empty words only. */
  readonly same: number;
  /** The number of words, as in `Terms.length`. */
  readonly length: number;
  readonly source: string;
  readonly terms: number;
  /** As stored: hashes of the terms, in ascending order, and how often each occurs, at most 255 times. */
  readonly bytes: Uint8Array;
}

const KINDS: readonly EventKind[] = ['statement', 'request', 'filler', 'forget'];
// Little-endian: version, kind, bytes of the source (2), length (4), same (8), number of terms (4), hashes, counts, source.
const VERSION = 1;
const HEAD_BYTES = 20;
const MAX_COUNT = 255;

export const termHash = (term: string): number => Bun.hash.xxHash32(term);

/** @param terms of the indexed text */
export function digestOf(
  event: Pick<CheckedEvent, 'text' | 'source' | 'tags'>,
  terms: Terms = termsOf(indexedText(event)),
): Uint8Array {
  const counts = new Map<number, number>();
  for (const [term, count] of terms.counts) {
    const hash = termHash(term);
    counts.set(hash, (counts.get(hash) ?? 0) + count);
  }
  const hashes = new Uint32Array(counts.keys()).sort();
  const source = Buffer.from(event.source);
  const bytes = Buffer.alloc(HEAD_BYTES + hashes.length * 5 + source.length);
  bytes[0] = VERSION;
  bytes[1] = KINDS.indexOf(kindOf(event.text));
  bytes.writeUInt16LE(source.length, 2);
  bytes.writeUInt32LE(terms.length, 4);
  bytes.writeDoubleLE(sameness(event), 8);
  bytes.writeUInt32LE(hashes.length, 16);
  hashes.forEach((hash, at) => {
    bytes.writeUInt32LE(hash, HEAD_BYTES + at * 4);
    bytes[HEAD_BYTES + hashes.length * 4 + at] = Math.min(MAX_COUNT, counts.get(hash)!);
  });
  source.copy(bytes, HEAD_BYTES + hashes.length * 5);
  return bytes;
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
/** One number of eight bytes: a view on the bytes of each digest would take longer than all that is read of it. */
const double = new Float64Array(1);
const doubleBytes = new Uint8Array(double.buffer);

/** Undefined for bytes of another version. */
export function readDigest(bytes: Uint8Array): Digest | undefined {
  if (bytes[0] !== VERSION) return undefined;
  const terms = numberAt(bytes, 16);
  const source = HEAD_BYTES + terms * 5;
  for (let at = 0; at < 8; at++) doubleBytes[at] = bytes[8 + at]!;
  return {
    kind: KINDS[bytes[1]!]!,
    same: double[0]!,
    length: numberAt(bytes, 4),
    source: decoder.decode(bytes.slice(source, source + bytes[2]! + bytes[3]! * 256)),
    terms,
    bytes,
  };
}

const numberAt = (bytes: Uint8Array, at: number): number =>
  (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0;

export const hashAt = ({ bytes }: Digest, term: number): number =>
  numberAt(bytes, HEAD_BYTES + term * 4);

/** Places of a table by the low bits of hashes: most of a text's are of no wanted one. */
const PLACES = 4096;
/** A text with more terms for each wanted hash is not passed over: each is looked up in it. */
const LONG = 32;

/**
 * How often a digest holds the hashes of each group. It passes over its hashes once: looking up each wanted one among
 * them takes 4 to 9 times as long for the 8 to 25 terms of a question.
 */
export function countingIn(
  groups: readonly (readonly number[])[],
): (digest: Digest) => Float64Array {
  const isWanted = new Uint8Array(PLACES);
  const groupsOf = new Map<number, number[]>();
  groups.forEach((hashes, group) => {
    for (const hash of hashes) {
      isWanted[hash % PLACES] = 1;
      groupsOf.set(hash, [...(groupsOf.get(hash) ?? []), group]);
    }
  });
  return (digest) => {
    const { bytes, terms } = digest;
    const found = new Float64Array(groups.length);
    const count = (term: number, wanted: readonly number[] = []) => {
      for (const group of wanted) found[group]! += bytes[HEAD_BYTES + terms * 4 + term]!;
    };
    if (terms > LONG * groupsOf.size) {
      for (const [hash, wanted] of groupsOf) {
        const term = termOf(digest, hash);
        if (term !== undefined) count(term, wanted);
      }
      return found;
    }
    for (let term = 0; term < terms; term++) {
      const at = HEAD_BYTES + term * 4;
      if (isWanted[(bytes[at]! | (bytes[at + 1]! << 8)) % PLACES] === 0) continue;
      count(term, groupsOf.get(numberAt(bytes, at)));
    }
    return found;
  };
}

function termOf(digest: Digest, hash: number): number | undefined {
  let low = 0;
  let high = digest.terms - 1;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    const found = hashAt(digest, middle);
    if (found === hash) return middle;
    if (found < hash) low = middle + 1;
    else high = middle - 1;
  }
  return undefined;
}

const MARKS = /[^\p{L}\p{M}\p{N}\p{Sc}]+/gu;
/** Words without which a statement says the same. */
const EMPTY =
  /(?<= )(?:really|very|just|so|well|also|too|the|a|an|and|but|oh|hey|please|yes|yeah|actually) /g;
const EMPTY_CHARACTERS = /[啊呀哦喔噢呢吧嘛啦哈了]/g;

/** The first 53 bits of a hash. */
function sameness({ text, source }: Pick<CheckedEvent, 'text' | 'source'>): number {
  const words = ` ${folded(text).replace(MARKS, ' ').trim()} `
    .replace(EMPTY, '')
    .replace(EMPTY_CHARACTERS, '');
  return Number(Bun.hash.xxHash64(`${folded(source)}\n${words}`) >> 11n);
}
