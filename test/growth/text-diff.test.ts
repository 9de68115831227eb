/** The comparison of two texts takes time in proportion to them, whatever they have in common. */

import { expect, test } from 'bun:test';
import { diffText } from '../../src/lib/text/text-diff.ts';
import { cpuTime } from '../support/cpu-time.ts';

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
  const time = async (words: number) => {
    const [a, b] = [prose(words, 1), prose(words, 2)];
    diffText(a, b);
    return cpuTime(() => diffText(a, b));
  };
  // Both are beyond what is compared word with word; quadratic work would take 64 times as long.
  const small = await time(40_000);
  expect((await time(320_000)) / Math.max(small, 10)).toBeLessThan(24);
});
