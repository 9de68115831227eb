/** The form of the answer that clients of one protocol ask for, at vendors of another one that lack it or want more. */

import { describe, expect, test } from 'bun:test';
import type { ProtocolName } from '../../../src/conversation/protocol-names.ts';
import { refusalRetry } from '../../../src/features/refusal-retry/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { type Scripted, scriptedGateway } from '../../gateway/scripted.ts';

const ONE_OBJECT = 'Answer with one JSON object and nothing else.';

const ANSWERS: Readonly<Record<string, JsonObject>> = {
  'anthropic-messages': {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: '{}' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 1, output_tokens: 1 },
  },
  'openai-chat': {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: '{}' }, finish_reason: 'stop' }],
  },
  'openai-responses': {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'm',
    output: [
      {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: '{}', annotations: [] }],
      },
    ],
  },
};

async function sentTo(
  target: ProtocolName,
  client: ProtocolName,
  body: JsonObject,
  { profile = 'none', baseUrl = 'http://up.test', before = [] as Scripted[], model = 'm' } = {},
) {
  const script = [...before, { json: ANSWERS[target] }];
  const features = [refusalRetry(), vendorFit()];
  const options = { profile, baseUrl };
  const { ask, sent, summaries } = scriptedGateway(target, script, features, '', options);
  const { status } = await ask(client, { model, ...body });
  expect(status).toBe(200);
  const notes = summaries[0]!.notes.map(({ name, where }) => `${name} ${where}`);
  return { sent: sent as JsonObject[], last: sent.at(-1) as JsonObject, notes };
}

const user = (text: string) => [{ role: 'user', content: text }];
const contents = (text: string) => [{ role: 'user', parts: [{ text }] }];

describe('JSON mode', () => {
  test.each<[ProtocolName, JsonObject]>([
    ['openai-chat', { messages: user('List it.'), response_format: { type: 'json_object' } }],
    ['openai-responses', { input: 'List it.', text: { format: { type: 'json_object' } } }],
    [
      'google-gemini',
      {
        stream: false,
        contents: contents('List it.'),
        generationConfig: { responseMimeType: 'application/json' },
      },
    ],
  ])(
    'a client of %s gets no prose from a vendor of Messages, which has no such mode',
    async (client, body) => {
      const { last, notes } = await sentTo('anthropic-messages', client, body);
      expect(last.system).toBe(ONE_OBJECT);
      expect(notes).toContain('content_bridged response_format');
    },
  );

  // "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
  test.each<[ProtocolName, JsonObject]>([
    ['openai-chat', { messages: [{ role: 'system', content: ONE_OBJECT }, ...user('List it.')] }],
    [
      'openai-responses',
      {
        input: [
          {
            type: 'message',
            role: 'user',
            content: [
              { type: 'input_text', text: 'List it.' },
              { type: 'input_text', text: ONE_OBJECT },
            ],
          },
        ],
      },
    ],
  ])(
    '%s hears the word that it demands, which a client of Gemini need not say',
    async (target, wanted) => {
      const json = { generationConfig: { responseMimeType: 'application/json' }, stream: false };
      const silent = await sentTo(target, 'google-gemini', {
        ...json,
        contents: contents('List it.'),
      });
      expect(silent.last).toMatchObject(wanted);
      expect(silent.notes).toContain('content_bridged response_format');
      const said = await sentTo(target, 'google-gemini', {
        ...json,
        contents: contents('As JSON.'),
      });
      expect(JSON.stringify(said.last)).not.toContain(ONE_OBJECT);
      expect(said.notes).not.toContain('content_bridged response_format');
    },
  );

  // Of instructions beside the input Responses reads no word: https://github.com/BigDawnGhost/wenyi/pull/66
  test('the word in a system message that becomes instructions is said in the input, too', async () => {
    const body = {
      messages: [{ role: 'system', content: 'Write JSON.' }, ...user('List it.')],
      response_format: { type: 'json_object' },
    };
    const { last } = await sentTo('openai-responses', 'openai-chat', body);
    expect(last.instructions).toBe('Write JSON.');
    expect(JSON.stringify(last.input)).toContain(ONE_OBJECT);
    // There the instructions are a part of the input.
    const openai = { profile: 'openai', baseUrl: 'https://api.openai.com/v1', model: 'gpt-5.6' };
    const kept = await sentTo('openai-responses', 'openai-chat', body, openai);
    expect(JSON.stringify(kept.last)).not.toContain(ONE_OBJECT);
  });

  test('a request of the own protocol stays as it is', async () => {
    const body = { messages: user('List it.'), response_format: { type: 'json_object' } };
    const { last } = await sentTo('openai-chat', 'openai-chat', body);
    expect(last).toEqual({ model: 'm', ...body });
  });
});

