/** The facts of vendors for the clients of all four protocols, Gemini's in both of its spellings. */

import { describe, expect, test } from 'bun:test';
import type { ProtocolName } from '../../../src/conversation/types.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { targetOf, vendorRequest } from './vendor.ts';

const CLIENTS = [
  'openai-chat',
  'openai-responses',
  'anthropic-messages',
  'google-gemini',
] as const satisfies readonly ProtocolName[];

/** Every member's name in snake_case. */
const snake = (value: Json): Json =>
  Array.isArray(value)
    ? value.map(snake)
    : value !== null && typeof value === 'object'
      ? Object.fromEntries(
          Object.entries(value).map(([key, member]) => [
            key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
            snake(member as Json),
          ]),
        )
      : value;

interface Case {
  readonly request: JsonObject;
  readonly client: ProtocolName;
  readonly name: string;
}

const user = { role: 'user', parts: [{ text: 'Hi' }] };
const gemini = (config: JsonObject, more: JsonObject = {}): readonly Case[] => {
  const request = { model: 'm', contents: [user], generationConfig: config, ...more };
  return [
    { request, client: 'google-gemini', name: 'Gemini' },
    { request: snake(request) as JsonObject, client: 'google-gemini', name: 'Gemini, snake_case' },
  ];
};

/** The same wish of each client: reasoning at medium effort. */
const REASONING: readonly Case[] = [
  {
    client: 'openai-chat',
    name: 'Chat',
    request: {
      model: 'm',
      messages: [{ role: 'user', content: 'Hi' }],
      reasoning_effort: 'medium',
    },
  },
  {
    client: 'openai-responses',
    name: 'Responses',
    request: { model: 'm', input: 'Hi', reasoning: { effort: 'medium', summary: 'auto' } },
  },
  {
    client: 'anthropic-messages',
    name: 'Messages',
    request: {
      model: 'm',
      max_tokens: 32_000,
      thinking: { type: 'enabled', budget_tokens: 10_000 },
      messages: [{ role: 'user', content: 'Hi' }],
    },
  },
  ...gemini({ thinkingConfig: { thinkingLevel: 'medium' } }),
  ...gemini({ thinkingConfig: { thinkingBudget: 10_000 } }),
];

const KEYS = ['reasoning', 'reasoning_effort', 'thinking', 'output_config'] as const;

describe.each([
  ['openai', 'gpt-4.1', 'openai-responses'],
  ['openai', 'gpt-4o-mini', 'openai-chat'],
  ['openai', 'gpt-5-chat-latest', 'openai-responses'],
  ['groq', 'llama-3.3-70b-versatile', 'openai-chat'],
  ['groq', 'qwen/qwen3-32b', 'openai-chat'],
  ['groq', 'moonshotai/kimi-k2-instruct-0905', 'openai-chat'],
  ['xai', 'grok-code-fast-1', 'openai-chat'],
  ['xai', 'grok-3', 'openai-responses'],
  ['xai', 'grok-4-fast-reasoning', 'openai-chat'],
  ['xai', 'grok-4-1-fast-non-reasoning', 'openai-responses'],
  ['ollama', 'llama3.2', 'openai-chat'],
  ['ollama', 'gemma3:4b', 'openai-chat'],
  ['anthropic', 'claude-3-5-haiku-20241022', 'anthropic-messages'],
] as const)('%s/%s takes no reasoning setting', (vendor, model, protocol) => {
  test.each(REASONING)('$name', ({ request, client }) => {
    const { body, notes, idle } = vendorRequest(targetOf(vendor, model, protocol), request, client);
    for (const key of KEYS) expect([key, body[key]]).toEqual([key, undefined]);
    expect(notes.filter((note) => note === 'parameter_dropped reasoning')).toHaveLength(1);
    expect(idle).toBe(false);
  });
});

