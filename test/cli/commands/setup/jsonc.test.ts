/** Edits of hand-kept JSON: the value lands where it should, everything else keeps its bytes. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { getAt, removeAt, setAt } from '../../../../src/cli/commands/setup/jsonc.ts';
import type { Json } from '../../../../src/lib/json/json.ts';

describe('setAt', () => {
  test('a new member stands on a line of its own, indented as its neighbours', () => {
    expect(setAt('{\n    "a": 1\n}\n', ['b'], 2)).toBe('{\n    "a": 1,\n    "b": 2\n}\n');
    expect(setAt('{\n\t"a": {\n\t\t"x": 1\n\t}\n}', ['a', 'y'], [1])).toBe(
      '{\n\t"a": {\n\t\t"x": 1,\n\t\t"y": [\n\t\t\t1\n\t\t]\n\t}\n}',
    );
  });
  test('one-line objects stay on one line', () => {
    expect(setAt('{"a": 1}', ['b'], 2)).toBe('{"a": 1, "b": 2}');
  });
  test('missing objects on the way are made', () => {
    expect(setAt('{}', ['a', 'b'], 1)).toBe('{\n  "a": {\n    "b": 1\n  }\n}');
    expect(setAt('{\n  "a": {}\n}', ['a', 'b'], 1)).toBe('{\n  "a": {\n    "b": 1\n  }\n}');
  });
  test('a value is replaced in place, comments stay', () => {
    const text = '// mine\n{\n  "a": 1, // one\n  /* two */ "b": "x",\n}\n';
    expect(setAt(text, ['b'], 'y')).toBe(text.replace('"x"', '"y"'));
    expect(getAt(setAt(text, ['c'], 3), ['c'])).toBe(3);
    expect(setAt(text, ['c'], 3)).toContain('// one');
  });
  test('an object with nothing but a comment in it', () => {
    const text = setAt('{\n  // nothing yet\n}\n', ['a'], 1);
    expect(getAt(text, ['a'])).toBe(1);
    expect(text).toContain('// nothing yet');
  });
  test('CRLF and a byte order mark stay', () => {
    const text = setAt('\uFEFF{\r\n  "a": 1\r\n}\r\n', ['b', 'c'], 2);
    expect(text).toBe('\uFEFF{\r\n  "a": 1,\r\n  "b": {\r\n    "c": 2\r\n  }\r\n}\r\n');
  });
  test('of a key that stands twice, the one that counts is changed', () => {
    expect(setAt('{"a": 1, "a": 2}', ['a'], 3)).toBe('{"a": 1, "a": 3}');
  });
  test('a string that looks like structure is no structure', () => {
    const text = '{"a": "},\\" // no", "b": 1}';
    expect(setAt(text, ['b'], 2)).toBe(text.replace('"b": 1', '"b": 2'));
  });
  test('what is no object is not edited', () => {
    expect(() => setAt('{"env": "x"}', ['env', 'A'], 1)).toThrow('"env" is not an object');
    expect(() => setAt('[]', ['a'], 1)).toThrow('an object is expected');
    expect(() => setAt('{\n"a": 1\n"b": 2}', ['a'], 1)).toThrow('line 3');
    expect(() => setAt('{"a": 01x}', ['a'], 1)).toThrow(SyntaxError);
  });
});

const name = fc.oneof(fc.string({ minLength: 1 }), fc.constantFrom('__proto__', 'constructor'));
const object = fc.dictionary(name, fc.jsonValue(), { maxKeys: 5 });
const layout = fc.constantFrom(undefined, 2, 4, '\t');

describe('any object in any layout', () => {
  test('what is set can be read, and nothing else changed', () => {
    fc.assert(
      fc.property(object, layout, name, fc.jsonValue(), (value, space, key, set) => {
        const before = JSON.parse(JSON.stringify(value)) as Record<string, Json>;
        const after = setAt(JSON.stringify(before, null, space), [key], set as Json);
        const expected = { ...before, [key]: JSON.parse(JSON.stringify(set)) };
        // As text: what a key makes of the prototype does not show otherwise.
        expect(JSON.stringify(JSON.parse(after))).toBe(JSON.stringify(expected));
      }),
    );
  });
  test('what was added and taken away again leaves the same values', () => {
    fc.assert(
      fc.property(object, layout, name, (value, space, key) => {
        fc.pre(!Object.hasOwn(value, key));
        const text = JSON.stringify(value, null, space);
        const back = removeAt(setAt(text, [key], { x: 1 }), [key]);
        expect(JSON.stringify(JSON.parse(back))).toBe(JSON.stringify(JSON.parse(text)));
        if (Object.keys(value).length > 0) expect(back).toBe(text);
      }),
    );
  });
});
