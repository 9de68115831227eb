/** Generated conversations of other protocols become Messages requests without structural faults. */

import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type {
  Block,
  Conversation,
  Role,
  Sealed,
  Settings,
  Tool,
  ToolChoice,
  Turn,
} from '../../../src/conversation/types.ts';
import { isObject, type JsonObject } from '../../../src/lib/json/json.ts';
import { target } from './recorded.ts';
import { faults } from './strict.ts';

const anyText = fc.oneof(fc.string(), fc.constantFrom('', ' ', '\n\n', 'hello', 'bye  ', '日本 '));
const ids = fc.constantFrom(
  'call_1',
  'functions.x:0',
  'functions.x:1',
  'call_-78',
  '',
  'a b',
  'toolu_9',
);
const names = fc.constantFrom(
  'read',
  'mcp.files/read',
  'apply_patch',
  'x'.repeat(200),
  'web_search',
);
const inputs = fc.constantFrom(
  '',
  '{}',
  '{"a":1.0}',
  '[1]',
  '"x"',
  '{"a":',
  'null',
  '{"n":12345678901234567890}',
);

const seals = fc.option(
  fc.record({
    protocol: fc.constantFrom('anthropic-messages', 'openai-chat', 'openai-responses'),
    provider: fc.constantFrom('up', 'other', undefined),
    kind: fc.constantFrom('signature', 'encrypted', 'redacted'),
    value: fc.constantFrom('sig', 'c2ln'),
  }) as fc.Arbitrary<Sealed>,
  { nil: undefined },
);

const media = fc.record({
  type: fc.constant('media'),
  media: fc.constantFrom('image', 'document', 'audio'),
  source: fc.oneof(
    fc.record({
      type: fc.constant('url'),
      url: fc.constantFrom(
        'https://a/b.png',
        'data:image/png;base64,aGk=',
        'data:image/bmp;base64,aGk=',
        'ftp://x',
        'data:,hi',
      ),
    }),
    fc.record({
      type: fc.constant('base64'),
      mediaType: fc.constantFrom(
        'image/png',
        'image/tiff',
        'application/pdf',
        'text/csv',
        'application/zip',
      ),
      data: fc.constant('aGk='),
    }),
    fc.record({ type: fc.constant('file-id'), id: fc.constant('file-1') }),
    fc.record({ type: fc.constant('text'), mediaType: fc.constant('text/plain'), text: anyText }),
  ),
});

const opaque = fc.record({
  type: fc.constant('opaque'),
  name: fc.constant('item'),
  text: fc.option(anyText, { nil: undefined }),
  wire: fc.constant({ protocol: 'openai-responses', value: { type: 'item' } }),
});

const text = fc.record({ type: fc.constant('text'), text: anyText });
const result = fc.record({
  type: fc.constant('tool-result'),
  callId: ids,
  kind: fc.constantFrom('function', 'custom', 'tool-search'),
  content: fc.array(fc.oneof(text, media, opaque), { maxLength: 3 }),
  isError: fc.boolean(),
  by: fc.constantFrom('client', 'gateway', 'provider'),
});
const call = fc.record({
  type: fc.constant('tool-call'),
  id: ids,
  name: names,
  namespace: fc.option(fc.constantFrom('ns', 'agents.v1'), { nil: undefined }),
  kind: fc.constantFrom('function', 'custom', 'tool-search'),
  input: inputs,
  by: fc.constantFrom('client', 'gateway', 'provider'),
});
const reasoning = fc.record({ type: fc.constant('reasoning'), text: anyText, sealed: seals });
const refusal = fc.record({ type: fc.constant('refusal'), text: anyText });

const some = (...kinds: readonly fc.Arbitrary<unknown>[]) =>
  fc.array(fc.oneof(...kinds), { maxLength: 4 }) as fc.Arbitrary<Block[]>;

