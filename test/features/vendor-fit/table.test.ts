/** Vendors × requests: the body that each vendor of the table receives, and its notes. */

import { describe, expect, test } from 'bun:test';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { call, chat, targetOf, vendorRequest, withTool } from './vendor.ts';

type Row = readonly [
  what: string,
  vendor: string,
  model: string,
  asked: JsonObject,
  /** Undefined means that the key is absent. */
  sent: { readonly [key: string]: unknown },
  notes: readonly string[],
];

const forced = { type: 'function', function: { name: 'look' } } as const;
const schema = { type: 'object', properties: { n: { type: 'integer' } } };
const structured = {
  response_format: { type: 'json_schema', json_schema: { name: 'x', schema, strict: true } },
};
const mapped = (where: string) => `parameter_mapped ${where}`;
const dropped = (where: string) => `parameter_dropped ${where}`;

const ROWS: readonly Row[] = [
  // Output limits.
  [
    'cap',
    'glm',
    'glm-4.7',
    chat({ max_completion_tokens: 9 }),
    { max_tokens: 9, max_completion_tokens: undefined },
    [mapped('max_completion_tokens')],
  ],
  [
    'cap',
    'openai-chat',
    'gpt-5-mini',
    chat({ max_tokens: 9 }),
    { max_completion_tokens: 9, max_tokens: undefined },
    [mapped('max_tokens')],
  ],
  ['cap', 'ollama', 'qwen3', chat({ max_completion_tokens: 9 }), { max_completion_tokens: 9 }, []],
  // What clients add to their messages.
  ...(['openai-chat', 'groq', 'mistral'] as const).map(
    (vendor): Row => [
      'fields of messages',
      vendor,
      'm',
      {
        model: 'm',
        messages: [
          { role: 'user', content: 'a', timestamp: 17, name: 'ada' },
          { role: 'assistant', content: 'b', model_id: 'grok', model: 'x/grok', sender: 'Grok' },
          { role: 'user', content: 'c' },
        ],
      },
      {
        messages: [
          { role: 'user', content: 'a', name: 'ada' },
          { role: 'assistant', content: 'b' },
          { role: 'user', content: 'c' },
        ],
      },
      ['timestamp', 'model_id', 'model', 'sender'].map((field) => dropped(`messages/${field}`)),
    ],
  ),
  [
    'fields of messages',
    'deepseek',
    'deepseek-v4-flash',
    chat({ messages: [{ role: 'user', content: 'a', model_id: 'grok' }] }),
    { messages: [{ role: 'user', content: 'a', model_id: 'grok' }] },
    [],
  ],
  // Numbers within bounds.
  [
    'temperature',
    'glm',
    'glm-4.7',
    chat({ temperature: 0 }),
    { temperature: 0.01 },
    [mapped('temperature')],
  ],
  [
    'temperature',
    'glm',
    'glm-4.7',
    chat({ temperature: 1.5, top_p: 0 }),
    { temperature: 1, top_p: 0.01 },
    [mapped('temperature'), mapped('top_p')],
  ],
  [
    'temperature',
    'kimi',
    'moonshot-v1-8k',
    chat({ temperature: 1.3 }),
    { temperature: 1 },
    [mapped('temperature')],
  ],
  [
    'temperature',
    'minimax',
    'MiniMax-M2.5',
    chat({ temperature: 0 }),
    { temperature: 0.01 },
    [mapped('temperature')],
  ],
  [
    'temperature',
    'qwen',
    'qwen-plus',
    chat({ temperature: 2 }),
    { temperature: 1.99 },
    [mapped('temperature')],
  ],
  [
    'temperature',
    'mistral',
    'mistral-large-latest',
    chat({ temperature: 2 }),
    { temperature: 1.5 },
    [mapped('temperature')],
  ],
  ['temperature', 'deepseek', 'deepseek-chat', chat({ temperature: 2 }), { temperature: 2 }, []],
  ['stops', 'glm', 'glm-4.7', chat({ stop: ['a', 'b'] }), { stop: ['a'] }, [mapped('stop')]],
  ['stops', 'glm', 'glm-4.7', chat({ stop: 'a' }), { stop: 'a' }, []],
  [
    'stops',
    'gemini',
    'gemini-2.0-flash',
    chat({ stop: [...'abcdef'] }),
    { stop: [...'abcde'] },
    [mapped('stop')],
  ],
  [
    'stops',
    'openai-chat',
    'gpt-5-mini',
    chat({ stop: ['a'] }),
    { stop: undefined },
    [dropped('stop')],
  ],
  ['stops', 'openai-chat', 'gpt-4o', chat({ stop: ['a'] }), { stop: ['a'] }, []],
  // Keys that are refused or spelled differently.
  [
    'keys',
    'glm',
    'glm-4.7',
    chat({ n: 2, seed: 1, presence_penalty: 1 }),
    { n: undefined, seed: undefined, presence_penalty: undefined },
    [dropped('presence_penalty'), dropped('n'), dropped('seed')],
  ],
  [
    'keys',
    'mistral',
    'mistral-small',
    chat({ seed: 7, store: true }),
    { random_seed: 7, seed: undefined, store: undefined },
    [dropped('store'), mapped('seed')],
  ],
  [
    'keys',
    'kimi',
    'kimi-k2.5',
    chat({ temperature: 0.3, top_p: 0.5 }),
    { temperature: undefined, top_p: undefined },
    [dropped('temperature'), dropped('top_p')],
  ],
  [
    'usage in streams',
    'glm',
    'glm-4.7',
    chat({ stream: true, stream_options: { include_usage: true } }),
    { stream: true, stream_options: undefined },
    [dropped('stream_options')],
  ],
  [
    'parallel calls',
    'glm',
    'glm-4.7',
    withTool({ parallel_tool_calls: false }),
    { parallel_tool_calls: undefined },
    [dropped('parallel_tool_calls')],
  ],
  // Sampling with reasoning.
  [
    'sampling',
    'openai-chat',
    'o3',
    chat({ temperature: 0.2, logprobs: true }),
    { temperature: undefined, logprobs: undefined },
    [dropped('temperature'), dropped('logprobs')],
  ],
  ['sampling', 'openai-chat', 'o3', chat({ temperature: 1 }), { temperature: 1 }, []],
  ['sampling', 'openai-chat', 'gpt-5.1', chat({ temperature: 0.2 }), { temperature: 0.2 }, []],
  [
    'sampling',
    'openai-chat',
    'gpt-5.1',
    chat({ temperature: 0.2, reasoning_effort: 'low' }),
    { temperature: undefined, reasoning_effort: 'low' },
    [dropped('temperature')],
  ],
  [
    'sampling',
    'openai-chat',
    'gpt-5.5',
    chat({ temperature: 0.2 }),
    { temperature: undefined },
    [dropped('temperature')],
  ],
  [
    'sampling',
    'openai-chat',
    'gpt-5.5',
    chat({ temperature: 0.2, reasoning_effort: 'none' }),
    { temperature: 0.2 },
    [],
  ],
  // Reasoning effort.
  [
    'effort',
    'openai-chat',
    'gpt-5',
    chat({ reasoning_effort: 'xhigh' }),
    { reasoning_effort: 'high' },
    [mapped('reasoning')],
  ],
  [
    'effort',
    'openai-chat',
    'o4-mini',
    chat({ reasoning_effort: 'minimal' }),
    { reasoning_effort: 'low' },
    [mapped('reasoning')],
  ],
  [
    'effort',
    'openai-chat',
    'gpt-5',
    chat({ reasoning_effort: 'none' }),
    { reasoning_effort: 'minimal' },
    [mapped('reasoning')],
  ],
  [
    'effort',
    'openai-chat',
    'gpt-9',
    chat({ reasoning_effort: 'xhigh' }),
    { reasoning_effort: 'xhigh' },
    [],
  ],
  [
    'effort',
    'xai',
    'grok-3-mini',
    chat({ reasoning_effort: 'medium' }),
    { reasoning_effort: 'high' },
    [mapped('reasoning')],
  ],
  [
    'effort',
    'glm',
    'glm-5.3',
    chat({ reasoning_effort: 'medium' }),
    { reasoning_effort: 'high' },
    [mapped('reasoning')],
  ],
  [
    'effort',
    'glm',
    'glm-5.3',
    chat({ thinking: { type: 'disabled' } }),
    { thinking: undefined, reasoning_effort: 'low' },
    [mapped('reasoning')],
  ],
  [
    'effort',
    'groq',
    'openai/gpt-oss-120b',
    chat({ reasoning_effort: 'none' }),
    { reasoning_effort: 'low' },
    [mapped('reasoning')],
  ],
  [
    'thinking',
    'glm',
    'glm-4.7',
    chat({ thinking: { type: 'disabled' } }),
    { thinking: { type: 'disabled' } },
    [],
  ],
  [
    'thinking',
    'glm',
    'glm-4.7',
    chat({ reasoning_effort: 'none' }),
    { thinking: { type: 'disabled' }, reasoning_effort: undefined },
    [mapped('reasoning_effort')],
  ],
  [
    'thinking',
    'deepseek',
    'deepseek-reasoner',
    chat({ thinking: { type: 'disabled' } }),
    { thinking: undefined },
    [dropped('reasoning')],
  ],
  [
    'thinking',
    'qwen',
    'qwen-plus',
    chat({ reasoning_effort: 'high' }),
    { enable_thinking: true, reasoning_effort: undefined },
    [mapped('reasoning_effort')],
  ],
  [
    'thinking',
    'openrouter',
    'x/y',
    chat({ thinking: { type: 'enabled', budget_tokens: 2048 } }),
    { thinking: undefined, reasoning: { max_tokens: 2048 } },
    [mapped('reasoning'), mapped('thinking')],
  ],
  // Tool choices.
  [
    'choice',
    'glm',
    'glm-4.7',
    withTool({ tool_choice: 'required' }),
    { tool_choice: 'auto' },
    [mapped('tool_choice'), 'content_bridged tool_choice'],
  ],
  [
    'choice',
    'glm',
    'glm-4.7',
    withTool({ tool_choice: 'none' }),
    { tool_choice: undefined, tools: undefined },
    [mapped('tool_choice')],
  ],
  ['choice', 'glm', 'glm-4.7', withTool({ tool_choice: 'auto' }), { tool_choice: 'auto' }, []],
  [
    'choice',
    'lmstudio',
    'any',
    withTool({ tool_choice: forced }),
    { tool_choice: 'required' },
    [mapped('tool_choice')],
  ],
  [
    'choice',
    'deepseek',
    'deepseek-chat',
    withTool({ tool_choice: 'required' }),
    { tool_choice: 'required' },
    [],
  ],
  [
    'choice while thinking',
    'deepseek',
    'deepseek-v4-pro',
    withTool({ tool_choice: forced }),
    { tool_choice: forced, thinking: { type: 'disabled' } },
    [mapped('reasoning')],
  ],
  [
    'choice while thinking',
    'deepseek',
    'deepseek-reasoner',
    withTool({ tool_choice: forced }),
    { tool_choice: 'auto' },
    [mapped('tool_choice'), 'content_bridged tool_choice'],
  ],
  [
    'choice while thinking',
    'qwen',
    'qwen-plus',
    withTool({ tool_choice: 'required' }),
    { tool_choice: 'required' },
    [],
  ],
  [
    'choice while thinking',
    'qwen',
    'qwen-plus',
    withTool({ tool_choice: 'required', enable_thinking: true }),
    { tool_choice: 'required', enable_thinking: false },
    [mapped('reasoning')],
  ],
  [
    'choice while thinking',
    'qwen',
    'qwen3-235b-a22b-thinking-2507',
    withTool({ tool_choice: 'required' }),
    { tool_choice: 'auto' },
    [mapped('tool_choice'), 'content_bridged tool_choice'],
  ],
  [
    'choice',
    'kimi',
    'kimi-k2.5',
    withTool({ tool_choice: 'required' }),
    { tool_choice: 'auto' },
    [mapped('tool_choice'), 'content_bridged tool_choice'],
  ],
];

