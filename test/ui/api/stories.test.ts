/** What the list says of an exchange: the client, the last words of the user, the first of the answer; for its viewer alone. */

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { clientName } from '../../../src/samples/store/meta.ts';
import type { SampleDetail, Stories, Story } from '../../../src/ui/api/api.ts';
import { call, refuse, say } from '../../support/fake-upstream/index.ts';
import { until } from '../../support/until.ts';
import { type ApiSetup, startApiSetup } from '../api-setup.ts';

setDefaultTimeout(60_000);

const ANN = { authorization: 'Bearer key-of-ann-0123456789' };
const BEN = { authorization: 'Bearer key-of-ben-0123456789' };

// On disk and in memory: both are read in the same way.
for (const mode of ['all', 'off'] as const) {
  let world: ApiSetup;
  beforeAll(async () => {
    world = await startApiSetup({
      samples: { mode },
      auth: {
        keys: [
          { name: 'ann', key: 'key-of-ann-0123456789' },
          { name: 'ben', key: 'key-of-ben-0123456789' },
        ],
      },
    });
  });
  afterAll(() => world.stop());

  /** Of an exchange that is over. */
  const storyOf = async (id: string): Promise<Story | undefined> => {
    await until(async () => {
      const response = await world.api(`samples/${id}`, { headers: ANN });
      if (response.status !== 200) return false;
      return ((await response.json()) as SampleDetail).row.state === 'done';
    });
    const { stories } = await world.json<Stories>(`stories?ids=${id}`, ANN);
    return stories.find((story) => story.id === id);
  };
  const messages = (content: unknown, more: Record<string, unknown> = {}) => ({
    model: 'via-chat',
    max_tokens: 99,
    messages: [{ role: 'user', content }],
    ...more,
  });

  test(`an agent's turn: reminders that it adds itself are passed over (samples.mode: ${mode})`, async () => {
    world.upstream.enqueue(say('The login  fails\n because of the cookie.'));
    const content = [
      { type: 'text', text: 'Where is the login bug? 请用中文回答。' },
      { type: 'text', text: '<system-reminder>\nUse the to-do list.</system-reminder>' },
    ];
    const agent = { ...ANN, 'user-agent': 'claude-cli/2.0.1 (external, cli)' };
    const id = await world.post('/v1/messages', messages(content, { stream: true }), agent);
    expect(await storyOf(id)).toEqual({
      id,
      client: 'Claude Code',
      asked: 'Where is the login bug? 请用中文回答。',
      answered: 'The login fails because of the cookie.',
    });
  });

  test.each([
    ['<system-reminder>a</system-reminder>\nFix it.', 'Fix it.'],
    ['Fix it.\n<system-reminder>a</system-reminder>', 'Fix it.'],
    ['What is <system-reminder>?', 'What is <system-reminder>?'],
  ])(
    `reminders in the text of a question are no part of its title: %j (samples.mode: ${mode})`,
    async (text, asked) => {
      world.upstream.enqueue(say('Fine.'));
      const id = await world.post('/v1/messages', messages(text), ANN);
      expect(await storyOf(id)).toMatchObject({ asked });
    },
  );

  test(`results of tools and calls are named, long texts are cut (samples.mode: ${mode})`, async () => {
    world.upstream.enqueue(call({ name: 'Read', arguments: { path: 'b' } }));
    const id = await world.post(
      '/v1/messages',
      {
        model: 'via-chat',
        max_tokens: 99,
        tools: [
          { name: 'Read', input_schema: { type: 'object' } },
          { name: 'Bash', input_schema: { type: 'object' } },
        ],
        messages: [
          { role: 'user', content: 'Look.' },
          {
            role: 'assistant',
            content: [
              { type: 'tool_use', id: 'c1', name: 'Bash', input: {} },
              { type: 'tool_use', id: 'c2', name: 'Read', input: {} },
            ],
          },
          {
            role: 'user',
            content: [
              { type: 'tool_result', tool_use_id: 'c1', content: 'a' },
              { type: 'tool_result', tool_use_id: 'c2', content: 'b' },
            ],
          },
        ],
      },
      ANN,
    );
    expect(await storyOf(id)).toMatchObject({ asked: '↩ Bash, Read', answered: '→ Read' });

    world.upstream.enqueue(say('word '.repeat(1000)));
    const long = await world.post('/v1/messages', messages('\u{1f600}'.repeat(500)), ANN);
    const story = (await storyOf(long))!;
    expect(story.asked).toBe(`${'\u{1f600}'.repeat(160)}…`);
    expect([...story.answered].length).toBe(161);
  });

  test(`instructions behind the question, and a conversation quoted in a job, are passed over (samples.mode: ${mode})`, async () => {
    const asked = async (turns: readonly unknown[]) => {
      world.upstream.enqueue(say('Fine.'));
      const id = await world.post('/v1/messages', { ...messages(''), messages: turns }, ANN);
      return (await storyOf(id))?.asked;
    };
    expect(
      await asked([
        { role: 'user', content: 'List the files.' },
        { role: 'system', content: 'Today is Friday.' },
      ]),
    ).toBe('List the files.');
    const job = '<session>\nlist the files\n</session>\nWrite the title of this session.';
    expect(await asked([{ role: 'user', content: job }])).toBe('Write the title of this session.');
  });

  test(`a failure says what went wrong, and a body that is no JSON nothing (samples.mode: ${mode})`, async () => {
    world.upstream.enqueue(refuse(400, {}, { error: { message: 'The model is on holiday.' } }));
    const id = await world.post('/v1/messages', messages('Hello?'), ANN);
    const story = (await storyOf(id))!;
    expect(story.asked).toBe('Hello?');
    expect(story.answered).toContain('The model is on holiday.');
    const broken = await world.post('/v1/messages', '{"model": broken', ANN);
    expect(await storyOf(broken)).toMatchObject({ asked: '' });
  });

  test(`another key learns nothing of it (samples.mode: ${mode})`, async () => {
    world.upstream.enqueue(say('For Ann alone.'));
    const id = await world.post('/v1/messages', messages('A question of Ann.'), ANN);
    expect(await storyOf(id)).toMatchObject({ answered: 'For Ann alone.' });
    expect(await world.json<Stories>(`stories?ids=${id},req_1_none,`, BEN)).toEqual({
      stories: [],
    });
    expect((await world.api(`stories?ids=${id}`)).status).toBe(401);
    expect((await world.api('stories', { headers: ANN })).status).toBe(400);
  });
}

test('clients have names', () => {
  const named = [
    ['claude-cli/2.0.14 (external, cli)', 'Claude Code'],
    ['codex_cli_rs/0.50.0 (Mac OS 15.1.0; arm64) iTerm.app', 'Codex'],
    ['OpenAI/Python 1.60.0', 'OpenAI SDK'],
    ['AsyncOpenAI/Python 1.60.0', 'OpenAI SDK'],
    ['Anthropic/JS 0.60.0', 'Anthropic SDK'],
    ['curl/8.5.0', 'curl'],
    ['python-requests/2.32', 'python-requests'],
    ['', ''],
  ] as const;
  for (const [agent, name] of named) expect(clientName(agent)).toBe(name);
});
