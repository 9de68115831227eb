/** The measurement of growth tells linear work from quadratic work. */

import { describe, expect, test } from 'bun:test';
import { expectLinear, growthOf } from './growth.ts';

/** For work that is more than linear: where a first measurement is spoilt, a step further would take sixty times as long. */
const MOST = 2 ** 16;

const text = (size: number) => 'a'.repeat(size);

describe('growth', () => {
  test('linear work passes', async () => {
    const run = (input: string) => {
      let sum = 0;
      for (let i = 0; i < input.length; i++) sum = (sum * 31 + input.charCodeAt(i)) | 0;
      return sum;
    };
    await expectLinear({ name: 'a sum', input: text, run });
  });

  test('negligible work passes', async () => {
    const growth = await growthOf({ name: 'a length', input: text, run: (input) => input.length });
    expect(growth.exponent).toBe(0);
  });

  test('a pattern that scans the rest from every position fails', async () => {
    const run = (input: string) => /a+$/.test(`${input}b`);
    const one = { name: 'a pattern', input: text, run, most: MOST / 4 };
    const failure = await expectLinear(one).catch((e) => e);
    expect(failure).toBeInstanceOf(Error);
    expect(String(failure)).toContain('more than linear');
  });

  test('copying all earlier pieces with each piece fails', async () => {
    const run = (input: string) => {
      let all = new Uint8Array(0);
      for (let at = 0; at < input.length; at += 64) {
        const next = new Uint8Array(all.length + 64);
        // Byte by byte: at these sizes a native copy costs less than the allocation.
        for (let i = 0; i < all.length; i++) next[i] = all[i]!;
        all = next;
      }
      return all.length;
    };
    const one = { name: 'a copy', input: text, run, most: MOST };
    const failure = await expectLinear(one).catch((e) => e);
    expect(failure).toBeInstanceOf(Error);
  });

  test('what linear work grows by on the same input is no fault, and all beyond it is one', async () => {
    // The busy loops stand for memory that costs more with each byte.
    const busy = (rounds: number) => {
      let sum = 0;
      for (let i = 0; i < rounds; i++) sum = (sum * 31 + i) | 0;
      return sum;
    };
    const memory = (input: string) => busy(input.length ** 1.8 / 16);
    const square = (input: string) => busy(input.length ** 2 / 16);
    const one = { name: 'a loop', input: text, most: MOST };
    await expectLinear({ ...one, run: memory, linear: memory });
    const alone = await expectLinear({ ...one, run: memory }).catch((e) => e);
    expect(String(alone)).toContain('more than linear');
    const beside = await expectLinear({
      ...one,
      run: square,
      linear: (input) => input.length,
    }).catch((e) => e);
    expect(String(beside)).toContain('more than linear');
  });
});
