/** Which key may use which memory space: globs, no keys, unknown names, shared names. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { mayUse, type ScopedKey } from '../../src/server/memory-scope.ts';
import { cpuTime } from '../support/cpu-time.ts';

const KEYS: readonly ScopedKey[] = [
  { name: 'alice', spaces: ['alice', 'family-*', 'room-??'] },
  { name: 'admin' },
  { name: 'nobody', spaces: [] },
];

describe('a key and a space', () => {
  test.each([
    ['alice', 'alice', true],
    ['alice', 'Alice', false],
    ['alice', 'alice2', false],
    ['alice', 'family-', true],
    ['alice', 'family-人', true],
    ['alice', 'my-family-x', false],
    ['alice', 'room-😀7', true],
    ['alice', 'room-123', false],
    ['admin', 'anything', true],
    ['nobody', 'alice', false],
    ['', 'alice', false],
    ['mallory', 'alice', false],
  ])('%s, %s: %p', (owner, space, may) => {
    expect(mayUse(KEYS, owner, space)).toBe(may);
  });

  test('without keys everybody may', () => {
    expect(mayUse([], '', 'alice')).toBe(true);
  });

  test('keys that share a name must all allow it', () => {
    const shared = [{ name: 'a', spaces: ['x', 'y'] }, { name: 'a', spaces: ['y'] }, { name: 'b' }];
    expect([mayUse(shared, 'a', 'x'), mayUse(shared, 'a', 'y')]).toEqual([false, true]);
  });

  test('a pattern means what the same regular expression means (property)', () => {
    const words = fc.string({ unit: fc.constantFrom('a', 'b', '*', '?', '.', '😀'), maxLength: 8 });
    fc.assert(
      fc.property(words, words, (glob, space) => {
        const source = [...glob]
          .map((one) => (one === '*' ? '.*' : one === '?' ? '.' : RegExp.escape(one)))
          .join('');
        const expected = new RegExp(`^${source}$`, 'su').test(space);
        expect(mayUse([{ name: 'k', spaces: [glob] }], 'k', space)).toBe(expected);
      }),
      { numRuns: 2000 },
    );
  });

  test('no pattern is slow', async () => {
    const match = () =>
      mayUse([{ name: 'k', spaces: ['*a*a*a*a*a*a*a*a*b'] }], 'k', 'a'.repeat(200));
    expect(await cpuTime(match)).toBeLessThan(50);
  });
});
