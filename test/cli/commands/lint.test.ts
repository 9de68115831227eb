/** `hopgate lint` as people and scripts run it. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { createWorld, type World } from '../world.ts';

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world.remove());

const GOOD_CHAT = { model: 'gpt-5', messages: [{ role: 'user', content: 'Hi' }] };
const BAD_MESSAGES = {
  model: 'claude-haiku-4-5',
  max_tokens: 10,
  messages: [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'look', input: {} }] },
    { role: 'user', content: 'So?' },
  ],
};
const CHUNK = {
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta: { role: 'assistant', content: 'Hi' }, finish_reason: null }],
};
const sse = (...events: unknown[]) =>
  events.map((e) => `data: ${typeof e === 'string' ? e : JSON.stringify(e)}\n\n`).join('');
const file = (name: string, content: unknown) =>
  world.write(name, typeof content === 'string' ? content : JSON.stringify(content));

describe('requests', () => {
  test('a clean one exits 0, in JSON and in words', async () => {
    file('a.json', GOOD_CHAT);
    const json = await world.run(['lint', 'a.json', '--as', 'openai-chat', '--json']);
    expect(JSON.parse(json.out)).toEqual({
      ok: true,
      findings: [],
      warnings: [],
      as: 'openai-chat',
    });
    expect(json.code).toBe(0);
    const words = await world.run(['lint', 'a.json']);
    expect([words.out, words.code]).toEqual(['ok  openai-chat request\n', 0]);
  });

  test('a broken one exits 1 and says where, by which rule, in the words of the vendor', async () => {
    file('a.json', BAD_MESSAGES);
    const { out, code } = await world.run(['lint', 'a.json', '--as', 'messages', '--json']);
    expect(code).toBe(1);
    const { ok, findings } = JSON.parse(out);
    expect(ok).toBe(false);
    expect(findings).toHaveLength(1);
    expect(findings[0]).toMatchObject({ at: '/messages/1/content/0', rule: 'unanswered-call' });
    expect(findings[0].message).toContain('immediately after: a.');
    const words = await world.run(['lint', 'a.json']);
    expect(words.out).toContain('/messages/1/content/0  unanswered-call');
    expect(words.out).toContain('1 finding in this anthropic-messages request.');
  });

  test('a misspelt field is a warning that names it and what was meant, and exits 0', async () => {
    file('a.json', { ...GOOD_CHAT, max_token: 5 });
    const json = await world.run(['lint', 'a.json', '--as', 'chat', '--json']);
    const { ok, findings, warnings } = JSON.parse(json.out);
    expect([json.code, ok, findings]).toEqual([0, true, []]);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatchObject({ at: '/max_token', rule: 'unknown-field' });
    expect(warnings[0].message).toContain('"max_token"');
    expect(warnings[0].message).toContain('did you mean "max_tokens"?');
    const words = await world.run(['lint', 'a.json']);
    expect(words.out).toContain('/max_token  unknown-field [warning]');
    expect(words.out).toEndWith('ok  openai-chat request, 1 warning\n');
  });

  test('beside a finding a warning is counted by itself', async () => {
    file('a.json', { ...GOOD_CHAT, temperature: 3, tool: [] });
    const { out, code } = await world.run(['lint', 'a.json']);
    expect(code).toBe(1);
    expect(out).toEndWith('1 finding and 1 warning in this openai-chat request.\n');
  });

  for (const [short, long] of [
    ['messages', 'anthropic-messages'],
    ['chat', 'openai-chat'],
    ['responses', 'openai-responses'],
  ] as const) {
    test(`--as ${short} is --as ${long}`, async () => {
      file('a.json', {});
      const one = await world.run(['lint', 'a.json', '--as', short, '--json']);
      expect(one).toEqual(await world.run(['lint', 'a.json', '--as', long, '--json']));
      expect([JSON.parse(one.out).as, one.code]).toEqual([long, 1]);
    });
  }

  test('the protocol is recognized by the members', async () => {
    const bodies = {
      'openai-responses': { model: 'm', input: 'Hi' },
      'anthropic-messages': BAD_MESSAGES,
      'openai-chat': GOOD_CHAT,
    };
    for (const [name, body] of Object.entries(bodies)) {
      file('a.json', body);
      const { out } = await world.run(['lint', 'a.json', '--json']);
      expect(JSON.parse(out).as).toBe(name);
    }
  });

  test('stdin is read when there is no file, and for -', async () => {
    for (const argv of [
      ['lint', '--json'],
      ['lint', '-', '--json'],
    ]) {
      const { out, code } = await world.run(argv, JSON.stringify(GOOD_CHAT));
      expect([JSON.parse(out).ok, code]).toEqual([true, 0]);
    }
  });

  test('--vendor says what that vendor does not take, by model', async () => {
    const asked = { ...GOOD_CHAT, model: 'glm-4.7', temperature: 0, seed: 3 };
    file('a.json', asked);
    const { out, code } = await world.run(['lint', 'a.json', '--vendor', 'glm', '--json']);
    expect(code).toBe(1);
    const places = JSON.parse(out).findings.map(({ at, rule }: Record<string, string>) => [
      at,
      rule,
    ]);
    expect(places.toSorted()).toEqual([
      ['/seed', 'parameter-dropped'],
      ['/temperature', 'parameter-mapped'],
    ]);
    expect((await world.run(['lint', 'a.json', '--vendor', 'vllm'])).code).toBe(0);
    file('b.json', { ...GOOD_CHAT, stop: ['x'] });
    const old = await world.run(['lint', 'b.json', '--vendor', 'openai-chat', '-m', 'gpt-4o']);
    const now = await world.run(['lint', 'b.json', '--vendor', 'openai-chat', '-m', 'o3']);
    expect([old.code, now.code]).toEqual([0, 1]);
  });
});

describe('streams', () => {
  const whole = sse(
    CHUNK,
    { ...CHUNK, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
    '[DONE]',
  );

  test('a whole one exits 0, a cut one 1', async () => {
    file('a.sse', whole);
    file('b.sse', sse(CHUNK));
    const good = await world.run(['lint', 'a.sse', '--as', 'chat', '--stream', '--json']);
    expect([JSON.parse(good.out), good.code]).toEqual([
      { ok: true, findings: [], warnings: [], as: 'openai-chat' },
      0,
    ]);
    const cut = await world.run(['lint', 'b.sse', '--as', 'chat', '--stream', '--json']);
    const rules = JSON.parse(cut.out).findings.map(({ rule }: { rule: string }) => rule);
    expect([rules, cut.code]).toEqual([['finish-missing', 'done-missing'], 1]);
  });

  test('one that is plainly a stream needs neither --stream nor --as', async () => {
    const { out, code } = await world.run(['lint', '--json'], whole);
    expect([JSON.parse(out).as, code]).toEqual(['openai-chat', 0]);
  });
});

describe('what cannot be used exits 2 and says why', () => {
  const cases: readonly (readonly [argv: string, input: string | undefined, says: string])[] = [
    ['lint nowhere.json', undefined, 'cannot be read'],
    ['lint', '', 'nothing to read'],
    ['lint --json', 'not json', 'not JSON'],
    ['lint --json', '{"a":1}', '--as'],
    ['lint --as cohere', '{}', 'one of'],
    ['lint --vendor nobody', JSON.stringify(GOOD_CHAT), 'no profile "nobody"'],
    ['lint --stream', 'hello', 'not an event stream'],
    ['lint --stream', 'data: {"x":1}\n\n', '--as'],
    ['lint --stream --vendor glm', 'data: [DONE]\n\n', '--vendor is for requests'],
  ];
  for (const [argv, input, says] of cases) {
    test(`hopgate ${argv} < ${JSON.stringify(input)?.slice(0, 30)}`, async () => {
      const { code, out, err } = await world.run(argv.split(' '), input);
      expect([code, out]).toEqual([2, '']);
      expect(err).toContain(says);
    });
  }
});
