/** Requests from other protocols, case by case: what is sent, and what the notes say about it. */

import { describe, expect, test } from 'bun:test';
import { edited, withParts } from '../../../src/conversation/edit.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { carrySeal } from '../../../src/conversation/seal.ts';
import type { Profile } from '../../../src/conversation/target.ts';
import type { Block, Conversation, Role, Settings, Tool, Turn } from '../../../src/conversation/types.ts';
import type { JsonObject } from '../../../src/lib/json.ts';
import { anthropicMessages } from '../../../src/protocols/anthropic-messages/index.ts';
import { target } from './recorded.ts';
import { faults } from './strict.ts';

const say = (role: Role, ...blocks: readonly (Block | string)[]): Turn => ({
  role,
  blocks: blocks.map((block) => (typeof block === 'string' ? { type: 'text', text: block } : block)),
});

const call = (id: string, input = '{}', more: Partial<Extract<Block, { type: 'tool-call' }>> = {}): Block => ({
  type: 'tool-call',
  id,
  name: 'read',
  kind: 'function',
  input,
  by: 'client',
  ...more,
});

const result = (callId: string, text = 'ok', isError = false): Block => ({
  type: 'tool-result',
  callId,
  kind: 'function',
  content: text === '' ? [] : [{ type: 'text', text }],
  isError,
  by: 'client',
});

const READ: Tool = { type: 'function', name: 'read', schema: { type: 'object', properties: {} } };

function send(
  turns: readonly Turn[],
  more: { settings?: Partial<Settings>; tools?: readonly Tool[]; system?: readonly Block[]; profile?: Partial<Profile> } = {},
) {
  const conversation: Conversation = {
    model: 'm',
    system: more.system ?? [],
    turns,
    tools: more.tools ?? [],
    settings: { stream: false, maxTokens: 4096, ...more.settings },
  };
  const notes = new Notes();
  const body = anthropicMessages.encodeRequest(conversation, target({}, more.profile), notes);
  expect(faults(body)).toEqual([]);
  return { body: JSON.parse(JSON.stringify(body)) as JsonObject, notes: notes.summary(), list: notes.all };
}

const HI = say('user', 'hi');

describe('instructions', () => {
  test('leading system and developer turns become `system`', () => {
    const { body, notes } = send([say('system', 'a'), say('developer', 'b'), HI]);
    expect(body.system).toEqual([{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }]);
    expect(body.messages).toEqual([{ role: 'user', content: [{ type: 'text', text: 'hi' }] }]);
    expect(notes).toBe('');
  });

  test('one alone is a string; an image in it is left out with a note', () => {
    const image: Block = { type: 'media', media: 'image', source: { type: 'url', url: 'https://a/b' } };
    const { body, notes } = send([say('system', 'a', image), HI]);
    expect(body.system).toBe('a');
    expect(notes).toBe('content_dropped');
  });

  test('later ones are user text with a note, or keep their role where the vendor has it', () => {
    const turns = [HI, say('assistant', 'yes'), say('developer', 'be brief'), say('user', 'go')];
    const plain = send(turns);
    expect(plain.body.messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'hi' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'yes' }] },
      { role: 'user', content: [{ type: 'text', text: 'be brief' }, { type: 'text', text: 'go' }] },
    ]);
    expect(plain.notes).toBe('content_bridged');
    const kept = send(turns, { profile: { systemTurns: true } });
    expect((kept.body.messages as readonly JsonObject[]).map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'system',
      'user',
    ]);
    expect(kept.notes).toBe('');
  });
});

