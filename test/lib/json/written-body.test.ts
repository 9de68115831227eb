/** What is written goes out as JSON.stringify writes it, whatever was written before. */

import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { type Json, type JsonObject, parseJson } from '../../../src/lib/json/json.ts';
import { type WrittenBody, writtenBody } from '../../../src/lib/json/written-body.ts';

const long = 'text of a message, with "quotes" and ü — 长 '.repeat(20);
const leaf = fc.oneof(
  fc.jsonValue({ depthSize: 'small' }),
  fc.constantFrom<unknown>(-0, 0, long, `${long}!`, undefined, null, { a: undefined }, [undefined]),
  // Raw numbers, and objects that look like one.
  fc
    .constantFrom('12345678901234567890', '12345678901234567891', '1.0')
    .map((text) => parseJson(text)),
  fc.constant({ rawJSON: '1' }),
  fc.constantFrom<unknown>({ a: 1, b: 2 }, { b: 2, a: 1 }),
) as fc.Arbitrary<Json>;
const body = fc.dictionary(
  fc.oneof(fc.constantFrom('messages', 'tools', 'system'), fc.string({ maxLength: 3 })),
  fc.oneof(leaf, fc.array(leaf, { maxLength: 8 })),
  { maxKeys: 5 },
) as fc.Arbitrary<JsonObject>;

test('each body of a sequence is written as if alone', () => {
  fc.assert(
    fc.property(fc.array(body, { minLength: 1, maxLength: 5 }), fc.nat(), (bodies, seed) => {
      let before: WrittenBody | undefined;
      const sequence = bodies.flatMap((one, i) => {
        const { messages } = one;
        // The same with one item more, less, or in another place.
        if (!Array.isArray(messages) || messages.length === 0) return [one, one];
        const at = (seed + i) % messages.length;
        return [
          one,
          { ...one, messages: [...messages, long] },
          { ...one, messages: messages.toSpliced(at, 1) },
          { ...one, messages: messages.toSpliced(at, 0, { at }) },
        ];
      });
      for (const one of sequence) {
        before = writtenBody(one, before);
        expect(Buffer.from(before.bytes).toString()).toBe(JSON.stringify(one));
      }
    }),
    { numRuns: 400 },
  );
});

test('a deep value is written', () => {
  let deep: Json = 1;
  for (let i = 0; i < 2000; i++) deep = [deep];
  const one = { a: [deep] };
  const again = { a: [structuredClone(deep)] };
  const { bytes } = writtenBody(again, writtenBody(one, undefined));
  expect(Buffer.from(bytes).toString()).toBe(JSON.stringify(one));
});
