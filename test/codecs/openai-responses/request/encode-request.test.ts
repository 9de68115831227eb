/** Encoding of edited Responses conversations, and of turns of other protocols, as input items. */

import { describe, expect, test } from 'bun:test';
import { openaiResponses } from '../../../../src/codecs/openai-responses/index.ts';
import { editNode, withParts } from '../../../../src/conversation/edit.ts';
import { Notes } from '../../../../src/conversation/notes.ts';
import { NO_PROFILE, type Profile } from '../../../../src/conversation/profile-facts.ts';
import { wrapSeal, wrapUnsealed } from '../../../../src/conversation/seal.ts';
import type { Block, Conversation, Tool, Turn } from '../../../../src/conversation/types.ts';
import type { JsonObject } from '../../../../src/lib/json/json.ts';
import { PROFILES } from '../../../../src/vendors/index.ts';
import { conversation, target } from '../material.ts';

function encode(request: Conversation, profile: Profile = NO_PROFILE) {
  const notes = new Notes();
  const body = openaiResponses.encodeRequest(request, target('gpt', profile), notes);
  return { body, items: body.input as readonly JsonObject[], notes: notes.summary() };
}

const user = (...blocks: Block[]): Turn => ({ role: 'user', blocks });
const assistant = (...blocks: Block[]): Turn => ({ role: 'assistant', blocks });
const text = (value: string): Block => ({ type: 'text', text: value });
const call = (id: string, more: object = {}): Block => ({
  type: 'tool-call',
  id,
  name: 'f',
  kind: 'function',
  input: '{}',
  by: 'client',
  ...more,
});
const result = (callId: string, content: readonly Block[], more: object = {}): Block => ({
  type: 'tool-result',
  callId,
  kind: 'function',
  content,
  isError: false,
  by: 'client',
  ...more,
});
const other = (turns: readonly Turn[], more: Partial<Conversation> = {}): Conversation => ({
  model: 'm',
  system: [],
  turns,
  tools: [],
  settings: { stream: false },
  ...more,
});

