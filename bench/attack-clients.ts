/** The attacker of `bench/attack.ts`: hostile requests against the gateway, and a hostile vendor behind it. */

import { connect } from 'node:net';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { sleep } from './clock.ts';

const KB = 1024;
const MB = 1024 * KB;

/* The hostile vendor: what it does is the end of the model's name. */

const zeros = gzipSync(Buffer.alloc(256 * MB, ' '));
const event = (delta: unknown, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const whole = (content: string) =>
  Response.json({
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
  });

/** Endless text, until the connection is closed. */
function endless(piece: string, type = 'text/event-stream'): Response {
  const bytes = Buffer.from(piece);
  let sent = 0;
  return new Response(
    new ReadableStream({
      async pull(controller) {
        sent += bytes.length;
        if (sent > 1024 * MB) controller.close();
        else controller.enqueue(bytes);
      },
    }),
    { headers: { 'content-type': type } },
  );
}

const ANSWERS: Readonly<Record<string, () => Response>> = {
  gzip: () =>
    new Response(zeros, {
      headers: { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' },
    }),
  frame: () => endless('a'.repeat(64 * KB)),
  comments: () => endless(': nothing\n\n'.repeat(6000)),
  json: () => endless(`{"a":"${'a'.repeat(64 * KB)}`, 'application/json'),
  error: () =>
    new Response(`{"error":{"message":"${'API_KEY=1'.repeat(20_000)}"}}`, {
      status: 400,
      headers: { 'content-type': 'application/json' },
    }),
  braces: () => whole('{'.repeat(256 * KB)),
  records: () => whole('[{'.repeat(128 * KB)),
  executed: () => whole('"executed":{'.repeat(20 * KB)),
  think: () => whole('<think>'.repeat(36 * KB)),
  calls: () => whole('<tool_call>{"name":"x"'.repeat(12 * KB)),
  digits: () =>
    whole(`<tool_call>{"name":"f","arguments":{"n":"${'1'.repeat(128 * KB)}"}}</tool_call>`),
  pieces: () =>
    new Response(`${event({ content: 'a' }).repeat(20_000)}data: [DONE]\n\n`, {
      headers: { 'content-type': 'text/event-stream' },
    }),
  headers: () => {
    const headers = new Headers({ 'content-type': 'application/json' });
    for (let i = 0; i < 900; i++) headers.set(`x-${i}`, 'a');
    return new Response('{}', { headers });
  },
};

const vendor = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 0,
  async fetch(request) {
    const body = (await request.json().catch(() => ({}))) as { model?: string };
    const name = String(body.model ?? '')
      .split('-')
      .at(-1)!;
    return (ANSWERS[name] ?? (() => whole('Fine.')))();
  },
});
console.log(String(vendor.port));

/* The hostile clients. */

let url = '';
const post = async (path: string, body: string | Uint8Array, headers = {}): Promise<void> => {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: body as string,
    signal: AbortSignal.timeout(20_000),
  });
  // Read to its end, held by no one.
  for await (const _ of response.body ?? []);
};
const chat = (model: string, content: unknown, more: object = {}) =>
  post(
    '/v1/chat/completions',
    JSON.stringify({ model, messages: [{ role: 'user', content }], ...more }),
  );
const messages = (model: string, list: unknown, more: object = {}) =>
  post('/v1/messages', JSON.stringify({ model, max_tokens: 10, messages: list, ...more }));

const TOOL = {
  type: 'function',
  function: { name: 'f', parameters: { type: 'object', properties: { n: { type: 'number' } } } },
};
const toolResult = (id: string, content: string) => [
  { role: 'user', content: 'go' },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: '{}' } }],
  },
  { role: 'tool', tool_call_id: id, content },
];

/** Sends raw bytes, waits, and hangs up. */
const raw = (text: string, wait: number) =>
  new Promise<void>((resolve) => {
    const { port } = new URL(url);
    const socket = connect(Number(port), '127.0.0.1', () => socket.write(text));
    socket.on('error', () => resolve());
    socket.on('close', () => resolve());
    setTimeout(() => {
      socket.destroy();
      resolve();
    }, wait);
  });

