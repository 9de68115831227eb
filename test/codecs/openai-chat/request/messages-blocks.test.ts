/** Blocks and cache marks of Messages inside Chat requests, as Cursor, OpenRouter's and LiteLLM's clients send them. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../../../src/codecs/anthropic-messages/index.ts';
import { googleGemini } from '../../../../src/codecs/google-gemini/index.ts';
import { openaiChat } from '../../../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../../../src/codecs/openai-responses/index.ts';
import { withParts } from '../../../../src/conversation/edit.ts';
import { Notes } from '../../../../src/conversation/notes.ts';
import type { Json, JsonObject } from '../../../../src/lib/json/json.ts';

const CODECS = {
  'anthropic-messages': anthropicMessages,
  'openai-responses': openaiResponses,
  'google-gemini': googleGemini,
  'openai-chat': openaiChat,
} as const;

const TARGET = {
  provider: 'p',
  model: 'm',
  protocol: 'openai-chat',
  profile: { name: 'none' },
} as const;

function sent(protocol: keyof typeof CODECS, request: JsonObject) {
  const notes = new Notes();
  const conversation = openaiChat.decodeRequest(request as Json);
  const target = { ...TARGET, protocol };
  const body = CODECS[protocol].encodeRequest(conversation, target, notes);
  return { body: JSON.parse(JSON.stringify(body)), notes: notes.all.map(({ name }) => name) };
}

const chat = (...messages: readonly JsonObject[]): JsonObject => ({
  model: 'm',
  messages: [{ role: 'user', content: 'go' }, ...messages],
});
const use = { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: '1' } };
const said = { type: 'text', text: 'look' };
const png = 'aVZCT1I=';
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } };
const answer = (content: Json, more: JsonObject = {}) => ({
  role: 'user',
  content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content, ...more }],
});
const loop = (content: Json, more?: JsonObject) =>
  chat({ role: 'assistant', content: [said, use] }, answer(content, more));

describe('calls and results in the form of Messages', () => {
  test.each([
    ['text', 'the data'],
    ['a list', [{ type: 'text', text: 'the data' }]],
  ])('%s reaches every protocol', (_what, content) => {
    const request = loop(content);
    const messages = sent('anthropic-messages', request);
    expect(messages.body.messages.slice(1)).toEqual([
      { role: 'assistant', content: [said, use] },
      { role: 'user', content: [expect.objectContaining({ tool_use_id: 'toolu_1' })] },
    ]);
    expect(JSON.stringify(messages.body.messages[2])).toContain('the data');
    const { input } = sent('openai-responses', request).body;
    expect(input.map(({ type }: JsonObject) => type)).toEqual([
      'message',
      'message',
      'function_call',
      'function_call_output',
    ]);
    const { contents } = sent('google-gemini', request).body;
    expect(contents[1].parts[1].functionCall).toMatchObject({ name: 'f', args: { a: '1' } });
    expect(JSON.stringify(contents[2].parts[0].functionResponse)).toContain('the data');
    for (const protocol of Object.keys(CODECS) as (keyof typeof CODECS)[]) {
      expect(sent(protocol, request).notes).not.toContain('content_dropped');
    }
  });

  test('a failed result, and one without content', () => {
    const failed = sent('anthropic-messages', loop('no such file', { is_error: true }));
    expect(failed.body.messages[2].content[0]).toMatchObject({ is_error: true });
    const empty = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1' }] };
    const { body } = sent('anthropic-messages', chat({ role: 'assistant', content: [use] }, empty));
    expect(body.messages[2].content[0].tool_use_id).toBe('toolu_1');
  });

  test('images, in a result and beside it, by data and by URL', () => {
    const url = { type: 'image', source: { type: 'url', url: 'https://x.test/a.png' } };
    const request = chat(
      { role: 'assistant', content: [use] },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'toolu_1',
            content: [{ type: 'text', text: 'see' }, image],
          },
          url,
          { type: 'text', text: 'and?' },
        ],
      },
    );
    const { body } = sent('anthropic-messages', request);
    const [result, ...rest] = body.messages[2].content;
    expect(result.content).toEqual([{ type: 'text', text: 'see' }, image]);
    expect(rest).toEqual([url, { type: 'text', text: 'and?' }]);
  });

  test('a document', () => {
    const source = { type: 'base64', media_type: 'application/pdf', data: png };
    const document = { type: 'document', source, title: 'T' };
    const { body } = sent('anthropic-messages', chat({ role: 'user', content: [document] }));
    expect(JSON.stringify(body.messages)).toContain(JSON.stringify(source));
  });

  test('thinking keeps its signature, and redacted thinking its data', () => {
    const thinking = { type: 'thinking', thinking: 'hm', signature: 'c2ln' };
    const redacted = { type: 'redacted_thinking', data: 'cmVk' };
    const content = [thinking, redacted, said, use];
    const { body } = sent(
      'anthropic-messages',
      chat({ role: 'assistant', content }, answer('the data')),
    );
    expect(body.messages[1].content).toEqual(content);
  });

  test.each([
    { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
    { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }] },
    { type: 'reasoning', reasoning: 'hm' },
  ])('reasoning that nobody signed is not sent as words: %j', (part) => {
    const content = [part, { type: 'text', text: 'ok' }];
    const request = chat({ role: 'assistant', content }, { role: 'user', content: 'go' });
    const { body } = sent('anthropic-messages', request);
    expect(JSON.stringify(body.messages)).not.toContain('hm');
    const [reply] = openaiChat.decodeReply(
      { choices: [{ message: { content }, finish_reason: 'stop' }] } as Json,
      { sent: openaiChat.decodeRequest(request as Json), target: TARGET, notes: new Notes() },
    ).blocks;
    expect(reply).toEqual({ type: 'reasoning', text: 'hm' });
  });

  test('a call that is in both forms is one call', () => {
    const call = {
      id: 'toolu_1',
      type: 'function',
      function: { name: 'f', arguments: '{"a":"1"}' },
    };
    const request = chat(
      { role: 'assistant', content: [said, use], tool_calls: [call] },
      { role: 'tool', tool_call_id: 'toolu_1', content: 'x' },
    );
    const { body } = sent('anthropic-messages', request);
    expect(body.messages[1].content).toEqual([said, use]);
  });

  test('written anew for Chat, they are calls and tool messages', () => {
    const conversation = openaiChat.decodeRequest(loop('the data') as Json);
    const turns = conversation.turns.map(({ wire: _, ...turn }) => turn);
    const target = {
      provider: 'p',
      model: 'm',
      protocol: 'openai-chat',
      profile: { name: 'none' },
    };
    const body = openaiChat.encodeRequest(
      withParts(conversation, { turns }),
      target as never,
      new Notes(),
    );
    expect((body.messages as JsonObject[]).slice(1)).toMatchObject([
      { role: 'assistant', tool_calls: [{ id: 'toolu_1', function: { name: 'f' } }] },
      { role: 'tool', tool_call_id: 'toolu_1', content: 'the data' },
    ]);
  });

  test('a block without its id is a 400 that names it', () => {
    const { id: _, ...broken } = use;
    expect(() =>
      openaiChat.decodeRequest(chat({ role: 'assistant', content: [broken] }) as Json),
    ).toThrow('messages[1].content[0].id');
  });
});

describe('cache marks of Chat clients', () => {
  const mark = { type: 'ephemeral' };
  const hour = { type: 'ephemeral', ttl: '1h' };
  const tool = (more: JsonObject, inner: JsonObject = {}) => ({
    type: 'function',
    function: { name: 'f', parameters: { type: 'object', properties: {} }, ...inner },
    ...more,
  });
  const request: JsonObject = {
    model: 'm',
    cache_control: mark,
    tools: [tool({ cache_control: hour })],
    messages: [
      { role: 'system', content: 'be brief', cache_control: hour },
      { role: 'user', content: 'go', cache_control: mark },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'x', cache_control: mark },
    ],
  };

  test('on tools, messages and the root they reach Messages', () => {
    const { body, notes } = sent('anthropic-messages', request);
    expect(body.cache_control).toEqual(mark);
    expect(body.tools[0].cache_control).toEqual(hour);
    expect(body.system).toEqual([{ type: 'text', text: 'be brief', cache_control: hour }]);
    expect(body.messages[0].content).toEqual([{ type: 'text', text: 'go', cache_control: mark }]);
    expect(body.messages[2].content[0].cache_control).toEqual(mark);
    expect(notes).toEqual(['parameter_defaulted']);
  });

  test('inside of the function, too', () => {
    const { body } = sent('anthropic-messages', {
      ...request,
      tools: [tool({}, { cache_control: mark })],
    });
    expect(body.tools[0].cache_control).toEqual(mark);
  });

  test.each(['openai-responses', 'google-gemini'] as const)(
    '%s has none: dropped with a note',
    (protocol) => {
      for (const one of [
        {
          model: 'm',
          messages: [{ role: 'user', content: 'go' }],
          tools: [tool({ cache_control: mark })],
        },
        { model: 'm', messages: [{ role: 'user', content: 'go', cache_control: mark }] },
        { model: 'm', messages: [{ role: 'user', content: 'go' }], cache_control: mark },
      ]) {
        const { body, notes } = sent(protocol, one);
        expect(JSON.stringify(body)).not.toContain('cache_control');
        expect(
          notes.some((note) => note === 'cache_control_dropped' || note === 'parameter_dropped'),
        ).toBe(true);
      }
    },
  );

  test('on the way to Chat they stay as they came', () => {
    expect(sent('openai-chat', request).body).toEqual(request);
  });
});
