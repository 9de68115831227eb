/** Decoding of each kind of input item, tool and setting of Responses. */

import { describe, expect, test } from 'bun:test';
import { wrapSeal } from '../../../../src/conversation/seal.ts';
import type { Block } from '../../../../src/conversation/types.ts';
import type { Json, JsonObject } from '../../../../src/lib/json/json.ts';
import { conversation } from '../material.ts';

const bare = (block: Block | undefined): unknown => {
  if (block === undefined) return undefined;
  const { wire: _, ...rest } = block;
  return JSON.parse(JSON.stringify(rest)) as unknown;
};
const first = (item: JsonObject) => {
  const [turn] = conversation({ model: 'm', input: [item] }).turns;
  return { role: turn?.role as string, block: bare(turn?.blocks[0]) };
};
const parts = (content: Json, role = 'user') =>
  conversation({ model: 'm', input: [{ role, content }] }).turns[0]?.blocks.map(bare);

describe('items', () => {
  test('a string is a user message', () => {
    expect(conversation({ model: 'm', input: 'hi' }).turns).toEqual([
      { role: 'user', blocks: [{ type: 'text', text: 'hi' }] },
    ]);
  });

  test('instructions become the system prompt; empty ones become none', () => {
    const system = (instructions: string | null) =>
      conversation({ model: 'm', input: 'i', instructions }).system;
    expect(system('Be brief.')).toEqual([{ type: 'text', text: 'Be brief.' }]);
    expect([...system(''), ...system(null)]).toEqual([]);
  });

  test('a message without a type is read in every role', () => {
    for (const role of ['user', 'assistant', 'system', 'developer']) {
      expect(first({ role, content: 'x' })).toEqual({ role, block: { type: 'text', text: 'x' } });
    }
  });

  test.each<[string, JsonObject, string, object]>([
    [
      'function_call',
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{', namespace: 'ns' },
      'assistant',
      {
        type: 'tool-call',
        id: 'c',
        name: 'f',
        namespace: 'ns',
        kind: 'function',
        input: '{',
        by: 'client',
      },
    ],
    [
      'arguments as an object',
      { type: 'function_call', call_id: 'c', name: 'f', arguments: { a: 1 } },
      'assistant',
      { type: 'tool-call', id: 'c', name: 'f', kind: 'function', input: '{"a":1}', by: 'client' },
    ],
    [
      'custom_tool_call',
      { type: 'custom_tool_call', call_id: 'c', name: 'f', input: 'x' },
      'assistant',
      { type: 'tool-call', id: 'c', name: 'f', kind: 'custom', input: 'x', by: 'client' },
    ],
    [
      'tool_search_call',
      { type: 'tool_search_call', call_id: 'c', execution: 'client', arguments: { query: 'q' } },
      'assistant',
      {
        type: 'tool-call',
        id: 'c',
        name: 'tool_search',
        kind: 'tool-search',
        input: '{"query":"q"}',
        by: 'client',
      },
    ],
    [
      'tool_search_call of the server',
      { type: 'tool_search_call', id: 't', call_id: null, execution: 'server', arguments: {} },
      'assistant',
      {
        type: 'tool-call',
        id: 't',
        name: 'tool_search',
        kind: 'tool-search',
        input: '{}',
        by: 'provider',
      },
    ],
    [
      'output as a string',
      { type: 'function_call_output', call_id: 'c', output: 'ok' },
      'user',
      {
        type: 'tool-result',
        callId: 'c',
        kind: 'function',
        content: [{ type: 'text', text: 'ok' }],
        isError: false,
        by: 'client',
      },
    ],
    [
      'output as JSON',
      { type: 'function_call_output', call_id: 'c', output: { a: 1 } },
      'user',
      {
        type: 'tool-result',
        callId: 'c',
        kind: 'function',
        content: [{ type: 'text', text: '{"a":1}' }],
        isError: false,
        by: 'client',
      },
    ],
    [
      'web_search_call',
      {
        type: 'web_search_call',
        id: 'ws',
        status: 'completed',
        action: { type: 'search', query: 'q' },
      },
      'assistant',
      {
        type: 'tool-call',
        id: 'ws',
        name: 'web_search',
        kind: 'function',
        input: '{"type":"search","query":"q"}',
        by: 'provider',
      },
    ],
    [
      'summary',
      {
        type: 'reasoning',
        summary: [
          { type: 'summary_text', text: 'a' },
          { type: 'summary_text', text: 'b' },
        ],
        encrypted_content: 'gAA',
      },
      'assistant',
      {
        type: 'reasoning',
        text: 'a\n\nb',
        summary: true,
        sealed: { protocol: 'openai-responses', kind: 'encrypted', value: 'gAA' },
      },
    ],
    [
      'reasoning_text',
      { type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'a' }] },
      'assistant',
      { type: 'reasoning', text: 'a' },
    ],
    [
      'agent_message',
      {
        type: 'agent_message',
        author: 'a',
        recipient: 'b',
        content: [{ type: 'encrypted_content', encrypted_content: 'do it' }],
      },
      'user',
      { type: 'text', text: 'do it' },
    ],
    [
      'compaction',
      { type: 'compaction', id: 'x', encrypted_content: 'y' },
      'assistant',
      { type: 'opaque', name: 'compaction' },
    ],
    [
      'item_reference',
      { type: 'item_reference', id: 'x' },
      'assistant',
      { type: 'opaque', name: 'item_reference' },
    ],
    [
      'local_shell_call',
      { type: 'local_shell_call', call_id: 'c', action: {} },
      'assistant',
      { type: 'opaque', name: 'local_shell_call' },
    ],
    [
      'local_shell_call_output',
      { type: 'local_shell_call_output', call_id: 'c', output: '' },
      'user',
      { type: 'opaque', name: 'local_shell_call_output' },
    ],
    [
      'an item of tomorrow',
      { type: 'hologram' },
      'assistant',
      { type: 'opaque', name: 'hologram' },
    ],
  ])('%s', (_, item, role, block) => {
    expect(first(item)).toEqual({ role, block });
  });

  test('every part of a message is decoded', () => {
    expect(
      parts([
        { type: 'input_text', text: 'a' },
        { type: 'input_image', image_url: 'data:image/png;base64,aGk=', detail: 'low' },
        { type: 'input_image', image_url: 'https://x/y.png' },
        { type: 'input_image', file_id: 'file_1' },
        { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,aGk=' },
        { type: 'input_file', file_url: 'https://x/y.pdf' },
        { type: 'input_audio', input_audio: { data: 'aGk=', format: 'mp3' } },
        { type: 'input_hologram' },
      ]),
    ).toEqual([
      { type: 'text', text: 'a' },
      {
        type: 'media',
        media: 'image',
        source: { type: 'base64', mediaType: 'image/png', data: 'aGk=' },
        detail: 'low',
      },
      { type: 'media', media: 'image', source: { type: 'url', url: 'https://x/y.png' } },
      { type: 'media', media: 'image', source: { type: 'file-id', id: 'file_1' } },
      {
        type: 'media',
        media: 'document',
        source: { type: 'base64', mediaType: 'application/pdf', data: 'aGk=' },
        title: 'a.pdf',
      },
      { type: 'media', media: 'document', source: { type: 'url', url: 'https://x/y.pdf' } },
      {
        type: 'media',
        media: 'audio',
        source: { type: 'base64', mediaType: 'audio/mp3', data: 'aGk=' },
      },
      { type: 'opaque', name: 'input_hologram' },
    ]);
    expect(parts([{ type: 'refusal', refusal: 'No.' }], 'assistant')).toEqual([
      { type: 'refusal', text: 'No.' },
    ]);
  });

  test("this gateway's envelopes are opened, and their reasoning is no longer a summary", () => {
    const sealed = {
      protocol: 'anthropic-messages',
      provider: 'claude',
      kind: 'signature',
      value: 's',
    } as const;
    const item = {
      type: 'reasoning',
      summary: [{ type: 'summary_text', text: 'a' }],
      encrypted_content: wrapSeal(sealed),
    };
    expect(first(item).block).toEqual({ type: 'reasoning', text: 'a', sealed });
  });
});

