/** Costs that the tokens of an answer do not tell: what the vendor says that it costs, before the catalogue, and what its tools made. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { until } from '../support/until.ts';

const CHAT = { prompt_tokens: 100, completion_tokens: 30, total_tokens: 130 };
const ITEMS = { input_tokens: 100, output_tokens: 30, total_tokens: 130 };

const KEY = 'key-of-the-buyer';
const ADMIN = 'key-of-the-admin';
const AS_ADMIN = { authorization: `Bearer ${ADMIN}` };

let answer: () => Response;
let vendor: ReturnType<typeof Bun.serve>;
let gateway: InProcess;
beforeAll(async () => {
  vendor = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => answer() });
  const provider = (protocol: string) => ({
    protocol,
    base_url: `http://127.0.0.1:${vendor.port}/v1`,
    keys: ['k'],
    models: [`${protocol}-*`],
    prices: {
      '*-priced': { input: 1, output: 2 },
      '*-asked': { input: 0, output: 0, request: 20 },
    },
  });
  const protocols = ['openai-chat', 'openai-responses', 'anthropic-messages'];
  gateway = await startInProcess({
    providers: {
      ...Object.fromEntries(protocols.map((name) => [name, provider(name)])),
      // The catalogue has prices of these.
      openrouter: {
        ...provider('openai-chat'),
        preset: 'openrouter',
        models: ['google/gemini-3-pro-image'],
        prices: {},
      },
    },
    auth: { keys: [{ name: 'ci', key: KEY }], admin_keys: [ADMIN] },
    samples: { mode: 'off' },
  });
});
afterAll(async () => {
  await gateway.stop();
  await vendor.stop(true);
});

const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
const message = { role: 'assistant', content: 'Hello.' };
const chat = (usage: object) => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message, finish_reason: 'stop' }],
  usage,
});
const response = (usage: object) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'm',
  output: [
    {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'Hello.', annotations: [] }],
    },
  ],
  usage,
});
const chatStream = (usage: object) => {
  const { choices: _, usage: __, ...head } = chat(usage);
  const chunk = { ...head, object: 'chat.completion.chunk' };
  return [
    event({ ...chunk, choices: [{ index: 0, delta: message }] }),
    event({ ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    event({ ...chunk, choices: [], usage }),
    'data: [DONE]\n\n',
  ].join('');
};

type Row = [
  name: string,
  path: string,
  model: string,
  answer: object | string,
  headers: Record<string, string>,
  cost: number | null,
];
const CHATS = '/v1/chat/completions';
const chats = (name: string, usage: object, cost: number | null, model = 'm'): Row[] => [
  [name, CHATS, `openai-chat-${model}`, chat({ ...CHAT, ...usage }), {}, cost],
  [`${name}, streamed`, CHATS, `openai-chat-${model}`, chatStream({ ...CHAT, ...usage }), {}, cost],
];
/** Of the model that the tool names; 20 tokens cost $1 a million, a thousand $2. */
const DRAWN = {
  ...response(ITEMS),
  tools: [{ type: 'image_generation', model: 'image-priced' }],
  tool_usage: { image_gen: { input_tokens: 20, output_tokens: 1000, total_tokens: 1020 } },
};
/** A hundred tokens cost $2 a million there, and thirty $12. */
const IN_CATALOGUE: readonly (readonly [name: string, usage: object, cost: number])[] = [
  ["OpenRouter's cost of an image", { cost: 0.134 }, 134_000_000],
  ['nothing told', {}, 560_000],
  ['nothing, with an own key of the vendor behind', { cost: 0, is_byok: true }, 560_000],
];
const image = { created: 1, data: [{ b64_json: 'AAAA' }] };
const LITELLM = { 'x-litellm-response-cost': '0.0125' };

