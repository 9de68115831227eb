/** Whole answers in forms that clients of their protocol throw at, or cannot go on from: each gets the answer. */

import { describe, expect, test } from 'bun:test';
import OpenAI from 'openai';
import type { ProtocolName } from '../../../src/conversation/protocol-names.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { scriptedGateway } from '../scripted.ts';
import { WAYS } from './ways.ts';

const SCHEMA = { type: 'object' };
const ASKED: Readonly<Record<string, JsonObject>> = {
  'openai-chat': {
    messages: [{ role: 'user', content: 'hi' }],
    tools: [{ type: 'function', function: { name: 'run', parameters: SCHEMA } }],
  },
  'openai-responses': {
    input: 'hi',
    tools: [{ type: 'function', name: 'run', parameters: SCHEMA, strict: false }],
  },
  'anthropic-messages': {
    max_tokens: 9,
    messages: [{ role: 'user', content: 'hi' }],
    tools: [{ name: 'run', input_schema: SCHEMA }],
  },
  'google-gemini': {
    stream: false,
    contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
    tools: [{ functionDeclarations: [{ name: 'run', parameters: { type: 'OBJECT' } }] }],
  },
};
const without = (given: JsonObject, ...keys: string[]): JsonObject =>
  Object.fromEntries(Object.entries(given).filter(([key]) => !keys.includes(key)));

