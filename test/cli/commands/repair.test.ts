/** `hopgate repair`: a line for a line, the very text where nothing is wrong, and no line that stops it. */

import { afterAll, describe, expect, test } from 'bun:test';
import { bodyProtocol } from '../../../src/cli/body-protocol.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { createWorld } from '../world.ts';

const world = createWorld();
afterAll(() => world.remove());

async function repair(lines: readonly string[], ...more: string[]): Promise<string[]> {
  const { code, out, err } = await world.run(
    ['repair', '--to', 'anthropic-messages', '--jsonl', ...more],
    lines.join('\n'),
  );
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out.endsWith('\n')).toBe(true);
  return out.slice(0, -1).split('\n');
}

const read = (line: string | undefined) =>
  JSON.parse(line!) as { body: JsonObject; notes: { name: string }[]; error?: { message: string } };

const broken = JSON.stringify({
  model: 'm',
  max_tokens: 5,
  messages: [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 7, name: 'Read', input: {} }] },
    null,
    {
      role: 'user',
      content: [
        { type: 'text', text: 'b' },
        { type: 'tool_result', tool_use_id: 7, content: 'c' },
      ],
    },
  ],
});

describe('a body that needs nothing', () => {
  const odd =
    '{ "model" : "m","max_tokens":1.0e1, "seed":12345678901234567890, "messages":[{"role":"user","content":"h\\u00e9 \\/"}] }';

  test('comes back with its text as it stood: spaces, escapes, long numbers', async () => {
    const source = odd.replace('1.0e1', '10');
    expect(await repair([source])).toEqual([`{"body":${source},"notes":[]}`]);
  });

  test('needs neither a model nor a limit', async () => {
    const source = '{"messages":[{"role":"user","content":"a"}]}';
    expect(await repair([source])).toEqual([`{"body":${source},"notes":[]}`]);
  });

  test('loses the carriage return of its line, and nothing else', async () => {
    const source = '{"messages":[{"role":"user","content":"a"}]}';
    expect(await repair([`${source}\r`])).toEqual([`{"body":${source},"notes":[]}`]);
  });
});

describe('a broken body', () => {
  test('comes back valid, with the notes that say why', async () => {
    const { body, notes } = read((await repair([broken]))[0]);
    expect(body).toEqual({
      model: 'm',
      max_tokens: 5,
      messages: [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: [{ type: 'tool_use', id: '7', name: 'Read', input: {} }] },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: '7', content: 'c' },
            { type: 'text', text: 'b' },
          ],
        },
      ],
    });
    expect(notes.map(({ name }) => name)).toEqual([
      'malformed_content_mended',
      'misplaced_tool_result_relocated',
    ]);
  });

  test('gets no parameters that it did not have', async () => {
    const bare = {
      messages: [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: 'b ' },
      ],
    };
    const { body } = read((await repair([JSON.stringify(bare)]))[0]);
    expect(Object.keys(body)).toEqual(['messages']);
  });

  test('of another protocol is converted', async () => {
    const chat = {
      model: 'm',
      messages: [
        { role: 'user', content: 'a' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'c', content: 'r' },
      ],
    };
    const { body } = read((await repair([JSON.stringify(chat)]))[0]);
    expect((body.messages as JsonObject[])[2]).toEqual({
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 'c', content: 'r' }],
    });
  });
});

test('a bad line is answered in its place, and the next one is read', async () => {
  const good = '{"messages":[{"role":"user","content":"a"}]}';
  const lines = ['junk', good, '', '[]', '7', '{"model":"m"}', '"x"', good];
  const out = await repair(lines);
  expect(out).toHaveLength(lines.length);
  for (const [i, line] of out.entries()) {
    if (lines[i] === good) expect(line).toBe(`{"body":${good},"notes":[]}`);
    else expect(typeof read(line).error?.message).toBe('string');
  }
});

describe('vendors', () => {
  const sealed = (signature: string) =>
    JSON.stringify({
      model: 'm',
      max_tokens: 5,
      messages: [
        { role: 'user', content: 'a' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'x', signature },
            { type: 'text', text: 'b' },
          ],
        },
        { role: 'user', content: 'c' },
      ],
    });
  const genuine = `EuYB${Buffer.from(Uint8Array.from({ length: 60 }, (_, i) => i * 5)).toString('base64')}`;

  test('signatures of --from another vendor are stripped, plausible or not', async () => {
    const [kept] = await repair([sealed(genuine)], '--profile', 'anthropic');
    expect(read(kept).notes).toEqual([]);
    const [stripped] = await repair(
      [sealed(genuine)],
      '--profile',
      'anthropic',
      '--from',
      'glm-anthropic',
    );
    expect(read(stripped).notes.map(({ name }) => name)).toEqual(['stripped_1_thinking_blocks']);
  });

  test('a vendor that checks none gets what it sent', async () => {
    const [line] = await repair([sealed('glm')], '--profile', 'glm-anthropic');
    expect(read(line).notes).toEqual([]);
  });

  test('an unknown profile, and no --to, are wrong usage', async () => {
    expect(
      (await world.run(['repair', '--to', 'openai-chat', '--profile', 'nobody'], '')).code,
    ).toBe(2);
    expect((await world.run(['repair'], '')).code).toBe(2);
  });
});

describe('of which protocol a body is', () => {
  const user = { role: 'user', content: 'a' };
  const cases: readonly (readonly [string, JsonObject, string | undefined])[] = [
    ['input', { input: 'a' }, 'openai-responses'],
    ['a plain dialogue', { messages: [user] }, undefined],
    ['a top-level system', { system: 's', messages: [user] }, 'anthropic-messages'],
    [
      'tool blocks',
      { messages: [{ role: 'user', content: [{ type: 'tool_result' }] }] },
      'anthropic-messages',
    ],
    [
      'tool messages',
      { messages: [{ role: 'tool', tool_call_id: 'x', content: '' }] },
      'openai-chat',
    ],
    [
      'a system message first',
      { messages: [{ role: 'system', content: 's' }, user] },
      'openai-chat',
    ],
    [
      'functions',
      { tools: [{ type: 'function', function: { name: 'f' } }], messages: [user] },
      'openai-chat',
    ],
    ['words of two', { system: 's', messages: [{ role: 'tool', content: '' }] }, undefined],
    [
      'thinking parts of Chat',
      { messages: [{ role: 'assistant', content: [{ type: 'thinking', thinking: [] }] }] },
      undefined,
    ],
    ['neither', {}, undefined],
  ];
  for (const [what, body, protocol] of cases) {
    test(what, () => expect(bodyProtocol(body)).toBe(protocol as never));
  }
});