describe('an edited conversation in the same protocol', () => {
  const body = {
    model: 'm',
    instructions: 'Be brief.',
    input: [
      {
        type: 'message',
        id: 'msg_1',
        role: 'user',
        content: [{ type: 'input_text', text: 'a', prompt_cache_breakpoint: { mode: 'explicit' } }],
        internal: 1,
      },
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAA' },
      {
        type: 'function_call',
        id: 'fc_1',
        call_id: 'c',
        name: 'go',
        namespace: 'ns',
        arguments: '{}',
        status: 'completed',
      },
      { type: 'function_call_output', id: 'fco_1', call_id: 'c', output: 'long long text' },
    ],
    tools: [
      {
        type: 'namespace',
        name: 'ns',
        description: 'group',
        tools: [
          { type: 'function', name: 'go', strict: false },
          { type: 'function', name: 'stay' },
        ],
      },
      { type: 'web_search', external_web_access: true },
    ],
    reasoning: { effort: 'low', context: 'all_turns' },
    unknown_field: { kept: true },
  };
  const request = conversation(body);
  const changed = (index: number, change: (block: Block) => Block): Conversation =>
    withParts(request, {
      turns: request.turns.map((turn, i) =>
        i === index ? editNode(turn, { blocks: turn.blocks.map(change) }) : turn,
      ),
    });

  test('a rewritten text keeps the foreign fields of its part and item', () => {
    const { body: sent } = encode(
      changed(0, (block) => editNode(block, { text: 'b' } as Partial<Block>)),
    );
    const [message, ...rest] = body.input;
    expect(sent).toEqual({
      ...body,
      model: 'gpt',
      input: [
        { ...message, content: [{ ...(message!.content as readonly JsonObject[])[0], text: 'b' }] },
        ...rest,
      ] as never,
    });
  });

  test('a rewritten result keeps its item', () => {
    const { items } = encode(
      changed(3, (block) => editNode(block, { content: [text('short')] } as Partial<Block>)),
    );
    expect(items[3]).toEqual({ ...body.input[3], output: 'short' } as JsonObject);
  });

  test('a renamed call keeps its namespace and id', () => {
    const { items } = encode(changed(2, (block) => editNode(block, { id: 'd' } as Partial<Block>)));
    expect(items[2]).toEqual({ ...body.input[2], call_id: 'd' } as JsonObject);
  });

  test('reasoning whose call is removed is removed with it', () => {
    const { items, notes } = encode(withParts(request, { turns: request.turns.slice(0, 2) }));
    expect(items).toEqual([body.input[0] as JsonObject]);
    expect(notes).toBe('reasoning_dropped');
  });

  test('a replaced tool: namespaces stay groups, everything else is unchanged', () => {
    const search: Tool = {
      type: 'function',
      name: 'web_search',
      schema: { type: 'object', properties: {} },
    };
    const tools = request.tools.map((tool) => (tool.type === 'hosted' ? search : tool));
    const { body: sent } = encode(withParts(request, { tools }));
    expect(sent.tools).toEqual([
      body.tools[0] as JsonObject,
      {
        type: 'function',
        name: 'web_search',
        parameters: { type: 'object', properties: {} },
        strict: false,
      },
    ]);
    expect(sent.unknown_field).toEqual(body.unknown_field);
  });

  test('tools from items are not declared a second time', () => {
    const input = [
      { type: 'additional_tools', role: 'developer', tools: [{ type: 'custom', name: 'exec' }] },
      { role: 'user', content: 'x' },
    ];
    const lite = conversation({ model: 'm', input });
    const extra: Tool = { type: 'function', name: 'more' };
    const { body: sent } = encode(withParts(lite, { tools: [...lite.tools, extra] }));
    expect((sent.tools as readonly JsonObject[]).map((tool) => tool.name)).toEqual(['more']);
    expect(sent.input).toEqual(input);
  });

  test('a changed setting changes only its field', () => {
    const settings = {
      ...request.settings,
      reasoning: { enabled: true, effort: 'high' },
      maxTokens: 7,
    };
    const { body: sent } = encode(withParts(request, { settings }));
    expect(sent).toEqual({
      ...body,
      model: 'gpt',
      reasoning: { effort: 'high', context: 'all_turns' },
      max_output_tokens: 7,
    } as never);
  });

  test('the profile drops and renames fields, with a note', () => {
    const { body: sent, notes } = encode(request, {
      name: 'p',
      dropParams: ['unknown_field', 'model'],
      renameParams: { reasoning: 'thinking' },
    });
    expect(Object.keys(sent)).toEqual(['model', 'instructions', 'input', 'tools', 'thinking']);
    expect(notes).toBe('parameter_mapped,parameter_dropped');
  });

  test("another vendor's envelope never reaches this one, edited or not", () => {
    const carrier = (payload: string) => ({
      type: 'reasoning',
      id: 'rs_2',
      summary: [{ type: 'summary_text', text: 'why' }],
      encrypted_content: payload,
    });
    const after = { type: 'message', role: 'assistant', content: 'x' };
    const sent = (payload: string, profile?: Profile) =>
      encode(
        conversation({
          model: 'm',
          input: [{ role: 'user', content: 'x' }, carrier(payload), after],
        }),
        profile,
      ).items[1];
    expect(sent(wrapUnsealed('openai-chat', 'glm'))).toEqual(after);
    const ours = { protocol: 'openai-responses', kind: 'encrypted', value: 'gAA' } as const;
    expect(sent(wrapSeal({ ...ours, provider: 'vendor' }))).toEqual({
      type: 'reasoning',
      summary: [{ type: 'summary_text', text: 'why' }],
      encrypted_content: 'gAA',
    });
    expect(sent(wrapSeal({ ...ours, provider: 'another' }))).toEqual(after);
    // vLLM and SGLang refuse an item without an id.
    for (const profile of [
      { name: 'deepseek', reasoningField: 'reasoning_content' },
      PROFILES.sglang!,
      PROFILES.vllm!,
    ] as const) {
      expect(sent(wrapUnsealed('openai-chat', 'deepseek'), profile)).toEqual({
        type: 'reasoning',
        id: expect.stringMatching(/^rs_\w+$/),
        summary: [],
        content: [{ type: 'reasoning_text', text: 'why' }],
      });
    }
  });
});