describe('a Chat client', () => {
  for (const [what, vendor, model, request, sent, notes] of ROWS) {
    const { messages: _, model: __, tools: ___, ...rest } = request;
    test(`${what}: ${vendor}/${model} ← ${JSON.stringify(rest).slice(0, 70)}`, () => {
      const result = vendorRequest(targetOf(vendor, model), request);
      for (const [key, value] of Object.entries(sent)) {
        expect([key, result.body[key]]).toEqual([key, value as never]);
      }
      expect(result.notes.toSorted()).toEqual(notes.toSorted());
      expect(result.again).toBe(true);
      // A request that needs no change must be skipped, or at least the reverse never happens.
      if (!result.same) expect(result.idle).toBe(false);
      if (notes.length === 0) expect(result.same).toBe(true);
    });
  }

  test('a plain request reaches every vendor unchanged', () => {
    const plain = chat({ stream: true });
    for (const vendor of [
      'glm',
      'deepseek',
      'kimi',
      'qwen',
      'minimax',
      'gemini',
      'xai',
      'groq',
      'mistral',
      'openrouter',
      'ollama',
      'lmstudio',
      'llamacpp',
      'vllm',
      'sglang',
      'azure',
      'openai',
      'none',
    ]) {
      const result = vendorRequest(targetOf(vendor, 'some-model', 'openai-chat'), plain);
      expect([vendor, result.same, result.notes.length, result.idle]).toEqual([
        vendor,
        true,
        0,
        true,
      ]);
    }
  });

  test('an unknown vendor gets everything unchanged', () => {
    const result = vendorRequest(
      targetOf('none', 'm'),
      withTool({ temperature: 9, stop: [...'abcdef'], tool_choice: 'required', ...structured }),
    );
    expect([result.same, result.idle, result.notes]).toEqual([true, true, []]);
  });

  for (const vendor of [
    'glm',
    'deepseek',
    'kimi',
    'qwen',
    'minimax',
    'mistral',
    'ollama',
    'vllm',
    'llamacpp',
    'lmstudio',
    'sglang',
  ]) {
    test(`the role developer becomes system for ${vendor}`, () => {
      const request = chat({
        messages: [
          { role: 'developer', content: 'Be brief' },
          { role: 'user', content: 'Hi' },
        ],
      });
      const result = vendorRequest(targetOf(vendor, 'm'), request);
      expect((result.body.messages as JsonObject[])[0]).toEqual({
        role: 'system',
        content: 'Be brief',
      });
      expect(result.notes).toEqual(['parameter_mapped role']);
      expect(vendorRequest(targetOf('openai-chat', 'gpt-4o'), request).same).toBe(true);
    });
  }

  for (const vendor of ['glm', 'deepseek', 'qwen', 'minimax']) {
    test(`a JSON schema goes into the prompt for ${vendor}`, () => {
      const result = vendorRequest(targetOf(vendor, 'm'), chat(structured));
      expect(result.body.response_format).toEqual({ type: 'json_object' });
      const [system, user] = result.body.messages as JsonObject[];
      expect(system!.role).toBe('system');
      expect(system!.content).toContain(JSON.stringify(schema));
      expect(user).toEqual({ role: 'user', content: 'Hi' });
      expect(result.notes).toContain('content_bridged response_format');
      expect(result.again).toBe(true);
    });
  }

  test('strict is removed from declarations for vendors without it', () => {
    const strict = { type: 'function', function: { name: 'f', parameters: {}, strict: true } };
    const result = vendorRequest(targetOf('glm', 'glm-4.7'), chat({ tools: [strict] }));
    expect(result.body.tools).toEqual([
      { type: 'function', function: { name: 'f', parameters: {} } },
    ]);
    expect(result.notes).toEqual(['parameter_dropped strict']);
  });

  test('pictures become a mention for text models, in any position', () => {
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
    const file = {
      type: 'file',
      file: { file_data: 'data:application/pdf;base64,AAAA', filename: 'a.pdf' },
    };
    const request = chat({
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'What?' }, image, file] },
        { role: 'assistant', content: 'A cat.' },
        { role: 'user', content: 'Sure?' },
      ],
    });
    const result = vendorRequest(targetOf('glm', 'glm-4.7'), request);
    const [first] = result.body.messages as JsonObject[];
    expect(JSON.stringify(first)).toContain('[image not shown]');
    expect(JSON.stringify(first)).toContain('[document not shown: a.pdf]');
    expect(JSON.stringify(result.body)).not.toContain('base64');
    expect(result.notes).toEqual(['content_bridged /messages', 'content_bridged /messages']);
    const sees = vendorRequest(targetOf('glm', 'glm-4.5v'), request);
    expect(JSON.stringify(sees.body)).toContain('data:image/png');
  });

  test('a conversation without a user message gets one for vendors that refuse it', () => {
    const request = chat({ messages: [{ role: 'system', content: 'Say hello.' }] });
    const result = vendorRequest(targetOf('glm', 'glm-4.7'), request);
    expect((result.body.messages as JsonObject[]).map(({ role }) => role)).toEqual([
      'system',
      'user',
    ]);
    expect(result.notes).toEqual(['user_turn_added /messages']);
    expect([result.again, result.idle]).toEqual([true, false]);
  });
});

