/** Encoding of other protocols' turns, and of edited Chat turns, as Chat messages. */

import { describe, expect, test } from 'bun:test';
import { openaiChat } from '../../../../src/codecs/openai-chat/index.ts';
import { editNode } from '../../../../src/conversation/edit.ts';
import { wrapSeal } from '../../../../src/conversation/seal.ts';
import type { Block } from '../../../../src/conversation/types.ts';
import type { Json } from '../../../../src/lib/json/json.ts';
import {
  assistant,
  call,
  conversation,
  encode,
  image,
  own,
  result,
  shown,
  t,
  user,
  wireCall,
} from '../building.ts';

describe('messages', () => {
  test('instructions and leading system turns are one system message; later ones stay in place', () => {
    const c = conversation(
      [
        { role: 'developer', blocks: [t('B')] },
        user(t('hi')),
        { role: 'developer', blocks: [t('C')] },
      ],
      { system: [t('A1'), t('A2')], from: 'openai-responses' },
    );
    expect(encode(c).messages).toEqual([
      { role: 'system', content: 'A1\n\nA2\n\nB' },
      { role: 'user', content: 'hi' },
      { role: 'system', content: 'C' },
    ]);
    expect(encode(c, { developerRole: true }).messages.map((m) => m.role)).toEqual([
      'system',
      'developer',
      'user',
      'developer',
    ]);
  });

  test('items of one answer become one message: reasoning, text, calls', () => {
    const c = conversation(
      [
        user(t('hi')),
        assistant({
          type: 'reasoning',
          text: 'why',
          summary: true,
          sealed: { protocol: 'openai-responses', kind: 'encrypted', value: 'E' },
        }),
        assistant(t('A')),
        assistant(call('a')),
        assistant(t('B')),
        assistant(call('b', 'g')),
        user(result('a', [t('1')])),
        user(result('b', [t('2')])),
      ],
      { from: 'openai-responses' },
    );
    const { messages, notes } = encode(c);
    expect(messages).toEqual([
      { role: 'user', content: 'hi' },
      {
        role: 'assistant',
        content: 'A\n\nB',
        reasoning_content: 'why',
        tool_calls: [wireCall('a'), wireCall('b', 'g')],
      },
      { role: 'tool', tool_call_id: 'a', content: '1' },
      { role: 'tool', tool_call_id: 'b', content: '2' },
    ]);
    expect(notes).toBe('reasoning_seal_dropped');
    expect(encode(c, { reasoningField: 'reasoning' }).messages[1]).toHaveProperty(
      'reasoning',
      'why',
    );
    expect(Object.keys(encode(c, { reasoningField: 'none' }).messages[1]!)).toEqual([
      'role',
      'content',
      'tool_calls',
    ]);
  });

  test('results come before the text beside them; their images come after all results', () => {
    const { messages, notes } = encode(
      conversation([
        assistant(call('a'), call('b')),
        user(t('and?'), result('a', [t('see'), image]), result('b', [t('no')], { isError: true })),
      ]),
    );
    expect(messages).toEqual([
      { role: 'assistant', content: null, tool_calls: [wireCall('a'), wireCall('b')] },
      {
        role: 'tool',
        tool_call_id: 'a',
        content: 'see\n[image attached in the next user message]',
      },
      { role: 'tool', tool_call_id: 'b', content: 'Error: no' },
      { role: 'user', content: [{ type: 'text', text: 'Attached to the result of a:' }, shown] },
      { role: 'user', content: 'and?' },
    ]);
    expect(notes).toBe('content_bridged=2');
  });

  test('a vendor that accepts images in results gets them there; one without vision gets text', () => {
    const c = conversation([assistant(call('a')), user(result('a', [image])), user(image, t('x'))]);
    expect(encode(c, { imagesInResults: true }).messages[1]!.content).toEqual([shown]);
    const blind = encode(c, { images: false });
    expect(JSON.stringify(blind.messages)).not.toContain('image_url');
    expect(blind.messages[1]!.content).toBe('[image not shown]');
    expect(blind.notes).toContain('content_bridged');
  });

  test('documents: text as text, files as files, cache marks noted once', () => {
    const { messages, notes } = encode(
      conversation([
        user(
          {
            type: 'media',
            media: 'document',
            source: { type: 'text', mediaType: 'text/plain', text: 'body' },
            title: 'T',
          },
          {
            type: 'media',
            media: 'document',
            source: { type: 'base64', mediaType: 'application/pdf', data: 'QQ==' },
            filename: 'a.pdf',
          },
          { type: 'text', text: 'x', cache: {} },
          { type: 'text', text: 'y', cache: {} },
        ),
      ]),
    );
    expect(messages[0]!.content).toEqual([
      { type: 'text', text: 'T\n\nbody' },
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,QQ==' } },
      { type: 'text', text: 'x' },
      { type: 'text', text: 'y' },
    ]);
    expect(notes).toBe('cache_control_dropped');
  });

  test('the billing header never reaches another vendor', () => {
    const header: Block = {
      type: 'opaque',
      name: 'billing_header',
      wire: { protocol: 'anthropic-messages', value: {} },
    };
    const { messages, notes } = encode(conversation([user(t('hi'))], { system: [header, t('S')] }));
    expect(messages[0]).toEqual({ role: 'system', content: 'S' });
    expect(notes).toBe('billing_header_dropped');
  });

  test("the vendor's own calls are dropped, and their results stay readable", () => {
    const { messages, notes } = encode(
      conversation([
        user(t('q')),
        assistant(
          call('s', 'web_search', { by: 'provider' }),
          result('s', [t('Title https://a')], { by: 'provider' }),
          t('So.'),
        ),
      ]),
    );
    expect(messages[1]).toEqual({ role: 'assistant', content: 'Title https://a\n\nSo.' });
    expect(notes).toBe('provider_call_dropped,content_bridged');
  });

  test('an empty prompt stays a prompt: the message list is never empty', () => {
    expect(encode(conversation([user(t(''))])).messages).toEqual([{ role: 'user', content: '' }]);
  });

  test('a trailing assistant message stays', () => {
    expect(encode(conversation([user(t('q')), assistant(t('{'))])).messages.at(-1)).toEqual({
      role: 'assistant',
      content: '{',
    });
  });

  test('seals of this protocol go back only to their provider', () => {
    const value = '[{"type":"reasoning.encrypted","data":"E"}]';
    const turn = (provider: string) =>
      assistant(
        {
          type: 'reasoning',
          text: 'r',
          sealed: { protocol: 'openai-chat', provider, kind: 'encrypted', value },
        },
        t('x'),
      );
    expect(encode(conversation([user(t('q')), turn('vendor')])).messages[1]).toEqual({
      role: 'assistant',
      content: 'x',
      reasoning_content: 'r',
      reasoning_details: JSON.parse(value),
    });
    const other = encode(conversation([user(t('q')), turn('elsewhere')]));
    expect(other.messages[1]).toEqual({ role: 'assistant', content: 'x', reasoning_content: 'r' });
    expect(other.notes).toBe('reasoning_seal_dropped');
  });

  test('an envelope from a Chat client never reaches a vendor', () => {
    const data = wrapSeal({
      protocol: 'anthropic-messages',
      provider: 'a',
      kind: 'signature',
      value: 'S',
    });
    const { out } = own({
      messages: [
        { role: 'user', content: 'q' },
        {
          role: 'assistant',
          content: 'x',
          reasoning_content: 'r',
          reasoning_details: [{ type: 'reasoning.encrypted', data }],
          custom: 1,
        },
      ],
    });
    expect((out.messages as unknown as Json[])[1]).toEqual({
      role: 'assistant',
      content: 'x',
      reasoning_content: 'r',
      custom: 1,
    });
  });
});