test.each<Row>([
  ...chats('nothing told', {}, null),
  ...chats("OpenRouter's cost", { cost: 0.001086, is_byok: false }, 1_086_000),
  ...chats(
    "OpenRouter's cost with an own key of the vendor behind",
    { cost: 0.0001, is_byok: true, cost_details: { upstream_inference_cost: 0.002 } },
    2_100_000,
  ),
  ...chats(
    "OpenRouter's cost, of which the vendor behind gets a part",
    { cost: 0.002, is_byok: false, cost_details: { upstream_inference_cost: 0.0019 } },
    2_000_000,
  ),
  ...chats('nothing, of a free model', { cost: 0 }, 0),
  ...chats("xAI's ticks", { cost_in_usd_ticks: 37_756_000 }, 3_775_600),
  ...chats("Perplexity's total", { cost: { currency: 'USD', total_cost: 0.006 } }, 6_000_000),
  ...chats('another currency', { cost: { currency: 'CNY', total_cost: 0.006 } }, null),
  ...chats("DeepInfra's estimate", { estimated_cost: 0.0000268 }, 26_800),
  ...chats(
    'only the fee beside an own key of the vendor behind',
    { cost: 0.0001, is_byok: true },
    null,
  ),
  ...chats('what is no amount', { cost: 'much' }, null),
  ...chats('less than nothing', { cost: -1 }, null),
  ...chats('beside a price', { cost: 9 }, 160_000, 'priced'),
  ...IN_CATALOGUE.map(
    ([name, usage, cost]): Row => [
      `${name}, though the catalogue knows a price`,
      CHATS,
      'google/gemini-3-pro-image',
      chat({ ...CHAT, ...usage }),
      {},
      cost,
    ],
  ),
  [
    "xAI's ticks",
    '/v1/responses',
    'openai-responses-m',
    response({ ...ITEMS, cost_in_usd_ticks: 11_931_000 }),
    {},
    1_193_100,
  ],
  [
    'an image of a tool, beside the answer',
    '/v1/responses',
    'openai-responses-asked',
    DRAWN,
    {},
    20_000_000 + 20 * 1000 + 1000 * 2000,
  ],
  [
    'no image of a tool, beside the answer',
    '/v1/responses',
    'openai-responses-asked',
    { ...DRAWN, tool_usage: { image_gen: { input_tokens: 0, output_tokens: 0 } } },
    {},
    20_000_000,
  ],
  [
    "the cost of OpenRouter's Messages",
    '/v1/messages',
    'anthropic-messages-m',
    {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [{ type: 'text', text: 'Hello.' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 100, output_tokens: 30, cost: 0.00042 },
    },
    {},
    420_000,
  ],
  ["a proxy's header", CHATS, 'openai-chat-m', chat(CHAT), LITELLM, 12_500_000],
  ["a proxy's header beside a price", CHATS, 'openai-chat-priced', chat(CHAT), LITELLM, 160_000],
  [
    "a proxy's header that knows no price",
    CHATS,
    'openai-chat-m',
    chat(CHAT),
    { 'x-litellm-response-cost': '0.0' },
    null,
  ],
  [
    "xAI's ticks, and no tokens",
    '/v1/images/generations',
    'openai-chat-m',
    { ...image, usage: { cost_in_usd_ticks: 400_000_000 } },
    {},
    40_000_000,
  ],
  [
    "xAI's ticks beside a price of tokens",
    '/v1/images/generations',
    'openai-chat-priced',
    { ...image, usage: { cost_in_usd_ticks: 400_000_000 } },
    {},
    40_000_000,
  ],
  [
    "xAI's ticks beside a price of requests",
    '/v1/images/generations',
    'openai-chat-asked',
    { ...image, usage: { cost_in_usd_ticks: 400_000_000 } },
    {},
    20_000_000,
  ],
  ["a proxy's header", '/v1/audio/speech', 'openai-chat-m', 'sound', LITELLM, 12_500_000],
  [
    'the cost of vectors',
    '/v1/embeddings',
    'openai-chat-m',
    { data: [{ embedding: [1] }], usage: { prompt_tokens: 5, total_tokens: 5, cost: 0.00001 } },
    {},
    10_000,
  ],
])('%s counts (%s, %s)', async (_, path, model, said, headers, cost) => {
  const isText = typeof said === 'string';
  const type = said === 'sound' ? 'audio/mpeg' : isText ? 'text/event-stream' : 'application/json';
  answer = () =>
    new Response(isText ? said : JSON.stringify(said), {
      headers: { 'content-type': type, ...headers },
    });
  const stream = type === 'text/event-stream';
  const messages = [{ role: 'user', content: 'Hi.' }];
  const got = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, stream, messages, input: 'Hi.', prompt: 'Hi.', max_tokens: 99 }),
  });
  expect(got.status).toBe(200);
  await got.arrayBuffer();
  const id = got.headers.get('x-hopgate-request-id');
  const rows = await until(async () => {
    const found = await fetch(`${gateway.url}/admin/v1/spend`, { headers: AS_ADMIN });
    const { data: rows } = (await found.json()) as {
      data: { request: string; cost_nano_usd: number }[];
    };
    const own = rows.filter(({ request }) => request === id);
    return own.length > 0 && own;
  });
  expect(rows.map(({ cost_nano_usd }) => cost_nano_usd as number | null)).toEqual([cost]);
});
