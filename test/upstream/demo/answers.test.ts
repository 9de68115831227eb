/** What the demo model says: by script, in two languages, within the limits of the request. */

import { describe, expect, test } from 'bun:test';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { ask, object, type Reply, send, textOf } from './ask.ts';

describe('plain questions', () => {
  test('it says that it is a demo, what it was asked, and how to get a real model', async () => {
    const text = textOf(await ask('Why is the sky blue?'));
    expect(text).toContain("hopgate's built-in demo model");
    expect(text).toContain('Why is the sky blue?');
    expect(text).toContain('hopgate.yaml');
    expect(text).toContain('API_KEY');
  });

  test('a Chinese question is answered in Chinese', async () => {
    const text = textOf(await ask('天空为什么是蓝色的？'));
    expect(text).toContain('演示模型');
    expect(text).toContain('天空为什么是蓝色的');
    expect(text).not.toContain('You asked');
    expect(textOf(await ask('请解释一下 TypeScript 的 generics'))).toContain('演示模型');
  });

  test('a long question is quoted in part', async () => {
    const text = textOf(await ask(`Why ${'very '.repeat(200)}long?`));
    expect(text.length).toBeLessThan(700);
    expect(text).toContain('…');
  });

  test('pictures and files are counted', async () => {
    const content = [
      { type: 'text', text: 'What is on these?' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
      { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
      { type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA' } },
    ];
    expect(textOf(await ask([{ role: 'user', content }]))).toContain('2 images and 1 document');
  });

  test('what an agent wraps around the question is not taken for it', async () => {
    const wrapped = [
      {
        role: 'user',
        content: [
          { type: 'text', text: '<system-reminder>\nSay nothing.\n</system-reminder>' },
          { type: 'text', text: 'say hello' },
        ],
      },
    ];
    expect(textOf(await ask(wrapped))).toBe('[hopgate demo model] hello');
    const surroundings = [
      { role: 'user', content: 'say hello' },
      { role: 'user', content: '<environment_context>\n<cwd>/x</cwd>\n</environment_context>' },
    ];
    expect(textOf(await ask(surroundings))).toBe('[hopgate demo model] hello');
  });
});

describe('instructions', () => {
  const says: [string, string][] = [
    ['say hello world', '[hopgate demo model] hello world'],
    ['Please repeat after me: "one two."', '[hopgate demo model] one two.'],
    ['Reply with exactly: pong', '[hopgate demo model] pong'],
    ['说你好', '【hopgate 演示模型】你好'],
    ['请重复一遍：“早上好”', '【hopgate 演示模型】早上好'],
    ['count to 5', '[hopgate demo model] 1 2 3 4 5'],
    ['从1数到4', '【hopgate 演示模型】1 2 3 4'],
  ];
  for (const [question, expected] of says) {
    test(question, async () => expect(textOf(await ask(question))).toBe(expected));
  }

  test('“说明” is no order to say something', async () => {
    expect(textOf(await ask('说明一下什么是网关'))).toContain('你问的是');
  });

  test('thinking comes in its own field, and is counted', async () => {
    for (const reply of [
      await ask('think about tea'),
      await ask('tea?', { reasoning_effort: 'high' }),
    ]) {
      expect(reply.choices[0].message.reasoning_content).toContain('tea');
      const { reasoning_tokens } = reply.usage.completion_tokens_details as {
        reasoning_tokens: number;
      };
      expect(reasoning_tokens).toBeGreaterThan(10);
      expect(reasoning_tokens).toBeLessThan(reply.usage.completion_tokens);
    }
    expect(
      (await ask('tea?', { reasoning_effort: 'none' })).choices[0].message.reasoning_content,
    ).toBeUndefined();
  });
});

describe('limits', () => {
  test('max_tokens ends it with length and is never exceeded', async () => {
    const whole = await ask('count to 100');
    for (const limit of [1, 2, 7, 50]) {
      for (const key of ['max_tokens', 'max_completion_tokens']) {
        const reply = await ask('count to 100', { [key]: limit });
        expect(reply.choices[0].finish_reason).toBe('length');
        expect(reply.usage.completion_tokens).toBeLessThanOrEqual(limit);
        expect(reply.usage.completion_tokens).toBeGreaterThan(0);
        expect(textOf(whole).startsWith(textOf(reply))).toBe(true);
      }
    }
    const roomy = await ask('count to 100', { max_tokens: whole.usage.completion_tokens });
    expect(roomy.choices[0].finish_reason).toBe('stop');
    expect(textOf(roomy)).toBe(textOf(whole));
  });

  test('it stops before the first stop sequence', async () => {
    const reply = await ask('count to 100', { stop: ['40', ' 12 '] });
    expect(textOf(reply)).toBe('[hopgate demo model] 1 2 3 4 5 6 7 8 9 10 11');
    expect(reply.choices[0].finish_reason).toBe('stop');
    expect(textOf(await ask('say a|b', { stop: '|' }))).toBe('[hopgate demo model] a');
  });

  test('usage adds up and grows with the prompt, not with a picture’s bytes', async () => {
    const short = await ask('say hi');
    const long = await ask(`say hi ${'and so on '.repeat(100)}`);
    for (const { usage } of [short, long]) {
      expect(usage.total_tokens).toBe(usage.prompt_tokens + usage.completion_tokens);
    }
    expect(long.usage.prompt_tokens).toBeGreaterThan(short.usage.prompt_tokens + 200);
    const image = {
      type: 'image_url',
      image_url: { url: `data:image/png;base64,${'A'.repeat(100_000)}` },
    };
    const pictured = await ask([{ role: 'user', content: [{ type: 'text', text: 'hi' }, image] }]);
    expect(pictured.usage.prompt_tokens).toBeLessThan(300);
  });

  test('n above 1 is passed over', async () => {
    expect((await ask('hi', { n: 3 })).choices).toHaveLength(1);
  });
});

describe('structured output', () => {
  test('a schema is satisfied with all its properties', async () => {
    const schema = object({
      title: { type: 'string' },
      tags: { type: 'array', items: { type: 'string' } },
      n: { type: 'integer', minimum: 3 },
    });
    const format = { type: 'json_schema', json_schema: { name: 'x', strict: true, schema } };
    const value = JSON.parse(textOf(await ask('hi', { response_format: format }))) as JsonObject;
    expect(value).toEqual({ title: 'demo title', tags: ['demo tags'], n: 3 });
  });

  test('json_object gives an object that says what it is', async () => {
    const value = JSON.parse(textOf(await ask('hi', { response_format: { type: 'json_object' } })));
    expect(value).toEqual({ model: 'hopgate demo model', question: 'hi', results: [] });
  });
});

describe('determinism', () => {
  test('the same body, the same bytes; another body, another id', async () => {
    const body = {
      model: 'demo',
      stream: true,
      messages: [{ role: 'user', content: 'think, then count to 30' }],
    };
    const first = await (await send(body)).text();
    expect(await (await send(body)).text()).toBe(first);
    const ids = [await ask('one'), await ask('two')].map((reply: Reply) => reply.id);
    expect(ids[0]).not.toBe(ids[1]);
    expect(ids[0]).toMatch(/^chatcmpl-[0-9a-f]{24}$/);
  });
});

describe('bad bodies', () => {
  const user = { role: 'user', content: 'hi' };
  const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } };
  const cases: [string, unknown, string | null][] = [
    ['no JSON', '{"model":', null],
    ['an array', [], null],
    ['no model', { messages: [user] }, 'model'],
    ['no messages', { model: 'demo' }, 'messages'],
    ['no message', { model: 'demo', messages: [] }, 'messages'],
    [
      'an unknown role',
      { model: 'demo', messages: [{ role: 'bot', content: 'x' }] },
      'messages[0].role',
    ],
    [
      'a result without a call',
      { model: 'demo', messages: [user, { role: 'tool', tool_call_id: 'c1', content: 'x' }] },
      'messages[1].tool_call_id',
    ],
    [
      'a call without a result',
      { model: 'demo', messages: [user, { role: 'assistant', tool_calls: [call] }, user] },
      'messages[2].role',
    ],
    ['a limit of nothing', { model: 'demo', messages: [user], max_tokens: 0 }, 'max_tokens'],
    [
      'a tool without a name',
      { model: 'demo', messages: [user], tools: [{ type: 'function', function: {} }] },
      'tools[0].function.name',
    ],
    [
      'a choice of no offered tool',
      {
        model: 'demo',
        messages: [user],
        tools: [],
        tool_choice: { type: 'function', function: { name: 'f' } },
      },
      'tool_choice',
    ],
    [
      'required without tools',
      { model: 'demo', messages: [user], tool_choice: 'required' },
      'tool_choice',
    ],
    [
      'a schema format without a schema',
      { model: 'demo', messages: [user], response_format: { type: 'json_schema' } },
      'response_format.json_schema.schema',
    ],
  ];
  for (const [name, body, param] of cases) {
    test(name, async () => {
      const response = await send(body);
      expect(response.status).toBe(400);
      const { error } = (await response.json()) as { error: JsonObject };
      expect(error).toMatchObject({ type: 'invalid_request_error', param });
      expect(error.message).toBeString();
      expect(error).toHaveProperty('code');
    });
  }
});
