/** A key that may use some models gets no other one by a field of the body, and nothing that is kept at the vendor. */

import { describe, expect, test } from 'bun:test';
import { CODECS } from '../../src/app/codecs.ts';
import { NO_PROFILE } from '../../src/conversation/profile-facts.ts';
import { checkHostedTools } from '../../src/features/server-tools/index.ts';
import { checkedModel } from '../../src/gateway/client-request.ts';
import { policyOf } from '../../src/keys/make-principal.ts';
import { WITHOUT_KEY } from '../../src/keys/principal.ts';
import type { Json, JsonObject } from '../../src/lib/json/json.ts';
import { type RoutedTarget, targetsForNamed } from '../../src/routing/index.ts';
import { type Scripted, scriptedGateway } from '../gateway/scripted.ts';
import type { SuiteProtocol } from '../support/suite-protocols.ts';

const fine: Scripted = {
  json: {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'cheap',
    choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
  },
};
const DEAR = 'anthropic/claude-opus-4.7';
const BODIES: Readonly<Record<SuiteProtocol, JsonObject>> = {
  'openai-chat': { model: 'up/cheap', messages: [{ role: 'user', content: 'x' }] },
  'openai-responses': { model: 'up/cheap', input: 'x' },
  'anthropic-messages': {
    model: 'up/cheap',
    max_tokens: 9,
    messages: [{ role: 'user', content: 'x' }],
  },
};

const keyed = (models: readonly string[] | undefined, vendor: SuiteProtocol = 'openai-chat') =>
  scriptedGateway(vendor, [fine], [], '', {
    principal: {
      ...WITHOUT_KEY,
      id: 'a',
      policy: policyOf(models === undefined ? [] : [{ models }]),
    },
  });

const FIELDS: readonly (readonly [SuiteProtocol, string, JsonObject])[] = [
  ['openai-chat', 'models', { models: [DEAR] }],
  ['openai-chat', 'models', { route: 'fallback', models: ['cheap', DEAR] }],
  ['openai-chat', 'models', { models: DEAR }],
  ['openai-chat', 'fallbacks', { fallbacks: [DEAR] }],
  ['openai-chat', 'fallbacks', { fallbacks: [{ model: DEAR }] }],
  ['openai-chat', 'fallbacks', { fallbacks: [{ cheap: [DEAR] }] }],
  ['openai-chat', 'context_window_fallbacks', { context_window_fallbacks: [{ cheap: [DEAR] }] }],
  ['openai-chat', 'plugins', { plugins: [{ id: 'fusion', analysis_models: [DEAR] }] }],
  ['openai-chat', 'providerOptions', { providerOptions: { gateway: { models: [DEAR] } } }],
  ['openai-chat', 'compound_custom', { compound_custom: { models: { reasoning_model: DEAR } } }],
  ['openai-chat', 'tools', { tools: [{ type: 'openrouter:fusion', parameters: { model: DEAR } }] }],
  ['openai-chat', 'preset', { preset: 'of-mine' }],
  ['openai-responses', 'models', { models: [DEAR] }],
  ['openai-responses', 'tools', { tools: [{ type: 'image_generation', model: 'gpt-image-2' }] }],
  ['anthropic-messages', 'fallbacks', { fallbacks: [{ model: 'claude-opus-4-8' }] }],
  [
    'anthropic-messages',
    'tools',
    { tools: [{ type: 'advisor_20260301', name: 'advisor', model: 'claude-opus-4-8' }] },
  ],
];

