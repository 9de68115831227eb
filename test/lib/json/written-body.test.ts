/** What is written goes out as JSON.stringify writes it, whatever was written before. */

import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { wholeBytes } from '../../../src/lib/bytes/byte-list.ts';
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
      const all = sequence.map((one) => {
        before = writtenBody(one, before);
        expect(Buffer.from(wholeBytes(before.body)).toString()).toBe(JSON.stringify(one));
        expect(before.held).toBeLessThanOrEqual(2 * before.body.length);
        return before.body;
      });
      // Earlier bodies may still be on their way: later ones share their buffers, and change nothing in them.
      expect(all.map((body) => Buffer.from(wholeBytes(body)).toString())).toEqual(
        sequence.map((one) => JSON.stringify(one)),
      );
    }),
    { numRuns: 400 },
  );
});

test('a conversation that grows is written as its news: what it holds stays in proportion, and so do its ranges', () => {
  let before: WrittenBody | undefined;
  const messages: Json[] = [];
  let fresh = 0;
  for (let turn = 0; turn < 1500; turn++) {
    // The mark moves on to the newest message, so the one before it is written again.
    messages.splice(-1, 1, ...(turn === 0 ? [] : [{ turn: turn - 1, long }]));
    messages.push({ turn, long, mark: true });
    const one = { model: 'm', messages: [...messages], tools: [long] };
    const known = new Set(before?.body.pieces.map(({ buffer }) => buffer));
    before = writtenBody(one, before);
    for (const piece of before.body.pieces) if (!known.has(piece.buffer)) fresh += piece.length;
    expect(before.held).toBeLessThanOrEqual(2 * before.body.length);
    expect(before.body.pieces.length).toBeLessThanOrEqual(256);
  }
  expect(Buffer.from(wholeBytes(before!.body)).toString()).toBe(
    JSON.stringify({ model: 'm', messages, tools: [long] }),
  );
  // Written anew with each turn, it would be hundreds of times its length.
  expect(fresh).toBeLessThan(20 * before!.body.length);
});

test('a deep value is written', () => {
  let deep: Json = 1;
  for (let i = 0; i < 2000; i++) deep = [deep];
  const one = { a: [deep] };
  const again = { a: [structuredClone(deep)] };
  const { body } = writtenBody(again, writtenBody(one, undefined));
  expect(Buffer.from(wholeBytes(body)).toString()).toBe(JSON.stringify(one));
});

test('a value that was read anew is the one that the next body is compared with', () => {
  const one = { messages: [{ long }] };
  const again = structuredClone(one);
  const first = writtenBody(one, undefined);
  const second = writtenBody(again, first);
  // Its bytes are those of the first; the object of the first is in no later body, and would be compared for ever.
  expect(second.places.map(({ value }) => value === again.messages[0])).toEqual([true]);
  expect(second.places[0]!.bytes).toBe(first.places[0]!.bytes);
});