test('envelopes get the note of a lost seal whether or not they fit their text', () => {
  const carrier = (value: string) => ({
    type: 'reasoning.encrypted',
    data: wrapSeal({ protocol: 'anthropic-messages', provider: 'a', kind: 'signature', value }),
  });
  const { out, notes } = own({
    messages: [
      { role: 'user', content: 'q' },
      {
        role: 'assistant',
        content: 'x',
        reasoning_content: 'r',
        reasoning_details: [carrier('S'), carrier('T')],
      },
    ],
  });
  expect((out.messages as unknown as Json[])[1]).toEqual({
    role: 'assistant',
    content: 'x',
    reasoning_content: 'r',
  });
  expect(notes).toBe('reasoning_seal_dropped');
});

describe('edits in the same protocol', () => {
  test('a changed text keeps the other fields of its message and part', () => {
    const c = openaiChat.decodeRequest({
      model: 'm',
      messages: [
        {
          role: 'user',
          name: 'ann',
          content: [
            { type: 'text', text: 'a', cache_control: { type: 'ephemeral' } },
            { type: 'text', text: 'b' },
          ],
        },
        { role: 'tool', tool_call_id: 'x', name: 'f', content: 'long' },
      ],
    });
    const turns = c.turns.map((turn) =>
      editNode(turn, {
        blocks: turn.blocks.map((b, i) =>
          b.type === 'tool-result'
            ? editNode(b, { content: [t('short')] })
            : i === 0
              ? editNode(b, { text: 'A' } as Partial<Block>)
              : b,
        ),
      }),
    );
    expect(encode({ ...c, turns }).messages).toEqual([
      {
        role: 'user',
        name: 'ann',
        content: [
          { type: 'text', text: 'A', cache_control: { type: 'ephemeral' } },
          { type: 'text', text: 'b' },
        ],
      },
      { role: 'tool', tool_call_id: 'x', name: 'f', content: 'short' },
    ]);
  });

  test('added turns keep their place beside unchanged ones', () => {
    const c = openaiChat.decodeRequest({
      model: 'm',
      messages: [
        { role: 'system', content: 'S', extra: 1 },
        { role: 'user', content: 'q' },
      ],
    });
    const turns = [
      ...c.turns,
      assistant(call('a')),
      user(result('a', [t('r')], { by: 'gateway' })),
    ];
    expect(encode({ ...c, turns }).messages).toEqual([
      { role: 'system', content: 'S', extra: 1 },
      { role: 'user', content: 'q' },
      { role: 'assistant', content: null, tool_calls: [wireCall('a')] },
      { role: 'tool', tool_call_id: 'a', content: 'r' },
    ]);
  });

  test('added instructions go into the one system message', () => {
    const c = openaiChat.decodeRequest({
      model: 'm',
      messages: [
        { role: 'system', content: 'S', name: 'n' },
        { role: 'user', content: 'q' },
      ],
    });
    expect(encode({ ...c, system: [t('memory')] }).messages).toEqual([
      { role: 'system', content: 'memory\n\nS', name: 'n' },
      { role: 'user', content: 'q' },
    ]);
    expect(encode({ ...c, turns: c.turns.slice(1), system: [t('memory')] }).messages[0]).toEqual({
      role: 'system',
      content: 'memory',
    });
  });

  test('odd tool names of the client survive both ways', () => {
    const c = openaiChat.decodeRequest({
      model: 'm',
      messages: [{ role: 'user', content: 'q' }],
      tools: [{ type: 'function', function: { name: 'a.b' } }],
    });
    const { body, messages } = encode({
      ...c,
      turns: [...c.turns, assistant(call('x', 'a.b'))],
      tools: [...c.tools],
    });
    expect(JSON.stringify(body.tools)).toContain('"a.b"');
    expect(messages[1]!.tool_calls).toEqual([wireCall('x', 'a.b')]);
  });

  test('a changed setting leaves the others unchanged', () => {
    const c = openaiChat.decodeRequest({
      model: 'm',
      messages: [{ role: 'user', content: 'q' }],
      temperature: 0.5,
      max_completion_tokens: 9,
      stream_options: { include_usage: true, x: 1 },
      stream: true,
      weird: [1],
    });
    const { body } = encode({ ...c, settings: { ...c.settings, stream: false } });
    expect(body).toEqual({
      model: 'model-x',
      messages: [{ role: 'user', content: 'q' }],
      temperature: 0.5,
      max_completion_tokens: 9,
      stream: false,
      stream_options: { include_usage: true, x: 1 },
      weird: [1],
    } as never);
  });

  test('an added tool leaves the others unchanged', () => {
    const tool = { type: 'function', function: { name: 'f', odd: 1 }, odd: 2 };
    const c = openaiChat.decodeRequest({
      model: 'm',
      messages: [{ role: 'user', content: 'q' }],
      tools: [tool],
      web_search_options: { a: 1 },
    });
    const { body } = encode({
      ...c,
      tools: [
        ...c.tools,
        { type: 'function', name: 'g', schema: { type: 'object', properties: {} } },
      ],
    });
    expect(body.tools).toEqual([
      tool,
      { type: 'function', function: { name: 'g', parameters: { type: 'object', properties: {} } } },
    ]);
    expect(body.web_search_options).toEqual({ a: 1 });
  });
});
