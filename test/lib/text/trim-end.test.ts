/** Trailing characters go, others stay, and a long run in the middle costs nothing extra. */

import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { withoutTrailing } from '../../../src/lib/text/trim-end.ts';
import { expectLinear } from '../../support/growth.ts';

test('the same as a pattern for the end', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('/', 'a', 'b') }), (text) => {
      expect(withoutTrailing(text, '/')).toBe(text.replace(/\/+$/, ''));
    }),
  );
});

test('a run that is not at the end does not cost more', async () => {
  const input = (size: number) => `${'/'.repeat(size)}a`;
  await expectLinear({ name: 'trailing', input, run: (text) => withoutTrailing(text, '/') });
});
