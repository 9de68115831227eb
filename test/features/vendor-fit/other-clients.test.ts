/** The same vendor facts for Messages and Responses clients, and on those vendors' own endpoints. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { PROFILES } from '../../../src/vendors/index.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';
import { call, chat, targetOf, vendorRequest, withTool } from './vendor.ts';

const messages = (more: JsonObject = {}): JsonObject => ({
  model: 'claude',
  max_tokens: 4096,
  messages: [{ role: 'user', content: 'Hi' }],
  ...more,
});
const tools = [{ name: 'look', input_schema: { type: 'object', properties: {} } }];

describe('a Messages client on another vendor', () => {
  test('a forced tool turns thinking off', () => {
    const request = messages({ tools, tool_choice: { type: 'any' } });
    const result = vendorRequest(
      targetOf('deepseek', 'deepseek-v4-flash'),
      request,
      'anthropic-messages',
    );
    expect(result.body).toMatchObject({ tool_choice: 'required', thinking: { type: 'disabled' } });
    expect(result.notes).toContain('parameter_mapped reasoning');
  });

  test.each([
    ['glm', 'glm-4.7', { thinking: { type: 'enabled' } }],
    ['qwen', 'qwen-plus', { enable_thinking: true }],
  ])('an effort that %s can only switch on leaves a note', (vendor, model, body) => {
    const target = targetOf(vendor, model);
    const thinking = { type: 'adaptive' };
    const sent = (more: JsonObject) =>
      vendorRequest(target, messages({ thinking, ...more }), 'anthropic-messages');
    const lost = sent({ output_config: { effort: 'high' } });
    expect(lost.body).toMatchObject(body);
    expect(lost.body).not.toHaveProperty('reasoning_effort');
    expect(lost.notes).toEqual(['parameter_mapped reasoning']);
    // Without an effort nothing is lost.
    expect(sent({}).notes).toEqual([]);
  });

  test('answers get reasoning, one message per run', () => {
    const request = messages({
      messages: [
        { role: 'user', content: 'Hi' },
        {
          role: 'assistant',
          content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'x' }] },
      ],
      tools,
    });
    const result = vendorRequest(targetOf('kimi', 'kimi-k2.5'), request, 'anthropic-messages');
    const [, assistant] = result.body.messages as JsonObject[];
    expect(assistant!.reasoning_content).toBe(' ');
  });

  test('results and text of one turn are separated for Mistral', () => {
    const request = messages({
      messages: [
        { role: 'user', content: 'Hi' },
        {
          role: 'assistant',
          content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'toolu_1', content: 'x' },
            { type: 'text', text: 'And?' },
          ],
        },
      ],
      tools,
    });
    const result = vendorRequest(targetOf('mistral', 'm'), request, 'anthropic-messages');
    const roles = (result.body.messages as JsonObject[]).map(({ role }) => role);
    expect(roles).toEqual(['user', 'assistant', 'tool', 'assistant', 'user']);
  });
});

describe("Anthropic's own models", () => {
  const sent = (model: string, more: JsonObject) =>
    vendorRequest(targetOf('anthropic', model), messages(more), 'anthropic-messages');

  test('the newest models get no budget and no sampling', () => {
    const { body, notes } = sent('claude-opus-4-7', {
      thinking: { type: 'enabled', budget_tokens: 2048 },
      temperature: 1,
    });
    expect(body.thinking).toEqual({ type: 'adaptive' });
    expect(body.output_config).toEqual({ effort: 'low' });
    expect('temperature' in body).toBe(false);
    expect(notes.toSorted()).toEqual([
      'parameter_dropped temperature',
      'parameter_mapped thinking',
    ]);
  });

  test('the older models get a budget', () => {
    const { body, notes } = sent('claude-haiku-4-5', {
      thinking: { type: 'adaptive' },
      output_config: { effort: 'low' },
    });
    expect(body.thinking).toEqual({ type: 'enabled', budget_tokens: 2048 });
    expect('output_config' in body).toBe(false);
    expect(notes).toEqual(['parameter_mapped thinking']);
  });

  test('accepted settings go out unchanged', () => {
    const fine = { temperature: 0.5, tools, tool_choice: { type: 'any' }, stop_sequences: ['x'] };
    expect(sent('claude-sonnet-4-5', fine)).toMatchObject({ same: true, notes: [] });
    const adaptive = { thinking: { type: 'adaptive' }, output_config: { effort: 'max' } };
    expect(sent('claude-opus-4-6', adaptive)).toMatchObject({ same: true, notes: [] });
  });

  test('an effort that a generation lacks becomes the nearest one', () => {
    const { body } = sent('claude-opus-4-6', {
      thinking: { type: 'adaptive' },
      output_config: { effort: 'xhigh' },
    });
    expect(body.output_config).toEqual({ effort: 'max' });
  });
});

describe('Messages endpoints of other vendors', () => {
  test('text models get mentions of pictures, in results too', () => {
    const image = {
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: 'AAAA' },
    };
    const request = messages({
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'Look' }, image] },
        { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'look', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: [image] }] },
      ],
      tools,
    });
    const result = vendorRequest(
      targetOf('glm-anthropic', 'glm-4.7'),
      request,
      'anthropic-messages',
    );
    expect(JSON.stringify(result.body)).not.toContain('base64');
    expect(JSON.stringify(result.body).match(/image not shown/g)?.length).toBe(2);
    expect(result.body.tools).toEqual(tools);
    expect(result.again).toBe(true);
  });

  test('system turns in the middle become user turns, and the system prompt stays', () => {
    const request = messages({
      system: 'Be brief.',
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'system', content: 'The date is today.' },
        { role: 'user', content: 'So?' },
      ],
    });
    const result = vendorRequest(
      targetOf('kimi-anthropic', 'kimi-k2.5'),
      request,
      'anthropic-messages',
    );
    expect(result.body.system).toBe('Be brief.');
    expect((result.body.messages as JsonObject[]).every(({ role }) => role === 'user')).toBe(true);
    expect(result.notes).toEqual(['content_bridged /messages']);
  });

  test('settings on such a turn do not move to a user message', () => {
    const request = messages({
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'system', content: 'Think less.', output_config: { effort: 'low' } },
      ],
    });
    const result = vendorRequest(
      targetOf('glm-anthropic', 'glm-4.7'),
      request,
      'anthropic-messages',
    );
    expect(JSON.stringify(result.body)).toContain('Think less.');
    expect(JSON.stringify(result.body.messages)).not.toContain('output_config');
    expect(result.notes).toContain('parameter_dropped /messages/output_config');
    expect(result.again).toBe(true);
  });
});

describe('Responses', () => {
  test('reasoning models lose sampling settings, others keep them', () => {
    const request = { model: 'x', input: 'Hi', temperature: 0.2, top_p: 0.9 };
    const result = vendorRequest(
      targetOf('openai', 'o3', 'openai-responses'),
      request,
      'openai-responses',
    );
    expect(['temperature' in result.body, 'top_p' in result.body]).toEqual([false, false]);
    const other = vendorRequest(
      targetOf('openai', 'gpt-4o', 'openai-responses'),
      request,
      'openai-responses',
    );
    expect(other).toMatchObject({ same: true, notes: [] });
  });
});

describe('laws', () => {
  const values: Record<string, fc.Arbitrary<unknown>> = {
    temperature: fc.double({ min: -1, max: 3, noNaN: true }),
    top_p: fc.double({ min: 0, max: 1, noNaN: true }),
    stop: fc.array(fc.string({ minLength: 1, maxLength: 2 }), { maxLength: 6 }),
    tool_choice: fc.constantFrom('auto', 'none', 'required', {
      type: 'function',
      function: { name: 'look' },
    }),
    reasoning_effort: fc.constantFrom('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'),
    thinking: fc.constantFrom({ type: 'enabled' }, { type: 'disabled' }),
    max_completion_tokens: fc.integer({ min: 1, max: 9999 }),
    stream_options: fc.constant({ include_usage: true }),
    parallel_tool_calls: fc.boolean(),
    seed: fc.integer(),
    response_format: fc.constant({
      type: 'json_schema',
      json_schema: { name: 'x', schema: { type: 'object' } },
    }),
  };
  const extras = fc.record(values, { requiredKeys: [] });
  const turn = fc.constantFrom<JsonObject[]>(
    [{ role: 'system', content: 'S' }],
    [{ role: 'developer', content: 'D' }],
    [{ role: 'user', content: 'U' }],
    [{ role: 'assistant', content: 'A' }],
    [
      { role: 'assistant', content: null, tool_calls: [call('call_a'), call('functions.b:0')] },
      { role: 'tool', tool_call_id: 'call_a', content: 'x' },
      { role: 'tool', tool_call_id: 'functions.b:0', content: 'y' },
    ],
    [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x/y.png' } }] }],
  );
  const body = fc
    .tuple(extras, fc.array(turn, { minLength: 1, maxLength: 6 }))
    .map(([more, turns]) => withTool({ ...(more as JsonObject), messages: turns.flat() }));
  const names = Object.keys(PROFILES);
  const models = [
    'm',
    'glm-5.3',
    'deepseek-v4-pro',
    'deepseek-reasoner',
    'kimi-k2.5',
    'gpt-5',
    'o3',
    'qwq-plus',
    'claude-opus-4-7',
    'MiniMax-M2.5',
  ];
  const protocols: readonly ProtocolName[] = [
    'openai-chat',
    'openai-responses',
    'anthropic-messages',
  ];

  test('the pass is idempotent for every vendor, model and protocol, and the prefilter agrees', () => {
    fc.assert(
      fc.property(
        body,
        fc.constantFrom(...names),
        fc.constantFrom(...models),
        fc.constantFrom(...protocols),
        (request, vendor, model, protocol) => {
          const result = vendorRequest(targetOf(vendor, model, protocol), request);
          expect(result.again).toBe(true);
          if (result.idle) expect(result.same).toBe(true);
        },
      ),
      { numRuns: 600 },
    );
  });

  test('a second request through the same vendor leaves the result of one pass unchanged', () => {
    fc.assert(
      fc.property(
        body,
        fc.constantFrom(...names),
        fc.constantFrom(...models),
        (request, vendor, model) => {
          const target = targetOf(vendor, model, 'openai-chat');
          const first = vendorRequest(target, request);
          const second = vendorRequest(target, first.body);
          expect(second.notes).toEqual([]);
          expect(second.body).toEqual(first.body);
        },
      ),
      { numRuns: 600 },
    );
  });

  test('a plain request needs no rule', () => {
    for (const vendor of names) {
      const target = targetOf(vendor, 'm', 'openai-chat');
      expect([vendor, vendorRequest(target, chat()).idle]).toEqual([vendor, true]);
    }
  });
});
