/** Model, method and key of a Gemini URL, and the body that says them. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  addressOf,
  bareModel,
  queryOf,
  withAddress,
  withoutAddress,
} from '../../../src/codecs/google-gemini/address.ts';
import { googleGemini } from '../../../src/codecs/google-gemini/index.ts';
import { ByteList, wholeBytes } from '../../../src/lib/bytes/byte-list.ts';

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const bytes = (value: string) => new TextEncoder().encode(value);
const bareBody = (body: Uint8Array | ByteList) => wholeBytes(withoutAddress(body));

test.each([
  ['/v1beta/models/gemini-2.5-pro:generateContent', 'gemini-2.5-pro', 'generateContent'],
  ['/v1/models/glm/glm-4.7:streamGenerateContent', 'glm/glm-4.7', 'streamGenerateContent'],
  ['/v1beta/models/glm%2Fglm-4.7:countTokens', 'glm/glm-4.7', 'countTokens'],
  ['/v1/projects/p/locations/l/publishers/google/models/g:generateContent', 'g', 'generateContent'],
  ['/v1beta1/publishers/google/models/g:countTokens', 'g', 'countTokens'],
  ['/v1beta/models/x:free:generateContent', 'x:free', 'generateContent'],
  ['/v1beta/models/g:embedContent', 'g', 'embedContent'],
  ['/v1beta/models/g:embedText', 'g', undefined],
  ['/v1beta/models/g', 'g', undefined],
])('%s', (path, model, method) => {
  expect(addressOf(path)).toMatchObject({ model });
  expect(addressOf(path)?.method).toBe(method as never);
});

test('a key of the query is taken out, whatever its name', () => {
  expect(queryOf('?alt=sse')).toEqual({ sse: true, key: undefined, rest: '' });
  expect(queryOf('?key=secret&alt=sse&x=1')).toEqual({ sse: true, key: 'secret', rest: '?x=1' });
  expect(queryOf('?access_token=t')).toEqual({ sse: false, key: 't', rest: '' });
});

test('names of models lose their collection', () => {
  expect(bareModel('models/g')).toBe('g');
  expect(bareModel('projects/p/locations/l/publishers/google/models/g')).toBe('g');
  expect(bareModel('publishers/google/models/g')).toBe('g');
  expect(bareModel('glm/models')).toBe('glm/models');
});

test.each(['../../x', 'a?b', 'a#b', 'a/b', '..'])(
  'the name %s stays in its place of the path',
  (name) => {
    const { path } = googleGemini.addressed(bytes('{}'), name, 'whole');
    const url = new URL(`https://v.test/v1beta${path}?x`);
    expect(url.pathname).toMatch(/^\/v1beta\/models\/[^/?#]+:generateContent$/);
  },
);

describe('the body', () => {
  test('begins with what the URL says, and comes out byte for byte', () => {
    const given = ' {\n "contents" : [ ] }\n';
    const said = withAddress(bytes(given), 'g', true);
    expect(JSON.parse(text(said))).toEqual({ model: 'g', stream: true, contents: [] });
    expect(text(bareBody(said))).toBe(given);
  });

  test('comes out the same wherever the address stands, and however it is written', () => {
    const rest = fc.constantFrom(
      '"contents":[{"role":"model","parts":[{"text":"the \\"model\\": and the \\"stream\\":"}]}]',
      '"contents":[{"role":"model"}], "x":{"model":"inner","stream":1}',
      ' "contents" : [] ',
      '"contents":["model","stream"]',
    );
    const name = fc.constantFrom('g', 'a"b', 'a\\', '"stream":true,', 'm,"stream":false,');
    const stream = fc.constantFrom(',"stream":true', ',"stream":false', ', "stream" : true ', '');
    const body = fc.tuple(rest, name, stream, fc.boolean());
    fc.assert(
      fc.property(body, ([members, model, streamed, first]) => {
        const own = `"model":${JSON.stringify(model)}${streamed}`;
        const whole = first ? `{${own},${members}}` : `{${members},${own}}`;
        const bare = text(bareBody(bytes(whole)));
        const { model: _, stream: __, ...others } = JSON.parse(whole);
        expect(JSON.parse(bare)).toEqual(others);
        // White space of the address may stay; without any, the rest is what it was.
        if (first && !streamed.includes(' ')) expect(bare).toBe(`{${members}}`);
      }),
    );
  });

  test('the URL wins over members of these names', () => {
    const given = '{"contents":[],"model":"other","stream":false}';
    expect(JSON.parse(text(withAddress(bytes(given), 'g', true)))).toEqual({
      model: 'g',
      stream: true,
      contents: [],
    });
  });

  test('what is no object stays as it is', () => {
    for (const given of ['', '[]', 'x', '7'])
      expect(text(withAddress(bytes(given), 'g', false))).toBe(given);
  });

  test('comes out the same in one piece and in any pieces, with a name as long as may be', () => {
    const name = fc.oneof(
      fc.string({ minLength: 1, maxLength: 512 }),
      fc.constantFrom('g', '\u0001'.repeat(512)),
    );
    const cuts = fc.array(fc.nat(), { maxLength: 6 });
    const rest = fc.nat(20).map((n) => ({ contents: ['x'.repeat(n)], last: { of: n } }));
    fc.assert(
      fc.property(name, fc.boolean(), cuts, rest, (model, stream, places, members) => {
        const whole = bytes(JSON.stringify({ model, ...(stream && { stream }), ...members }));
        const borders = [...new Set(places.map((place) => place % whole.length))].sort(
          (a, b) => a - b,
        );
        const pieces = [...borders, whole.length]
          .map((end, i) => whole.subarray(borders[i - 1] ?? 0, end))
          .filter((piece) => piece.length > 0);
        expect(text(bareBody(new ByteList(pieces)))).toBe(JSON.stringify(members));
      }),
    );
  });

  test('law: without the address it is the body that came', () => {
    const member = fc.dictionary(
      fc.string().filter((key) => key !== 'model' && key !== 'stream'),
      fc.jsonValue(),
    );
    fc.assert(
      fc.property(
        member,
        fc.string({ minLength: 1 }),
        fc.boolean(),
        fc.nat(3),
        (body, model, stream, indent) => {
          const given = JSON.stringify(body, null, indent);
          const said = withAddress(bytes(given), model, stream);
          expect(JSON.parse(text(said))).toMatchObject({ model, stream });
          expect(text(bareBody(said))).toBe(given);
        },
      ),
    );
  });
});

test("the request that a count is asked for names the vendor's model, as Google compares it with the address", () => {
  // https://ai.google.dev/api/tokens#GenerateContentRequest: `model` is required, as `models/{model}`.
  for (const key of ['generateContentRequest', 'generate_content_request']) {
    const meant = { contents: [{ role: 'user', parts: [{ text: 'a' }] }], tools: [] };
    const asked = withAddress(
      bytes(JSON.stringify({ [key]: { model: 'models/mine', ...meant } })),
      'mine',
      false,
    );
    const sent = (model: string) => {
      const { path, body } = googleGemini.addressed(asked, model, 'count');
      return [path, JSON.parse(text(body as Uint8Array))];
    };
    expect(sent('gemini-3.8-flash')).toEqual([
      '/models/gemini-3.8-flash:countTokens',
      { [key]: { model: 'models/gemini-3.8-flash', ...meant } },
    ]);
    expect(sent('tunedModels/t')[1]).toMatchObject({ [key]: { model: 'tunedModels/t' } });
  }
});
