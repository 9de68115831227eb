/** A body in pieces has the value that JSON.parse gives; what another body holds keeps its objects, whatever changed around it. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { containsAny, needles, rememberSearches } from '../../../src/lib/bytes/bytes.ts';
import { type BodyPieces, bodyPieces } from '../../../src/lib/json/body-pieces.ts';
import { type Json, parseJson } from '../../../src/lib/json/json.ts';
import { runAtOnce } from '../../../src/lib/loop/steps.ts';
import { expectLinear } from '../../support/growth.ts';

const pieces = (text: string | Buffer, before?: BodyPieces) =>
  runAtOnce(bodyPieces(Buffer.from(text), before));

/** The value, or undefined where it cannot be had: then the body is read in one. */
function parsed(text: string | Buffer, before?: BodyPieces): Json | undefined {
  try {
    return pieces(text, before)?.value;
  } catch {
    return undefined;
  }
}

const json = fc.jsonValue({ depthSize: 'small' }) as fc.Arbitrary<Json>;
const body = fc.dictionary(
  fc.oneof(fc.constantFrom('messages', 'tools', '__proto__', '1', 'a"b', 'ü'), fc.string()),
  fc.oneof(json, fc.array(json, { maxLength: 8 })),
  { maxKeys: 6 },
);
const spaced = fc.constantFrom(undefined, 1, '\t');

