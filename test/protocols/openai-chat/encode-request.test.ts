/** What other protocols say, as a Chat vendor is told it; and what a profile changes. */

import { describe, expect, test } from 'bun:test';
import { edited } from '../../../src/conversation/edit.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { carrySeal } from '../../../src/conversation/seal.ts';
import type { Profile } from '../../../src/conversation/target.ts';
import type {
  Block,
  Conversation,
  ProtocolName,
  Settings,
  Tool,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
} from '../../../src/conversation/types.ts';
import type { Json, JsonObject } from '../../../src/lib/json.ts';
import { openaiChat } from '../../../src/protocols/openai-chat/index.ts';
import { target } from './recorded.ts';

function conversation(
  turns: readonly Turn[],
  more: Partial<Pick<Conversation, 'system' | 'tools'>> & {
    settings?: Partial<Settings>;
    from?: ProtocolName;
  } = {},
): Conversation {
  const parts = {
    model: 'asked',
    system: more.system ?? [],
    turns,
    tools: more.tools ?? [],
    settings: { stream: false, ...more.settings },
  };
  return { ...parts, origin: { protocol: more.from ?? 'anthropic-messages', value: {}, parts } };
}
const encode = (c: Conversation, profile: Partial<Profile> = {}) => {
  const notes = new Notes();
  const body = openaiChat.encodeRequest(c, target(profile), notes);
  return { body, messages: body.messages as unknown as JsonObject[], notes: notes.summary() };
};
const own = (body: object, profile: Partial<Profile> = {}) => {
  const { body: out, notes } = encode(
    openaiChat.decodeRequest({
      model: 'model-x',
      messages: [{ role: 'user', content: 'hi' }],
      ...body,
    } as Json),
    profile,
  );
  return { out, notes };
};
const t = (text: string): Block => ({ type: 'text', text });
const user = (...blocks: Block[]): Turn => ({ role: 'user', blocks });
const assistant = (...blocks: Block[]): Turn => ({ role: 'assistant', blocks });
const call = (id: string, name = 'f', more: Partial<ToolCallBlock> = {}): ToolCallBlock => ({
  type: 'tool-call',
  id,
  name,
  kind: 'function',
  input: '{}',
  by: 'client',
  ...more,
});
const result = (
  callId: string,
  content: readonly Block[],
  more: Partial<ToolResultBlock> = {},
): ToolResultBlock => ({
  type: 'tool-result',
  callId,
  kind: 'function',
  content,
  isError: false,
  by: 'client',
  ...more,
});
const image: Block = {
  type: 'media',
  media: 'image',
  source: { type: 'base64', mediaType: 'image/png', data: 'aGk=' },
};
const shown = { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } };
const wireCall = (id: string, name = 'f', args = '{}') => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});

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

  test('results stand before the text beside them; their images follow all of them', () => {
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

  test('a vendor that takes images in results gets them there; one without images gets words', () => {
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

  test("the vendor's own calls are dropped, what they found stays readable", () => {
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
    expect(messages[1]).toEqual({ role: 'assistant', content: '\n\nTitle https://a\n\nSo.' });
    expect(notes).toBe('provider_call_dropped,content_bridged');
  });

  test('an empty prompt stays a prompt: messages are never an empty list', () => {
    expect(encode(conversation([user(t(''))])).messages).toEqual([{ role: 'user', content: '' }]);
  });

  test('a trailing assistant message stays', () => {
    expect(encode(conversation([user(t('q')), assistant(t('{'))])).messages.at(-1)).toEqual({
      role: 'assistant',
      content: '{',
    });
  });

  test('seals of this protocol go home, to no other provider', () => {
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

  test('a carrier that a Chat client brings back never reaches a vendor', () => {
    const data = carrySeal({
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

describe('edits of the own protocol', () => {
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
      edited(turn, {
        blocks: turn.blocks.map((b, i) =>
          b.type === 'tool-result'
            ? edited(b, { content: [t('short')] })
            : i === 0
              ? edited(b, { text: 'A' } as Partial<Block>)
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

  test('turns that were added stand beside untouched ones', () => {
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

  test('instructions that were added go into the one system message', () => {
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

  test('odd names of the client stay its own, there and back', () => {
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

  test('a changed setting leaves the others as they came', () => {
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

  test('an added tool leaves the others as they came', () => {
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

describe('tools', () => {
  const tools: readonly Tool[] = [
    { type: 'function', name: 'DeferredToolPlaceholder', schema: {} },
    {
      type: 'function',
      name: 'do it',
      namespace: 'mcp',
      schema: { anyOf: [] },
      deferred: true,
      strict: false,
    },
    {
      type: 'custom',
      name: 'apply_patch',
      description: 'Patch.',
      format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
    },
    { type: 'hosted', name: 'web_search', kind: 'web_search_20250305', options: { max_uses: 3 } },
    {
      type: 'hosted',
      name: 'tool_search',
      kind: 'tool_search',
      options: {
        execution: 'client',
        description: 'Find.',
        parameters: { type: 'object', properties: { query: {} } },
      },
    },
  ];

  test('become functions, or go with a note', () => {
    const { body, notes } = encode(
      conversation(
        [user(t('q')), assistant(call('a', 'apply_patch', { kind: 'custom', input: '*** "x"' }))],
        { tools },
      ),
    );
    const sent = body.tools as unknown as {
      function: { name: string; parameters: unknown; description?: string };
    }[];
    expect(sent.map((tool) => tool.function.name)).toEqual([
      expect.stringMatching(/^[0-9a-f]{8}_mcp__do_it$/),
      'apply_patch',
      'tool_search',
    ]);
    expect(sent[0]!.function).toEqual({
      name: sent[0]!.function.name,
      parameters: { anyOf: [], type: 'object', properties: {} },
    });
    expect(sent[1]!.function.description).toContain('start: "x"');
    expect((body.messages as unknown as JsonObject[])[1]!.tool_calls).toEqual([
      wireCall('a', 'apply_patch', '{"input":"*** \\"x\\""}'),
    ]);
    expect(notes).toBe('deferred_placeholder_dropped,content_bridged=2,hosted_tool_dropped');
  });

  test('a vendor that serves web search is asked in its own form', () => {
    const { body } = encode(conversation([user(t('q'))], { tools: [tools[3]!] }), {
      hostedTools: ['web_search'],
    });
    expect(body.tools).toEqual([
      { type: 'web_search', web_search: { enable: true, search_result: true } },
    ]);
  });

  test('a choice of allowed tools declares only those', () => {
    const two: readonly Tool[] = [
      { type: 'function', name: 'f' },
      { type: 'function', name: 'g' },
    ];
    const { body, notes } = encode(
      conversation([user(t('q'))], {
        tools: two,
        settings: { toolChoice: { type: 'allowed', mode: 'required', names: ['g'] } },
      }),
    );
    expect((body.tools as unknown as Json[]).length).toBe(1);
    expect([body.tool_choice, notes]).toEqual(['required', 'parameter_mapped']);
  });

  test('no tools, no choice', () => {
    const { body } = encode(
      conversation([user(t('q'))], {
        settings: { toolChoice: { type: 'auto' }, parallelTools: false },
      }),
    );
    expect(Object.keys(body)).toEqual(['model', 'messages']);
  });
});

describe('settings', () => {
  const of = (settings: Partial<Settings>, profile: Partial<Profile> = {}) => {
    const { body, notes } = encode(conversation([user(t('q'))], { settings }), profile);
    const { model: _m, messages: _x, ...rest } = body;
    return [rest, notes] as const;
  };

  test('caps, sampling and streams', () => {
    expect(of({ stream: true, maxTokens: 5, topK: 3, stop: ['x'] })).toEqual([
      { stream: true, stream_options: { include_usage: true }, max_tokens: 5, stop: ['x'] },
      'parameter_dropped',
    ]);
    expect(
      of(
        { stream: true, maxTokens: 5 },
        { streamUsage: false, maxTokensParam: 'max_completion_tokens' },
      ),
    ).toEqual([{ stream: true, max_completion_tokens: 5 }, '']);
  });

  test('reasoning in every spelling', () => {
    const budget = { reasoning: { enabled: true, budget: 10_000 } };
    const off = { reasoning: { enabled: false } };
    expect(of(budget)).toEqual([{ reasoning_effort: 'medium' }, 'parameter_mapped']);
    expect(of(budget, { reasoningParam: 'thinking' })[0]).toEqual({
      thinking: { type: 'enabled' },
    });
    expect(of(budget, { reasoningParam: 'enable_thinking' })[0]).toEqual({
      enable_thinking: true,
      thinking_budget: 10_000,
    });
    expect(of(budget, { reasoningParam: 'reasoning' })[0]).toEqual({
      reasoning: { max_tokens: 10_000 },
    });
    expect(of(budget, { reasoningParam: 'none' })[0]).toEqual({});
    expect(of(off)).toEqual([{}, 'parameter_dropped']);
    expect(of(off, { reasoningParam: 'thinking' })).toEqual([
      { thinking: { type: 'disabled' } },
      '',
    ]);
    expect(of(off, { reasoningParam: 'reasoning_effort' })[0]).toEqual({
      reasoning_effort: 'none',
    });
    expect(of({ reasoning: { effort: 'none' } })[0]).toEqual({ reasoning_effort: 'none' });
    expect(of({ reasoning: { adaptive: true } })).toEqual([{}, '']);
  });

  test('formats', () => {
    const format = { type: 'schema', schema: { type: 'object' } } as const;
    expect(of({ format })[0]).toEqual({
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'response', schema: { type: 'object' } },
      },
    });
    expect(of({ format }, { jsonSchema: false })).toEqual([
      { response_format: { type: 'json_object' } },
      'parameter_mapped',
    ]);
  });

  test("what another protocol alone knows goes with a note; Messages' metadata is not OpenAI's", () => {
    expect(
      of({ metadata: { user_id: 'u' }, rest: { context_management: {} }, serviceTier: 'auto' }),
    ).toEqual([{}, 'parameter_dropped=3']);
  });
});

describe('profiles on requests of this protocol', () => {
  test('stated facts apply, each with its note', () => {
    const { out, notes } = own(
      {
        messages: [
          { role: 'developer', content: 'S' },
          { role: 'user', content: [{ type: 'text', text: 'a' }, shown] },
          { role: 'assistant', content: 'x', reasoning_content: 'r' },
        ],
        max_completion_tokens: 5,
        reasoning_effort: 'high',
        parallel_tool_calls: true,
        seed: 1,
        user: 'u',
        tool_choice: 'required',
        stream_options: {},
        tools: [{ type: 'function', function: { name: 'f', strict: true } }],
      },
      {
        developerRole: false,
        images: false,
        reasoningField: 'reasoning',
        maxTokensParam: 'max_tokens',
        reasoningParam: 'thinking',
        parallelToolsParam: false,
        strictTools: false,
        toolChoices: ['auto'],
        streamUsage: false,
        dropParams: ['seed'],
        renameParams: { user: 'user_id' },
      },
    );
    expect(out).toEqual({
      model: 'model-x',
      messages: [
        { role: 'system', content: 'S' },
        { role: 'user', content: 'a\n[image not shown]' },
        { role: 'assistant', content: 'x', reasoning: 'r' },
      ],
      max_tokens: 5,
      thinking: { type: 'enabled' },
      tools: [{ type: 'function', function: { name: 'f' } }],
      tool_choice: 'auto',
      user_id: 'u',
    } as never);
    expect(notes).toBe('parameter_mapped=5,parameter_dropped=4,content_bridged');
  });

  test('a client that speaks the vendor’s own spelling is left alone', () => {
    const body = { thinking: { type: 'disabled' }, reasoning_effort: 'low', max_tokens: 3 };
    const { out, notes } = own(body, { reasoningParam: 'thinking', maxTokensParam: 'max_tokens' });
    expect(out).toMatchObject(body);
    expect(notes).toBe('');
  });

  test('none that cannot be said is dropped, the tools stay', () => {
    const tools = [{ type: 'function', function: { name: 'f' } }];
    const { out, notes } = own({ tools, tool_choice: 'none' }, { toolChoices: ['auto'] });
    expect([out.tools, out.tool_choice, notes]).toEqual([
      tools as never,
      undefined,
      'parameter_dropped',
    ]);
  });
});
