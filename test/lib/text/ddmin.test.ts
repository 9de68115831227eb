/** Delta debugging finds subsets that hold the cause and nothing that can be left out. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { ddmin } from '../../../src/lib/text/ddmin.ts';

function run<T>(items: readonly T[], holds: (subset: readonly T[]) => boolean) {
  const dialogue = ddmin(items);
  let asked = 0;
  let step = dialogue.next();
  while (step.done !== true) {
    asked++;
    step = dialogue.next(holds(step.value));
  }
  return { found: step.value, asked };
}

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i);

describe('ddmin', () => {
  test('the causes of any effect that needs all of them are found, in order and exactly', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 60 }),
        fc.array(fc.nat(59), { maxLength: 5 }),
        (n, raw) => {
          const causes = [...new Set(raw.filter((cause) => cause < n))].sort((a, b) => a - b);
          const { found } = run(upTo(n), (subset) =>
            causes.every((cause) => subset.includes(cause)),
          );
          expect(found).toEqual(causes);
        },
      ),
    );
  });

  test('whatever the effect is, what is found shows it, and without any one item it does not', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.func(fc.boolean()), (n, oracle) => {
        const all = upTo(n);
        const holds = (subset: readonly number[]) => subset.length === n || oracle(subset.join());
        const { found } = run(all, holds);
        expect(holds(found)).toBe(true);
        if (found.length < 2) return;
        for (const item of found) expect(holds(found.filter((one) => one !== item))).toBe(false);
      }),
    );
  });

  test('one cause in 64 costs a dozen questions, not 64', () => {
    for (const cause of [0, 31, 63]) {
      expect(run(upTo(64), (subset) => subset.includes(cause)).asked).toBeLessThanOrEqual(14);
    }
  });

  test('an effect without any part is found with one probe', () => {
    expect(run(upTo(9), () => true)).toEqual({ found: [], asked: 1 });
    expect(run([], () => true)).toEqual({ found: [], asked: 0 });
  });
});