const turn = (role: Role, blocks: fc.Arbitrary<Block[]>): fc.Arbitrary<Turn> =>
  blocks.map((list) => ({ role, blocks: list }));

const turns = fc.array(
  fc.oneof(
    turn('system', some(text, media)),
    turn('developer', some(text)),
    turn('user', some(text, media, opaque, result)),
    turn('user', some(result)),
    turn('assistant', some(text, call, reasoning, refusal, opaque)),
    turn('assistant', some(call)),
    turn('assistant', some(reasoning)),
  ),
  { maxLength: 10 },
);

const schemas = fc.constantFrom<JsonObject | undefined>(
  undefined,
  {},
  { type: 'object', properties: { a: { type: 'string' } } },
  { anyOf: [{ properties: { a: {} }, required: ['a'] }, { properties: { b: {} } }] },
);
const tools = fc.array(
  fc.oneof(
    fc.record({
      type: fc.constant('function'),
      name: names,
      namespace: fc.constantFrom(undefined, 'ns'),
      schema: schemas,
      strict: fc.constantFrom(undefined, true, false),
      deferred: fc.constantFrom(undefined, true),
    }),
    fc.record({
      type: fc.constant('custom'),
      name: names,
      format: fc.constant({ type: 'grammar', definition: 'start: "x"' }),
    }),
    fc.record({
      type: fc.constant('hosted'),
      name: fc.constantFrom('web_search', 'tool_search', 'image_generation'),
      kind: fc.constant('x'),
      options: fc.constantFrom(
        {},
        { execution: 'client', parameters: { type: 'object' } },
        { filters: { allowed_domains: ['a.b'] } },
      ),
    }),
  ),
  { maxLength: 4 },
) as fc.Arbitrary<Tool[]>;

const choices = fc.oneof(
  fc.constantFrom<ToolChoice>({ type: 'auto' }, { type: 'none' }, { type: 'required' }),
  names.map((name): ToolChoice => ({ type: 'tool', name, kind: 'function' })),
  fc.array(names).map((list): ToolChoice => ({ type: 'allowed', mode: 'required', names: list })),
);

const settings = fc.record(
  {
    stream: fc.boolean(),
    maxTokens: fc.constantFrom(16, 1500, 3000, 64000),
    temperature: fc.constantFrom(0, 0.7, 1, 2),
    topP: fc.constantFrom(0.5, 1),
    topK: fc.constant(5),
    stop: fc.array(anyText, { maxLength: 3 }),
    seed: fc.constant(1),
    n: fc.constantFrom(1, 3),
    toolChoice: choices,
    parallelTools: fc.boolean(),
    reasoning: fc.constantFrom(
      { effort: 'none' },
      { effort: 'minimal' },
      { effort: 'high' },
      { effort: 'xhigh', summary: 'auto' },
      { enabled: true },
      { budget: 9 },
      { budget: 50000 },
      { summary: 'auto' },
    ),
    format: fc.constantFrom(
      { type: 'json' } as const,
      {
        type: 'schema',
        schema: { type: 'object', properties: { a: { type: 'number', minimum: 1 } } },
      } as const,
    ),
    user: fc.constant('u'),
    serviceTier: fc.constantFrom('auto', 'default', 'flex'),
  },
  { requiredKeys: ['stream'] },
) as fc.Arbitrary<Settings>;

const conversations: fc.Arbitrary<Conversation> = fc.record({
  model: fc.constant('m'),
  system: some(text),
  turns,
  tools,
  settings,
});

const profiles = fc.constantFrom(
  {},
  { adaptiveThinking: true, systemTurns: true },
  { hostedTools: ['web_search'], images: false, documents: false },
  { toolChoices: ['auto'] as const, parallelToolsParam: false, jsonSchema: false },
  { imagesInResults: false, defaultMaxTokens: 500 },
);

const SEED = 20261121;