describe("other protocols' turns", () => {
  test('system turns before the dialogue become instructions, later ones keep their place', () => {
    const system = (value: string): Turn => ({ role: 'system', blocks: [text(value)] });
    const { body, items } = encode(
      other(
        [
          system('two'),
          { role: 'developer', blocks: [text('three')] },
          user(text('hi')),
          system('later'),
        ],
        { system: [text('one')] },
      ),
    );
    expect(body.instructions).toBe('one\n\ntwo\n\nthree');
    expect(items.map((item) => item.role)).toEqual(['user', 'system']);
  });

  test('a lone system text becomes input, since input must not be empty', () => {
    const { body, items } = encode(other([{ role: 'system', blocks: [text('alone')] }]));
    expect(body.instructions).toBeUndefined();
    expect(items).toEqual([
      { type: 'message', role: 'system', content: [{ type: 'input_text', text: 'alone' }] },
    ]);
  });

  test('the calls of a turn follow its text together, and results precede the next text', () => {
    const { items } = encode(
      other([
        user(text('hi')),
        assistant(call('a'), text('Doing it.'), call('b')),
        user(text('go on'), result('a', [text('1')]), result('b', [text('2')])),
      ]),
    );
    expect(items.map((item) => item.type)).toEqual([
      'message',
      'message',
      'function_call',
      'function_call',
      'function_call_output',
      'function_call_output',
      'message',
    ]);
    expect(items[1]).toEqual({
      type: 'message',
      role: 'assistant',
      content: [{ type: 'output_text', text: 'Doing it.' }],
    });
  });

  test('a turn without expressible content becomes a placeholder', () => {
    const opaque: Block = {
      type: 'opaque',
      name: 'container_upload',
      wire: { protocol: 'anthropic-messages', value: { type: 'container_upload' } },
    };
    const { items, notes } = encode(other([user(opaque), user(text(''), text(''))]));
    expect(items.map((item) => item.content) as unknown[]).toEqual([
      [{ type: 'input_text', text: '[content omitted]' }],
      [{ type: 'input_text', text: '' }],
    ]);
    expect(notes).toBe('content_dropped');
  });

  test('long ids are shortened alike for the call and its result', () => {
    const long = `toolu_${'x'.repeat(90)}`;
    const { items } = encode(other([assistant(call(long)), user(result(long, [text('1')]))]));
    expect(items[0]!.call_id).toBe(items[1]!.call_id as string);
    expect((items[0]!.call_id as string).length).toBeLessThanOrEqual(64);
  });

  test('failed results, empty arguments, freeform calls', () => {
    const { items, notes } = encode(
      other([
        assistant(call('a', { input: '' }), call('b', { kind: 'custom', input: 'raw' })),
        user(
          result('a', [text('boom')], { isError: true }),
          result('b', [text('ok')], { kind: 'custom' }),
        ),
      ]),
    );
    expect(items).toMatchObject([
      { type: 'function_call', arguments: '{}' },
      { type: 'custom_tool_call', input: 'raw' },
      { type: 'function_call_output', output: 'Error: boom' },
      { type: 'custom_tool_call_output', output: 'ok' },
    ]);
    expect(notes).toBe('content_bridged');
  });

  const image: Block = {
    type: 'media',
    media: 'image',
    source: { type: 'base64', mediaType: 'image/png', data: 'aGk=' },
  };
  const shown = { type: 'input_image', detail: 'auto', image_url: 'data:image/png;base64,aGk=' };
  const received = [assistant(call('a')), user(result('a', [text('see'), image]))];

  test('an image in a result becomes a part of the output, a following message, or text', () => {
    expect(encode(other(received)).items[1]!.output).toEqual([
      { type: 'input_text', text: 'see' },
      shown,
    ]);
    const apart = encode(other(received), { name: 'p', imagesInResults: false });
    expect(apart.items[2]).toEqual({ type: 'message', role: 'user', content: [shown] });
    const blind = encode(other(received), { name: 'p', images: false });
    expect(JSON.stringify(blind.items)).not.toContain('base64');
    expect(JSON.stringify(blind.items)).toContain('[image omitted]');
    expect(blind.notes).toBe('content_bridged');
  });

  test("the vendor's own calls and results are left out, this gateway's are ordinary", () => {
    const { items, notes } = encode(
      other([
        assistant(
          call('s', { by: 'provider' }),
          result('s', [], { by: 'provider' }),
          text('found'),
          call('g', { by: 'gateway' }),
        ),
        user(result('g', [text('1')], { by: 'gateway' })),
      ]),
    );
    expect(items.map((item) => item.type)).toEqual([
      'message',
      'function_call',
      'function_call_output',
    ]);
    expect(notes).toBe('hosted_call_dropped=2');
  });

  test('tools: strict is explicit, long and odd names are mapped, placeholders dropped, search translated', () => {
    const tools: Tool[] = [
      { type: 'function', name: 'a.b', schema: { properties: { x: {} } } },
      { type: 'function', name: 'DeferredToolPlaceholder', deferred: true },
      {
        type: 'hosted',
        name: 'web_search',
        kind: 'web_search_20250305',
        options: { max_uses: 8, allowed_domains: ['a.com'] },
      },
    ];
    const native = encode(other([user(text('x'))], { tools }), {
      name: 'p',
      hostedTools: ['web_search'],
    });
    expect(native.body.tools).toEqual([
      {
        type: 'function',
        name: expect.stringMatching(/^[a-zA-Z0-9_-]{1,64}$/),
        parameters: { type: 'object', properties: { x: {} } },
        strict: false,
      },
      { type: 'web_search', filters: { allowed_domains: ['a.com'] } },
    ] as never);
    expect(encode(other([user(text('x'))], { tools })).notes).toContain('hosted_tool_dropped');
  });

  test('a forced tool that the upstream lacks becomes auto', () => {
    const tools: Tool[] = [{ type: 'function', name: 'f' }];
    const choose = (name: string, kind: 'function' | 'hosted') =>
      encode(
        other([user(text('x'))], {
          tools,
          settings: { stream: false, toolChoice: { type: 'tool', name, kind } },
        }),
      ).body.tool_choice;
    expect([
      choose('f', 'function'),
      choose('gone', 'function'),
      choose('web_search', 'hosted'),
    ]).toEqual([{ type: 'function', name: 'f' }, 'auto', 'auto']);
  });

  test.each([
    [{ enabled: true, budget: 31_999 }, { effort: 'high', summary: 'auto' }, true],
    [{ enabled: true, budget: 31_999, display: 'omitted' }, { effort: 'high' }, true],
    [
      { enabled: true, adaptive: true, effort: 'medium', display: 'updates' },
      { effort: 'medium', summary: 'auto' },
      true,
    ],
    [{ enabled: true, effort: 'low' }, { effort: 'low' }, true],
    [{ enabled: false }, undefined, false],
    [{ enabled: false, effort: 'none' }, { effort: 'none' }, false],
  ])('reasoning %j', (reasoning, expected, sealed) => {
    const { body } = encode(other([user(text('x'))], { settings: { stream: false, reasoning } }));
    expect(body.reasoning).toEqual(expected as never);
    expect(body.include).toEqual(sealed ? ['reasoning.encrypted_content'] : (undefined as never));
  });
});
