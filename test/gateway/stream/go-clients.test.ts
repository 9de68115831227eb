/** Keep-alives in the words of clients in Go, whose readers of streams are their own. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import { type InProcess, startInProcess } from '../../support/in-process.ts';

let pinged = Promise.withResolvers<void>();
const piece = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;

let vendor: ReturnType<typeof Bun.serve>;
let gateway: InProcess;
beforeAll(async () => {
  vendor = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () =>
      new Response(
        (async function* () {
          yield piece({ role: 'assistant', content: 'Hel' });
          await pinged.promise;
          yield piece({ content: 'lo' }) + piece({}, 'stop');
          yield 'data: [DONE]\n\n';
        })() as never,
        { headers: { 'content-type': 'text/event-stream' } },
      ),
  });
  const base_url = `http://127.0.0.1:${vendor.port}`;
  gateway = await startInProcess({
    providers: { up: { protocol: 'openai-chat', base_url, keys: ['k'], models: ['m'] } },
    keep_alive: 0.05,
    samples: { mode: 'off' },
  });
});
afterAll(async () => {
  await gateway.stop();
  await vendor.stop(true);
});

/** The stream with a keep-alive between its two pieces of text. */
async function streamed(path: string, body: object, agent: string): Promise<string> {
  pinged = Promise.withResolvers();
  const response = await fetch(`${gateway.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'user-agent': agent },
    body: JSON.stringify({ model: 'm', ...body }),
  });
  let text = '';
  for await (const chunk of response.body!) {
    const more = Buffer.from(chunk).toString();
    text += more;
    if (text.includes('Hel') && /^(?:: keep-alive)?\n/.test(more)) pinged.resolve();
  }
  expect(text).toContain('Hel');
  return text;
}

const CHAT = ['/v1/chat/completions', { stream: true, messages: [{ role: 'user', content: 'a' }] }];
const ITEMS = ['/v1/responses', { stream: true, store: false, input: 'a' }];

// openai-go, packages/ssestream: an event at each blank line, whose data is parsed (openai/openai-go#621 since 3.43).
test.each([CHAT, ITEMS] as [string, object][])(
  'every blank line of %s ends an event with data, for openai-go',
  async (path, body) => {
    const text = await streamed(path, body, 'OpenAI/Go 3.41.0');
    expect(text).toContain(': keep-alive\n');
    for (const event of text.split('\n\n').slice(0, -1)) expect(event).toMatch(/^data: ./m);
  },
);

test.each([CHAT, ITEMS] as [string, object][])(
  'no event of %s stands behind a comment, for clients that cut at blank lines',
  async (path, body) => {
    const text = await streamed(path, body, 'OpenAI/JS 7.59.0');
    const comments = text.split('\n\n').filter((event) => event.startsWith(':'));
    expect(comments.length).toBeGreaterThan(0);
    for (const comment of comments) expect(comment).not.toContain('data:');
  },
);

// google.golang.org/genai, api_client.go: `scan` reads up to two line ends; what does not begin with `data` is an error.
test('every chunk of Gemini begins with its data, for genai in Go', async () => {
  const contents = [{ role: 'user', parts: [{ text: 'a' }] }];
  const path = '/v1beta/models/m:streamGenerateContent?alt=sse';
  const text = await streamed(path, { contents }, 'google-genai-sdk/1.77.0 gl-go/1.25');
  const read = text.split('\n\n');
  expect(read.filter((chunk) => chunk === '').length).toBeGreaterThan(1);
  for (const chunk of read) expect(chunk).toMatch(/^(?:data: .+)?$/);
});
