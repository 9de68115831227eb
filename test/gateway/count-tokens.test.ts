/** count_tokens: a server that counts beside another protocol is asked, with a short deadline, and estimated else. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import { type Gateway, startGateway } from '../support/binary.ts';

let answer: (body: Record<string, unknown>) => Response | Promise<Response>;
const asked: { path: string; body: Record<string, unknown> }[] = [];
const server = Bun.serve({
  port: 0,
  async fetch(request) {
    const body = (await request.json()) as Record<string, unknown>;
    asked.push({ path: new URL(request.url).pathname, body });
    return answer(body);
  },
});
let gateway: Gateway;
beforeAll(async () => {
  const provider = { protocol: 'openai-chat', base_url: `http://127.0.0.1:${server.port}/v1` };
  gateway = await startGateway({
    providers: {
      local: { ...provider, profile: 'llamacpp', models: ['m'] },
      plain: { ...provider, models: ['m'] },
      claude: {
        protocol: 'anthropic-messages',
        base_url: `http://127.0.0.1:${server.port}`,
        keys: ['sk-key-of-claude'],
        models: ['m'],
      },
    },
    samples: { mode: 'off' },
  });
}, 120_000);
afterAll(async () => {
  await gateway?.stop();
  await server.stop(true);
});

async function count(model: string) {
  asked.length = 0;
  const response = await fetch(`${gateway.url}/v1/messages/count_tokens`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'one two three' }] }),
  });
  const { input_tokens: tokens } = (await response.json()) as { input_tokens: number };
  return { tokens, notes: response.headers.get('x-hopgate-notes') ?? '' };
}

test('a server with a count of its own is asked for it', async () => {
  answer = () => Response.json({ input_tokens: 4711 });
  expect(await count('local/m')).toEqual({ tokens: 4711, notes: '' });
  expect(asked.map(({ path }) => path)).toEqual(['/v1/messages/count_tokens']);
  expect(asked[0]!.body).toEqual({
    model: 'm',
    messages: [{ role: 'user', content: 'one two three' }],
  });
});

test('trouble with it is an estimate, and says so', async () => {
  const troubles = [
    () => new Response('no', { status: 404 }),
    () => new Response('no', { status: 500 }),
    () => Response.json({ input_tokens: 'many' }),
    () => new Response('{'),
  ];
  for (const trouble of troubles) {
    answer = trouble;
    const { tokens, notes } = await count('local/m');
    expect(tokens).toBeLessThan(40);
    expect(notes).toContain('tokens_estimated');
  }
});

test('one that does not answer is not waited for', async () => {
  answer = () => new Promise<Response>(() => {});
  expect((await count('local/m')).notes).toContain('tokens_estimated');
}, 60_000);

test('a server that is not known to count is not asked', async () => {
  answer = () => Response.json({ input_tokens: 4711 });
  expect((await count('plain/m')).notes).toContain('tokens_estimated');
  expect(asked).toEqual([]);
});

test("a vendor's refusal to count tells no key", async () => {
  const error = { type: 'invalid_request_error', message: 'Wrong: sk-key-of-claude.' };
  answer = () => Response.json({ type: 'error', error }, { status: 400 });
  const response = await fetch(`${gateway.url}/v1/messages/count_tokens`, {
    method: 'POST',
    body: JSON.stringify({ model: 'claude/m', messages: [{ role: 'user', content: 'x' }] }),
  });
  expect(response.status).toBe(400);
  expect(await response.text()).toContain('Wrong: ****************.');
});
