/** JSON beyond JSON.parse: long numbers, members found in bytes, splices. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { isObject, parseExact, parseJson, splice, topLevel } from '../../../src/lib/json/json.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (value: Uint8Array) => new TextDecoder().decode(value);

describe('numbers that a double cannot hold', () => {
  test('long integers survive parse and stringify', () => {
    const body = '{"input":{"id":1234567890123456789,"n":1}}';
    expect(JSON.stringify(parseJson(body))).toBe(body);
  });

  test('short numbers stay plain numbers, whatever their spelling', () => {
    expect(parseJson('{"a":1.0,"b":1e3,"c":0.1}')).toEqual({ a: 1, b: 1000, c: 0.1 });
  });

  test('tool arguments keep every number as the model wrote it', () => {
    const args = '{"a":1.0,"b":1e3,"c":12345678901234567890,"d":-0.50}';
    expect(JSON.stringify(parseExact(args))).toBe(args);
  });
});

test('an object with a member called rawJSON is an object, a number kept exactly is none', () => {
  expect(isObject(parseJson('{"rawJSON":"1"}'))).toBe(true);
  expect(isObject(parseJson('12345678901234567890'))).toBe(false);
});

describe('members of a body, found without a parse', () => {
  const json = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 8 });

  test('every member of any object is where JSON.parse would read it', () => {
    fc.assert(
      fc.property(json, fc.constantFrom(undefined, 1, '\t'), (value, indent) => {
        const body = bytes(JSON.stringify(value, null, indent));
        const members = topLevel(body);
        const parsed = JSON.parse(text(body)) as Record<string, unknown>;
        expect([...(members?.keys() ?? [])].sort()).toEqual(Object.keys(parsed).sort());
        for (const [key, { valueStart, valueEnd }] of members ?? []) {
          expect(JSON.parse(text(body.subarray(valueStart, valueEnd)))).toEqual(parsed[key]);
        }
      }),
    );
  });

  test('the scan ends once what is wanted has been found, broken as the rest may be', () => {
    const members = topLevel(
      bytes('{"model":"a","stream":true,"messages":[[['),
      new Set(['model']),
    );
    expect(members?.get('model')).toEqual({ keyStart: 1, valueStart: 9, valueEnd: 12 });
  });

  test('what is not an object is told apart', () => {
    for (const body of ['', '[]', '"x"', '{', '{"a"', '{"a":', '{"a":1', '{"a":1,}', '{a:1}']) {
      expect(topLevel(bytes(body))).toBeUndefined();
    }
    expect(topLevel(bytes(' { } '))?.size).toBe(0);
  });

  test('a key written with escapes and a string full of braces and quotes do not mislead it', () => {
    const body = bytes('{"x":"}],\\"{\\\\","\\u006dodel":"m"}');
    const at = topLevel(body)?.get('model');
    expect(at && text(body.subarray(at.valueStart, at.valueEnd))).toBe('"m"');
  });

  test('a hundred thousand brackets deep is no stack overflow', () => {
    const deep = '['.repeat(100_000) + ']'.repeat(100_000);
    expect(topLevel(bytes(`{"a":${deep},"b":1}`))?.has('b')).toBe(true);
  });

  test('a splice changes nothing else', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), (a, b, c) => {
        const before = bytes(a + b);
        const start = bytes(a).length;
        // Lone surrogates become U+FFFD in bytes; compare in bytes, too.
        expect(text(splice(before, start, before.length, c))).toBe(text(bytes(a)) + text(bytes(c)));
      }),
    );
  });
});