describe('messages', () => {
  test('a conversation that begins with the assistant gets a user message before it', () => {
    const { body, notes } = send([say('assistant', 'Hello! '), HI]);
    expect(body.messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: '.' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'Hello! ' }] },
      { role: 'user', content: [{ type: 'text', text: 'hi' }] },
    ]);
    expect(notes).toBe('user_turn_inserted');
  });

  test('a final assistant text loses its blank tail, an earlier one does not', () => {
    const { body } = send([HI, say('assistant', 'a '), HI, say('assistant', 'The answer: \n')]);
    const texts = (body.messages as readonly { content: readonly JsonObject[] }[]).map(
      ({ content }) => content[0]?.text,
    );
    expect(texts).toEqual(['hi', 'a ', 'hi', 'The answer:']);
  });

  test('results lead the user message, all of an assistant message together', () => {
    const { body } = send(
      [HI, say('assistant', call('a'), call('b')), say('user', result('a')), say('user', 'by the way'), say('user', result('b'))],
      { tools: [READ] },
    );
    const [, , answer] = body.messages as readonly { content: readonly JsonObject[] }[];
    expect(answer?.content.map(({ type }) => type)).toEqual(['tool_result', 'tool_result', 'text']);
  });

  test('what the assistant says behind its calls moves before them', () => {
    const { body } = send(
      [HI, say('assistant', call('a')), say('assistant', 'reading'), say('user', result('a'))],
      { tools: [READ] },
    );
    const [, said] = body.messages as readonly { content: readonly JsonObject[] }[];
    expect(said?.content.map(({ type }) => type)).toEqual(['text', 'tool_use']);
  });

  test('blank text and empty messages are not sent', () => {
    const { body } = send([say('user', ''), HI, say('assistant', ' \n'), say('user', 'more')]);
    expect(body.messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'hi' }, { type: 'text', text: 'more' }] },
    ]);
  });

  test('an error without words gets one, since the API refuses it otherwise', () => {
    const { body } = send([HI, say('assistant', call('a'), call('b')), say('user', result('a', '', true), result('b', ''))], { tools: [READ] });
    const [, , answer] = body.messages as readonly { content: readonly JsonObject[] }[];
    expect(answer?.content).toEqual([
      { type: 'tool_result', tool_use_id: 'a', content: 'Error', is_error: true },
      { type: 'tool_result', tool_use_id: 'b', content: '' },
    ]);
  });
});

describe('calls', () => {
  const inputOf = (block: Block) => {
    const { body, notes } = send([HI, say('assistant', block)], { tools: [READ] });
    const [, said] = body.messages as readonly { content: readonly JsonObject[] }[];
    return { input: said?.content[0]?.input as unknown, notes };
  };

  test('arguments are an object whatever the model wrote', () => {
    expect(inputOf(call('a', ''))).toEqual({ input: {}, notes: '' });
    expect(inputOf(call('a', '{"x":[1]}'))).toEqual({ input: { x: [1] }, notes: '' });
    expect(inputOf(call('a', '[1]'))).toEqual({ input: { input: [1] }, notes: 'tool_input_wrapped' });
    expect(inputOf(call('a', '{"x":'))).toEqual({ input: { input: '{"x":' }, notes: 'tool_input_wrapped' });
    expect(inputOf(call('a', 'free', { kind: 'custom' }))).toEqual({ input: { input: 'free' }, notes: '' });
  });

  test('numbers are sent as the model wrote them', () => {
    const conversation: Conversation = {
      model: 'm',
      system: [],
      turns: [HI, say('assistant', call('a', '{"id":12345678901234567890,"f":1.0}'))],
      tools: [READ],
      settings: { stream: false },
    };
    const body = anthropicMessages.encodeRequest(conversation, target(), new Notes());
    expect(JSON.stringify(body)).toContain('{"id":12345678901234567890,"f":1.0}');
  });

  test('foreign ids become legal ones, the same for call and result, the same every time', () => {
    const turns = [HI, say('assistant', call('functions.x:0'), call('call_1')), say('user', result('functions.x:0'), result('call_1'))];
    const ids = () => JSON.stringify(send(turns, { tools: [READ] }).body.messages).match(/(toolu_\w+|call_1)/g);
    const [first, second, third, fourth] = ids() ?? [];
    expect(first).toMatch(/^toolu_[0-9a-f]{16}$/);
    expect([second, third, fourth]).toEqual(['call_1', first, 'call_1'] as string[]);
    expect(ids()?.[0]).toBe(first);
  });

  test('history that calls tools nobody declares: they are declared, and may not be called', () => {
    const { body, notes } = send([HI, say('assistant', call('a')), say('user', result('a'))]);
    expect(body.tools).toEqual([{ name: 'read', input_schema: { type: 'object', properties: {} } }]);
    expect(body.tool_choice).toEqual({ type: 'none' });
    expect(notes).toBe('tools_declared');
  });

  test("a hosted tool's call and result of another vendor are left out with notes", () => {
    const { body, notes } = send([
      HI,
      say('assistant', call('ws_1', '{}', { name: 'web_search', by: 'provider' }), 'Found it.'),
    ]);
    expect(body.messages).toHaveLength(2);
    expect(notes).toBe('content_dropped');
    expect(JSON.stringify(body)).not.toContain('web_search');
  });

  test('a call that the gateway ran is an ordinary call for the model', () => {
    const { body } = send(
      [HI, say('assistant', call('a', '{}', { by: 'gateway' })), say('user', { ...result('a'), by: 'gateway' } as Block)],
      { tools: [READ] },
    );
    expect(JSON.stringify(body.messages)).toContain('"tool_use"');
    expect(JSON.stringify(body.messages)).toContain('"tool_result"');
  });
});

