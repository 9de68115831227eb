/** The comparison of two texts takes time in proportion to them, whatever they have in common. */

import { test } from 'bun:test';
import { diffText } from '../../src/lib/text/text-diff.ts';
import { cpuTime, expectCpuBelow } from '../support/cpu-time.ts';

/** Words that all occur often, in an order of their own for each seed. */
function prose(words: number, seed: number): string {
  const known = ['the', 'cat', 'ran', 'over', 'a', 'moon', 'and', 'fell'];
  let state = seed;
  return Array.from({ length: words }, () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return known[(state >> 8) % known.length];
  }).join(' ');
}

test('eight times the text of the same few words in another order takes not much more than eight times as long', async () => {
  const work = (words: number) => {
    const [a, b] = [prose(words, 1), prose(words, 2)];
    return () => diffText(a, b);
  };
  // Both are beyond what is compared word with word; quadratic work would take 64 times as long.
  const few = work(40_000);
  few();
  await expectCpuBelow(24 * Math.max(await cpuTime(few), 10), work(320_000));
});