test('any conversation becomes a request without structural faults', () => {
  fc.assert(
    fc.property(conversations, profiles, (conversation, profile) => {
      const request = anthropicMessages.encodeRequest(
        conversation,
        target({}, profile),
        new Notes(),
      );
      expect(faults(request)).toEqual([]);
    }),
    { numRuns: 3000, seed: SEED },
  );
});

test('encoding is deterministic, notes included', () => {
  fc.assert(
    fc.property(conversations, (conversation) => {
      const [a, b] = [new Notes(), new Notes()];
      const first = anthropicMessages.encodeRequest(conversation, target(), a);
      const second = anthropicMessages.encodeRequest(conversation, target(), b);
      return JSON.stringify([first, a.all]) === JSON.stringify([second, b.all]);
    }),
    { numRuns: 300, seed: SEED },
  );
});

test('an encoded request decodes, and encodes again unchanged', () => {
  fc.assert(
    fc.property(conversations, (conversation) => {
      const request = anthropicMessages.encodeRequest(conversation, target(), new Notes());
      const wire = JSON.parse(JSON.stringify(request)) as JsonObject;
      const again = anthropicMessages.decodeRequest(wire);
      expect(anthropicMessages.encodeRequest(again, target(), new Notes()) as unknown).toEqual(
        wire,
      );
    }),
    { numRuns: 300, seed: SEED },
  );
});

test('a longer conversation begins with the messages of the shorter one', () => {
  const exchange = fc.tuple(
    turn(
      'user',
      some(text).map((list) => [...list, { type: 'text', text: 'go' } as Block]),
    ),
    turn(
      'assistant',
      some(text, call, reasoning).map((list) => [...list, { type: 'text', text: 'ok' } as Block]),
    ),
  );
  fc.assert(
    fc.property(fc.array(exchange, { minLength: 2, maxLength: 5 }), tools, (pairs, list) => {
      const all = pairs.flat();
      const messages = (count: number) => {
        const conversation: Conversation = {
          model: 'm',
          system: [],
          turns: all.slice(0, count),
          tools: list,
          settings: { stream: false },
        };
        const body = anthropicMessages.encodeRequest(conversation, target(), new Notes());
        return body.messages as readonly JsonObject[];
      };
      const shorter = messages(all.length - 1);
      expect(messages(all.length).slice(0, shorter.length)).toEqual([...shorter]);
    }),
    { numRuns: 300, seed: SEED },
  );
});

test('call ids stay distinct, and results keep theirs', () => {
  const wild = fc.uniqueArray(fc.string({ maxLength: 12 }), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(wild, (list) => {
      const calls = list.map(
        (id): Block => ({
          type: 'tool-call',
          id,
          name: 'f',
          kind: 'function',
          input: '{}',
          by: 'client',
        }),
      );
      const results = list.map(
        (callId): Block => ({
          type: 'tool-result',
          callId,
          kind: 'function',
          content: [{ type: 'text', text: `r ${callId}` }],
          isError: false,
          by: 'client',
        }),
      );
      const conversation: Conversation = {
        model: 'm',
        system: [],
        turns: [
          { role: 'user', blocks: [{ type: 'text', text: 'go' }] },
          { role: 'assistant', blocks: calls },
          { role: 'user', blocks: results },
        ],
        tools: [],
        settings: { stream: false },
      };
      const body = anthropicMessages.encodeRequest(conversation, target(), new Notes());
      const [, content, answered] = body.messages as readonly JsonObject[];
      const idsOf = (message: JsonObject | undefined, key: string) =>
        ((message?.content ?? []) as readonly JsonObject[])
          .filter(isObject)
          .map((block) => String(block[key]));
      const made = idsOf(content, 'id');
      expect(new Set(made).size).toBe(list.length);
      expect(idsOf(answered, 'tool_use_id')).toEqual(made);
      list.forEach((id, i) => {
        if (/^[a-zA-Z0-9_-]+$/.test(id)) expect(made[i]).toBe(id);
      });
    }),
    { numRuns: 300, seed: SEED },
  );
});