describe.each([
  ['openai', 'gpt-5', 'openai-responses', 'reasoning', { effort: 'medium', summary: 'auto' }],
  ['xai', 'grok-4.3', 'openai-chat', 'reasoning_effort', 'medium'],
  ['groq', 'openai/gpt-oss-120b', 'openai-chat', 'reasoning_effort', 'medium'],
  ['ollama', 'qwen3:8b', 'openai-chat', 'reasoning_effort', 'medium'],
] as const)('%s/%s takes it', (vendor, model, protocol, key, value) => {
  test.each(REASONING)('$name', ({ request, client }) => {
    const { body } = vendorRequest(targetOf(vendor, model, protocol), request, client);
    if (typeof value === 'string') expect(body[key]).toBe(value);
    else expect((body[key] as JsonObject).effort).toBe(value.effort);
  });
});

const call = { functionCall: { name: 'look', args: {} } };
const result = { functionResponse: { name: 'look', response: { output: 'x' } } };
const declared = { tools: [{ functionDeclarations: [{ name: 'look' }] }] };
const history = (...last: readonly JsonObject[]) => ({
  ...declared,
  contents: [user, { role: 'model', parts: [call] }, { role: 'user', parts: [result, ...last] }],
});

describe.each([
  ['stops', 'glm', 'glm-4.7', gemini({ stopSequences: ['A', 'B', 'C'] }), { stop: ['A'] }],
  ['stops', 'openai-chat', 'gpt-5', gemini({ stopSequences: ['A'] }), { stop: undefined }],
  ['top_p', 'glm', 'glm-4.7', gemini({ topP: 0 }), { top_p: 0.01 }],
  ['top_p', 'openai-chat', 'gpt-5', gemini({ topP: 0.5 }), { top_p: undefined }],
  [
    'logprobs',
    'openai-chat',
    'gpt-5',
    gemini({ responseLogprobs: true, logprobs: 3 }),
    { logprobs: undefined, top_logprobs: undefined },
  ],
  [
    'penalties',
    'openai-chat',
    'gpt-5',
    gemini({ presencePenalty: 0.5 }),
    { presence_penalty: undefined },
  ],
  [
    'level',
    'glm',
    'glm-5.3',
    gemini({ thinkingConfig: { thinkingLevel: 'medium' } }),
    { reasoning_effort: 'high' },
  ],
  [
    'off',
    'openai-chat',
    'gpt-5',
    gemini({ thinkingConfig: { thinkingBudget: 0 } }),
    { reasoning_effort: 'minimal' },
  ],
  [
    'a schema',
    'glm',
    'glm-4.7',
    gemini({ responseMimeType: 'application/json', responseJsonSchema: { type: 'object' } }),
    { response_format: { type: 'json_object' } },
  ],
  [
    'a forced tool',
    'glm',
    'glm-4.7',
    gemini({}, { ...declared, toolConfig: { functionCallingConfig: { mode: 'ANY' } } }),
    { tool_choice: 'auto' },
  ],
] as const)('%s of a Gemini client on %s/%s', (_what, vendor, model, cases, sent) => {
  test.each(cases)('$name', ({ request, client }) => {
    const { body, idle } = vendorRequest(targetOf(vendor, model), request, client);
    for (const [key, value] of Object.entries(sent)) expect([key, body[key]]).toEqual([key, value]);
    expect(idle).toBe(false);
  });
});

describe('histories of a Gemini client', () => {
  const roles = (body: JsonObject) => (body.messages as JsonObject[]).map(({ role }) => role);

  test.each(gemini({}, history({ text: 'go on' })))(
    'a result and text on Mistral: $name',
    ({ request, client }) => {
      const { body, idle } = vendorRequest(
        targetOf('mistral', 'mistral-large-latest'),
        request,
        client,
      );
      expect(roles(body)).toEqual(['user', 'assistant', 'tool', 'assistant', 'user']);
      expect(idle).toBe(false);
    },
  );

  test.each(['deepseek/deepseek-v4-pro', 'kimi/kimi-k2.6'])(
    'a call without thoughts on %s',
    (name) => {
      const [vendor, model] = name.split('/') as [string, string];
      for (const { request, client } of gemini({}, history())) {
        const { body, idle } = vendorRequest(targetOf(vendor, model), request, client);
        expect((body.messages as JsonObject[])[1]!.reasoning_content).toBe(' ');
        expect(idle).toBe(false);
      }
    },
  );
});