describe.each(WAYS)('%s', (_, FEATURES) => {
  describe.each([true, false])('with tools: %p', (tools) => {
    const through = async (protocol: ProtocolName, json: JsonObject) => {
      const gateway = scriptedGateway(protocol, [{ json }, { json }], FEATURES);
      const { tools: _, ...bare } = ASKED[protocol]!;
      const asked = tools ? ASKED[protocol]! : bare;
      const { status, text } = await gateway.ask(protocol, { model: 'm', ...asked });
      const notes = gateway.summaries[0]?.notes.map(({ name }) => name) ?? [];
      return { status, text, got: JSON.parse(text), notes };
    };
    const expectMended = (notes: readonly string[]) =>
      expect(notes.some((name) => /^(stream_mended|tool_call_rewritten)$/.test(name))).toBe(true);

    describe('Responses', () => {
      const message = {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'Hello', annotations: [] }],
      };
      const call = {
        type: 'function_call',
        id: 'fc_1',
        call_id: 'call_1',
        name: 'run',
        arguments: '{"cmd":"ls"}',
        status: 'completed',
      };
      const answer = (output: readonly JsonObject[], more: JsonObject = {}) => ({
        id: 'resp_1',
        object: 'response',
        created_at: 1,
        status: 'completed',
        model: 'm',
        output,
        usage: { input_tokens: 7, output_tokens: 3, total_tokens: 10 },
        ...more,
      });
      const parsed = async (text: string) => {
        const fetch = () => Promise.resolve(new Response(text, { headers: JSON_TYPE }));
        const client = new OpenAI({ apiKey: 'x', fetch });
        return await client.responses.create({ model: 'm', input: 'hi' });
      };
      const JSON_TYPE = { 'content-type': 'application/json' };

      test.each([
        ['an object for arguments', { ...call, arguments: { cmd: 'ls' } }, '{"cmd":"ls"}'],
        ['no call_id', without(call, 'call_id'), '{"cmd":"ls"}'],
        ['neither id', without(call, 'call_id', 'id'), '{"cmd":"ls"}'],
        ['arguments of null', { ...call, arguments: null }, '{}'],
        ['no arguments', without(call, 'arguments'), '{}'],
      ])('a call with %s', async (_, given, args) => {
        const { status, text, notes } = await through('openai-responses', answer([given]));
        expect(status).toBe(200);
        const [got] = (await parsed(text)).output;
        expect(got).toMatchObject({ type: 'function_call', name: 'run', arguments: args });
        expect(got).toHaveProperty('call_id', expect.stringMatching(/./));
        expectMended(notes);
      });

      test.each([
        ['a text for content', [{ ...message, content: 'Hello' }]],
        ['content of null beside it', [{ ...message, content: null }, message]],
      ])('a message with %s', async (_, output) => {
        const { status, text, notes } = await through('openai-responses', answer(output));
        expect(status).toBe(200);
        expect((await parsed(text)).output_text).toBe('Hello');
        expectMended(notes);
      });

      test.each([
        ['text', answer([message])],
        ['a call', answer([call])],
        ['no id and no status', answer([without(message, 'id', 'status')])],
        ['a call without id and status', answer([without(call, 'id', 'status')])],
        ['an error of null', answer([message], { error: null })],
      ])('%s that SDKs take: the bytes are the vendor’s', async (_, json) => {
        const { text, notes } = await through('openai-responses', json);
        expect([text, notes]).toEqual([JSON.stringify(json), []]);
      });
    });

    describe('Messages', () => {
      const answer = (more: JsonObject = {}): JsonObject => ({
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [{ type: 'text', text: 'Hello' }],
        stop_reason: 'end_turn',
        stop_sequence: null,
        usage: { input_tokens: 7, output_tokens: 3 },
        ...more,
      });
      const USE = { type: 'tool_use', id: 'toolu_1', name: 'run', input: { cmd: 'ls' } };
      const used = (more: JsonObject, reason: string | null = 'tool_use') =>
        answer({ content: [{ ...USE, ...more }], stop_reason: reason });

      test.each([
        ['a stop_reason of null', answer({ stop_reason: null })],
        ['no stop_reason', without(answer(), 'stop_reason')],
        ['no usage', without(answer(), 'usage')],
        ['usage of null', answer({ usage: null })],
        ['a text for content', answer({ content: 'Hello' })],
      ])('text with %s', async (_, json) => {
        const { status, got, notes } = await through('anthropic-messages', json);
        expect(status).toBe(200);
        expect(got).toMatchObject({
          content: [{ type: 'text', text: 'Hello' }],
          stop_reason: 'end_turn',
          usage: { input_tokens: expect.any(Number), output_tokens: expect.any(Number) },
        });
        expectMended(notes);
      });

      test.each([
        ['no id', used({ id: undefined })],
        ['an empty id', used({ id: '' })],
        ['input as text', used({ input: '{"cmd":"ls"}' })],
        ['a stop_reason of null', used({}, null)],
      ])('a call with %s', async (_, json) => {
        const { status, got, notes } = await through('anthropic-messages', json);
        expect(status).toBe(200);
        const id = expect.stringMatching(/^toolu_/);
        expect(got.content).toEqual([{ ...USE, id }]);
        expect(got.stop_reason).toBe('tool_use');
        expectMended(notes);
      });

      test.each([
        ['no content', without(answer(), 'content')],
        ['nothing in it and no stop_reason', answer({ content: [], stop_reason: null })],
      ])('an answer with %s is an error, not an empty success', async (_, json) => {
        expect((await through('anthropic-messages', json)).status).toBe(502);
      });

      test.each([
        ['text', answer()],
        ['a call', used({})],
        ['a refusal without words', answer({ content: [], stop_reason: 'refusal' })],
      ])('%s that is right: the bytes are the vendor’s', async (_, json) => {
        const { text, notes } = await through('anthropic-messages', json);
        expect([text, notes]).toEqual([JSON.stringify(json), []]);
      });
    });

    describe('Chat', () => {
      const answer = (content: JsonObject[string]) => ({
        id: 'c',
        object: 'chat.completion',
        created: 1,
        model: 'm',
        choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
      });
      const THOUGHT = { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] };

      test('content in parts is a text, and its thoughts are reasoning', async () => {
        const json = answer([THOUGHT, { type: 'text', text: 'Hello' }]);
        const { got, notes } = await through('openai-chat', json);
        const message = { role: 'assistant', content: 'Hello', reasoning_content: 'hm' };
        expect(got.choices).toMatchObject([{ message, finish_reason: 'stop' }]);
        expectMended(notes);
      });

      test('parts of a kind that no text has: the bytes are the vendor’s', async () => {
        const json = answer([
          { type: 'text', text: 'Hi' },
          { type: 'reference', reference_ids: [1] },
        ]);
        const { text, notes } = await through('openai-chat', json);
        expect([text, notes]).toEqual([JSON.stringify(json), []]);
      });
    });

    describe('Gemini', () => {
      const answer = (part: JsonObject, more: JsonObject = {}) => ({
        candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP', ...more }],
        usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 3, totalTokenCount: 10 },
        modelVersion: 'm',
        responseId: 'r',
      });
      const call = (args?: JsonObject[string]): JsonObject => ({
        functionCall: { name: 'run', ...(args === undefined ? {} : { args }) },
      });
      const HELLO = { text: 'Hello' };
      const CALLED = { functionCall: { name: 'run', args: { cmd: 'ls' } } };

      const WRONG: readonly (readonly [string, JsonObject, JsonObject, string])[] = [
        ['arguments as text', answer(call('{"cmd":"ls"}')), CALLED, 'STOP'],
        ['arguments of null', answer(call(null)), { functionCall: { name: 'run' } }, 'STOP'],
        ['a small finishReason', answer(HELLO, { finishReason: 'stop' }), HELLO, 'STOP'],
        ['a small limit', answer(HELLO, { finishReason: 'max_tokens' }), HELLO, 'MAX_TOKENS'],
        ['OpenAI’s word', answer(HELLO, { finishReason: 'length' }), HELLO, 'MAX_TOKENS'],
        ['OpenAI’s word for calls', answer(CALLED, { finishReason: 'tool_calls' }), CALLED, 'STOP'],
      ];
      const NO_REASON: readonly (readonly [string, JsonObject, JsonObject, string])[] = [
        ['no finishReason', answer(HELLO, { finishReason: undefined }), HELLO, 'STOP'],
        ['a finishReason of null', answer(HELLO, { finishReason: null }), HELLO, 'STOP'],
      ];

      test.each([...WRONG, ...NO_REASON])('%s', async (_, json, part, reason) => {
        const { status, got, notes } = await through('google-gemini', json);
        expect(status).toBe(200);
        expect(got.candidates).toMatchObject([
          { content: { parts: [part] }, finishReason: reason },
        ]);
        expectMended(notes);
      });

      const streamed = async (json: JsonObject) => {
        const sse = [`data: ${JSON.stringify(json)}\n\n`];
        const gateway = scriptedGateway('google-gemini', [{ sse }], FEATURES);
        const asked = { model: 'm', stream: true, ...ASKED['google-gemini'] };
        return gateway.ask('google-gemini', { ...asked, stream: true });
      };

      test.each(WRONG)('streamed: %s', async (_, json, part, reason) => {
        const { text } = await streamed(json);
        const chunks = text.split('\n\n').filter((one) => one !== '');
        const all = chunks.map((one) => JSON.parse(one.slice('data: '.length)).candidates[0]);
        expect(all.flatMap(({ content }) => content.parts)).toContainEqual(
          expect.objectContaining(
            part.text === undefined
              ? { functionCall: expect.objectContaining(part.functionCall as JsonObject) }
              : part,
          ),
        );
        expect(all.flatMap(({ finishReason }) => finishReason ?? [])).toEqual([reason]);
      });

      test.each(NO_REASON)('streamed, %s is a stream that was cut', async (_, json) => {
        expect((await streamed(json)).reset).toBe(true);
      });

      test.each([
        ['text', answer(HELLO)],
        ['a call', answer(CALLED)],
        ['a call without arguments', answer(call())],
        ['a reason that is new', answer(HELLO, { finishReason: 'OUT_OF_LUCK' })],
      ])('%s that is right: the bytes are the vendor’s', async (_, json) => {
        const { text, notes } = await through('google-gemini', json);
        expect([text, notes]).toEqual([JSON.stringify(json), []]);
        expect((await streamed(json)).text).toBe(`data: ${JSON.stringify(json)}\n\n`);
      });
    });
  });
});