describe('tools', () => {
  const tools = (list: readonly JsonObject[], input: Json = 'i') =>
    conversation({ model: 'm', input, tools: list }).tools.map(
      ({ wire: _, ...tool }) => JSON.parse(JSON.stringify(tool)) as JsonObject,
    );

  test('functions, namespaces, freeform and hosted tools', () => {
    const format = { type: 'grammar', syntax: 'lark', definition: 'start: "a"' };
    expect(
      tools([
        {
          type: 'function',
          name: 'f',
          description: 'd',
          parameters: { type: 'object' },
          strict: true,
        },
        {
          type: 'namespace',
          name: 'ns',
          description: 'n',
          tools: [{ type: 'function', name: 'g', defer_loading: true }],
        },
        { type: 'custom', name: 'p', format },
        { type: 'web_search_preview', search_context_size: 'low' },
        { type: 'code_interpreter', container: { type: 'auto' } },
        { type: 'tool_search', execution: 'client' },
      ]),
    ).toEqual([
      { type: 'function', name: 'f', description: 'd', schema: { type: 'object' }, strict: true },
      { type: 'function', name: 'g', namespace: 'ns', deferred: true },
      { type: 'custom', name: 'p', format },
      {
        type: 'hosted',
        name: 'web_search',
        kind: 'web_search_preview',
        options: { search_context_size: 'low' },
      },
      {
        type: 'hosted',
        name: 'code_execution',
        kind: 'code_interpreter',
        options: { container: { type: 'auto' } },
      },
      {
        type: 'hosted',
        name: 'tool_search',
        kind: 'tool_search',
        options: { execution: 'client' },
      },
    ]);
  });

  test('items bring tools; a deferred one is loaded once a search finds it', () => {
    const input = [
      { type: 'message', role: 'user', content: 'x' },
      { type: 'additional_tools', role: 'developer', tools: [{ type: 'custom', name: 'exec' }] },
      {
        type: 'tool_search_output',
        call_id: 'c',
        execution: 'client',
        tools: [
          {
            type: 'namespace',
            name: 'ns',
            tools: [
              { type: 'function', name: 'g', defer_loading: true },
              { type: 'function', name: 'h' },
            ],
          },
        ],
      },
    ];
    const declared = [
      {
        type: 'namespace',
        name: 'ns',
        tools: [{ type: 'function', name: 'g', defer_loading: true }],
      },
    ];
    expect(tools(declared, input)).toEqual([
      { type: 'function', name: 'g', namespace: 'ns' },
      { type: 'custom', name: 'exec' },
      { type: 'function', name: 'h', namespace: 'ns' },
    ]);
  });

  test.each<[Json, object | undefined]>([
    ['auto', { type: 'auto' }],
    ['required', { type: 'required' }],
    [
      { type: 'function', name: 'f' },
      { type: 'tool', name: 'f', kind: 'function' },
    ],
    [
      { type: 'custom', name: 'f' },
      { type: 'tool', name: 'f', kind: 'custom' },
    ],
    [{ type: 'web_search_preview' }, { type: 'tool', name: 'web_search', kind: 'hosted' }],
    [
      {
        type: 'allowed_tools',
        mode: 'required',
        tools: [{ type: 'function', name: 'f' }, { type: 'web_search' }],
      },
      { type: 'allowed', mode: 'required', names: ['f', 'web_search'] },
    ],
    [null, undefined],
  ])('tool_choice %j', (tool_choice, expected) => {
    expect(conversation({ model: 'm', input: 'i', tool_choice }).settings.toolChoice).toEqual(
      expected as never,
    );
  });
});

