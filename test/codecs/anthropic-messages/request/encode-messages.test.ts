/** Encoding of other protocols' instructions, messages, calls and media for Messages. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../../../src/codecs/anthropic-messages/index.ts';
import { Notes } from '../../../../src/conversation/notes.ts';
import type { Profile } from '../../../../src/conversation/profile-facts.ts';
import type { Block, Conversation } from '../../../../src/conversation/types.ts';
import type { JsonObject } from '../../../../src/lib/json/json.ts';
import { target } from '../recorded.ts';
import { call, HI, READ, result, say, send } from '../sent.ts';

describe('instructions', () => {
  test('leading system and developer turns become `system`', () => {
    const { body, notes } = send([say('system', 'a'), say('developer', 'b'), HI]);
    expect(body.system).toEqual([
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ]);
    expect(body.messages).toEqual([{ role: 'user', content: [{ type: 'text', text: 'hi' }] }]);
    expect(notes).toBe('');
  });

  test('a single instruction is a string; an image in it is left out with a note', () => {
    const image: Block = {
      type: 'media',
      media: 'image',
      source: { type: 'url', url: 'https://a/b' },
    };
    const { body, notes } = send([say('system', 'a', image), HI]);
    expect(body.system).toBe('a');
    expect(notes).toBe('content_dropped');
  });

  test('later ones are user text with a note, or keep their role where the vendor has it', () => {
    const turns = [HI, say('assistant', 'yes'), say('developer', 'be brief'), say('user', 'go')];
    const plain = send(turns);
    expect(plain.body.messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'hi' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'yes' }] },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'be brief' },
          { type: 'text', text: 'go' },
        ],
      },
    ]);
    expect(plain.notes).toBe('content_bridged');
    const stored = send(turns, { profile: { systemTurns: true } });
    expect((stored.body.messages as readonly JsonObject[]).map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'system',
      'user',
    ]);
    expect(stored.notes).toBe('');
  });
});

describe('messages', () => {
  test('a conversation that begins with the assistant gets a user message before it', () => {
    const { body, notes } = send([say('assistant', 'Hello! '), HI]);
    expect(body.messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: '.' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'Hello! ' }] },
      { role: 'user', content: [{ type: 'text', text: 'hi' }] },
    ]);
    expect(notes).toBe('user_turn_inserted');
  });

  test('a final assistant text loses its trailing blanks, an earlier one does not', () => {
    const { body, notes } = send([
      HI,
      say('assistant', 'a '),
      HI,
      say('assistant', 'The answer: \n'),
    ]);
    const texts = (body.messages as readonly { content: readonly JsonObject[] }[]).map(
      ({ content }) => content[0]?.text,
    );
    expect(texts).toEqual(['hi', 'a ', 'hi', 'The answer:']);
    expect(notes).toBe('trailing_space_removed');
  });

  test('results lead the user message, all of an assistant message together', () => {
    const { body } = send(
      [
        HI,
        say('assistant', call('a'), call('b')),
        say('user', result('a')),
        say('user', 'by the way'),
        say('user', result('b')),
      ],
      { tools: [READ] },
    );
    const [, , answer] = body.messages as readonly { content: readonly JsonObject[] }[];
    expect(answer?.content.map(({ type }) => type)).toEqual(['tool_result', 'tool_result', 'text']);
  });

  test('assistant text after its calls moves before them', () => {
    const { body } = send(
      [HI, say('assistant', call('a')), say('assistant', 'reading'), say('user', result('a'))],
      { tools: [READ] },
    );
    const [, message] = body.messages as readonly { content: readonly JsonObject[] }[];
    expect(message?.content.map(({ type }) => type)).toEqual(['text', 'tool_use']);
  });

  test('blank text and empty messages are not sent', () => {
    const { body } = send([say('user', ''), HI, say('assistant', ' \n'), say('user', 'more')]);
    expect(body.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'hi' },
          { type: 'text', text: 'more' },
        ],
      },
    ]);
  });

  test('an error result without text gets a text, because the API refuses it otherwise', () => {
    const { body } = send(
      [
        HI,
        say('assistant', call('a'), call('b')),
        say('user', result('a', '', true), result('b', '')),
      ],
      { tools: [READ] },
    );
    const [, , answer] = body.messages as readonly { content: readonly JsonObject[] }[];
    expect(answer?.content).toEqual([
      { type: 'tool_result', tool_use_id: 'a', content: 'Error', is_error: true },
      { type: 'tool_result', tool_use_id: 'b', content: '' },
    ]);
  });
});

describe('calls', () => {
  const inputOf = (block: Block) => {
    const { body, notes } = send([HI, say('assistant', block)], { tools: [READ] });
    const [, message] = body.messages as readonly { content: readonly JsonObject[] }[];
    return { input: message?.content[0]?.input as unknown, notes };
  };

  test('arguments become an object, whatever the model wrote', () => {
    expect(inputOf(call('a', ''))).toEqual({ input: {}, notes: '' });
    expect(inputOf(call('a', '{"x":[1]}'))).toEqual({ input: { x: [1] }, notes: '' });
    expect(inputOf(call('a', '[1]'))).toEqual({
      input: { input: [1] },
      notes: 'tool_input_wrapped',
    });
    expect(inputOf(call('a', '{"x":'))).toEqual({
      input: { input: '{"x":' },
      notes: 'tool_input_wrapped',
    });
    expect(inputOf(call('a', 'free', { kind: 'custom' }))).toEqual({
      input: { input: 'free' },
      notes: '',
    });
  });

  test('numbers are sent as the model wrote them', () => {
    const conversation: Conversation = {
      model: 'm',
      system: [],
      turns: [HI, say('assistant', call('a', '{"id":12345678901234567890,"f":1.0}'))],
      tools: [READ],
      settings: { stream: false },
    };
    const body = anthropicMessages.encodeRequest(conversation, target(), new Notes());
    expect(JSON.stringify(body)).toContain('{"id":12345678901234567890,"f":1.0}');
  });

  test('foreign ids become valid ones, equal for call and result, and stable', () => {
    const turns = [
      HI,
      say('assistant', call('functions.x:0'), call('call_1')),
      say('user', result('functions.x:0'), result('call_1')),
    ];
    const ids = () =>
      JSON.stringify(send(turns, { tools: [READ] }).body.messages).match(/(toolu_\w+|call_1)/g);
    const [first, second, third, fourth] = ids() ?? [];
    expect(first).toMatch(/^toolu_[0-9a-f]{16}$/);
    expect([second, third, fourth]).toEqual(['call_1', first, 'call_1'] as string[]);
    expect(ids()?.[0]).toBe(first);
  });

  test('undeclared tools in the history are declared, and may not be called', () => {
    const { body, notes } = send([HI, say('assistant', call('a')), say('user', result('a'))]);
    expect(body.tools).toEqual([
      { name: 'read', input_schema: { type: 'object', properties: {} } },
    ]);
    expect(body.tool_choice).toEqual({ type: 'none' });
    expect(notes).toBe('tools_declared');
  });

  test("a hosted tool's call and result of another vendor are left out with notes", () => {
    const { body, notes } = send([
      HI,
      say('assistant', call('ws_1', '{}', { name: 'web_search', by: 'provider' }), 'Found it.'),
    ]);
    expect(body.messages).toHaveLength(2);
    expect(notes).toBe('content_dropped');
    expect(JSON.stringify(body)).not.toContain('web_search');
  });

  test('a call that the gateway ran is an ordinary call for the model', () => {
    const { body } = send(
      [
        HI,
        say('assistant', call('a', '{}', { by: 'gateway' })),
        say('user', { ...result('a'), by: 'gateway' } as Block),
      ],
      { tools: [READ] },
    );
    expect(JSON.stringify(body.messages)).toContain('"tool_use"');
    expect(JSON.stringify(body.messages)).toContain('"tool_result"');
  });
});

describe('media', () => {
  const sent = (source: unknown, media = 'image', profile: Partial<Profile> = {}) => {
    const block = { type: 'media', media, source, filename: 'f.x' } as Block;
    const { body, notes } = send([say('user', block)], { profile });
    return {
      block: (body.messages as readonly { content: readonly JsonObject[] }[])[0]?.content[0],
      notes,
    };
  };

  test('a data URL becomes base64 data', () => {
    expect(sent({ type: 'url', url: 'data:image/png;base64,aGk=' }).block).toEqual({
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: 'aGk=' },
    });
  });

  test('a text file is a text document', () => {
    expect(sent({ type: 'base64', mediaType: 'text/csv', data: 'YSxi' }, 'document').block).toEqual(
      {
        type: 'document',
        source: { type: 'text', media_type: 'text/plain', data: 'a,b' },
        title: 'f.x',
      },
    );
  });

  test('media that cannot be sent become a line of text, with a note', () => {
    for (const { block, notes } of [
      sent({ type: 'base64', mediaType: 'image/bmp', data: 'aGk=' }),
      sent({ type: 'file-id', id: 'file-1' }),
      sent({ type: 'url', url: 'https://a/b.png' }, 'image', { images: false }),
      sent({ type: 'base64', mediaType: 'application/pdf', data: 'aGk=' }, 'document', {
        documents: false,
      }),
      sent({ type: 'base64', mediaType: 'audio/wav', data: 'aGk=' }, 'audio'),
    ]) {
      expect(block).toEqual({
        type: 'text',
        text: expect.stringMatching(/^\[(image|document|audio) f\.x omitted\]$/),
      });
      expect(notes).toBe('content_bridged');
    }
  });
});
