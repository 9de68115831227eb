/** The end of a stream that goes by is kept, in bounded memory. */

import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { TailBuffer } from '../../../../src/gateway/stream/fast/tail-buffer.ts';
import { needles } from '../../../../src/lib/bytes/bytes.ts';

const chunksOf = (whole: Buffer, size: number) =>
  Array.from({ length: Math.ceil(whole.length / size) }, (_, i) =>
    whole.subarray(i * size, (i + 1) * size),
  );

function keep(whole: Buffer, size: number, marks: string[] = []): TailBuffer {
  const tail = new TailBuffer(needles(...marks));
  const pushed: Buffer[] = [];
  for (const chunk of chunksOf(whole, size)) {
    const own = Buffer.from(chunk);
    tail.push(own);
    pushed.push(own);
    // Of what went by some chunks ago a copy is kept, not the chunk.
    if (marks.length === 0 && pushed.length > 3) pushed.shift()?.fill(0xff);
  }
  return tail;
}

test('a short stream is kept whole, of a long one the last 16 KB and little more, at any chunk size', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 60_000 }),
      fc.integer({ min: 7, max: 20_000 }),
      (length, size) => {
        const whole = Buffer.from(Array.from({ length }, (_, i) => i % 251));
        const tail = keep(whole, size);
        const kept = tail.bytes;
        expect(kept.length).toBeGreaterThanOrEqual(Math.min(length, 16 * 1024));
        expect(kept.length).toBeLessThanOrEqual(16 * 1024 + 3 * size);
        expect(whole.subarray(whole.length - kept.length).equals(kept)).toBe(true);
        expect(tail.cut).toBe(kept.length < length);
      },
    ),
    { numRuns: 100 },
  );
});

test('chunks of every kind of size keep the order of their bytes', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 40_000 }), { maxLength: 12 }), (sizes) => {
      const tail = new TailBuffer([]);
      const all: Buffer[] = [];
      for (const [i, size] of sizes.entries()) {
        const chunk = Buffer.from(Array.from({ length: size }, (_, at) => (at * 7 + i) % 253));
        all.push(chunk);
        tail.push(chunk);
      }
      const whole = Buffer.concat(all);
      const kept = tail.bytes;
      expect(kept.length).toBeGreaterThanOrEqual(Math.min(whole.length, 16 * 1024));
      expect(whole.subarray(whole.length - kept.length).equals(kept)).toBe(true);
      expect(tail.cut).toBe(kept.length < whole.length);
    }),
    { numRuns: 60 },
  );
});

test('an empty chunk pushes nothing out', () => {
  const tail = new TailBuffer([]);
  for (const size of [0, 8000, 8000, 8000]) tail.push(Buffer.alloc(size, 'a'));
  expect(tail.bytes.length).toBe(24_000);
  expect(tail.cut).toBe(false);
});

const framesOf = (sizes: readonly number[]) =>
  sizes.map((size, i) => `data: ${String.fromCharCode(97 + (i % 26)).repeat(size)}\n\n`);

test('the last frames are kept whole or 16 KB of them, however their sizes change and they are cut', () => {
  // Some frames of one kind, then some of another, each up to a quarter shorter than the longest.
  const kind = fc.integer({ min: 4, max: 3000 }).chain((longest) =>
    fc.array(fc.integer({ min: Math.ceil(longest * 0.75), max: longest }), {
      maxLength: 80,
      size: 'max',
    }),
  );
  fc.assert(
    fc.property(
      fc.array(kind, { maxLength: 4 }).map((kinds) => kinds.flat()),
      fc.integer({ min: 1, max: 1500 }),
      fc.boolean(),
      (lengths, size, flushed) => {
        const frames = framesOf(lengths);
        const whole = Buffer.from(frames.join(''));
        const tail = new TailBuffer([]);
        // A server that flushes each frame lets it begin a chunk.
        for (const run of flushed ? frames : [whole]) {
          for (const chunk of chunksOf(Buffer.from(run), size)) tail.push(Buffer.from(chunk));
        }
        const kept = tail.bytes;
        const last = frames.slice(-7).join('').length;
        expect(kept.length).toBeGreaterThanOrEqual(Math.min(whole.length, last, 16 * 1024));
        expect(whole.subarray(whole.length - kept.length).equals(kept)).toBe(true);
        expect(tail.cut).toBe(kept.length < whole.length);
      },
    ),
    { numRuns: 300 },
  );
});

