/** Invalid Chat requests are refused with the field at fault; unusual ones that real servers accept are not. */

import { describe, expect, test } from 'bun:test';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { GatewayError } from '../../../src/conversation/errors.ts';
import type { Json } from '../../../src/lib/json/json.ts';

const user = { role: 'user', content: 'hi' };
const withMessages = (...messages: Json[]): Json => ({ model: 'm', messages });
const withCall = (call: Json): Json =>
  withMessages(user, { role: 'assistant', content: null, tool_calls: [call] });

const BAD: readonly (readonly [name: string, body: Json, param: string | undefined])[] = [
  ['a string', 'hi', undefined],
  ['an array', [], undefined],
  ['null', null, undefined],
  ['no model', { messages: [user] }, 'model'],
  ['a model that is a number', { model: 3, messages: [user] }, 'model'],
  ['no messages', { model: 'm' }, 'messages'],
  ['messages that are a string', { model: 'm', messages: 'hi' }, 'messages'],
  ['empty messages', { model: 'm', messages: [] }, 'messages'],
  ['a message that is a string', withMessages('hi'), 'messages[0]'],
  ['no role', withMessages({ content: 'x' }), 'messages[0].role'],
  ['an unknown role', withMessages(user, { role: 'bot', content: 'x' }), 'messages[1].role'],
  [
    'user content that is null',
    withMessages(user, { role: 'user', content: null }),
    'messages[1].content',
  ],
  ['system content that is missing', withMessages({ role: 'system' }), 'messages[0].content'],
  ['content that is a number', withMessages({ role: 'user', content: 4 }), 'messages[0].content'],
  ['content that is an object', withMessages({ role: 'user', content: {} }), 'messages[0].content'],
  [
    'a part that is a number',
    withMessages({ role: 'user', content: [1] }),
    'messages[0].content[0]',
  ],
  [
    'a text part without text',
    withMessages({ role: 'user', content: [{ type: 'text' }] }),
    'messages[0].content[0].text',
  ],
  [
    'an image without a URL',
    withMessages({ role: 'user', content: [{ type: 'image_url', image_url: {} }] }),
    'messages[0].content[0].image_url',
  ],
  [
    'a tool message without tool_call_id',
    withMessages(user, { role: 'tool', content: 'x' }),
    'messages[1].tool_call_id',
  ],
  [
    'a function message without name',
    withMessages(user, { role: 'function', content: 'x' }),
    'messages[1].name',
  ],
  [
    'tool_calls that are an object',
    withMessages({ role: 'assistant', tool_calls: {} }),
    'messages[0].tool_calls',
  ],
  ['a call that is a string', withCall('x'), 'messages[1].tool_calls[0]'],
  [
    'a call without function',
    withCall({ id: 'a', type: 'function' }),
    'messages[1].tool_calls[0].function',
  ],
  [
    'a call without a name',
    withCall({ id: 'a', type: 'function', function: { arguments: '' } }),
    'messages[1].tool_calls[0].function.name',
  ],
  [
    'a call without id',
    withCall({ type: 'function', function: { name: 'f', arguments: '' } }),
    'messages[1].tool_calls[0].id',
  ],
  [
    'arguments that are a number',
    withCall({ id: 'a', type: 'function', function: { name: 'f', arguments: 3 } }),
    'messages[1].tool_calls[0].function.arguments',
  ],
  [
    'a custom call without a name',
    withCall({ id: 'a', type: 'custom', custom: {} }),
    'messages[1].tool_calls[0].custom.name',
  ],
  ['tools that are an object', { model: 'm', messages: [user], tools: {} }, 'tools'],
  ['a tool that is a string', { model: 'm', messages: [user], tools: ['x'] }, 'tools[0]'],
  ['a tool without type', { model: 'm', messages: [user], tools: [{}] }, 'tools[0].type'],
  [
    'a function without a name',
    { model: 'm', messages: [user], tools: [{ type: 'function', function: {} }] },
    'tools[0].function.name',
  ],
  [
    'a legacy function without a name',
    { model: 'm', messages: [user], functions: [{}] },
    'functions[0].name',
  ],
  ['stream as a string', { model: 'm', messages: [user], stream: 'yes' }, 'stream'],
];

describe('refused requests', () => {
  for (const [name, body, param] of BAD) {
    test(`${name} is a 400 that names ${param ?? 'no field'}`, () => {
      let thrown: unknown;
      try {
        openaiChat.decodeRequest(body);
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toBeInstanceOf(GatewayError);
      const error = thrown as GatewayError;
      expect({ kind: error.kind, param: error.param }).toEqual({ kind: 'invalid_request', param });
      const answer = openaiChat.encodeError(error, 'req_1');
      expect(answer.status).toBe(400);
      expect(answer.body).toEqual({
        error: {
          message: error.message,
          type: 'invalid_request_error',
          param: param ?? null,
          code: null,
        },
      });
    });
  }
});

describe('odd requests that real servers accept', () => {
  const TAKEN: readonly (readonly [name: string, body: Json])[] = [
    [
      'null for everything optional',
      { model: 'm', messages: [user], tools: null, stream: null, stop: null, tool_choice: null },
    ],
    [
      'tool content as an array',
      withMessages(user, {
        role: 'tool',
        tool_call_id: 'a',
        content: [{ type: 'text', text: 'x' }],
      }),
    ],
    [
      'tool content that is null',
      withMessages(user, { role: 'tool', tool_call_id: 'a', content: null }),
    ],
    ['strings inside content', withMessages({ role: 'user', content: ['a', 'b'] })],
    ['an assistant message without content', withMessages(user, { role: 'assistant' })],
    [
      'arguments as an object',
      withCall({ id: 'a', type: 'function', function: { name: 'f', arguments: { a: 1 } } }),
    ],
    [
      'an empty legacy call',
      withMessages({ role: 'assistant', content: 'x', function_call: { name: '', arguments: '' } }),
    ],
    [
      'unknown parts',
      withMessages({ role: 'user', content: [{ type: 'video_url', video_url: { url: 'x' } }] }),
    ],
    [
      'a tool without parameters',
      { model: 'm', messages: [user], tools: [{ type: 'function', function: { name: 'f' } }] },
    ],
    ['a tool without type', { model: 'm', messages: [user], tools: [{ function: { name: 'f' } }] }],
    [
      'a flat tool',
      { model: 'm', messages: [user], tools: [{ type: 'function', name: 'f', parameters: {} }] },
    ],
  ];
  for (const [name, body] of TAKEN) {
    test(`${name} is accepted and goes out unchanged`, async () => {
      const { Notes } = await import('../../../src/conversation/notes.ts');
      const { target } = await import('./recorded.ts');
      const conversation = openaiChat.decodeRequest(body);
      const out = openaiChat.encodeRequest(conversation, { ...target(), model: 'm' }, new Notes());
      expect(out).toEqual(body as never);
    });
  }
});