describe('histories', () => {
  const history = (assistant: JsonObject, ...rest: JsonObject[]) =>
    chat({ messages: [{ role: 'user', content: 'Hi' }, assistant, ...rest] });
  const called = { role: 'assistant', content: null, tool_calls: [call('call_0123456789abcdef')] };
  const answered = { role: 'tool', tool_call_id: 'call_0123456789abcdef', content: 'x' };
  const messagesOf = (vendor: string, model: string, request: JsonObject) => {
    const result = vendorRequest(targetOf(vendor, model), request);
    expect(result.again).toBe(true);
    return { ...result, messages: result.body.messages as JsonObject[] };
  };

  for (const [vendor, model] of [
    ['deepseek', 'deepseek-v4-pro'],
    ['deepseek', 'deepseek-reasoner'],
    ['kimi', 'kimi-k2.5'],
    ['kimi', 'kimi-k2-thinking'],
  ] as const) {
    test(`${vendor}/${model} gets reasoning on every message with calls`, () => {
      const { messages, notes } = messagesOf(vendor, model, history(called, answered));
      expect(messages[1]).toMatchObject({ reasoning_content: ' ', tool_calls: called.tool_calls });
      expect(notes).toEqual(['reasoning_placeholder_added /messages']);
      const own = { ...called, reasoning_content: 'I must look.' };
      expect(messagesOf(vendor, model, history(own, answered)).same).toBe(true);
      const empty = { ...called, reasoning_content: '' };
      const filled = messagesOf(vendor, model, history(empty, answered));
      expect(filled.messages[1]!.reasoning_content).toBe(' ');
    });
  }

  test('V4 gets reasoning on every answer, and none where it does not think', () => {
    const request = history(
      { role: 'assistant', content: 'Hello.' },
      { role: 'user', content: 'So?' },
    );
    const { messages } = messagesOf('deepseek', 'deepseek-v4-pro', request);
    expect(messages[1]).toEqual({ role: 'assistant', content: 'Hello.', reasoning_content: ' ' });
    expect(messagesOf('kimi', 'kimi-k2.5', request).same).toBe(true);
    const off = { ...request, thinking: { type: 'disabled' } };
    expect(messagesOf('deepseek', 'deepseek-v4-pro', off).same).toBe(true);
    expect(messagesOf('deepseek', 'deepseek-chat', history(called, answered)).same).toBe(true);
  });

  test('Mistral: ids have nine letters and digits, the same in every request, and pairs stay', () => {
    const first = messagesOf('mistral', 'm', history(called, answered));
    const id = (first.messages[1]!.tool_calls as JsonObject[])[0]!.id;
    expect(id).toMatch(/^[a-zA-Z0-9]{9}$/);
    expect(first.messages[2]!.tool_call_id).toBe(id as string);
    const more = { role: 'assistant', content: 'done' };
    const second = messagesOf('mistral', 'm', history(called, answered, more));
    expect(second.messages.slice(0, 3)).toEqual(first.messages);
    const legal = { ...called, tool_calls: [call('abcDEF123')] };
    const stored = history(legal, { ...answered, tool_call_id: 'abcDEF123' });
    expect(messagesOf('mistral', 'm', stored).same).toBe(true);
  });

  test('Mistral: a user message never follows a tool message directly', () => {
    const { messages, notes } = messagesOf(
      'mistral',
      'm',
      history(called, answered, { role: 'user', content: 'And?' }),
    );
    expect(messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
    ]);
    expect(notes).toContain('assistant_turn_added /messages');
  });
});
