/** What is recorded of an endpoint's bodies holds no media, however the bytes are cut. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { MediaFilter, MediaTap, withoutMedia } from '../../src/endpoints/media.ts';
import { bytewise, type Chunking, everySplit, random, whole } from '../support/chunkings.ts';

function filtered(bytes: Uint8Array, { cut }: Chunking): string {
  const filter = new MediaFilter();
  const out = cut(bytes).map((chunk) => Buffer.from(filter.push(chunk)));
  return Buffer.concat([...out, Buffer.from(filter.end())]).toString();
}

const DATA = 'QUJD'.repeat(500);
const WORDS = 'one two '.repeat(300);
const BODY = {
  created: 1,
  data: [{ b64_json: DATA, revised_prompt: WORDS }, { url: `data:image/png;base64,${DATA}` }],
  escaped: 'a\\"b\n"',
};
const WITHOUT = {
  ...BODY,
  data: [{ b64_json: '(2000 bytes)', revised_prompt: WORDS }, { url: '(2022 bytes)' }],
};

describe('JSON', () => {
  const json = Buffer.from(JSON.stringify(BODY));

  test.each([whole, bytewise, random(1), ...everySplit(json, 200)])(
    'keeps its words and loses its data: $name',
    (chunking) => {
      expect(JSON.parse(filtered(json, chunking))).toEqual(WITHOUT);
    },
  );

  test('with escaped slashes in base64 loses it, too', () => {
    const text = `{"b64_json":"${'QU\\/D'.repeat(500)}"}`;
    expect(filtered(Buffer.from(text), bytewise)).toBe('{"b64_json":"(2500 bytes)"}');
  });

  test('that is cut in its data says how much there was', () => {
    expect(filtered(Buffer.from(`{"b64_json":"${DATA}`), whole)).toBe('{"b64_json":"(2000 bytes)');
  });
});

test('an event stream is filtered frame by frame', () => {
  const frame = (value: object) => `event: x\ndata: ${JSON.stringify(value)}\n\n`;
  const stream = frame({ type: 'a', b64_json: DATA }) + frame({ type: "it's" });
  const without = frame({ type: 'a', b64_json: '(2000 bytes)' }) + frame({ type: "it's" });
  expect(filtered(Buffer.from(stream), random(7))).toBe(without);
});

test('a quotation mark in plain text spoils only its line', () => {
  const text = `a "quotation\n${DATA}\nend`;
  expect(filtered(Buffer.from(text), bytewise)).toBe(text);
});

test('nothing changes where there are no media', () => {
  const json = Buffer.from(JSON.stringify({ input: [WORDS, 'ключ'.repeat(400)], model: 'm' }));
  expect(Buffer.from(withoutMedia(json)).equals(json)).toBe(true);
});

test('of a binary answer its type and length are recorded', () => {
  const recorded: Uint8Array[] = [];
  const tap = new MediaTap(new Headers({ 'content-type': 'audio/mpeg' }), (bytes) =>
    recorded.push(bytes),
  );
  tap.chunk(new Uint8Array(1000));
  tap.chunk(new Uint8Array(234));
  tap.end();
  expect(Buffer.concat(recorded).toString()).toBe(
    '{"media":{"content_type":"audio/mpeg","bytes":1234}}',
  );
});

/** The filter as it is described, byte by byte. */
function described(text: string): string {
  let out = '';
  let string: string | undefined;
  const close = () => {
    const words = /[^\x21-\x7e]|\\[^/]/s.test(string!.slice(0, 1025));
    const long = string!.length > 1024;
    out += long && !words ? `(${string!.length} bytes)` : string;
    string = undefined;
  };
  let escaped = false;
  for (const char of text) {
    if (string === undefined) {
      out += char;
      if (char === '"') string = '';
      escaped = false;
    } else if ((char === '"' && !escaped) || char === '\n') {
      close();
      out += char;
    } else {
      escaped = char === '\\' && !escaped;
      string += char;
    }
  }
  if (string !== undefined) close();
  return out;
}

test('strings of every kind, with escapes anywhere and cut anywhere, are read as described', () => {
  const piece = fc.oneof(
    fc.constantFrom('"', '\\', '\\"', '\\\\', '\\/', '\n', ' ', 'x', '","', '\\\\"'),
    fc.constantFrom('A'.repeat(1000), 'QU\\/D'.repeat(210), 'B'.repeat(1024), 'C'.repeat(1030)),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), fc.integer({ min: 1 }), (pieces, seed) => {
      const text = pieces.join('');
      const bytes = Buffer.from(text);
      const expected = described(text);
      expect(filtered(bytes, whole)).toBe(expected);
      expect(filtered(bytes, bytewise)).toBe(expected);
      expect(filtered(bytes, random(seed))).toBe(expected);
    }),
    { numRuns: 400 },
  );
});
