/** Clients of Azure: its paths, its `api-version` and its `api-key` lead to the same gateway. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { AzureOpenAI } from 'openai';
import { type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

const KEY = 'k'.repeat(32);
let upstream: FakeUpstream;
let gateway: InProcess;

beforeAll(async () => {
  upstream = await startFakeUpstream({ protocols: ['openai-chat'], models: ['m1'] });
  gateway = await startInProcess({
    auth: { keys: [KEY] },
    providers: {
      vendor: {
        protocol: 'openai-chat',
        base_url: upstream.baseUrl('openai-chat'),
        models: ['m1'],
        keys: ['sk-upstream'],
      },
    },
    routes: [{ to: ['vendor/m1'] }],
  });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});

const post = (path: string, body: unknown, headers: Record<string, string> = { 'api-key': KEY }) =>
  fetch(`${gateway.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

const messages = [{ role: 'user', content: 'Hello' }];

describe('chat at a deployment', () => {
  test.each([
    ['without a model', { messages }],
    ['with another one, which the path wins over', { model: 'gpt-4o', messages }],
    ['with the same one behind a nested one', { x: { model: 'y' }, messages, model: 'm1' }],
  ])('a body %s goes to the model of the path', async (_, body) => {
    upstream.answerWith(() => say('Hi.'));
    const answer = await post(
      '/openai/deployments/m1/chat/completions?api-version=2024-10-21',
      body,
    );
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ choices: [{ message: { content: 'Hi.' } }] });
    const { url, body: sent } = upstream.modelRequests.at(-1)! as unknown as {
      url: string;
      body: { model: string };
    };
    expect([sent.model, String(url).includes('api-version')]).toEqual(['m1', false]);
  });

  test('streams too', async () => {
    upstream.answerWith(() => say('Hi.'));
    const answer = await post('/openai/deployments/m1/chat/completions?api-version=1', {
      messages,
      stream: true,
    });
    const text = await answer.text();
    expect(text).toContain('"content":"Hi."');
    expect(text).toContain('data: [DONE]');
  });
});

test.each([
  ['/openai/v1/chat/completions', { model: 'm1', messages }],
  ['/openai/v1/responses?api-version=preview', { model: 'm1', input: 'Hello' }],
  ['/openai/responses?api-version=2025-04-01-preview', { model: 'm1', input: 'Hello' }],
])('%s answers', async (path, body) => {
  upstream.answerWith(() => say('Hi.'));
  const answer = await post(path, body);
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('Hi.')]);
});

test.each(['/openai/models?api-version=2024-10-21', '/openai/v1/models'])(
  '%s lists the models',
  async (path) => {
    const answer = await fetch(`${gateway.url}${path}`, { headers: { 'api-key': KEY } });
    const { data } = (await answer.json()) as { data: { id: string }[] };
    expect(data.map(({ id }) => id)).toContain('m1');
  },
);

test('a missing key, a broken body and an unknown path are refused in the form of OpenAI', async () => {
  const chat = '/openai/deployments/m1/chat/completions?api-version=1';
  for (const [answer, status] of [
    [await post(chat, { messages }, {}), 401],
    [await post(chat, '{"messages": ['), 400],
    [await post(chat, '[]'), 400],
    [await post('/openai/deployments/m1/nothing', {}), 404],
  ] as const) {
    expect(answer.status).toBe(status);
    const { error } = (await answer.json()) as { error: { message: string; code: string | null } };
    expect(error.message).toBeString();
    expect(error).toHaveProperty('code');
  }
});

test("OpenAI's SDK for Azure: chat, streams, and Responses", async () => {
  const client = new AzureOpenAI({
    endpoint: gateway.url,
    apiKey: KEY,
    apiVersion: '2024-10-21',
    maxRetries: 0,
  });
  upstream.answerWith(() => say('Hi.'));
  const whole = await client.chat.completions.create({
    model: 'm1',
    messages: [{ role: 'user', content: 'Hello' }],
  });
  expect(whole.choices[0]?.message.content).toBe('Hi.');
  const stream = await client.chat.completions.create({
    model: 'm1',
    messages: [{ role: 'user', content: 'Hello' }],
    stream: true,
  });
  let text = '';
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
  expect(text).toBe('Hi.');
  const response = await client.responses.create({ model: 'm1', input: 'Hello' });
  expect(response.output_text).toBe('Hi.');
});