test('frames of a paced stream that come together after a pause do not make it one that is copied', () => {
  const frames = framesOf(Array.from({ length: 60 }, () => 300));
  const pause = frames.slice(40, 50).join('');
  const chunks = [...frames.slice(0, 40), pause, ...frames.slice(50)].map((text) =>
    Buffer.from(text),
  );
  const tail = new TailBuffer([]);
  for (const chunk of chunks.slice(0, 45)) tail.push(chunk);
  expect(Buffer.concat(chunks.slice(37, 45)).equals(tail.bytes)).toBe(true);
  for (const chunk of chunks.slice(45)) tail.push(chunk);
  expect(Buffer.concat(chunks.slice(-8)).equals(tail.bytes)).toBe(true);
  expect(tail.cut).toBe(true);
});

test('of long chunks the last whole frames are kept, 8 KB at least, and only what may be broken counts as cut', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 4, max: 12_000 }), { minLength: 20, maxLength: 60 }),
      fc.integer({ min: 17_000, max: 200_000 }),
      (lengths, size) => {
        const frames = framesOf(lengths);
        const whole = Buffer.from(frames.join(''));
        const tail = new TailBuffer([]);
        for (const chunk of chunksOf(whole, size)) tail.push(Buffer.from(chunk));
        const kept = tail.bytes;
        const before = whole.subarray(0, whole.length - kept.length).toString();
        expect(kept.length).toBeGreaterThanOrEqual(Math.min(whole.length, 8 * 1024));
        expect(kept.length).toBeLessThan(8 * 1024 + 12_000 + 3 * 16 * 1024);
        expect(whole.subarray(before.length).equals(kept)).toBe(true);
        expect(tail.cut || before === '' || before.endsWith('\n\n')).toBe(true);
      },
    ),
    { numRuns: 200 },
  );
});

test('a last frame longer than what is kept of a chunk is kept whole', () => {
  const [last = ''] = framesOf([100_000]);
  const tail = new TailBuffer([]);
  tail.push(Buffer.from(framesOf(Array.from({ length: 500 }, () => 180)).join('')));
  tail.push(Buffer.from(framesOf([180, 180]).join('') + last));
  expect(Buffer.from(tail.bytes).toString()).toBe(last);
  expect(tail.cut).toBe(false);
});

test('a stream of small frames holds little memory, and one long frame among them is not lost', () => {
  const small = framesOf(Array.from({ length: 2000 }, () => 180));
  const tail = new TailBuffer([]);
  for (const frame of small) tail.push(Buffer.from(frame));
  expect(tail.bytes.length).toBeLessThan(3 * 1024);
  const [long] = framesOf([12_000]);
  for (const part of chunksOf(Buffer.from(long!), 100)) tail.push(Buffer.from(part));
  for (const frame of small.slice(0, 3)) tail.push(Buffer.from(frame));
  expect(Buffer.from(tail.bytes).toString()).toContain(long!);
});

test('from a terminal mark on everything is kept, cut in the middle of the mark or not', () => {
  const mark = 'event: response.completed';
  const whole = Buffer.from(`${'a'.repeat(30_000)}\n\n${mark}\n${'b'.repeat(100_000)}`);
  for (const size of [1, 7, 1000, 1013, 4096, 5003, 30_010]) {
    const tail = keep(whole, size, [mark]);
    const last = Buffer.from(tail.bytes).toString();
    expect(last).toContain(mark);
    expect(last).toContain('b'.repeat(100_000));
    expect(whole.toString().endsWith(last)).toBe(true);
    expect(last.length).toBeLessThan(100_000 + 16 * 1024 + mark.length + 4 * size + 10);
    expect(tail.cut).toBe(last.length < whole.length);
  }
});

test('of a terminal beyond 16 MB only its end is kept', () => {
  const mark = 'event: response.completed';
  const tail = new TailBuffer(needles(mark));
  tail.push(Buffer.from(mark));
  const chunk = Buffer.alloc(1024 * 1024, 'c');
  for (let i = 0; i < 40; i++) tail.push(chunk);
  expect(tail.bytes.length).toBeLessThan(18 * 1024 * 1024);
  expect(tail.cut).toBe(true);
});