const repeat = (text: string, size: number) => text.repeat(Math.ceil(size / text.length));
const ATTACKS: Readonly<Record<string, () => Promise<unknown>>> = {
  'redaction: named values': () => chat('nobody/x', repeat('API_KEY=1', MB)),
  'redaction: user and password': () => chat('nobody/x', repeat('://a', MB)),
  'redaction: keys': () => chat('nobody/x', repeat('sk-a', MB)),
  'redaction: private keys': () => chat('nobody/x', repeat('-----BEGIN PRIVATE KEY-----', MB)),
  'redaction: bearer': () => chat('nobody/x', repeat('Bearer ', MB)),
  'long model name': () => chat(`nobody/${repeat('client_secret=1', 300 * KB)}`, 'hi'),
  'model names for the metrics': () => chat(`evil/${Math.random()}${'n'.repeat(400 * KB)}`, 'hi'),
  'long call id': () =>
    post(
      '/v1/chat/completions',
      JSON.stringify({ model: 'evil/x', messages: toolResult('a'.repeat(100 * KB), 'ok') }),
    ),
  'blanks in a tool result': () =>
    post(
      '/v1/chat/completions',
      JSON.stringify({
        model: 'evilglm/glm-x',
        messages: toolResult(
          'c1',
          JSON.stringify({ output: repeat('\t', 256 * KB), metadata: { exit_code: 0 } }),
        ),
      }),
    ),
  'many odd calls': () =>
    messages(
      'evil/x',
      Array.from({ length: 5000 }, (_, i) => [
        { role: 'assistant', content: [{ type: 'tool_use', id: `t${i}`, name: 'f', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: `u${i}`, content: 'x' }] },
      ]).flat(),
    ),
  'braces in an answer': () => chat('evilglm/glm-braces', 'hi'),
  'records in an answer': () => chat('evilglm/glm-records', 'hi'),
  'records of runs in an answer': () => chat('evilglm/glm-executed', 'hi'),
  'thoughts in an answer': () => chat('evilglm/glm-think', 'hi', { tools: [TOOL] }),
  'calls in an answer': () => chat('evilglm/glm-calls', 'hi', { tools: [TOOL] }),
  'digits in an answer': () => chat('evilglm/glm-digits', 'hi', { tools: [TOOL] }),
  'gzip in an answer': () => chat('evil/gzip', 'hi', { stream: true }),
  'a frame without an end': () => chat('evil/frame', 'hi', { stream: true }),
  'comments without an end': () => chat('evil/comments', 'hi', { stream: true }),
  'JSON without an end': () => chat('evil/json', 'hi'),
  'an error full of keys': () => chat('evil/error', 'hi'),
  'many frames at once, converted': () =>
    messages('evil/pieces', [{ role: 'user', content: 'hi' }], { stream: true }),
  'many headers in an answer': () => chat('evil/headers', 'hi'),
  'brotli in a request': () =>
    post(
      '/v1/chat/completions',
      brotliCompressSync(Buffer.alloc(49 * MB, ' '), {
        params: { [constants.BROTLI_PARAM_QUALITY]: 5 },
      }),
      { 'content-encoding': 'br' },
    ),
  'half a head': () => raw('POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nx: ', 3000),
  'half a body': () =>
    raw(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 10000000\r\n\r\n${'a'.repeat(64 * KB)}`,
      3000,
    ),
  'two hundred headers': () =>
    post(
      '/v1/chat/completions',
      '{}',
      Object.fromEntries(Array.from({ length: 90 }, (_, i) => [`x-${i}`, 'a'.repeat(100)])),
    ),
  'idle connections': () =>
    Promise.all(
      Array.from({ length: 50 }, () =>
        raw('GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n', 2000),
      ),
    ),
  'deep JSON': () =>
    post('/v1/chat/completions', `{"model":"evil/x","messages":${'['.repeat(500_000)}`),
  'memory: a long query': () =>
    post('/v1/memory/a/recall', JSON.stringify({ query: repeat('word ', 500 * KB) })),
  'Responses: unknown ids': () =>
    post(
      '/v1/responses',
      JSON.stringify({ model: 'evil/x', previous_response_id: 'r'.repeat(100 * KB), input: 'x' }),
    ),
};

const done: Record<string, number> = {};
let running = false;
async function attacker(offset: number): Promise<void> {
  const names = Object.keys(ATTACKS);
  for (let i = offset; running; i++) {
    const name = names[i % names.length]!;
    await ATTACKS[name]!().catch(() => {});
    done[name] = (done[name] ?? 0) + 1;
    // The attacker's own work must not take the machine from the gateway.
    await sleep(150);
  }
}

for await (const line of console) {
  if (line === 'stop') {
    running = false;
    const total = Object.values(done).reduce((sum, count) => sum + count, 0);
    console.log(`${total} of ${Object.keys(ATTACKS).length} kinds`);
    await sleep(1000);
    process.exit(0);
  }
  if (line === 'kinds') {
    console.log(JSON.stringify(Object.keys(ATTACKS)));
    continue;
  }
  const told = JSON.parse(line) as { url: string; attackers: number; kind?: string };
  url = told.url;
  if (told.kind !== undefined) {
    await ATTACKS[told.kind]!().catch(() => {});
    console.log('done');
    continue;
  }
  running = true;
  const step = Math.ceil(Object.keys(ATTACKS).length / told.attackers);
  for (let i = 0; i < told.attackers; i++) void attacker(i * step);
}
