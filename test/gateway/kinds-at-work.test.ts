/** What a vendor's words lead to in the gateway: another key, the next target, and what each client is told. */

import { afterEach, describe, expect, test } from 'bun:test';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';
import { rawUpstream, rawWorld, whole } from './raw-upstream.ts';

const servers: { stop(now?: boolean): unknown }[] = [];
afterEach(() => {
  for (const one of servers.splice(0)) one.stop(true);
});

const ANSWERS: Readonly<Record<string, unknown>> = {
  'openai-chat': {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [
      { index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' },
    ],
  },
  'google-gemini': {
    candidates: [{ content: { role: 'model', parts: [{ text: 'Hello' }] }, finishReason: 'STOP' }],
  },
  'anthropic-messages': {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'Hello' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 1, output_tokens: 1 },
  },
};

/** A vendor that refuses requests with this key, or all of them, and answers the others. */
function vendor(protocol: string, refuses: string, status: number, body: unknown) {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch({ headers }) {
      const bad = refuses === '*' || [...headers.values()].some((one) => one.includes(refuses));
      return Response.json(bad ? body : ANSWERS[protocol], { status: bad ? status : 200 });
    },
  });
  servers.push(server);
  return { url: `http://127.0.0.1:${server.port}` };
}

const google = (message: string, status: string, details: readonly object[] = []) => ({
  error: { code: 400, message, status, details },
});
const EXPIRED = google('API key expired. Please renew the API key.', 'INVALID_ARGUMENT', [
  { reason: 'API_KEY_INVALID' },
]);
const invalid = (message: string) => ({
  type: 'error',
  error: { type: 'invalid_request_error', message },
});

const REFUSALS: readonly (readonly [
  who: string,
  protocol: string,
  profile: string,
  status: number,
  body: unknown,
])[] = [
  ['Gemini', 'google-gemini', 'google-gemini', 400, EXPIRED],
  ['Gemini at its OpenAI address', 'openai-chat', 'gemini', 400, [EXPIRED]],
  [
    'xAI',
    'openai-chat',
    'xai',
    400,
    { code: 'Client specified an invalid argument', error: 'Incorrect API key provided: ab***cd.' },
  ],
  [
    'Anthropic',
    'anthropic-messages',
    'anthropic',
    400,
    invalid('You have reached your specified API usage limits. You will regain access on …'),
  ],
  [
    'Gemini, region',
    'google-gemini',
    'google-gemini',
    400,
    google('User location is not supported for the API use.', 'FAILED_PRECONDITION'),
  ],
];

describe.each(REFUSALS)('%s refuses a key with words', (_, protocol, profile, status, body) => {
  test('the next key is asked, and the refused one rests', async () => {
    const a = vendor(protocol, 'bad-key-0123456789', status, body);
    const world = rawWorld(`
providers:
  a: { protocol: ${protocol}, profile: ${profile}, base_url: "${a.url}", keys: ["bad-key-0123456789", "good-key-0123456789"], models: ["*"] }
`);
    for (let i = 0; i < 4; i++) {
      expect((await world.ask('openai-chat', false)).status).toBe(200);
    }
  });

  test('with one key, the next target is asked', async () => {
    const a = vendor(protocol, '*', status, body);
    const b = vendor('openai-chat', 'never-refused', 500, {});
    const world = rawWorld(`
providers:
  a: { protocol: ${protocol}, profile: ${profile}, base_url: "${a.url}", keys: ["bad-key-0123456789"], models: ["*"] }
  b: { protocol: openai-chat, base_url: "${b.url}", keys: ["good-key-0123456789"], models: ["*"] }
routes: [{ to: ["a/m", "b/m"] }]
`);
    const { status: seen, text } = await world.ask('openai-chat', false);
    expect([seen, text.includes('Hello')]).toEqual([200, true]);
  });
});

describe('451, withheld for legal reasons (RFC 7725)', () => {
  test.each(['openai-chat', 'openai-responses', 'anthropic-messages', 'google-gemini'])(
    'of %s: the next target is asked, and no key rests',
    async (protocol) => {
      const a = vendor(protocol, '*', 451, {
        error: { message: 'Unavailable For Legal Reasons' },
      });
      const b = vendor('openai-chat', 'never-refused', 500, {});
      const world = rawWorld(`
providers:
  a: { protocol: ${protocol}, base_url: "${a.url}", keys: ["one-key-0123456789"], models: ["*"] }
  b: { protocol: openai-chat, base_url: "${b.url}", keys: ["good-key-0123456789"], models: ["*"] }
routes: [{ name: both, to: ["a/m", "b/m"] }]
`);
      const both = await world.ask('openai-chat', false, { model: 'both' });
      expect([both.status, both.text.includes('Hello')]).toEqual([200, true]);
      const alone = await world.ask('openai-chat', false, { model: 'a/m' });
      expect(alone.status).toBe(451);
      expect(alone.text).toContain('Unavailable For Legal Reasons');
      expect(world.refusedKeys).toEqual([]);
    },
  );
});

const CLIENTS: readonly ProtocolName[] = ['openai-chat', 'openai-responses', 'anthropic-messages'];

describe.each(CLIENTS)('%s', (client) => {
  test('a model that the vendor does not have is told by all names', async () => {
    const a = vendor('openai-chat', '*', 400, {
      error: { code: '1211', message: '模型不存在，请检查模型代码。' },
    });
    const world = rawWorld(`
providers:
  glm: { protocol: openai-chat, profile: glm, base_url: "${a.url}", keys: ["good-key-0123456789"], models: ["*"] }
routes: [{ name: coding, to: ["glm/glm-4.8"] }]
`);
    const { text, status } = await world.ask(client, false);
    expect(status).toBe(400);
    const { message } = (JSON.parse(text) as { error: { message: string } }).error;
    expect(message).toContain('Provider glm has no model "glm-4.8" (asked for ');
    expect(message).toContain('route "coding"): 模型不存在');
  });

  test('a server that is off is not asked again and again', async () => {
    const world = rawWorld(`
providers:
  a: { protocol: openai-chat, base_url: "http://127.0.0.1:1", keys: ["good-key-0123456789"], models: ["*"] }
`);
    const { status, headers } = await world.ask(client, false);
    expect([status, headers.get('x-should-retry')]).toEqual([502, 'false']);
  });

  test('a limit per minute that one request exceeds rests nobody', async () => {
    let asked = 0;
    const a = rawUpstream(async (wire) => {
      asked++;
      const words =
        'Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 64000.';
      const body =
        asked === 1
          ? { error: { message: words, type: 'tokens', code: 'rate_limit_exceeded' } }
          : ANSWERS['openai-chat'];
      await wire.write(whole(asked === 1 ? 429 : 200, JSON.stringify(body)));
      wire.end();
    });
    servers.push(a);
    const world = rawWorld(`
providers:
  a: { protocol: openai-chat, base_url: "${a.url}", keys: ["good-key-0123456789"], models: ["*"] }
`);
    expect((await world.ask(client, false)).status).toBe(413);
    expect(asked).toBe(1);
    expect((await world.ask(client, false)).status).toBe(200);
  });
});
