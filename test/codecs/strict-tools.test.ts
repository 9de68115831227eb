/**
 * `strict` of tools of Messages clients at OpenAI, which answers "'required' is required to be supplied and to be an array
 * including every key in properties" (dust-tt/dust#27635, langchain-ai/langchain#32930): Anthropic takes optional properties.
 */

import { expect, test } from 'bun:test';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../src/codecs/openai-responses/index.ts';
import { Notes } from '../../src/conversation/notes.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';

const closed = (properties: JsonObject, required = Object.keys(properties)): JsonObject => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
const text = { type: 'string' };

const SCHEMAS: readonly (readonly [string, JsonObject, strict: boolean])[] = [
  ['all properties required', closed({ a: text, b: { type: ['string', 'null'] } }), true],
  ['none', closed({}), true],
  ['an object inside', closed({ a: closed({ x: text }) }), true],
  ['a union', closed({ a: { anyOf: [text, { type: 'null' }] } }), true],
  [
    'a definition',
    { ...closed({ a: { $ref: '#/$defs/A' } }), $defs: { A: closed({ x: text }) } },
    true,
  ],
  ['a property called oneOf', closed({ oneOf: text, required: text }), true],
  ['an optional property', closed({ a: text, b: text }, ['a']), false],
  [
    'no list of required ones',
    { type: 'object', properties: { a: text }, additionalProperties: false },
    false,
  ],
  ['an open object', { ...closed({ a: text }), additionalProperties: true }, false],
  ['an optional one in an object inside', closed({ a: closed({ x: text }, []) }), false],
  [
    'an optional one in a list',
    closed({ a: { type: 'array', items: closed({ x: text }, []) } }),
    false,
  ],
  ['an optional one in a union', closed({ a: { anyOf: [closed({ x: text }, []), text] } }), false],
  [
    'an optional one in a definition',
    { ...closed({ a: { $ref: '#/$defs/A' } }), $defs: { A: closed({ x: text }, []) } },
    false,
  ],
  ['allOf', closed({ a: { allOf: [text] } }), false],
  ['oneOf', closed({ a: { oneOf: [text] } }), false],
];

test.each(SCHEMAS)('%s', (_, schema, strict) => {
  const sent = anthropicMessages.decodeRequest({
    model: 'm',
    max_tokens: 9,
    messages: [{ role: 'user', content: 'a' }],
    tools: [{ name: 'f', input_schema: schema, strict: true }],
  });
  const encoded = (codec: typeof openaiChat | typeof openaiResponses) => {
    const notes = new Notes();
    const profile = { name: 'none' };
    const target = { provider: 'p', model: 'm', protocol: codec.name, profile };
    const { tools } = codec.encodeRequest(sent, target, notes) as { tools: JsonObject[] };
    return [tools[0]!, notes.all.map(({ name }) => name)] as const;
  };
  const noted = strict ? [] : ['parameter_dropped'];
  const [chat, ofChat] = encoded(openaiChat);
  expect([(chat.function as JsonObject).strict, ofChat]).toEqual([strict || undefined, noted]);
  const [responses, ofResponses] = encoded(openaiResponses);
  expect([responses.strict, ofResponses]).toEqual([strict, noted]);
});

test.each([
  ['openai-chat', openaiChat, openaiResponses],
  ['openai-responses', openaiResponses, openaiChat],
] as const)('a client of %s asks for what it knows', (name, from, to) => {
  const schema = closed({ a: text }, []);
  const tool = { name: 'f', parameters: schema, strict: true };
  const sent = from.decodeRequest(
    name === 'openai-chat'
      ? {
          model: 'm',
          messages: [{ role: 'user', content: 'a' }],
          tools: [{ type: 'function', function: tool }],
        }
      : { model: 'm', input: 'a', tools: [{ type: 'function', ...tool }] },
  );
  const target = { provider: 'p', model: 'm', protocol: to.name, profile: { name: 'none' } };
  expect(JSON.stringify(to.encodeRequest(sent, target, new Notes()).tools)).toContain(
    '"strict":true',
  );
});