describe('the value', () => {
  test('is that of JSON.parse, with another body before and without', () => {
    fc.assert(
      fc.property(body, body, spaced, (one, two, space) => {
        const before = pieces(JSON.stringify(two, null, space));
        before?.value;
        const text = JSON.stringify(one, null, space);
        expect(parsed(text)).toEqual(parseJson(text));
        expect(Object.keys(pieces(text, before)!.value)).toEqual(Object.keys(JSON.parse(text)));
        expect(parsed(text, before)).toEqual(parseJson(text));
      }),
      { numRuns: 300 },
    );
  });

  test('is the same after any edit of the bytes, or there is none', () => {
    const edit = fc.tuple(fc.nat(), fc.nat({ max: 12 }), fc.string({ maxLength: 6 }));
    fc.assert(
      fc.property(body, fc.array(edit, { maxLength: 3 }), (one, edits) => {
        let text = JSON.stringify({ ...one, messages: [one, { content: 'words' }, one] });
        const before = pieces(text)!;
        before.value;
        for (const [at, cut, put] of edits) {
          const from = at % (text.length + 1);
          text = text.slice(0, from) + put + text.slice(from + cut);
        }
        let whole: Json | undefined;
        try {
          whole = parseJson(text);
        } catch {
          whole = undefined;
        }
        const own = parsed(text, before);
        // What only the whole can tell is left to it; what is given is right.
        if (own !== undefined) expect(own).toEqual(whole!);
        else if (typeof whole === 'object' && whole !== null && !Array.isArray(whole)) {
          expect(text.startsWith('\ufeff')).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    '{"a":1}x',
    '{"a":1,}',
    '{"a" 1}',
    '{"a":[1,]}',
    '{"a":[1}',
    '{"a":tru}',
    '{"a":1 2}',
    '{"a":\ufeff1}',
    '{a:1}',
    '[1]',
    '',
    '{"a":"x',
    '{"a":[{"b":1]}]}',
    '{"a":01}',
  ])('%p has none', (text) => {
    expect(parsed(text)).toBeUndefined();
    const before = pieces('{"a":[{"b":1},1],"c":1}');
    before?.value;
    expect(parsed(text, before)).toBeUndefined();
  });

  test('bytes that are no UTF-8 have none', () => {
    expect(
      parsed(Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d])),
    ).toBeUndefined();
  });

  test('a number that goes on is another number', () => {
    const before = pieces('{"a":[1,12],"b":1}')!;
    before.value;
    expect(parsed('{"a":[12,1],"b":12}', before)).toEqual({ a: [12, 1], b: 12 });
  });
});

describe('what was there', () => {
  const messages = Array.from({ length: 12 }, (_, i) => ({ role: 'user', content: `words ${i}` }));
  const tools = [{ name: 'a' }, { name: 'b' }];
  const text = (list: readonly object[], more: readonly object[] = tools) =>
    JSON.stringify({ model: 'm', messages: list, tools: more });
  const before = pieces(text(messages))!;
  const old = before.value;
  const objects = (value: Json | undefined) => value as readonly Json[];

  test.each<[string, readonly object[]]>([
    ['one more at the end', [...messages, { role: 'user', content: 'more' }]],
    ['one fewer', messages.slice(0, -1)],
    ['one changed', messages.with(3, { role: 'user', content: 'other' })],
    ['one put in', messages.toSpliced(3, 0, { role: 'user', content: 'other' })],
    ['one taken out', messages.toSpliced(3, 1)],
    ['the first half replaced by one', messages.toSpliced(0, 6, { role: 'user', content: 'sum' })],
  ])('keeps its objects: %s', (_name, list) => {
    const now = pieces(text(list), before)!;
    const kept = new Set(objects(old.messages));
    const strange = objects(now.value.messages).filter((message) => !kept.has(message));
    expect(strange.length).toBeLessThanOrEqual(1);
    expect(now.value).toEqual(JSON.parse(text(list)));
    expect(now.value.tools).toBe(old.tools!);
  });

  test('serves one message where several are equal: they stay as many objects', () => {
    const now = pieces(text([messages[0]!, messages[0]!, messages[1]!, messages[0]!]), before)!;
    expect(new Set(objects(now.value.messages)).size).toBe(4);
  });

  test('of a list that stands elsewhere is found, too', () => {
    const now = pieces(JSON.stringify({ tools, model: 'm', messages }), before)!;
    expect(now.value.tools).toBe(old.tools!);
    expect(now.value.messages).toBe(old.messages!);
  });
});

test('a search in bytes that go back to others finds what a plain one finds', () => {
  const word = fc.constantFrom('ab', '"a"', 'b"', ',', '{"', 'aa', 'xyz');
  const item = fc.array(fc.constantFrom('a', 'b', '"', 'x', 'yz'), { maxLength: 6 });
  const list = fc.array(
    item.map((parts) => parts.join('')),
    { maxLength: 8 },
  );
  // Shorter bytes are searched again each time.
  const padding = 'p'.repeat(70_000);
  fc.assert(
    fc.property(list, list, fc.array(word, { maxLength: 4 }), (one, two, words) => {
      const marks = needles(...words);
      const first = pieces(JSON.stringify({ padding, list: one }))!;
      rememberSearches(first.bytes, undefined, first.fresh);
      for (const mark of marks) containsAny(first.bytes, [mark]);
      const second = pieces(JSON.stringify({ padding, list: [...one, ...two] }), first)!;
      rememberSearches(second.bytes, first.bytes, second.fresh);
      const third = pieces(JSON.stringify({ list: [...two, ...one], padding }), second)!;
      for (const mark of marks) containsAny(second.bytes, [mark]);
      rememberSearches(third.bytes, second.bytes, third.fresh);
      for (const { bytes } of [first, second, third]) {
        for (const mark of marks) {
          expect(containsAny(bytes, [mark])).toBe(bytes.includes(mark));
          expect(containsAny(bytes, [mark])).toBe(bytes.includes(mark));
        }
      }
    }),
    { numRuns: 100 },
  );
});

test('hostile bodies are read in linear time', async () => {
  const alike = (count: number) =>
    JSON.stringify({ m: Array.from({ length: Math.min(count / 8, 19_000) }, () => 'same') });
  const cases: readonly [string, (size: number) => string][] = [
    ['equal pieces', (size) => alike(size)],
    ['quotes behind backslashes', (size) => `{"a":"${'\\"'.repeat(size / 2)}"}`],
    ['backslashes', (size) => `{"a":"${'\\\\'.repeat(size / 2)}"}`],
    ['blanks', (size) => `{"a":${' '.repeat(size)}1}`],
    [
      'many members',
      (size) => `{${Array.from({ length: size / 8 }, (_, i) => `"${i}":1`).join()}}`,
    ],
  ];
  for (const [name, make] of cases) {
    await expectLinear({
      name,
      most: 1024 * 1024,
      input: (size) => {
        const before = pieces(make(size));
        return { before, bytes: Buffer.from(make(size).replace('"a"', '"b"')) };
      },
      run: ({ before, bytes }) => runAtOnce(bodyPieces(bytes, before)),
    });
  }
}, 60_000);
