/** Members by names from outside: what is inherited is not a member, and no name changes a prototype. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { memberOf, put, putAll } from '../../../src/lib/json/json-members.ts';

const names = fc.oneof(
  fc.string(),
  fc.constantFrom('__proto__', 'constructor', 'toString', 'hasOwnProperty', 'length'),
);

describe('names that every object inherits', () => {
  test('are found only where the object has them itself', () => {
    expect(memberOf({ a: 1 }, 'a')).toBe(1);
    for (const name of ['__proto__', 'constructor', 'toString']) {
      expect(memberOf({ a: 1 }, name)).toBeUndefined();
      expect(memberOf(JSON.parse(`{"${name}":1}`) as Record<string, number>, name)).toBe(1);
    }
  });

  test('an object filled member by member equals the one JSON gives', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(names, fc.jsonValue())), (members) => {
        const wanted = JSON.stringify(Object.fromEntries(members));
        const one: Record<string, unknown> = {};
        for (const [name, value] of members) put(one, name, value);
        const other: Record<string, unknown> = {};
        putAll(other, JSON.parse(wanted) as Record<string, unknown>);
        for (const out of [one, other]) {
          expect(JSON.stringify(out)).toBe(wanted);
          expect(Object.getPrototypeOf(out)).toBe(Object.prototype);
        }
      }),
    );
  });

  test('a member can be set again and taken away', () => {
    const out: Record<string, number> = {};
    put(out, '__proto__', 1);
    put(out, '__proto__', 2);
    expect(JSON.stringify(out)).toBe('{"__proto__":2}');
    Reflect.deleteProperty(out, '__proto__');
    expect(Object.keys(out)).toEqual([]);
  });
});
