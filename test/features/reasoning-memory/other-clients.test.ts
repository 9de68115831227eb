/** Messages and Responses clients: reasoning that their protocol cannot carry or their settings leave out. */

import { describe, expect, test } from 'bun:test';
import { ANSWERS, reasoningMemory } from '../../../src/features/reasoning-memory/index.ts';
import { refusalRetry } from '../../../src/features/refusal-retry/index.ts';
import { toolPairing } from '../../../src/features/tool-pairing/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { type Scripted, scriptedGateway } from '../../gateway/scripted.ts';
import { memoryRoom } from '../../support/entries.ts';
import {
  type ChatMessage,
  CLAUDE,
  call,
  chatReply,
  chatStream,
  DEEPSEEK,
  GEMINI,
  messagesReply,
  seal,
  type Vendor,
} from './scripts.ts';

const A = 'call_00_4f9a1c7be2d84b55a1';

const via = (vendor: Vendor, script: Scripted[], ledger = memoryRoom(ANSWERS)) =>
  scriptedGateway(
    vendor.protocol,
    script,
    [reasoningMemory({ ledger, owner: '' }), refusalRetry(), toolPairing, vendorFit()],
    '',
    vendor,
  );

const messagesOf = (sent: unknown) => (sent as { messages: ChatMessage[] }).messages;

/** As Google signs, and Vertex AI (https://github.com/earendil-works/pi/issues/6733). */
const SIGNATURES = [
  { google: { thought_signature: 'Eq8BCgIk' } },
  { vertex: { thought_signature: 'AY89a18IwQ' } },
];

describe('a Messages client', () => {
  const ask = (more: JsonObject[]) => ({
    model: 'm',
    max_tokens: 100,
    tools: [{ name: 'read', input_schema: { type: 'object' } }],
    messages: [{ role: 'user', content: 'go' }, ...more],
  });

  test.each(SIGNATURES)(
    "a Messages client cannot hold a call's thought signature, and Gemini still gets it: %j",
    async (signature) => {
      const gateway = via(GEMINI, [
        chatReply({ tool_calls: [call(A, { extra_content: signature })] }),
        chatReply({ content: 'done' }),
      ]);
      const first = JSON.parse((await gateway.ask('anthropic-messages', ask([]))).text);
      const { content } = first as { content: JsonObject[] };
      const result = { type: 'tool_result', tool_use_id: content[0]!.id!, content: 'found' };
      await gateway.ask(
        'anthropic-messages',
        ask([
          { role: 'assistant', content },
          { role: 'user', content: [result] },
        ]),
      );
      expect(messagesOf(gateway.sent[1])[1]?.tool_calls?.[0]?.extra_content).toEqual(signature);
    },
  );

  test('thinking that a Messages client returns is trusted', async () => {
    const gateway = via(DEEPSEEK, [
      chatReply({ reasoning_content: 'hm', tool_calls: [call(A)] }),
      chatReply({ content: 'done' }),
    ]);
    const body = {
      ...ask([]),
      model: 'deepseek-v4',
      thinking: { type: 'enabled', budget_tokens: 1024 },
    };
    const first = JSON.parse((await gateway.ask('anthropic-messages', body)).text);
    const { content } = first as { content: JsonObject[] };
    expect(content.map(({ type }) => type)).toEqual(['thinking', 'tool_use']);
    const history = (blocks: JsonObject[]) => [
      ...body.messages,
      { role: 'assistant', content: blocks },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: A, content: 'found' }] },
    ];
    await gateway.ask('anthropic-messages', { ...body, messages: history(content) });
    expect(messagesOf(gateway.sent[1])[1]?.reasoning_content).toBe('hm');
    expect(gateway.summaries[1]?.notes.map(({ name }) => name)).not.toContain('reasoning_restored');
  });
});

const ASKED = {
  'anthropic-messages': (...texts: readonly string[]) => ({
    model: 'gemini-3-pro',
    max_tokens: 100,
    messages: texts.map((content, i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', content })),
  }),
  'openai-responses': (...texts: readonly string[]) => ({
    model: 'gemini-3-pro',
    input: texts.map((content, i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', content })),
  }),
  'google-gemini': (...texts: readonly string[]) => ({
    model: 'gemini-3-pro',
    contents: texts.map((text, i) => ({ role: i % 2 === 0 ? 'user' : 'model', parts: [{ text }] })),
  }),
  'openai-chat': (...texts: readonly string[]) => ({
    model: 'gemini-3-pro',
    tools: [{ type: 'function', function: { name: 'read' } }],
    messages: texts.map((content, i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', content })),
  }),
} as const;

for (const client of Object.keys(ASKED) as (keyof typeof ASKED)[]) {
  for (const extra_content of SIGNATURES) {
    test.each([false, true])(
      `the signature of a text goes back with the history of a client of ${client} (${Object.keys(extra_content)}); streamed: %j`,
      async (stream) => {
        const answer = stream
          ? chatStream(
              [
                { role: 'assistant', content: 'He' },
                { content: 'llo' },
                { content: '', extra_content },
              ],
              'stop',
            )
          : chatReply({ content: 'Hello', extra_content });
        const gateway = via(GEMINI, [answer, chatReply({ content: 'done' })]);
        const asked = (...texts: readonly string[]) =>
          gateway.ask(client, { ...ASKED[client](...texts), ...(stream && { stream }) });
        expect((await asked('go')).text).toContain('He');
        await gateway.ask(client, ASKED[client]('go', 'Hello', 'on'));
        const [, said] = messagesOf(gateway.sent[1]);
        expect(said).toMatchObject({ role: 'assistant', content: 'Hello', extra_content } as never);
      },
    );
  }
}

test('a Responses client that asked for no encrypted content', async () => {
  const ledger = memoryRoom(ANSWERS);
  const use = { type: 'tool_use', id: 'toolu_01XyZabcdefghijkl29', name: 'read', input: {} };
  const thinking = { type: 'thinking', thinking: 'hm', signature: seal(1) };
  const refused: Scripted = {
    status: 400,
    json: {
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: 'messages.1.content.0: Invalid `signature` in `thinking` block',
      },
    },
  };
  const done = messagesReply([{ type: 'text', text: 'done' }]);
  const gateway = via(CLAUDE, [messagesReply([thinking, use]), done, refused, done], ledger);
  const body = {
    model: 'claude-sonnet-4-5',
    reasoning: { effort: 'low' },
    tools: [{ type: 'function', name: 'read', parameters: { type: 'object' } }],
    input: [{ role: 'user', content: 'go' }] as JsonObject[],
  };
  const { output } = JSON.parse((await gateway.ask('openai-responses', body)).text);
  const items = (output as JsonObject[]).filter(({ type }) => type === 'function_call');
  expect(items).toHaveLength(1);
  const result = { type: 'function_call_output', call_id: use.id, output: 'found' };
  const next = { ...body, input: [...body.input, ...items, result] };
  await gateway.ask('openai-responses', next);
  expect(messagesOf(gateway.sent[1])[1]?.content).toEqual([thinking, use]);

  // Restored reasoning that the vendor refuses is removed, and the request succeeds.
  const answered = await gateway.ask('openai-responses', next);
  expect(answered.status).toBe(200);
  expect(messagesOf(gateway.sent[2])).toEqual(messagesOf(gateway.sent[1]));
  expect(JSON.stringify(gateway.sent[3])).not.toContain(seal(1));
  expect(JSON.stringify(gateway.sent[3])).toContain(use.id);
});
