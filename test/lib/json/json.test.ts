/** JSON beyond JSON.parse: long numbers, members found in bytes. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  isObject,
  MemberScan,
  parseExact,
  parseJson,
  topLevel,
} from '../../../src/lib/json/json.ts';
import { topLevelInSlices } from '../../../src/lib/json/large-json.ts';

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

  test('they are the same however far the scan goes at a time, and whatever is cut off or put in', () => {
    const odd = fc.constantFrom('', '"', '\\', '\\"', '{', '}', '[', ']', ',', ':', ' ', '\n', '1');
    fc.assert(
      fc.property(json, fc.nat(), odd, fc.integer({ min: 1, max: 9 }), (value, at, put, step) => {
        const whole = JSON.stringify(value);
        const place = at % (whole.length + 1);
        for (const given of [whole, whole.slice(0, place) + put + whole.slice(place)]) {
          const body = bytes(given);
          const scan = new MemberScan(body);
          while (!scan.run(scan.at + step));
          expect(scan.sound ? scan.members : undefined).toEqual(topLevel(body));
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

  test('what is not an object is recognized', () => {
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
});

describe('members of a large body, looked for in slices', () => {
  const MB = 1024 * 1024;
  const around = (before: string, fill: string, size: number, behind: string) =>
    Buffer.concat([bytes(before), Buffer.alloc(size, fill), bytes(behind)]);
  const FILLS = [' ', '\n', '\t \r\n'] as const;

  test.each(FILLS)(
    'white space of more than a megabyte in one place is reported: %j',
    async (fill) => {
      for (const body of [
        Buffer.alloc(3 * MB, fill),
        around('{"model":"m","messages":[', fill, 2 * MB, ']}'),
        around('{"model":"m"', fill, 2 * MB, '}'),
        around('{"model":"m","a":{"b":1}', fill, 2 * MB, '}'),
        around('{"model":"m"}', fill, 0, ''),
      ]) {
        const told = await topLevelInSlices(body);
        if (body.length < MB) expect([...(told as Map<string, unknown>).keys()]).toEqual(['model']);
        else expect(told).toBe('blank');
      }
    },
  );

  test.each(FILLS)('less of it, often, is taken: %j', async (fill) => {
    const run = Buffer.alloc(MB / 2, fill);
    const part = Buffer.concat([bytes('1,'), run]);
    const body = Buffer.concat([
      bytes('{"a":['),
      ...Array.from({ length: 8 }, () => part),
      bytes('1],"model":"m"}'),
    ]);
    expect([...((await topLevelInSlices(body)) as Map<string, unknown>).keys()]).toEqual([
      'a',
      'model',
    ]);
  });

  test('blanks in a string are words', async () => {
    for (const body of [
      around('{"model":"m","text":"', ' ', 3 * MB, '"}'),
      around('{"model":"m","list":[{"text":"', ' ', 3 * MB, '"}]}'),
      around('{"model":"m","list":["\\"', ' ', 3 * MB, '\\""]}'),
    ]) {
      const members = (await topLevelInSlices(body)) as ReadonlyMap<string, unknown>;
      expect(members.size).toBe(2);
    }
  });
});
