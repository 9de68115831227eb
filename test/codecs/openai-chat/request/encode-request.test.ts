/** Encoding of tools and settings of other protocols for Chat vendors, and the effects of profiles. */

import { describe, expect, test } from 'bun:test';
import type { Profile } from '../../../../src/conversation/profile-facts.ts';
import type { Settings, Tool } from '../../../../src/conversation/types.ts';
import type { Json, JsonObject } from '../../../../src/lib/json/json.ts';
import {
  assistant,
  call,
  conversation,
  encode,
  own,
  shown,
  t,
  user,
  wireCall,
} from '../building.ts';

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

  test('tools become functions, or are dropped with a note', () => {
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
    expect(notes).toBe(
      'deferred_placeholder_dropped,parameter_dropped,tool_renamed,content_bridged=2,hosted_tool_dropped',
    );
  });

  test('a vendor that runs web search gets its own form of the tool', () => {
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

  test('a tool that is not declared cannot be forced', () => {
    const forced = (name: string) =>
      encode(
        conversation([user(t('q'))], {
          tools: [...tools, { type: 'function', name: 'f' }],
          settings: { toolChoice: { type: 'tool', name, kind: 'function' } },
        }),
      );
    expect(forced('f').body.tool_choice).toEqual({ type: 'function', function: { name: 'f' } });
    for (const name of ['DeferredToolPlaceholder', 'web_search', 'nobody']) {
      const { body, notes } = forced(name);
      expect([body.tool_choice, notes.includes('parameter_mapped')]).toEqual(['auto', true]);
    }
  });

  test('without tools there is no choice', () => {
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

  test('limits, sampling and streams', () => {
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

  test('reasoning effort in every spelling', () => {
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

  test('response formats', () => {
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

  test("fields of other protocols are dropped with a note; Messages' metadata is not OpenAI's", () => {
    expect(
      of({ metadata: { user_id: 'u' }, rest: { context_management: {} }, serviceTier: 'auto' }),
    ).toEqual([{}, 'parameter_dropped=3']);
  });
});

describe('profiles on requests of this protocol', () => {
  test('facts of the profile apply, each with a note', () => {
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

  test('a parameter that is already in the vendor’s spelling is not changed', () => {
    const body = { thinking: { type: 'disabled' }, reasoning_effort: 'low', max_tokens: 3 };
    const { out, notes } = own(body, { reasoningParam: 'thinking', maxTokensParam: 'max_tokens' });
    expect(out).toMatchObject(body);
    expect(notes).toBe('');
  });

  test('a `none` that the vendor does not accept is dropped, and the tools stay', () => {
    const tools = [{ type: 'function', function: { name: 'f' } }];
    const { out, notes } = own({ tools, tool_choice: 'none' }, { toolChoices: ['auto'] });
    expect([out.tools, out.tool_choice, notes]).toEqual([
      tools as never,
      undefined,
      'parameter_dropped',
    ]);
  });
});
