/** The Gemini codec takes linear time for whatever clients and vendors send. */

import { describe, test } from 'bun:test';
import { withAddress, withoutAddress } from '../../src/codecs/google-gemini/address.ts';
import { googleGemini } from '../../src/codecs/google-gemini/index.ts';
import { lintRequest } from '../../src/codecs/google-gemini/lint/lint-request.ts';
import { reducedSchema } from '../../src/codecs/google-gemini/request/json-schema.ts';
import { withParts } from '../../src/conversation/edit.ts';
import { Notes } from '../../src/conversation/notes.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { chunk, decodeAll, sse, target } from '../codecs/google-gemini/support.ts';
import { expectLinear } from '../support/growth.ts';

const times = <T>(size: number, each: number, make: (i: number) => T): T[] =>
  Array.from({ length: Math.max(1, Math.floor(size / each)) }, (_, i) => make(i));

const call = (i: number): JsonObject => ({ functionCall: { name: 'f', args: { i } } });
const result = (i: number): JsonObject => ({
  functionResponse: { name: 'f', response: { output: `${i}` } },
});
const user = (...parts: JsonObject[]): JsonObject => ({ role: 'user', parts });
const model = (...parts: JsonObject[]): JsonObject => ({ role: 'model', parts });
const asked = (contents: JsonObject[], more: JsonObject = {}): JsonObject => ({
  model: 'm',
  contents,
  ...more,
});

const BODIES: Readonly<Record<string, (size: number) => JsonObject>> = {
  'an answer in pieces': (n) =>
    asked([user({ text: 'x' }), ...times(n, 40, () => model({ text: 'y' }))]),
  'thoughts in pieces': (n) =>
    asked([user({ text: 'x' }), ...times(n, 50, () => model({ text: 'y', thought: true }))]),
  'parallel calls without ids': (n) =>
    asked([user({ text: 'x' }), model(...times(n, 100, call)), user(...times(n, 100, result))]),
  'results in the wrong order': (n) =>
    asked([
      user({ text: 'x' }),
      model(...times(n, 100, call)),
      user(...times(n, 100, result).reverse()),
    ]),
  rounds: (n) =>
    asked([user({ text: 'x' }), ...times(n, 200, (i) => [model(call(i)), user(result(i))]).flat()]),
  tools: (n) =>
    asked([user({ text: 'x' })], {
      tools: times(n, 60, (i) => ({ functionDeclarations: [{ name: `f${i}` }], googleSearch: {} })),
    }),
};

describe('requests', () => {
  for (const [name, input] of Object.entries(BODIES)) {
    test(`${name}: decoded, written anew, and linted`, async () => {
      await expectLinear({
        name,
        input,
        most: 1024 * 1024,
        run: (body) => {
          const conversation = googleGemini.decodeRequest(body);
          const changed = withParts(conversation, {
            turns: [...conversation.turns],
            tools: [...conversation.tools],
          });
          googleGemini.encodeRequest(changed, target({ callSignatures: true }), new Notes());
          return lintRequest(body);
        },
      });
    }, 60_000);
  }

  test('a schema with many members of allOf', async () => {
    await expectLinear({
      name: 'allOf',
      input: (n) => ({
        allOf: times(n, 60, (i) => ({
          properties: { [`p${i}`]: { type: 'string' } },
          required: [`p${i}`],
        })),
      }),
      most: 1024 * 1024,
      run: (schema) => reducedSchema(schema),
    });
  }, 60_000);

  test('the model is put into a body and taken out', async () => {
    await expectLinear({
      name: 'address',
      input: (n) =>
        Buffer.from(JSON.stringify(asked(times(n, 50, () => model({ text: '"model"' }))))),
      run: (body) => withoutAddress(withAddress(body, 'm', true)),
    });
  }, 60_000);
});

describe('answers', () => {
  const CHUNKS: Readonly<Record<string, (size: number) => JsonObject[]>> = {
    text: (n) => times(n, 150, () => chunk([{ text: 'word ' }])),
    'text and thoughts by turns': (n) =>
      times(n, 150, (i) => chunk([{ text: 'word ', ...(i % 2 ? { thought: true } : {}) }])),
    calls: (n) => times(n, 150, (i) => chunk([call(i)])),
    'arguments in pieces': (n) =>
      times(n, 200, (i) =>
        chunk([
          {
            functionCall: {
              name: i ? undefined : 'f',
              willContinue: true,
              partialArgs: [{ jsonPath: `$.a[${i % 9}].b`, stringValue: 'x' }],
            },
          },
        ]),
      ),
  };
  for (const [name, make] of Object.entries(CHUNKS)) {
    test(`${name}: decoded and encoded`, async () => {
      await expectLinear({
        name,
        input: (n) => sse(...make(n), chunk([{ text: '' }], { finishReason: 'STOP' })),
        most: 2 * 1024 * 1024,
        run: (bytes) => {
          const notes = new Notes();
          const request = googleGemini.decodeRequest(asked([user({ text: 'x' })]));
          const encoder = googleGemini.encodeStream({
            request,
            requestId: 'r',
            provider: 'p',
            notes,
          });
          let length = 0;
          for (const event of decodeAll(bytes)) length += encoder.event(event).length;
          return length;
        },
      });
    }, 60_000);
  }
});
