/** Header lists beside what `Headers` makes of the same fields. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { FlatHeaders } from '../../../src/lib/http/headers.ts';

const NAME = fc.stringMatching(/^[A-Za-z!#$%&'*+.^_`|~0-9-]{1,12}$/);
// What a `Headers` takes for a value and gives back: Latin-1 without line breaks and NUL, trimmed.
const VALUE = fc
  .string({ unit: fc.integer({ min: 0x21, max: 0xff }).map((code) => String.fromCharCode(code)) })
  .filter((text) => text === text.trim() && !/[\x7f-\xa0]/.test(text));
const FIELDS = fc.array(fc.tuple(NAME, VALUE), { maxLength: 12 });

const withoutCookies = (fields: readonly (readonly [string, string])[]) =>
  fields.filter(([name]) => name.toLowerCase() !== 'set-cookie');

describe('as Headers has it', () => {
  test('fields of any case, repeated ones joined, and what is looked up', () => {
    fc.assert(
      fc.property(FIELDS, NAME, (all, other) => {
        const fields = withoutCookies(all);
        const real = new Headers(fields.map(([name, value]) => [name, value]));
        const list = new FlatHeaders();
        for (const [name, value] of fields) list.append(name, value);
        const sorted = (pairs: Iterable<readonly [string, string]>) =>
          [...pairs].sort(([a], [b]) => (a < b ? -1 : 1));
        expect(sorted(list)).toEqual(sorted(real));
        expect(sorted(FlatHeaders.from(real))).toEqual(sorted(real));
        // Read once more, a value that ends with the comma of an empty one loses its last blank.
        const again = sorted(real).map(([name, value]) => [name, value.trim()]);
        expect(sorted(new Headers(list.record())) as unknown).toEqual(again);
        for (const name of [...fields.map(([name]) => name), other]) {
          expect(list.get(name)).toBe(real.get(name));
          expect(list.has(name.toUpperCase())).toBe(real.has(name));
        }
      }),
    );
  });

  test('the lines of a head say what is there now, but for the names left out', () => {
    const none = new Set<string>();
    const without = new Set(['b']);
    const list = FlatHeaders.of({ A: '1', B: '2' });
    expect(list.lines(none)).toBe('a: 1\r\nb: 2\r\n');
    expect(list.lines(without)).toBe('a: 1\r\n');
    list.set('a', '3');
    list.append('c', '4');
    expect(list.lines(without)).toBe('a: 3\r\nc: 4\r\n');
    list.append('c', '5');
    expect(list.lines(without)).toBe('a: 3\r\nc: 4, 5\r\n');
  });

  test('what would be picked of another list is compared as if it had been picked', () => {
    const stays = (name: string) => !name.startsWith('x');
    const names = fc.constantFrom('a', 'b', 'x', 'xa', 'c');
    const fields = fc.dictionary(names, fc.constantFrom('1', '2'), { maxKeys: 4 });
    fc.assert(
      fc.property(fields, fields, (one, other) => {
        const picked = FlatHeaders.of(one).where(stays);
        const same = Bun.deepEquals([...picked], [...FlatHeaders.of(other).where(stays)]);
        expect(picked.isWhere(FlatHeaders.of(other), stays)).toBe(same);
      }),
      { numRuns: 1000 },
    );
  });

  test('what stands under a name is replaced by set, and only that', () => {
    const list = FlatHeaders.of({ Accept: 'a', 'X-Own': 'b' });
    list.set('accept', 'c');
    list.set('X-New', 'd');
    expect([...list]).toEqual([
      ['accept', 'c'],
      ['x-own', 'b'],
      ['x-new', 'd'],
    ]);
  });
});

describe('refused', () => {
  test.each(['', 'a b', 'a:', 'ä', 'a\r\n', '\0'])('a name that is none: %j', (name) => {
    expect(() => new FlatHeaders().append(name, 'x')).toThrow(TypeError);
    expect(() => new FlatHeaders().set(name, 'x')).toThrow(TypeError);
  });

  test.each(['a\r\nx: y', 'a\nb', 'a\rb', 'a\0b', 'a\u010ax: y', 'a\u010d', '密'])(
    'a value that would be two lines: %j',
    (value) => {
      expect(() => new FlatHeaders().append('x', value)).toThrow(TypeError);
      expect(() => new FlatHeaders().set('x', value)).toThrow(TypeError);
      expect(() => FlatHeaders.of({ x: value })).toThrow(TypeError);
    },
  );
});

test('a name like __proto__ is one like any other', () => {
  const list = FlatHeaders.of({});
  list.append('__proto__', 'x');
  expect(list.get('__proto__')).toBe('x');
  expect(Object.getOwnPropertyNames(list.record())).toEqual(['__proto__']);
});

test('names without end are not all remembered', () => {
  const list = new FlatHeaders();
  for (let i = 0; i < 3000; i++) list.append(`x-${i}`, `${i}`);
  expect(list.size).toBe(3000);
  expect(list.get('x-2999')).toBe('2999');
  expect(list.get('X-0')).toBe('0');
});
