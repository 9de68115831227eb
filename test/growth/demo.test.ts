/** The demo model answers hostile prompts and schemas in bounded time: expensive ones get a plain answer. */

import { describe, test } from 'bun:test';
import { demoTransport } from '../../src/upstream/demo/index.ts';
import { estimateTokens } from '../../src/upstream/demo/request.ts';
import { expectCpuBelow } from '../support/cpu-time.ts';

const request = demoTransport({ pace: 0, now: () => 0 });
const send = async (body: unknown): Promise<Response> => {
  const response = await request({
    path: '/chat/completions',
    headers: new Headers(),
    body: Buffer.from(JSON.stringify(body)),
    signal: new AbortController().signal,
  });
  if (response.status !== 200) throw new Error(await response.text());
  return response;
};
/** Milliseconds of CPU for a body of a megabyte, including its parsing; quadratic work takes minutes. */
const MAX_MS = 500;
const MEGABYTE = 1024 * 1024;
const user = (content: string) => [{ role: 'user', content }];
const TOOLS = ['read_file', 'write_file', 'bash', 'get_weather', 'recall_memory'].map((name) => ({
  type: 'function',
  function: {
    name,
    parameters: {
      type: 'object',
      properties: { path: { type: 'string' }, content: {}, command: {}, city: {}, expression: {} },
      required: ['path', 'city', 'expression'],
    },
  },
}));

describe('prompts', () => {
  const texts: Readonly<Record<string, string>> = {
    slashes: '/',
    dots: 'a.',
    'names of files': 'create file a/b.txt with ',
    blanks: ' \t',
    'lines and blanks': 'create "a.txt" \n   ',
    counts: 'count to ',
    reminders: '<system-reminder>',
    tags: '<a>',
    'closed tags': '<a> </a> ',
    quotes: 'write "',
    brackets: '((((1+',
    capitals: 'in A',
    'Chinese letters': '天气你好',
    'a saying': 'often say “',
    'questions of the past': 'do you remember what we said about Rex ',
    'two at once': 'both and twice ',
    'a tool by name': 'get_weather ',
    addresses: 'https://a.b/c ',
    digits: '1',
  };
  for (const [name, piece] of Object.entries(texts)) {
    for (const [role, messages] of [
      ['user', (text: string) => user(text)],
      [
        'system',
        (text: string) => [{ role: 'system', content: text }, ...user('hello, remember?')],
      ],
      [
        'tool',
        (text: string) => [
          ...user('q'),
          {
            role: 'assistant',
            tool_calls: [
              { id: 'c', type: 'function', function: { name: 'recall_memory', arguments: '{}' } },
            ],
          },
          {
            role: 'tool',
            tool_call_id: 'c',
            content: JSON.stringify({ events: [{ text, source: 'a' }] }),
          },
        ],
      ],
    ] as const) {
      test(`${name} of a ${role}`, async () => {
        const text = `${piece.repeat(MEGABYTE / piece.length)}x`;
        const body = { model: 'demo', messages: messages(text), tools: TOOLS };
        await expectCpuBelow(MAX_MS, () => send(body));
      });
    }
  }
  test('many tools and many stops take linear time', async () => {
    const tool = (n: number) => ({
      type: 'function',
      function: { name: `tool_${n}`, description: 'weather words' },
    });
    const tools = Array.from({ length: 8000 }, (_, n) => tool(n));
    const body = {
      model: 'demo',
      messages: user(`say ${'weather '.repeat(MEGABYTE / 8)}`),
      tools,
      stop: Array.from({ length: 8000 }, (_, n) => `stop ${n}`),
      tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools } },
    };
    await expectCpuBelow(2 * MAX_MS, () => send(body));
  });
  test('tokens are counted in one pass', async () => {
    for (const piece of ['a', '字', '\n ']) {
      const text = piece.repeat(MEGABYTE);
      await expectCpuBelow(MAX_MS, () => estimateTokens(text));
    }
  });
});