const text = { type: 'string' } as const;
const closed = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...more,
});
const asked = (schema: JsonObject) => ({
  messages: user('List it.'),
  response_format: { type: 'json_schema', json_schema: { name: 'x', schema } },
});
/** Each definition names the next one. */
const chain = (length: number, last: JsonObject) =>
  Object.fromEntries(
    Array.from({ length }, (_, i) => [
      `d${i}`,
      i === length - 1 ? last : closed({ next: { $ref: `#/$defs/d${i + 1}` } }),
    ]),
  );

describe('schemas at vendors of Messages', () => {
  // https://github.com/egonSchiele/agency-lang/issues/487, https://github.com/BerriAI/litellm/pull/35811
  test.each<[string, JsonObject]>([
    [
      'one that holds itself',
      closed(
        { tree: { $ref: '#/$defs/node' } },
        {
          $defs: { node: closed({ kids: { type: 'array', items: { $ref: '#/$defs/node' } } }) },
        },
      ),
    ],
    [
      'two that hold each other',
      closed(
        { a: { $ref: '#/definitions/a' } },
        {
          definitions: {
            a: closed({ b: { anyOf: [{ $ref: '#/definitions/b' }, { type: 'null' }] } }),
            b: closed({ a: { $ref: '#/definitions/a' } }),
          },
        },
      ),
    ],
    ['the root in itself', closed({ next: { $ref: '#' } })],
    ['one that is elsewhere', closed({ a: { $ref: 'https://example.com/a.json' } })],
    ['a map', closed({ counts: { type: 'object', additionalProperties: { type: 'integer' } } })],
    ['any object', closed({ extra: { type: ['object', 'null'] } })],
    ['keys of a pattern', closed({ a: { type: 'object', patternProperties: { '^x': text } } })],
    ['the deepest chain', closed({ a: { $ref: '#/$defs/d0' } }, { $defs: chain(500, text) })],
  ])('%s is said in the prompt: it would be refused, or always empty', async (_, schema) => {
    const { last, notes } = await sentTo('anthropic-messages', 'openai-chat', asked(schema));
    expect(last.output_config).toBeUndefined();
    expect(last.system).toStartWith(ONE_OBJECT);
    expect(last.system).toContain(JSON.stringify(schema));
    expect(notes).toContain('content_bridged response_format');
  });

  test.each<[string, JsonObject]>([
    ['an object without keys', closed({ a: closed({}) })],
    [
      'a definition that is used twice',
      closed(
        { a: { $ref: '#/$defs/a' }, b: { $ref: '#/$defs/b' } },
        { $defs: { a: closed({ b: { $ref: '#/$defs/b' } }), b: text } },
      ),
    ],
    ['a property called $ref', closed({ $ref: text })],
    ['a property called patternProperties', closed({ patternProperties: text })],
  ])('%s goes out as a schema', async (_, schema) => {
    const { last } = await sentTo('anthropic-messages', 'openai-chat', asked(schema));
    expect(last).toMatchObject({ output_config: { format: { type: 'json_schema', schema } } });
    expect(last.system).toBeUndefined();
  });

  test('a schema that the vendor refuses is said in the prompt, in this request only', async () => {
    const refused: Scripted = {
      status: 400,
      json: {
        type: 'error',
        error: {
          type: 'invalid_request_error',
          message: 'output_config.format.schema: Schema is too complex for compilation.',
        },
      },
    };
    const body = asked(closed({ a: text }));
    const { sent } = await sentTo('anthropic-messages', 'openai-chat', body, { before: [refused] });
    expect(sent[0]!.output_config).toBeDefined();
    expect(sent[1]!.output_config).toBeUndefined();
    expect(sent[1]!.system).toStartWith(ONE_OBJECT);
  });

  // "output_config: Only effort is supported" (https://api-docs.deepseek.com/guides/anthropic_api)
  test.each(['deepseek-anthropic', 'glm-anthropic', 'kimi-anthropic', 'minimax-anthropic'])(
    'the model at %s reads the schema, which the vendor would pass over',
    async (profile) => {
      const format = { type: 'json_schema', schema: closed({ a: text }) };
      for (const [client, body] of [
        ['openai-chat', asked(format.schema)],
        [
          'anthropic-messages',
          { max_tokens: 99, messages: user('List it.'), output_config: { format } },
        ],
      ] as const) {
        const { last } = await sentTo('anthropic-messages', client, body, { profile });
        expect(JSON.stringify(last.system)).toContain(ONE_OBJECT);
        expect(JSON.stringify(last)).not.toContain('"format"');
      }
    },
  );
});
