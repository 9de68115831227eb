/** Models whose Chat takes no function tools beside reasoning: a provider that speaks Chat asks them over Responses. */

import { afterEach, expect, test } from 'bun:test';
import { startInProcess } from '../support/in-process.ts';

const open: { stop(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.stop();
});

interface Asked {
  readonly path: string;
  readonly body: Record<string, unknown>;
}

/** As OpenAI's: https://github.com/BerriAI/litellm/pull/34569 */
function startVendor() {
  const asked: Asked[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const path = new URL(request.url).pathname;
      const body = (await request.json()) as Record<string, unknown>;
      asked.push({ path, body });
      const model = body.model;
      const usage = { input_tokens: 5, output_tokens: 7, total_tokens: 12 };
      if (path === '/v1/chat/completions') {
        const reasons = String(model).startsWith('gpt-6') && body.reasoning_effort !== 'none';
        if (body.tools !== undefined && reasons) {
          const message = `Function tools with reasoning_effort are not supported for ${model} in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.`;
          return Response.json({ error: { message, param: 'reasoning_effort' } }, { status: 400 });
        }
        const choice = { index: 0, message: { role: 'assistant', content: 'Yes.' } };
        return Response.json({
          id: 'c',
          object: 'chat.completion',
          model,
          choices: [{ ...choice, finish_reason: 'stop' }],
          usage: { prompt_tokens: 5, completion_tokens: 7 },
        });
      }
      const call = { type: 'function_call', id: 'fc_1', call_id: 'call_1', status: 'completed' };
      const output = [{ ...call, name: 'look', arguments: '{"at":"it"}' }];
      const response = {
        id: 'resp_1',
        object: 'response',
        model,
        status: 'completed',
        output,
        usage,
      };
      if (body.stream !== true) return Response.json(response);
      const events = [
        { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
        {
          type: 'response.output_item.added',
          output_index: 0,
          item: { ...output[0], arguments: '' },
        },
        {
          type: 'response.function_call_arguments.delta',
          output_index: 0,
          item_id: 'fc_1',
          delta: '{"at":"it"}',
        },
        { type: 'response.output_item.done', output_index: 0, item: output[0] },
        { type: 'response.completed', response },
      ];
      const text = events.map((one) => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`);
      return new Response(text.join(''), { headers: { 'content-type': 'text/event-stream' } });
    },
  });
  open.push({ stop: () => server.stop(true) });
  return { asked, url: `http://127.0.0.1:${server.port}/v1` };
}

const SCHEMA = { type: 'object', properties: { at: { type: 'string' } } };
const TEXT = 'Look at it.';
const CHAT = { messages: [{ role: 'user', content: TEXT }] };

const CLIENTS = {
  chat: (model: string, stream: boolean) => [
    '/v1/chat/completions',
    {
      ...CHAT,
      model,
      stream,
      tools: [{ type: 'function', function: { name: 'look', parameters: SCHEMA } }],
    },
  ],
  messages: (model: string, stream: boolean) => [
    '/v1/messages',
    { ...CHAT, model, stream, max_tokens: 100, tools: [{ name: 'look', input_schema: SCHEMA }] },
  ],
  responses: (model: string, stream: boolean) => [
    '/v1/responses',
    { model, stream, input: TEXT, tools: [{ type: 'function', name: 'look', parameters: SCHEMA }] },
  ],
  gemini: (model: string, stream: boolean) => [
    `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    {
      contents: [{ role: 'user', parts: [{ text: TEXT }] }],
      tools: [{ functionDeclarations: [{ name: 'look', parameters: SCHEMA }] }],
    },
  ],
} as const;

async function start(more: object = {}) {
  const vendor = startVendor();
  const up = { preset: 'openai-chat', base_url: vendor.url, keys: ['k'], models: ['*'], ...more };
  const gateway = await startInProcess({ providers: { up }, samples: { mode: 'off' } });
  open.push(gateway);
  const post = ([path, body]: readonly [string, object]) =>
    fetch(gateway.url + path, { method: 'POST', body: JSON.stringify(body) });
  return { vendor, post };
}

const cases = Object.keys(CLIENTS).flatMap((client) =>
  ['gpt-6.1-sol', 'gpt-6-astra', 'gpt-6.1-sol-2026-10-01'].flatMap((model) =>
    [true, false].map((stream) => [client as keyof typeof CLIENTS, model, stream] as const),
  ),
);

test.each(cases)(
  'a %s client with tools gets %s over Responses (stream: %p)',
  async (client, model, stream) => {
    const { vendor, post } = await start();
    const response = await post(CLIENTS[client](model, stream) as never);
    const text = await response.text();
    expect([response.status, text]).toEqual([200, expect.stringContaining('look')]);
    expect(vendor.asked.map(({ path }) => path)).toEqual(['/v1/responses']);
    const [{ body }] = vendor.asked as [Asked];
    expect(body).toMatchObject({ model, tools: [{ type: 'function', name: 'look' }] });
    expect(response.headers.get('x-hopgate-notes')).toContain('parameter_mapped');
  },
);

test('without tools, and for models that can be told not to reason, it stays Chat', async () => {
  const { vendor, post } = await start();
  await post(['/v1/chat/completions', { ...CHAT, model: 'gpt-6.1-sol' }]);
  await post(CLIENTS.chat('gpt-6-sol', false) as never);
  await post(CLIENTS.chat('gpt-4o', false) as never);
  expect(vendor.asked.map(({ path }) => path)).toEqual(Array(3).fill('/v1/chat/completions'));
});

test('a vendor without Responses is asked over Chat', async () => {
  const { vendor, post } = await start({ preset: 'deepseek' });
  await post(CLIENTS.chat('gpt-6.1-sol', false) as never);
  expect(new Set(vendor.asked.map(({ path }) => path))).toEqual(new Set(['/v1/chat/completions']));
});

test('facts of an older model that stand in for those of a newer one are noted', async () => {
  const { post } = await start({ preset: 'openai' });
  const ask = async (model: string) =>
    (await post(['/v1/responses', { model, input: TEXT }])).headers.get('x-hopgate-notes') ?? '';
  expect(await ask('gpt-6.4-sol')).toContain('family_facts');
  expect(await ask('gpt-6.1-sol')).not.toContain('family_facts');
  expect(await ask('nobody-knows-1')).not.toContain('family_facts');
});
