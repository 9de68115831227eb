/** Encoding of other protocols' tools, reasoning and parameters for Messages, with the notes. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../../../src/codecs/anthropic-messages/index.ts';
import { Notes } from '../../../../src/conversation/notes.ts';
import type { Profile } from '../../../../src/conversation/profile-facts.ts';
import type { Block, Settings, Tool } from '../../../../src/conversation/types.ts';
import type { JsonObject } from '../../../../src/lib/json/json.ts';
import { target } from '../recorded.ts';
import { call, HI, READ, result, say, send } from '../sent.ts';

describe('tools', () => {
  test('namespaces, freeform tools, missing schemas, duplicates', () => {
    const { body, notes } = send([HI], {
      tools: [
        { type: 'function', name: 'spawn', namespace: 'agents', description: 'd' },
        {
          type: 'custom',
          name: 'apply_patch',
          format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
        },
        READ,
        READ,
      ],
    });
    expect(body.tools).toEqual([
      { name: 'agents__spawn', description: 'd', input_schema: { type: 'object', properties: {} } },
      {
        name: 'apply_patch',
        description: 'The input follows this grammar:\nstart: "x"',
        input_schema: {
          type: 'object',
          properties: { input: { type: 'string' } },
          required: ['input'],
          additionalProperties: false,
        },
      },
      { name: 'read', input_schema: { type: 'object', properties: {} } },
    ]);
    expect(notes).toBe('content_bridged,tool_dropped');
  });

  test('web search goes to a vendor that serves it, with its options, and nowhere else', () => {
    const search: Tool = {
      type: 'hosted',
      name: 'web_search',
      kind: 'web_search',
      options: {
        filters: { allowed_domains: ['a.b'] },
        search_context_size: 'low',
        user_location: { type: 'approximate', country: 'DE' },
      },
    };
    const served = send([HI], { tools: [search], profile: { hostedTools: ['web_search'] } });
    expect(served.body.tools).toEqual([
      {
        type: 'web_search_20250305',
        name: 'web_search',
        allowed_domains: ['a.b'],
        user_location: { type: 'approximate', country: 'DE' },
      },
    ]);
    expect(served.notes).toBe('');
    const unserved = send([HI], { tools: [search] });
    expect(unserved.body.tools).toBeUndefined();
    expect(unserved.notes).toBe('hosted_tool_dropped');
  });

  test("a client's own tool search is a function for the model", () => {
    const { body } = send([HI], {
      tools: [
        {
          type: 'hosted',
          name: 'tool_search',
          kind: 'tool_search',
          options: {
            execution: 'client',
            description: 'd',
            parameters: { type: 'object', properties: { query: { type: 'string' } } },
          },
        },
      ],
    });
    expect(body.tools).toEqual([
      {
        name: 'tool_search',
        description: 'd',
        input_schema: { type: 'object', properties: { query: { type: 'string' } } },
      },
    ]);
  });

  test('alternatives at the root of a schema are merged', () => {
    const schema = {
      anyOf: [
        { properties: { a: {} }, required: ['a'] },
        { properties: { b: {} }, required: ['a', 'b'] },
      ],
    };
    const { body, notes } = send([HI], { tools: [{ type: 'function', name: 'f', schema }] });
    expect(body.tools).toEqual([
      {
        name: 'f',
        input_schema: { type: 'object', properties: { a: {}, b: {} }, required: ['a'] },
      },
    ]);
    expect(notes).toBe('schema_simplified');
  });

  const choice = (settings: Partial<Settings>, profile: Partial<Profile> = {}) => {
    const other: Tool = { type: 'function', name: 'write' };
    const { body, notes } = send([HI], { settings, tools: [READ, other], profile });
    return { choice: body.tool_choice, count: (body.tools as unknown[]).length, notes };
  };

  test('choices', () => {
    expect(choice({}).choice).toBeUndefined();
    expect(choice({ toolChoice: { type: 'required' } }).choice).toEqual({ type: 'any' });
    expect(choice({ toolChoice: { type: 'tool', name: 'read', kind: 'function' } }).choice).toEqual(
      { type: 'tool', name: 'read' },
    );
    expect(choice({ parallelTools: false }).choice).toEqual({
      type: 'auto',
      disable_parallel_tool_use: true,
    });
    expect(choice({ toolChoice: { type: 'none' }, parallelTools: false }).choice).toEqual({
      type: 'none',
    });
    expect(choice({ toolChoice: { type: 'tool', name: 'gone', kind: 'function' } })).toMatchObject({
      choice: undefined,
      notes: 'parameter_dropped',
    });
    expect(choice({ toolChoice: { type: 'allowed', mode: 'required', names: ['read'] } })).toEqual({
      choice: { type: 'any' },
      count: 1,
      notes: 'parameter_mapped',
    });
    expect(choice({ toolChoice: { type: 'required' } }, { toolChoices: ['auto'] })).toMatchObject({
      choice: { type: 'auto' },
      notes: 'parameter_mapped',
    });
    expect(choice({ parallelTools: false }, { parallelToolsParam: false })).toMatchObject({
      choice: undefined,
      notes: 'parameter_dropped',
    });
  });
});

describe('reasoning', () => {
  const sealed = (more: object): Block => ({
    type: 'reasoning',
    text: 'hmm',
    sealed: { protocol: 'anthropic-messages', kind: 'signature', value: 'sig', ...more } as never,
  });
  const thought = (block: Block) => {
    const { body, notes } = send([HI, say('assistant', block, 'x'), HI]);
    const [, message] = body.messages as readonly { content: readonly JsonObject[] }[];
    return { first: message?.content[0], notes };
  };

  test('only reasoning that this provider sealed goes back as thinking', () => {
    expect(thought(sealed({}))).toEqual({
      first: { type: 'thinking', thinking: 'hmm', signature: 'sig' },
      notes: '',
    });
    expect(thought(sealed({ provider: 'up' })).notes).toBe('');
    expect(thought(sealed({ kind: 'redacted', value: 'data' })).first).toEqual({
      type: 'redacted_thinking',
      data: 'data',
    });
    for (const foreign of [
      sealed({ protocol: 'openai-responses' }),
      sealed({ provider: 'another' }),
      sealed({ value: '' }),
      { type: 'reasoning', text: 'hmm' } as Block,
    ]) {
      expect(thought(foreign)).toEqual({
        first: { type: 'text', text: 'x' },
        notes: 'reasoning_dropped',
      });
    }
  });

  test('an empty signature goes back to a vendor that does not sign and wants its thinking back', () => {
    const turns = [HI, say('assistant', sealed({ provider: 'up', value: '' }), 'x'), HI];
    const conversation = { model: 'm', system: [], turns, tools: [], settings: { stream: false } };
    const body = anthropicMessages.encodeRequest(conversation, target(), new Notes());
    expect((body.messages as readonly { content: readonly JsonObject[] }[])[1]?.content[0]).toEqual(
      {
        type: 'thinking',
        thinking: 'hmm',
        signature: '',
      },
    );
  });

  const thinking = (settings: Partial<Settings>, profile: Partial<Profile> = {}) => {
    const { body, notes } = send([HI], { settings, tools: [READ], profile });
    const { max_tokens, thinking, output_config, temperature } = body;
    return { max_tokens, thinking, output_config, temperature, notes };
  };

  test('an effort becomes a budget below the token limit', () => {
    expect(thinking({ maxTokens: 64000, reasoning: { effort: 'high' } })).toMatchObject({
      max_tokens: 64000,
      thinking: { type: 'enabled', budget_tokens: 16384 },
      notes: 'parameter_mapped',
    });
    expect(thinking({ maxTokens: 4096, reasoning: { effort: 'high' } }).thinking).toEqual({
      type: 'enabled',
      budget_tokens: 2048,
    });
    expect(thinking({ maxTokens: 1500, reasoning: { effort: 'high' } })).toMatchObject({
      thinking: undefined,
      notes: 'parameter_mapped,parameter_dropped',
    });
    expect(thinking({ maxTokens: undefined, reasoning: { effort: 'high' } })).toMatchObject({
      max_tokens: 16384 + 8192,
    });
    expect(thinking({ reasoning: { effort: 'none' } }).thinking).toEqual({ type: 'disabled' });
    expect(thinking({ reasoning: { summary: 'auto' } }).thinking).toBeUndefined();
  });

  test('an adaptive model gets the effort', () => {
    const adaptive = { adaptiveThinking: true };
    expect(thinking({ reasoning: { effort: 'minimal', summary: 'auto' } }, adaptive)).toMatchObject(
      {
        thinking: { type: 'adaptive', display: 'summarized' },
        output_config: { effort: 'low' },
      },
    );
    expect(thinking({ reasoning: { budget: 20000 } }, adaptive).output_config).toEqual({
      effort: 'high',
    });
  });

  test('thinking excludes a temperature and a forced tool', () => {
    expect(
      thinking({ maxTokens: 64000, temperature: 0.2, reasoning: { budget: 2000 } }),
    ).toMatchObject({ temperature: undefined, notes: 'parameter_dropped' });
    expect(
      thinking({ reasoning: { budget: 2000 }, toolChoice: { type: 'required' } }),
    ).toMatchObject({ thinking: undefined, notes: 'parameter_dropped' });
  });

  test('an open tool loop whose thinking was foreign goes out without thinking', () => {
    const loop = [
      HI,
      say('assistant', { type: 'reasoning', text: 'r' }, call('a')),
      say('user', result('a')),
    ];
    const settings = { maxTokens: 64000, reasoning: { budget: 2000 } };
    const { body, notes } = send(loop, { settings, tools: [READ] });
    expect(body.thinking).toBeUndefined();
    expect(notes).toContain('parameter_dropped');
    const answered = send([...loop, say('assistant', 'done'), HI], { settings, tools: [READ] });
    expect(answered.body.thinking).toBeDefined();
    const genuine = [HI, say('assistant', sealed({}), call('a')), say('user', result('a'))];
    expect(send(genuine, { settings, tools: [READ] }).body.thinking).toBeDefined();
  });
});

describe('parameters', () => {
  test('a missing token limit is filled in, from the profile where it has one', () => {
    const { body, notes } = send([HI], { settings: { maxTokens: undefined } });
    expect(body.max_tokens).toBe(8192);
    expect(notes).toBe('parameter_defaulted');
    expect(
      send([HI], { settings: { maxTokens: undefined }, profile: { defaultMaxTokens: 100 } }).body
        .max_tokens,
    ).toBe(100);
  });

  test('fields without an equivalent get a note', () => {
    const { list } = send([HI], {
      settings: {
        seed: 1,
        n: 2,
        presencePenalty: 1,
        frequencyPenalty: 1,
        logitBias: {},
        logprobs: {},
        verbosity: 'low',
        cacheKey: 'k',
        store: true,
        include: ['x'],
        metadata: { a: 'b' },
        rest: { do_sample: true },
        format: { type: 'json' },
      },
    });
    expect(list.every(({ name }) => name === 'parameter_dropped')).toBe(true);
    expect(list.map(({ where }) => where).sort()).toEqual([
      'do_sample',
      'frequency_penalty',
      'include',
      'logit_bias',
      'logprobs',
      'metadata',
      'n',
      'presence_penalty',
      'prompt_cache_key',
      'response_format',
      'seed',
      'store',
      'verbosity',
    ]);
  });

  test('fields without an effect get no note', () => {
    expect(
      send([HI], {
        settings: {
          n: 1,
          presencePenalty: 0,
          store: false,
          include: ['reasoning.encrypted_content'],
        },
      }).notes,
    ).toBe('');
  });

  test('temperature is clamped, blank stops are dropped, the rest is renamed', () => {
    const { body, notes } = send([HI], {
      settings: {
        temperature: 1.7,
        topP: 0.5,
        topK: 3,
        stop: ['a', ' '],
        user: 'u',
        serviceTier: 'default',
        stream: true,
      },
    });
    expect(body).toMatchObject({
      temperature: 1,
      top_p: 0.5,
      top_k: 3,
      stop_sequences: ['a'],
      metadata: { user_id: 'u' },
      service_tier: 'standard_only',
      stream: true,
    });
    expect(notes).toBe('parameter_mapped=2,parameter_dropped');
  });

  test('a model that refuses temperature and top_p together gets one of them', () => {
    const sampled = (temperature: number, topP: number, profile: Partial<Profile>) => {
      const { body, list } = send([HI], { settings: { temperature, topP }, profile });
      const { temperature: t, top_p: p } = body;
      return [t, p, ...list.map(({ name, where }) => `${name} ${where}`)];
    };
    const one = { temperatureWithTopP: false };
    expect(sampled(0.2, 0.9, one)).toEqual([0.2, undefined, 'parameter_dropped top_p']);
    expect(sampled(1, 0.9, one)).toEqual([undefined, 0.9, 'parameter_dropped temperature']);
    expect(sampled(0.2, 0.9, {})).toEqual([0.2, 0.9]);
    expect(send([HI], { settings: { topP: 0.9 }, profile: one }).notes).toBe('');
  });

  test('an output schema loses the keywords that the API refuses', () => {
    const schema = {
      $schema: 'x',
      type: 'object',
      properties: {
        pattern: { type: 'string', pattern: 'a', format: 'date' },
        n: { type: 'array', items: { oneOf: [{ type: 'number', minimum: 1 }] }, minItems: 1 },
      },
      required: ['pattern'],
    };
    const { body, list } = send([HI], {
      settings: { format: { type: 'schema', name: 'x', schema } },
    });
    expect(body.output_config).toEqual({
      format: {
        type: 'json_schema',
        schema: {
          type: 'object',
          properties: {
            pattern: { type: 'string', format: 'date' },
            n: { type: 'array', items: { anyOf: [{ type: 'number' }] }, minItems: 1 },
          },
          required: ['pattern'],
          additionalProperties: false,
        },
      },
    });
    expect(list).toEqual([
      { name: 'schema_simplified', where: 'output_config.format', what: 'minimum, pattern' },
    ]);
  });

  test.each(['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions'])(
    'a name in %s that is also a refused keyword is not removed',
    (keyword) => {
      const schema = { type: 'object', [keyword]: { pattern: { type: 'string', pattern: 'a' } } };
      const { body } = send([HI], {
        settings: { format: { type: 'schema', name: 'x', schema } },
      });
      expect(body.output_config).toMatchObject({
        format: { schema: { [keyword]: { pattern: { type: 'string' } } } },
      });
    },
  );
});