describe('schemas without a cheap answer', () => {
  const nested = (depth: number, wrap: (inner: unknown) => unknown): unknown => {
    let out: unknown = { type: 'string' };
    for (let i = 0; i < depth; i++) out = wrap(out);
    return out;
  };
  const many = (count: number, one: (n: number) => unknown) =>
    Array.from({ length: count }, (_, n) => one(n));
  const named = (count: number, one: (n: number) => unknown) =>
    Object.fromEntries(many(count, (n) => [`p${n}`, one(n)]) as [string, unknown][]);
  const string = (more: object) => ({ type: 'string', ...more });
  const schemas: Readonly<Record<string, unknown>> = {
    'a very long text': string({ minLength: 1e9 }),
    'a long text that is made': string({ minLength: 9000, maxLength: 9001 }),
    'a pattern of a very long text': string({ pattern: '^a{100000000}$' }),
    'patterns in patterns': string({ pattern: '^((((a{999}){999}){999}){999})$' }),
    'very many nothings': string({ pattern: '^(){999999999}$' }),
    'a pattern that doubles': string({ pattern: '^(a+)+$', minLength: 40, maxLength: 60 }),
    'one that doubles with each choice': string({ pattern: '^(a|a|aa)*b$', minLength: 60 }),
    'three within each other': string({ pattern: '^(((a+)+)+)+b$', minLength: 30 }),
    'a power of the length': string({ pattern: 'a*a*a*a*a*a*b', minLength: 5000 }),
    'blanks before an end': string({
      pattern: '\\s+$',
      minLength: 9000,
      default: `${' '.repeat(9000)}x`,
    }),
    'open brackets': string({ pattern: '['.repeat(400) }),
    'open groups': string({ pattern: '('.repeat(400_000) }),
    'a pattern of a megabyte': string({ pattern: 'a?'.repeat(500_000) }),
    'very many items': { type: 'array', items: { type: 'string' }, minItems: 1e9 },
    'items that all differ': {
      type: 'array',
      items: { type: 'integer' },
      minItems: 20_000,
      uniqueItems: true,
    },
    'items that must be contained': {
      type: 'array',
      contains: { type: 'integer' },
      minContains: 1e9,
    },
    'very many properties': {
      type: 'object',
      properties: named(20_000, () => ({ type: 'string' })),
      required: many(20_000, (n) => `p${n}`),
    },
    'properties with a limit': {
      type: 'object',
      properties: named(20_000, () => ({ type: 'string' })),
      required: many(20_000, (n) => `p${n}`),
      maxProperties: 30_000,
    },
    'properties by patterns': {
      type: 'object',
      minProperties: 20,
      patternProperties: named(5000, (n) => ({ const: n })),
    },
    'deep properties': nested(5000, (inner) => ({
      type: 'object',
      properties: { a: inner },
      required: ['a'],
    })),
    'deep lists': nested(5000, (items) => ({ type: 'array', items, minItems: 1 })),
    'deep conjunctions': nested(5000, (inner) => ({ allOf: [inner] })),
    'branching choices': nested(18, (inner) => ({ oneOf: [inner, inner] })),
    'branching conjunctions': nested(16, (inner) => ({ allOf: [inner, inner] })),
    'conditions within conditions': nested(8, (inner) => ({
      if: inner,
      // biome-ignore lint/suspicious/noThenProperty: a JSON Schema keyword
      then: inner,
      else: inner,
    })),
    'very many choices': { anyOf: many(20_000, (n) => ({ type: 'integer', const: n, not: {} })) },
    'a long enumeration': {
      enum: many(50_000, (n) => `${n}`),
      not: { enum: many(50_000, (n) => `${n}`) },
    },
    'references in circles': {
      $defs: {
        a: { oneOf: [{ $ref: '#/$defs/b' }, { $ref: '#/$defs/a' }] },
        b: { allOf: [{ $ref: '#/$defs/a' }] },
      },
      $ref: '#/$defs/a',
    },
    'references by name': {
      type: 'object',
      $defs: named(5000, (n) => ({ $anchor: `x${n}` })),
      properties: named(2000, () => ({ $ref: '#nowhere' })),
      required: many(2000, (n) => `p${n}`),
    },
    'a number that is hard to find': { type: 'number', multipleOf: 1e-300, minimum: 1e300 },
  };
  for (const [name, schema] of Object.entries(schemas)) {
    test(name, async () => {
      const body = (more: object) => ({ model: 'demo', messages: user('go'), ...more });
      const format = { type: 'json_schema', json_schema: { name: 's', schema } };
      const tools = [
        {
          type: 'function',
          function: {
            name: 'f',
            parameters: { type: 'object', properties: { x: schema }, required: ['x'] },
          },
        },
      ];
      for (const more of [{ response_format: format }, { tools, tool_choice: 'required' }]) {
        await expectCpuBelow(MAX_MS, () => send(body(more)));
      }
    });
  }
});