test('settings', () => {
  const { settings } = conversation({
    model: 'm',
    input: 'i',
    stream: true,
    max_output_tokens: 5,
    temperature: 0.5,
    top_p: null,
    top_logprobs: 2,
    parallel_tool_calls: false,
    reasoning: { effort: 'none', summary: 'auto' },
    text: {
      format: { type: 'json_schema', name: 'n', schema: { a: 1 }, strict: true },
      verbosity: 'low',
    },
    metadata: { a: 'b' },
    user: 'u',
    service_tier: 'flex',
    prompt_cache_key: 'k',
    store: false,
    previous_response_id: 'resp_1',
    include: ['reasoning.encrypted_content'],
    client_metadata: { x: 1 },
    truncation: 'auto',
  });
  expect(settings).toEqual({
    stream: true,
    maxTokens: 5,
    temperature: 0.5,
    logprobs: { top: 2 },
    parallelTools: false,
    reasoning: { effort: 'none', enabled: false, summary: 'auto' },
    format: { type: 'schema', name: 'n', schema: { a: 1 }, strict: true },
    verbosity: 'low',
    metadata: { a: 'b' },
    user: 'u',
    serviceTier: 'flex',
    cacheKey: 'k',
    store: false,
    previousResponseId: 'resp_1',
    include: ['reasoning.encrypted_content'],
    rest: { client_metadata: { x: 1 }, truncation: 'auto' },
  });
});