describe('models that a body names', () => {
  test.each(FIELDS)('%s: %s, refused by name: %j', async (protocol, field, more) => {
    const gateway = keyed(['up/cheap'], protocol);
    const answer = await gateway.ask(protocol, { ...BODIES[protocol], ...more });
    expect(answer.status).toBe(403);
    expect(gateway.sent).toEqual([]);
    expect(answer.text).toContain('may not use the model');
    if (protocol !== 'anthropic-messages') expect(answer.text).toContain(field);
  });

  test.each(FIELDS)(
    '%s: %s goes through for a key that may use all',
    async (protocol, _field, more) => {
      const gateway = keyed(undefined, protocol);
      await gateway.ask(protocol, { ...BODIES[protocol], ...more });
      expect(gateway.sent[0]).toEqual({ ...BODIES[protocol], ...more, model: 'cheap' });
    },
  );

  test('what the key may use is sent as it came', async () => {
    const gateway = keyed(['up/cheap', 'up/also']);
    const more = { models: ['cheap', 'also'], plugins: [{ id: 'web', engine: 'exa' }] };
    expect((await gateway.ask('openai-chat', { ...BODIES['openai-chat'], ...more })).status).toBe(
      200,
    );
    expect(gateway.sent).toEqual([{ ...BODIES['openai-chat'], ...more, model: 'cheap' }]);
  });

  test('a key whose name is escaped is the same key', () => {
    const text = JSON.stringify({ ...BODIES['openai-chat'], models: [DEAR] });
    const bytes = Buffer.from(text.replace('"models"', '"\\u006dodels"'));
    const target = { provider: 'up', model: 'cheap', protocol: 'openai-chat', profile: NO_PROFILE };
    const principal = { ...WITHOUT_KEY, policy: policyOf([{ models: ['up/cheap'] }]) };
    const routed = { target, provider: {} } as unknown as RoutedTarget;
    expect(() => targetsForNamed(principal, { bytes }, 'openai-chat', [routed])).toThrow(DEAR);
  });

  test('words of the client’s own tools are no models', async () => {
    const gateway = keyed(['up/cheap']);
    const parameters = { type: 'object', properties: { model: { type: 'string', enum: [DEAR] } } };
    const tools = [{ type: 'function', function: { name: 'f', parameters } }];
    expect((await gateway.ask('openai-chat', { ...BODIES['openai-chat'], tools })).status).toBe(
      200,
    );
  });

  test('towards another protocol the field is not sent', async () => {
    const gateway = keyed(['up/cheap']);
    const body = { ...BODIES['anthropic-messages'], fallbacks: [{ model: 'claude-opus-4-8' }] };
    expect((await gateway.ask('anthropic-messages', body)).status).toBe(200);
    expect(JSON.stringify(gateway.sent)).not.toContain('opus');
  });
});

describe('what is kept at the vendor may hold any tool', () => {
  const check = (protocol: keyof typeof CODECS, body: JsonObject, tools: readonly string[]) => () =>
    checkHostedTools(policyOf([{ tools }]), {
      conversation: CODECS[protocol].decodeRequest(body as Json),
    });
  const gemini = { model: 'm', contents: [{ role: 'user', parts: [{ text: 'x' }] }] };
  test.each([
    [
      'openai-responses',
      { ...BODIES['openai-responses'], prompt: { id: 'pmpt_1' } },
      'stored_prompt',
    ],
    ['openai-chat', { ...BODIES['openai-chat'], preset: 'x' }, 'stored_prompt'],
    ['google-gemini', { ...gemini, cachedContent: 'cachedContents/1' }, 'cached_content'],
    ['google-gemini', { ...gemini, cached_content: 'cachedContents/1' }, 'cached_content'],
  ] as const)('%s %#: refused without tools, allowed by name', (protocol, body, name) => {
    expect(check(protocol, body, [])).toThrow(name);
    expect(check(protocol, body, ['web_search'])).toThrow(name);
    expect(check(protocol, body, [name])).not.toThrow();
    expect(check(protocol, body, ['*'])).not.toThrow();
  });
});

test.each([
  [{ enable_search: true }, { enable_search: false }, 'web_search'],
  [{ search_parameters: { mode: 'auto' } }, { search_parameters: { mode: 'off' } }, 'web_search'],
  [{ plugins: [{ id: 'web' }] }, { plugins: [] }, 'plugins'],
  [{ enable_code_interpreter: true }, { enable_code_interpreter: null }, 'code_execution'],
  [{ compound_custom: { tools: {} } }, {}, 'compound_custom'],
])('a field that switches on what a vendor runs needs its tool: %j', (on, off, name) => {
  const check = (more: object, tools: readonly string[]) => () =>
    checkHostedTools(policyOf([{ tools }]), {
      conversation: CODECS['openai-chat'].decodeRequest({ ...BODIES['openai-chat'], ...more }),
    });
  expect(check(on, [])).toThrow(name);
  expect(check(off, [])).not.toThrow();
  expect(check(on, [name])).not.toThrow();
});

test.each(['m ', ' m', 'm\u00a0', '\u3000m'])(
  'a model’s name with white space around it is refused: %j',
  (model) => {
    expect(() => checkedModel(model)).toThrow('white space');
  },
);
