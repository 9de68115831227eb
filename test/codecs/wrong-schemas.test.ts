/** A schema, a list of tools or a group of settings of the wrong type is refused: dropped, it would be lost without a word. */

import { expect, test } from 'bun:test';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../src/codecs/codec.ts';
import { googleGemini } from '../../src/codecs/google-gemini/index.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../src/codecs/openai-responses/index.ts';
import { GatewayError } from '../../src/conversation/errors.ts';
import type { Json, JsonObject } from '../../src/lib/json/json.ts';

const messages = [{ role: 'user', content: 'x' }];
const contents = [{ role: 'user', parts: [{ text: 'x' }] }];

/** A request with this value in place of what must be an object or a list. */
const PLACES: readonly (readonly [string, Codec, (value: Json) => JsonObject])[] = [
  [
    'tools[0].function.parameters',
    openaiChat,
    (parameters) => ({
      model: 'm',
      messages,
      tools: [{ type: 'function', function: { name: 'f', parameters } }],
    }),
  ],
  ['tools', openaiChat, (tools) => ({ model: 'm', messages, tools })],
  [
    'tools[0].parameters',
    openaiResponses,
    (parameters) => ({
      model: 'm',
      input: 'x',
      tools: [{ type: 'function', name: 'f', parameters }],
    }),
  ],
  ['tools', openaiResponses, (tools) => ({ model: 'm', input: 'x', tools })],
  [
    'tools.0.input_schema',
    anthropicMessages,
    (input_schema) => ({
      model: 'm',
      max_tokens: 9,
      messages,
      tools: [{ name: 'f', input_schema }],
    }),
  ],
  ['tools', anthropicMessages, (tools) => ({ model: 'm', max_tokens: 9, messages, tools })],
  [
    'tools[0].function_declarations[0].parameters',
    googleGemini,
    (parameters) => ({
      model: 'm',
      contents,
      tools: [{ functionDeclarations: [{ name: 'f', parameters }] }],
    }),
  ],
  [
    'tools[0].function_declarations[0].parameters_json_schema',
    googleGemini,
    (parametersJsonSchema) => ({
      model: 'm',
      contents,
      tools: [{ functionDeclarations: [{ name: 'f', parametersJsonSchema }] }],
    }),
  ],
  ['tools', googleGemini, (tools) => ({ model: 'm', contents, tools })],
  [
    'generation_config',
    googleGemini,
    (generationConfig) => ({ model: 'm', contents, generationConfig }),
  ],
];

for (const [param, codec, bodyWith] of PLACES) {
  test.each<Json>(['x', 5, true])(
    `${codec.name}: ${param} of %j is refused by its name`,
    (value) => {
      let thrown: unknown;
      try {
        codec.decodeRequest(bodyWith(value));
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toBeInstanceOf(GatewayError);
      expect((thrown as GatewayError).param).toBe(param);
      expect((thrown as GatewayError).kind).toBe('invalid_request');
    },
  );

  test(`${codec.name}: ${param} of null counts as not set`, () => {
    expect(() => codec.decodeRequest(bodyWith(null))).not.toThrow();
  });
}
