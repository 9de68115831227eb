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
  /** Hashes of the terms, in ascending order. */
  readonly hashes: Uint32Array;
  /** How often each term occurs, at most 255 times. */
  readonly counts: Uint8Array;
}

const KINDS: readonly EventKind[] = ['statement', 'request', 'filler', 'forget'];
// Little-endian: version, kind, bytes of the source (2), length (4), same (8), number of terms (4), hashes, counts, source.
const VERSION = 1;
const HEAD_BYTES = 20;
const MAX_COUNT = 255;

/** A term as digests have it. */
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

/** Undefined for bytes of another version. */
export function readDigest(stored: Uint8Array): Digest | undefined {
  if (stored[0] !== VERSION) return undefined;
  // Views on numbers of four bytes need such a start.
  const bytes = stored.byteOffset % 4 === 0 ? stored : new Uint8Array(stored);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const count = view.getUint32(16, true);
  const behindHashes = HEAD_BYTES + count * 4;
  const behindCounts = behindHashes + count;
  return {
    kind: KINDS[bytes[1]!]!,
    same: view.getFloat64(8, true),
    length: view.getUint32(4, true),
    source: Buffer.from(
      bytes.buffer,
      bytes.byteOffset + behindCounts,
      view.getUint16(2, true),
    ).toString(),
    hashes: new Uint32Array(bytes.buffer, bytes.byteOffset + HEAD_BYTES, count),
    counts: bytes.subarray(behindHashes, behindCounts),
  };
}

/** How often the term of a hash occurs. */
export function countIn({ hashes, counts }: Digest, hash: number): number {
  let low = 0;
  let high = hashes.length - 1;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    const found = hashes[middle]!;
    if (found === hash) return counts[middle]!;
    if (found < hash) low = middle + 1;
    else high = middle - 1;
  }
  return 0;
}

/** Places of a table by the low bits of hashes: most of a text's are of no wanted one. */
const PLACES = 4096;

/**
 * How often a digest holds the hashes of each group. It passes over its hashes once: looking for each wanted one among
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
  return ({ hashes, counts }) => {
    const found = new Float64Array(groups.length);
    for (let at = 0; at < hashes.length; at++) {
      if (isWanted[hashes[at]! % PLACES] === 0) continue;
      for (const group of groupsOf.get(hashes[at]!) ?? []) found[group]! += counts[at]!;
    }
    return found;
  };
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
