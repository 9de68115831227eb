/** Bytes that are kept for clients: whether one owner can lock out another, and whether all comes back. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { KeptBytes } from '../../../src/lib/bytes/kept-bytes.ts';
import { readBody } from '../../../src/server/body.ts';
import { Connections } from '../../../src/server/connections.ts';

const MB = 1024 * 1024;
const LIMIT = 256 * MB;

function filled(owners: number, step: number): KeptBytes {
  const kept = new KeptBytes(() => LIMIT);
  for (let more = true; more; ) {
    more = false;
    for (let i = 0; i < owners; i++) if (kept.take(`k${i}`, step)) more = true;
  }
  return kept;
}

describe('an owner that holds all it can', () => {
  test.each([1, 2, 5, 20])('%i of them leave room for another one', (owners) => {
    for (const step of [16 * 1024, MB]) {
      const kept = filled(owners, step);
      expect(kept.total).toBeLessThan(LIMIT);
      expect(kept.take('another', MB)).toBe(true);
    }
  });

  test('alone may have three quarters', () => {
    expect(filled(1, 1024).total).toBe(0.75 * LIMIT);
  });

  test('one body above its share is taken where nothing else is held', () => {
    const kept = new KeptBytes(() => MB);
    expect(kept.take('a', 5 * MB)).toBe(true);
    expect(kept.take('a', 1)).toBe(false);
    kept.give('a', 5 * MB);
    expect(kept.total).toBe(0);
  });
});

test('what is taken and given back leaves nothing, whatever the order', () => {
  const steps = fc.array(fc.tuple(fc.nat(4), fc.integer({ min: 1, max: 1000 })));
  fc.assert(
    fc.property(steps, (taken) => {
      const kept = new KeptBytes(() => 3000);
      const held = taken.filter(([owner, bytes]) => kept.take(`${owner}`, bytes));
      for (const [owner, bytes] of held.reverse()) kept.give(`${owner}`, bytes);
      expect(kept.total).toBe(0);
    }),
  );
});

test('heads that state a length and send nothing do not refuse the body of another key, nor of their own', async () => {
  const connections = new Connections({
    idleMs: 0,
    bodyIdleMs: 0,
    unfinishedBytes: LIMIT,
    runningBytes: 0,
  });
  const headers = new Headers({ 'content-length': String(4 * MB) });
  const silent = Array.from({ length: 200 }, () => {
    const body = new ReadableStream({ start() {} });
    return new Request('http://x/', { method: 'POST', body, headers });
  });
  for (const request of silent) void readBody(request, headers, 5 * MB, connections, 'attacker');
  for (const key of ['victim', 'attacker']) {
    const request = new Request('http://x/', { method: 'POST', body: Buffer.alloc(3 * MB) });
    const own = new Headers({ 'content-length': String(3 * MB) });
    const read = await readBody(request, own, 5 * MB, connections, key);
    expect(read.byteLength).toBe(3 * MB);
  }
});