describe('Gemini to Gemini', () => {
  const target = (model: string) => targetOf('google-gemini', model, 'google-gemini');
  const config = ({ generationConfig, generation_config }: JsonObject) =>
    (generationConfig ?? generation_config) as JsonObject;

  test.each(gemini({ stopSequences: [...'ABCDEF'] }))('stops: $name', ({ request, client }) => {
    const { body, idle } = vendorRequest(target('gemini-2.5-pro'), request, client);
    expect(config(body).stopSequences).toEqual([...'ABCDE']);
    expect(idle).toBe(false);
  });

  test.each(gemini({ thinkingConfig: { thinkingBudget: 0 } }))(
    'off: $name',
    ({ request, client }) => {
      const { notes, idle } = vendorRequest(target('gemini-2.5-pro'), request, client);
      expect(notes).toContain('parameter_mapped reasoning');
      expect(idle).toBe(false);
    },
  );

  test('a body that needs nothing is not decoded', () => {
    const [plain] = gemini({ temperature: 1, maxOutputTokens: 9, topP: 0.9 });
    const { idle } = vendorRequest(
      { ...target('gemini-9'), profile: { name: 'x', maxOutput: 100, maxStops: 5 } },
      plain!.request,
      'google-gemini',
    );
    expect(idle).toBe(true);
  });
});

/** The cap of each client at 32,000. */
const CAPPED: readonly Case[] = [
  ...REASONING.slice(0, 3).map((one) => {
    const { reasoning: _, reasoning_effort: __, thinking: ___, ...request } = one.request;
    const key = { 'openai-chat': 'max_tokens', 'openai-responses': 'max_output_tokens' };
    const name = key[one.client as 'openai-chat'] ?? 'max_tokens';
    return { ...one, request: { ...request, [name]: 32_000 } };
  }),
  ...gemini({ maxOutputTokens: 32_000 }),
];

describe.each(CLIENTS)('an output cap above what a model of %s may answer', (protocol) => {
  const vendor = { provider: 'v', model: 'm', protocol, profile: { name: 'v', maxOutput: 8192 } };
  const capOf = (body: JsonObject) => {
    const config = (body.generationConfig ?? body.generation_config) as JsonObject | undefined;
    return (
      config?.maxOutputTokens ??
      body.max_tokens ??
      body.max_completion_tokens ??
      body.max_output_tokens
    );
  };

  test.each(CAPPED)('is lowered: $name', ({ request, client }) => {
    const { body, notes, idle } = vendorRequest(vendor, request, client);
    expect(capOf(body)).toBe(8192);
    expect(notes).toContain('parameter_mapped max_tokens');
    expect(idle).toBe(false);
  });

  test.each(CAPPED)('and is left alone where it fits: $name', ({ request, client }) => {
    const wide = { ...vendor, profile: { name: 'v', maxOutput: 64_000 } };
    const { notes, idle, same } = vendorRequest(wide, request, client);
    expect(notes).not.toContain('parameter_mapped max_tokens');
    expect(same).toBe(true);
    if (client === protocol) expect(idle).toBe(true);
  });

  test('a thinking budget stays below it', () => {
    const { request } = REASONING[2]!;
    const { body } = vendorRequest(vendor, request, 'anthropic-messages');
    if (protocol === 'anthropic-messages') {
      expect(body.thinking).toEqual({ type: 'enabled', budget_tokens: 4096 });
    }
    expect(capOf(body)).toBe(8192);
  });
});
