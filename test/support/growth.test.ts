/** The measurement of growth tells linear work from quadratic work. */

import { describe, expect, test } from 'bun:test';
import { expectLinear, growthOf } from './growth.ts';

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
    const failure = await expectLinear({ name: 'a pattern', input: text, run }).catch((e) => e);
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
    const failure = await expectLinear({ name: 'a copy', input: text, run }).catch((e) => e);
    expect(failure).toBeInstanceOf(Error);
  });
});
