/** Ways to cut a byte stream into chunks, for tests of results that must not depend on the cuts. */

import type { StreamDecoder } from '../../src/codecs/codec.ts';
import type { StreamEvent } from '../../src/conversation/events.ts';
import { SseParser } from '../../src/lib/bytes/sse.ts';

/** A chunking, with a name for the test's message. */
export interface Chunking {
  readonly name: string;
  readonly cut: (bytes: Uint8Array) => Uint8Array[];
}

const views = (bytes: Uint8Array, ends: Iterable<number>): Uint8Array[] => {
  const out: Uint8Array[] = [];
  let start = 0;
  for (const end of ends) {
    if (end > start) out.push(bytes.subarray(start, end));
    start = Math.max(start, end);
  }
  if (start < bytes.length) out.push(bytes.subarray(start));
  return out;
};

/** All in one piece. */
export const whole: Chunking = { name: 'whole', cut: (bytes) => [bytes] };

/** One byte at a time. */
export const bytewise: Chunking = {
  name: 'one byte at a time',
  cut: (bytes) => views(bytes, bytes.keys()),
};

/** Two chunks, split before byte `at`. */
export const splitAt = (at: number): Chunking => ({
  name: `split at ${at}`,
  cut: (bytes) => views(bytes, [at]),
});

/** Every way to split `bytes` in two; with `most`, that many of them, spread evenly. */
export function everySplit(bytes: Uint8Array, most = Number.POSITIVE_INFINITY): Chunking[] {
  const step = Math.max(1, Math.ceil((bytes.length - 1) / most));
  const out: Chunking[] = [];
  for (let at = 1; at < bytes.length; at += step) out.push(splitAt(at));
  return out;
}

/** A small generator with a seed, so that a failure can be repeated (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Chunks of 1 to `largest` bytes at random, the same for the same seed. */
export const random = (seed: number, largest = 64): Chunking => ({
  name: `random, seed ${seed}`,
  cut: (bytes) => {
    const next = seeded(seed);
    const ends: number[] = [];
    for (let at = 0; at < bytes.length; ) {
      at += 1 + Math.floor(next() * largest);
      ends.push(Math.min(at, bytes.length));
    }
    return views(bytes, ends);
  },
});

const isWord = (byte: number) =>
  (byte >= 0x30 && byte <= 0x39) ||
  (byte >= 0x41 && byte <= 0x5a) ||
  (byte >= 0x61 && byte <= 0x7a) ||
  byte >= 0x80;

/** Pieces like a model's tokens: a run of letters (up to `longest`, with the space before it) or one sign. */
export const tokens = (longest = 6): Chunking => ({
  name: 'token-like',
  cut: (bytes) => {
    const ends: number[] = [];
    for (let at = 0; at < bytes.length; ) {
      let end = at + (bytes[at] === 0x20 ? 1 : 0);
      while (end < bytes.length && end - at < longest && isWord(bytes[end]!)) end++;
      at = end === at ? at + 1 : end;
      ends.push(at);
    }
    return views(bytes, ends);
  },
});

/** Cuts after every blank line: one event per chunk. */
export const eventwise: Chunking = {
  name: 'one event at a time',
  cut: (bytes) => {
    const ends: number[] = [];
    for (let at = 0; at < bytes.length - 1; at++) {
      if (bytes[at] === 0x0a && bytes[at + 1] === 0x0a) ends.push(at + 2);
    }
    return views(bytes, ends);
  },
};

/** A fixed set for any stream: whole, bytewise, token-like, eventwise, three random ones. */
export const chunkings: readonly Chunking[] = [
  whole,
  bytewise,
  tokens(),
  eventwise,
  random(1),
  random(2, 7),
  random(3, 1024),
];

/** Ways to cut text, for tests below the byte level: one character, token-like, random. */
export function textPieces(text: string, seed: number, largest = 8): string[] {
  const next = seeded(seed);
  const out: string[] = [];
  for (let at = 0; at < text.length; ) {
    const end = at + 1 + Math.floor(next() * largest);
    out.push(text.slice(at, end));
    at = end;
  }
  return out;
}

/** The events of a stream; `cuts` are the places where its bytes are split. */
export function decodeCut(
  decoder: StreamDecoder,
  bytes: Uint8Array,
  cuts: readonly number[] = [],
): StreamEvent[] {
  const parser = new SseParser();
  const events: StreamEvent[] = [];
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    for (const frame of parser.push(bytes.subarray(from, to))) events.push(...decoder.push(frame));
    from = to;
  }
  for (const frame of parser.end()) events.push(...decoder.push(frame));
  return [...events, ...decoder.end()];
}