describe('tools', () => {
  test('namespaces, freeform tools, missing schemas, duplicates', () => {
    const { body, notes } = send([HI], {
      tools: [
        { type: 'function', name: 'spawn', namespace: 'agents', description: 'd' },
        { type: 'custom', name: 'apply_patch', format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' } },
        READ,
        READ,
      ],
    });
    expect(body.tools).toEqual([
      { name: 'agents__spawn', description: 'd', input_schema: { type: 'object', properties: {} } },
      {
        name: 'apply_patch',
        description: 'The input follows this grammar:\nstart: "x"',
        input_schema: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'], additionalProperties: false },
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
      options: { filters: { allowed_domains: ['a.b'] }, search_context_size: 'low', user_location: { type: 'approximate', country: 'DE' } },
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
      tools: [{ type: 'hosted', name: 'tool_search', kind: 'tool_search', options: { execution: 'client', description: 'd', parameters: { type: 'object', properties: { query: { type: 'string' } } } } }],
    });
    expect(body.tools).toEqual([
      { name: 'tool_search', description: 'd', input_schema: { type: 'object', properties: { query: { type: 'string' } } } },
    ]);
  });

  test('alternatives at the root of a schema are merged', () => {
    const schema = { anyOf: [{ properties: { a: {} }, required: ['a'] }, { properties: { b: {} }, required: ['a', 'b'] }] };
    const { body, notes } = send([HI], { tools: [{ type: 'function', name: 'f', schema }] });
    expect(body.tools).toEqual([
      { name: 'f', input_schema: { type: 'object', properties: { a: {}, b: {} }, required: ['a'] } },
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
    expect(choice({ toolChoice: { type: 'tool', name: 'read', kind: 'function' } }).choice).toEqual({ type: 'tool', name: 'read' });
    expect(choice({ parallelTools: false }).choice).toEqual({ type: 'auto', disable_parallel_tool_use: true });
    expect(choice({ toolChoice: { type: 'none' }, parallelTools: false }).choice).toEqual({ type: 'none' });
    expect(choice({ toolChoice: { type: 'tool', name: 'gone', kind: 'function' } })).toMatchObject({ choice: undefined, notes: 'parameter_dropped' });
    expect(choice({ toolChoice: { type: 'allowed', mode: 'required', names: ['read'] } })).toEqual({ choice: { type: 'any' }, count: 1, notes: 'parameter_mapped' });
    expect(choice({ toolChoice: { type: 'required' } }, { toolChoices: ['auto'] })).toMatchObject({ choice: { type: 'auto' }, notes: 'parameter_mapped' });
    expect(choice({ parallelTools: false }, { parallelToolsParam: false })).toMatchObject({ choice: undefined, notes: 'parameter_dropped' });
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
    const [, said] = body.messages as readonly { content: readonly JsonObject[] }[];
    return { first: said?.content[0], notes };
  };

  test('only what this provider sealed goes back as thinking', () => {
    expect(thought(sealed({}))).toEqual({ first: { type: 'thinking', thinking: 'hmm', signature: 'sig' }, notes: '' });
    expect(thought(sealed({ provider: 'up' })).notes).toBe('');
    expect(thought(sealed({ kind: 'redacted', value: 'data' })).first).toEqual({ type: 'redacted_thinking', data: 'data' });
    for (const foreign of [
      sealed({ protocol: 'openai-responses' }),
      sealed({ provider: 'another' }),
      sealed({ value: '' }),
      { type: 'reasoning', text: 'hmm' } as Block,
    ]) {
      expect(thought(foreign)).toEqual({ first: { type: 'text', text: 'x' }, notes: 'reasoning_dropped' });
    }
  });

  test('an empty signature goes back to the vendor that does not sign, and wants its thinking back', () => {
    const turns = [HI, say('assistant', sealed({ provider: 'up', value: '' }), 'x'), HI];
    const conversation = { model: 'm', system: [], turns, tools: [], settings: { stream: false } };
    const body = anthropicMessages.encodeRequest(conversation, target(), new Notes());
    expect((body.messages as readonly { content: readonly JsonObject[] }[])[1]?.content[0]).toEqual({
      type: 'thinking',
      thinking: 'hmm',
      signature: '',
    });
  });

  const thinking = (settings: Partial<Settings>, profile: Partial<Profile> = {}) => {
    const { body, notes } = send([HI], { settings, tools: [READ], profile });
    const { max_tokens, thinking, output_config, temperature } = body;
    return { max_tokens, thinking, output_config, temperature, notes };
  };

  test('an effort is a budget below the cap', () => {
    expect(thinking({ maxTokens: 64000, reasoning: { effort: 'high' } })).toMatchObject({
      max_tokens: 64000,
      thinking: { type: 'enabled', budget_tokens: 16384 },
      notes: 'parameter_mapped',
    });
    expect(thinking({ maxTokens: 4096, reasoning: { effort: 'high' } }).thinking).toEqual({ type: 'enabled', budget_tokens: 2048 });
    expect(thinking({ maxTokens: 1500, reasoning: { effort: 'high' } })).toMatchObject({ thinking: undefined, notes: 'parameter_mapped,parameter_dropped' });
    expect(thinking({ maxTokens: undefined, reasoning: { effort: 'high' } })).toMatchObject({ max_tokens: 16384 + 8192 });
    expect(thinking({ reasoning: { effort: 'none' } }).thinking).toEqual({ type: 'disabled' });
    expect(thinking({ reasoning: { summary: 'auto' } }).thinking).toBeUndefined();
  });

  test('where the model decides, the effort is said', () => {
    const adaptive = { adaptiveThinking: true };
    expect(thinking({ reasoning: { effort: 'minimal', summary: 'auto' } }, adaptive)).toMatchObject({
      thinking: { type: 'adaptive', display: 'summarized' },
      output_config: { effort: 'low' },
    });
    expect(thinking({ reasoning: { budget: 20000 } }, adaptive).output_config).toEqual({ effort: 'high' });
  });

  test('thinking excludes a temperature and a forced tool', () => {
    expect(thinking({ maxTokens: 64000, temperature: 0.2, reasoning: { budget: 2000 } })).toMatchObject({ temperature: undefined, notes: 'parameter_dropped' });
    expect(thinking({ reasoning: { budget: 2000 }, toolChoice: { type: 'required' } })).toMatchObject({ thinking: undefined, notes: 'parameter_dropped' });
  });

  test('an open tool loop whose thinking was foreign goes out without thinking', () => {
    const loop = [HI, say('assistant', { type: 'reasoning', text: 'r' }, call('a')), say('user', result('a'))];
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
  test('a missing cap is filled in, by the profile where it knows one', () => {
    const { body, notes } = send([HI], { settings: { maxTokens: undefined } });
    expect(body.max_tokens).toBe(8192);
    expect(notes).toBe('parameter_defaulted');
    expect(send([HI], { settings: { maxTokens: undefined }, profile: { defaultMaxTokens: 100 } }).body.max_tokens).toBe(100);
  });

  test('what has no word here is named in a note', () => {
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
    expect(list.map(({ where }) => where).sort()).toEqual(
      ['do_sample', 'frequency_penalty', 'include', 'logit_bias', 'logprobs', 'metadata', 'n', 'presence_penalty', 'prompt_cache_key', 'response_format', 'seed', 'store', 'verbosity'],
    );
  });

  test('what means nothing is no note', () => {
    expect(send([HI], { settings: { n: 1, presencePenalty: 0, store: false, include: ['reasoning.encrypted_content'] } }).notes).toBe('');
  });

  test('temperature is brought into range, blank stops go, the rest is renamed', () => {
    const { body, notes } = send([HI], {
      settings: { temperature: 1.7, topP: 0.5, topK: 3, stop: ['a', ' '], user: 'u', serviceTier: 'default', stream: true },
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

  test('an output schema is sent without what is refused there', () => {
    const schema = {
      $schema: 'x',
      type: 'object',
      properties: {
        pattern: { type: 'string', pattern: 'a', format: 'date' },
        n: { type: 'array', items: { oneOf: [{ type: 'number', minimum: 1 }] }, minItems: 1 },
      },
      required: ['pattern'],
    };
    const { body, list } = send([HI], { settings: { format: { type: 'schema', name: 'x', schema } } });
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
    expect(list).toEqual([{ name: 'schema_simplified', where: 'output_config.format', what: 'minimum, pattern' }]);
  });
});

describe('media', () => {
  const sent = (source: unknown, media = 'image', profile: Partial<Profile> = {}) => {
    const block = { type: 'media', media, source, filename: 'f.x' } as Block;
    const { body, notes } = send([say('user', block)], { profile });
    return { block: (body.messages as readonly { content: readonly JsonObject[] }[])[0]?.content[0], notes };
  };

  test('a data URL is bytes', () => {
    expect(sent({ type: 'url', url: 'data:image/png;base64,aGk=' }).block).toEqual({
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: 'aGk=' },
    });
  });

  test('a text file is a text document', () => {
    expect(sent({ type: 'base64', mediaType: 'text/csv', data: 'YSxi' }, 'document').block).toEqual({
      type: 'document',
      source: { type: 'text', media_type: 'text/plain', data: 'a,b' },
      title: 'f.x',
    });
  });

  test('what cannot be sent is a line of text, with a note', () => {
    for (const { block, notes } of [
      sent({ type: 'base64', mediaType: 'image/bmp', data: 'aGk=' }),
      sent({ type: 'file-id', id: 'file-1' }),
      sent({ type: 'url', url: 'https://a/b.png' }, 'image', { images: false }),
      sent({ type: 'base64', mediaType: 'application/pdf', data: 'aGk=' }, 'document', { documents: false }),
      sent({ type: 'base64', mediaType: 'audio/wav', data: 'aGk=' }, 'audio'),
    ]) {
      expect(block).toEqual({ type: 'text', text: expect.stringMatching(/^\[(image|document|audio) f\.x omitted\]$/) });
      expect(notes).toBe('content_bridged');
    }
  });
});

describe('edits of a request that came on this wire', () => {
  const body = {
    model: 'm',
    max_tokens: 4000,
    system: [{ type: 'text', text: 'x-anthropic-billing-header: v=1;' }, { type: 'text', text: 's', cache_control: { type: 'ephemeral' } }],
    messages: [
      { role: 'user', content: 'go' },
      { role: 'system', content: 'careful', output_config: { effort: 'low' } },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 't', signature: 'sig' },
          { type: 'tool_use', id: 'a', name: 'bash', input: { command: 'ls' }, caller: { type: 'direct' } },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'out', is_error: false, cache_control: { type: 'ephemeral', ttl: '1h' } }] },
    ],
    tools: [{ type: 'bash_20250124', name: 'bash' }, { type: 'web_search_20250305', name: 'web_search', max_uses: 8 }],
    thinking: { type: 'enabled', budget_tokens: 2000 },
    metadata: { user_id: 'u' },
    output_config: { effort: 'high', task_budget: 5 },
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }, { type: 'clear_tool_uses_20250919' }] },
  };
  const asked = anthropicMessages.decodeRequest(body);
  const encode = (conversation: Conversation) =>
    JSON.parse(JSON.stringify(anthropicMessages.encodeRequest(conversation, target({ model: 'm' }), new Notes())));

  test('the billing header has no text, client-run tools have a schema, hosted ones a name', () => {
    expect(asked.system[0]).toMatchObject({ type: 'opaque', name: 'billing_header' });
    expect(asked.system[0]).not.toHaveProperty('text');
    expect(asked.tools[0]).toMatchObject({ type: 'function', name: 'bash', schema: { type: 'object' } });
    expect(asked.tools[1]).toMatchObject({ type: 'hosted', name: 'web_search', kind: 'web_search_20250305', options: { max_uses: 8 } });
  });

  test('one result changed: everything else stays to the letter', () => {
    const turns = asked.turns.map((turn, i) => {
      if (i !== 3) return turn;
      const block = turn.blocks[0] as Extract<Block, { type: 'tool-result' }>;
      return edited(turn, { blocks: [edited(block, { content: [{ type: 'text', text: 'short' }] })] });
    });
    const expected = structuredClone(body) as typeof body;
    (expected.messages[3]!.content as JsonObject[])[0] = { type: 'tool_result', tool_use_id: 'a', content: 'short', is_error: false, cache_control: { type: 'ephemeral', ttl: '1h' } };
    expect(encode(withParts(asked, { turns }))).toEqual(expected);
  });

  test('a call changed keeps its fields of no meaning', () => {
    const turns = asked.turns.map((turn) => edited(turn, { blocks: turn.blocks.map((block) => (block.type === 'tool-call' ? edited(block, { id: 'b' }) : block)) }));
    const messages = encode(withParts(asked, { turns })).messages;
    expect(messages[2].content[1]).toEqual({ type: 'tool_use', id: 'b', name: 'bash', input: { command: 'ls' }, caller: { type: 'direct' } });
    expect(messages[0]).toEqual(body.messages[0]);
  });

  test('thinking taken away in the open loop: the parameter goes too, and the edit that needs it', () => {
    const turns = asked.turns.map((turn) => (turn.role === 'assistant' ? edited(turn, { blocks: turn.blocks.slice(1) }) : turn));
    const sent = encode(withParts(asked, { turns }));
    expect(sent.thinking).toBeUndefined();
    expect(sent.context_management).toEqual({ edits: [{ type: 'clear_tool_uses_20250919' }] });
  });

  test('one setting changed: the others stay as they were', () => {
    const sent = encode(withParts(asked, { settings: { ...asked.settings, temperature: 1, maxTokens: 5000, user: 'v' } }));
    expect(sent).toEqual({ ...body, max_tokens: 5000, temperature: 1, metadata: { user_id: 'v' } });
    const off = encode(withParts(asked, { settings: { ...asked.settings, reasoning: undefined } }));
    expect(off.thinking).toBeUndefined();
    expect(off.output_config).toEqual({ task_budget: 5 });
  });

  test('all tools taken away: no choice among nothing', () => {
    const chosen = anthropicMessages.decodeRequest({ ...body, tool_choice: { type: 'tool', name: 'web_search' } });
    expect(chosen.settings.toolChoice).toEqual({ type: 'tool', name: 'web_search', kind: 'hosted' });
    const sent = encode(withParts(chosen, { tools: [] }));
    expect(sent).not.toHaveProperty('tools');
    expect(sent).not.toHaveProperty('tool_choice');
  });

  test("thinking that carries another vendor's seal never reaches a Messages upstream", () => {
    const signature = carrySeal({ protocol: 'openai-responses', provider: 'oa', kind: 'encrypted', value: 'gAAA' });
    const carried = anthropicMessages.decodeRequest({
      ...body,
      messages: [{ role: 'user', content: 'go' }, { role: 'assistant', content: [{ type: 'thinking', thinking: 't', signature }, { type: 'text', text: 'x' }] }, { role: 'user', content: 'on' }],
    });
    expect(carried.turns[1]!.blocks[0]).toMatchObject({ type: 'reasoning', sealed: { protocol: 'openai-responses', provider: 'oa', value: 'gAAA' } });
    const notes = new Notes();
    const sent = anthropicMessages.encodeRequest(carried, target(), notes);
    expect(JSON.stringify(sent)).not.toContain('hopgate1.');
    expect((sent.messages as readonly JsonObject[])[1]).toEqual({ role: 'assistant', content: [{ type: 'text', text: 'x' }] });
    expect(notes.summary()).toBe('reasoning_dropped');
  });
});
