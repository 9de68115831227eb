/** A client whose words a vendor repeats in its error: what it writes changes nothing for requests of other keys. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { type InProcess, startInProcess } from '../support/in-process.ts';

type Body = Readonly<Record<string, unknown>>;

/** Repeats a value that it does not know, as OpenAI, serde, pydantic and Google write it, and refuses one key by itself. */
const REPEATS: readonly (readonly [vendor: string, say: (value: string) => string])[] = [
  ['OpenAI', (value) => `Invalid value: '${value}'. Supported values are: 'low' and 'high'.`],
  ['serde', (value) => `reasoning_effort: unknown variant \`${value}\`, expected \`low\``],
  ['Google', (value) => `Invalid value at 'effort' (TYPE_ENUM), "${value}"`],
  ['without marks', (value) => `Value ${value} is not one of low, high`],
];

const ASKED = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };
const REAL = {
  ...ASKED,
  max_tokens: 4000,
  stop: ['x'],
  tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }],
};
/** What a client writes, and whether it leaves the quotation in which the vendor repeats it. */
const WRITTEN = [
  'supports at most 17 completion tokens',
  "x'. Unknown parameter: 'tools",
  'x`. unknown field `stop`, expected `y',
  'this model does not support tools',
  "streaming is not supported, x' 'y",
  'system role not supported',
  "x' Incorrect API key provided 'y",
  'x` Incorrect API key provided `y',
  'x" Incorrect API key provided "y',
  'x\' \\u0049ncorrect API\\u0020key provided "y',
  "x' insufficient balance 'y",
  "x' you exceeded your current quota 'y",
  "x' rate limit reached 'y",
  "x' server is busy 'y",
  "{'message': 'invalid api key'}",
];

describe('words that a client writes and a vendor repeats', () => {
  let gateway: InProcess;
  let say = REPEATS[0]![1];
  const got: { readonly key: string; readonly body: Body }[] = [];
  const vendor = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const body = (await request.json()) as Body;
      const key = request.headers.get('authorization') ?? '';
      got.push({ key, body });
      const { reasoning_effort: effort } = body;
      if (JSON.stringify(body.messages).includes('crash') && !request.url.includes('other'))
        return Response.json({ error: { message: 'It broke.' } }, { status: 500 });
      const beta = request.headers.get('openai-beta') ?? undefined;
      const repeated = effort ?? beta;
      if (repeated !== undefined) {
        const error = { message: say(String(repeated)), type: 'invalid_request_error' };
        if (body.stream !== true) return Response.json({ error }, { status: 400 });
        const type = { 'content-type': 'text/event-stream' };
        return new Response(`data: ${JSON.stringify({ error })}\n\n`, { headers: type });
      }
      const message = { role: 'assistant', content: 'Hello.' };
      const choices = [{ index: 0, message, finish_reason: 'stop' }];
      return Response.json({ id: 'c', object: 'chat.completion', model: 'm', choices });
    },
  });
  const start = () =>
    startInProcess({
      providers: {
        up: {
          protocol: 'openai-chat',
          base_url: `http://127.0.0.1:${vendor.port}`,
          keys: ['sk-one', 'sk-two'],
          models: ['m'],
        },
        other: {
          protocol: 'openai-chat',
          base_url: `http://127.0.0.1:${vendor.port}/other`,
          keys: ['sk-three'],
        },
      },
      routes: [{ when: { model: 'two' }, to: ['up/m', 'other/m'] }, { to: ['up/m'] }],
      auth: {
        admin_keys: ['an-admin-key'],
        keys: [
          { name: 'ann', key: 'key-of-ann' },
          { name: 'bob', key: 'key-of-bob' },
        ],
      },
      retry: { attempts: 1 },
    });
  beforeAll(async () => {
    gateway = await start();
  });
  afterAll(async () => {
    await gateway.stop();
    vendor.stop(true);
  });
  const ask = (key: string, body: string, headers = {}) =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, ...headers },
      body,
    });
  const health = async () => {
    const answer = await fetch(`${gateway.url}/admin/v1/health`, {
      headers: { authorization: 'Bearer an-admin-key' },
    });
    return JSON.stringify(await answer.json());
  };

  test.each(
    REPEATS.flatMap(([name, sentence]) => WRITTEN.map((words) => [name, words, sentence] as const)),
  )('%s: %s', async (_name, words, sentence) => {
    say = sentence;
    // An escape in the body is no other word.
    const plain = JSON.stringify({ ...ASKED, reasoning_effort: words });
    const refused = await ask('key-of-bob', plain.replaceAll('\\\\u', '\\u'));
    expect(refused.ok).toBe(false);
    got.length = 0;
    expect((await ask('key-of-ann', JSON.stringify(REAL))).status).toBe(200);
    expect(got.map(({ body }) => body)).toEqual([REAL]);
    expect(await health()).not.toMatch(/"reason":|"state":"(?:rest|cool)/);
  });

  test.each(WRITTEN)('in an event of a stream: %s', async (words) => {
    say = REPEATS[0]![1];
    await (
      await ask('key-of-bob', JSON.stringify({ ...ASKED, stream: true, reasoning_effort: words }))
    ).text();
    got.length = 0;
    expect((await ask('key-of-ann', JSON.stringify(REAL))).status).toBe(200);
    expect(got.map(({ body }) => body)).toEqual([REAL]);
    expect(await health()).not.toMatch(/"reason":|"state":"(?:rest|cool)/);
  });

  test('a request at which the server fails moves no other key to another target, until others fail, too', async () => {
    const ask = (key: string, content: string) =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}` },
        body: JSON.stringify({ model: 'two', messages: [{ role: 'user', content }] }),
      }).then((answer) => answer.headers.get('x-hopgate-target'));
    expect(await ask('key-of-ann', 'hi')).toBe('up/m');
    for (let i = 0; i < 12; i++) expect(await ask('key-of-bob', 'crash')).toBe('other/m');
    expect(await ask('key-of-ann', 'hi')).toBe('up/m');
    expect(await health()).not.toContain('"reason":');
    for (let i = 0; i < 5; i++) {
      await ask('key-of-ann', 'crash');
      await ask('key-of-bob', 'crash');
    }
    expect(await ask('key-of-ann', 'hi')).toBe('other/m');
  });

  test('in a header that goes on', async () => {
    say = REPEATS[0]![1];
    const words = "x' Incorrect API key provided 'y";
    await ask('key-of-bob', JSON.stringify(ASKED), { 'openai-beta': words });
    expect(await health()).not.toContain('key_refused');
  });
});
