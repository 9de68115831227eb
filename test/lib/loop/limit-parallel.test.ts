/** The limit on parallel jobs: how many run, in which order, and what a failing job leaves behind. */

import { expect, test } from 'bun:test';
import { limitParallel } from '../../../src/lib/loop/limit-parallel.ts';

test('at most so many jobs run at a time, in order; a failing job frees its place', async () => {
  const limited = limitParallel(2);
  const started: number[] = [];
  let running = 0;
  let most = 0;
  const results = await Promise.allSettled(
    Array.from({ length: 9 }, (_, n) =>
      limited(async () => {
        started.push(n);
        most = Math.max(most, ++running);
        await Bun.sleep(n % 3);
        running--;
        if (n % 4 === 0) throw new Error(`job ${n}`);
        return n;
      }),
    ),
  );
  expect(most).toBe(2);
  expect(started).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  expect(results.map(({ status }) => status === 'fulfilled')).toEqual(
    [0, 1, 2, 3, 4, 5, 6, 7, 8].map((n) => n % 4 !== 0),
  );
});
