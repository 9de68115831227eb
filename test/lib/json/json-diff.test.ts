/** Structural diffs: nothing is reported of equal values, everything of others, at the right place. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { Json } from '../../../src/lib/json/json.ts';
import { diffJson } from '../../../src/lib/json/json-diff.ts';
import { dotted, pointerOf, valueAt } from '../../../src/lib/json/pointer.ts';

const { json } = fc.letrec<{ json: Json }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<Json>,
    fc.array(tie('json'), { maxLength: 4 }),
    // Names that an object inherits come up as often as any other.
    fc
      .array(fc.tuple(fc.constantFrom('a', 'b', '__proto__', 'constructor'), tie('json')))
      .map((members) => Object.fromEntries(members)),
  ) as fc.Arbitrary<Json>,
}));

describe('diff', () => {
  test('equal values have none, others have some, and every place exists', () => {
    fc.assert(
      fc.property(json, json, (a, b) => {
        expect(diffJson(a, JSON.parse(JSON.stringify(a)))).toEqual([]);
        const changes = diffJson(a, b);
        expect(changes.length === 0).toBe(JSON.stringify(sorted(a)) === JSON.stringify(sorted(b)));
        for (const { kind, at, to, before, after } of changes) {
          if (kind !== 'added') expect(valueAt(a, at)).toEqual(before!);
          if (kind !== 'removed')
            expect(valueAt(b, kind === 'added' ? at : (to ?? at))).toEqual(after!);
        }
      }),
    );
  });

  test('members of inherited names are compared like any other', () => {
    const odd = (name: string, value: string) => JSON.parse(`{"${name}":"${value}"}`) as Json;
    for (const name of ['__proto__', 'constructor', 'toString']) {
      const at = `/${name}`;
      expect(diffJson(odd(name, ''), {})).toEqual([{ kind: 'removed', at, before: '' }]);
      expect(diffJson({}, odd(name, ''))).toEqual([{ kind: 'added', at, after: '' }]);
      expect(diffJson(odd(name, 'a'), odd(name, 'b'))).toEqual([
        { kind: 'changed', at, before: 'a', after: 'b' },
      ]);
      expect(diffJson(odd(name, 'a'), odd(name, 'a'))).toEqual([]);
    }
  });

  test('a message taken out is one change, not a shift of all behind it', () => {
    const list = ['a', 'b', 'c', 'd'].map((content) => ({ role: 'user', content }));
    expect(diffJson({ messages: list }, { messages: [list[0]!, list[2]!, list[3]!] })).toEqual([
      { kind: 'removed', at: '/messages/1', before: { role: 'user', content: 'b' } },
    ]);
  });

  test('a changed member of a moved element tells both places', () => {
    const a = [{ role: 'system' }, { role: 'user', content: 'x', n: 1 }];
    const b = [{ role: 'user', content: 'y', n: 1 }];
    expect(diffJson(a, b)).toContainEqual({
      kind: 'removed',
      at: '/0',
      before: { role: 'system' },
    });
  });

  test('elements of different roles are not compared inside', () => {
    const changes = diffJson([{ role: 'tool', content: 'x' }], [{ role: 'user', content: 'x' }]);
    expect(changes.map(({ kind }) => kind)).toEqual(['removed', 'added']);
  });
});

/** Members in one order, -0 as 0: what JSON does not tell apart. */
function sorted(value: Json): Json {
  if (Array.isArray(value)) return (value as Json[]).map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value as Record<string, Json>)
      .map(([key, member]) => [key, sorted(member)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

test('pointers and what programmers write', () => {
  expect(pointerOf(['messages', 17, 'a/b', 'c~d'])).toBe('/messages/17/a~1b/c~0d');
  expect(dotted('/messages/17/content/0/text')).toBe('messages[17].content[0].text');
  expect(valueAt({ a: { 'b/c': [1, 2] } }, '/a/b~1c/1')).toBe(2);
  expect(valueAt({ a: 1 }, '/a/b')).toBeUndefined();
});
