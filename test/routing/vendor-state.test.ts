/** A prompt of which a part lies at a vendor is never answered without that part. */

import { describe, expect, test } from 'bun:test';
import { CODECS } from '../../src/app/codecs.ts';
import { PROTOCOL_NAMES, type ProtocolName } from '../../src/conversation/protocol-names.ts';
import { ClientRequest } from '../../src/gateway/client-request.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { type RoutedTarget, targetsWithState } from '../../src/routing/index.ts';
import { scriptedGateway } from '../gateway/scripted.ts';
import { startInProcess } from '../support/in-process.ts';

const MESSAGES = [{ role: 'user', content: 'hi' }];
const BODIES: Readonly<Record<ProtocolName, JsonObject>> = {
  'openai-chat': { model: 'm', messages: MESSAGES },
  'openai-responses': { model: 'm', input: 'hi' },
  'anthropic-messages': { model: 'm', max_tokens: 9, messages: MESSAGES },
  'google-gemini': { model: 'm', stream: false, contents: [{ parts: [{ text: 'hi' }] }] },
};

const REFERENCES: readonly (readonly [ProtocolName, field: string, JsonObject])[] = [
  ['openai-responses', 'conversation', { conversation: 'conv_1' }],
  ['openai-responses', 'conversation', { conversation: { id: 'conv_1' }, input: null }],
  ['openai-responses', 'prompt', { prompt: { id: 'pmpt_1', variables: { a: 'b' } } }],
  ['openai-responses', 'preset', { preset: 'of-mine' }],
  ['openai-chat', 'preset', { preset: 'of-mine' }],
  ['openai-chat', 'cached_content', { cached_content: 'cachedContents/1' }],
  [
    'openai-chat',
    'extra_body.google.cached_content',
    { extra_body: { google: { cached_content: 'cachedContents/1' } } },
  ],
  ['google-gemini', 'cachedContent', { cachedContent: 'cachedContents/1' }],
  ['google-gemini', 'cached_content', { cached_content: 'cachedContents/1' }],
  ['anthropic-messages', 'preset', { preset: 'of-mine' }],
];

/** What may be lost: the answer is made of the same prompt, or a mention stands in it. */
const REST: readonly (readonly [ProtocolName, what: string, JsonObject])[] = [
  ['openai-responses', 'no conversation', { conversation: null, prompt: null }],
  ['openai-responses', 'a background job', { background: true }],
  ['openai-chat', 'other settings of Google', { extra_body: { google: { thinking_config: {} } } }],
  ['google-gemini', 'no cached content', { cachedContent: '' }],
  ['anthropic-messages', 'the container of a tool', { container: 'container_1' }],
];

const others = (client: ProtocolName) => PROTOCOL_NAMES.filter((name) => name !== client);

describe('content that a vendor keeps', () => {
  test.each(REFERENCES)(
    '%s: %s of %j is not lost at another protocol',
    async (client, field, more) => {
      for (const protocol of others(client)) {
        const gateway = scriptedGateway(protocol, []);
        for (const stream of [false, true]) {
          const answer = await gateway.ask(client, { ...BODIES[client], ...more, stream });
          expect([answer.status, gateway.sent]).toEqual([400, []]);
          const { error } = JSON.parse(answer.text);
          expect(error.message).toContain(`'${field}' refers to content that its vendor keeps.`);
          expect(error.message).toContain(`The provider up of this model`);
          if (client.startsWith('openai')) expect(error.param).toBe(field);
          expect(error.type ?? error.status).toMatch(/invalid_request_error|INVALID_ARGUMENT/);
        }
      }
    },
  );

  test.each(REFERENCES)(
    '%s: %s of %j reaches a vendor of that protocol',
    async (client, _, more) => {
      const body = { ...BODIES[client], stream: false, ...more };
      const gateway = scriptedGateway(client, [{ json: { error: { message: 'x' } }, status: 418 }]);
      await gateway.ask(client, body);
      expect(gateway.sent).toMatchObject([more]);
    },
  );

  test.each(REFERENCES)('%s: %s of %j goes to those that can read it alone', (client, _, more) => {
    const target = (protocol: ProtocolName, provider: string) =>
      ({ target: { protocol, provider } }) as RoutedTarget;
    const [other, third] = others(client);
    const all = [
      target(other!, 'a'),
      target(client, 'b'),
      target(third!, 'c'),
      target(client, 'd'),
    ];
    const kept = (body: JsonObject) => {
      const bytes = Buffer.from(JSON.stringify(body));
      const request = new ClientRequest(CODECS[client], bytes);
      return targetsWithState(request, client, all);
    };
    expect(kept({ ...BODIES[client], ...more })).toEqual([all[1]!, all[3]!]);
    expect(kept(BODIES[client])).toBe(all);
  });

  test.each(REST)('%s: %s is no reason to refuse', async (client, _, more) => {
    for (const protocol of others(client)) {
      const gateway = scriptedGateway(protocol, [
        { json: { error: { message: 'x' } }, status: 418 },
      ]);
      await gateway.ask(client, { ...BODIES[client], ...more });
      expect(gateway.sent.length).toBe(1);
    }
  });
});

describe('a turn that a vendor paused', () => {
  const call = {
    type: 'server_tool_use',
    id: 'srvtoolu_1',
    name: 'web_search',
    input: { query: 'a' },
  };
  const found = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] };
  const said = (content: readonly JsonObject[], stop_reason: string) => ({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content,
    stop_reason,
    usage: { input_tokens: 1, output_tokens: 1 },
  });
  const chat = {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'No.' }, finish_reason: 'stop' }],
  };
  const overloaded = {
    status: 529,
    body: { type: 'error', error: { type: 'overloaded_error', message: 'busy' } },
  };
  interface Said {
    readonly status?: number;
    readonly body: object;
  }

  /** Asks a route of these targets; what the two vendors say, in turn. */
  async function ask(
    to: readonly string[],
    claude: Said[],
    gpt: Said[],
    client: ProtocolName,
    body: object,
  ) {
    const asked: string[] = [];
    const vendor = (name: string, script: Said[]) =>
      Bun.serve({
        hostname: '127.0.0.1',
        port: 0,
        fetch() {
          asked.push(name);
          const next = script.shift()!;
          return Response.json(next.body, { status: next.status ?? 200 });
        },
      });
    const vendors = [vendor('claude', claude), vendor('gpt', gpt)];
    const provider = (at: number, protocol: ProtocolName) => ({
      protocol,
      base_url: `http://127.0.0.1:${vendors[at]!.port}`,
      keys: ['k'],
      models: ['m'],
      ...(at === 0 && { profile: 'anthropic' }),
    });
    const gateway = await startInProcess({
      providers: { claude: provider(0, 'anthropic-messages'), gpt: provider(1, 'openai-chat') },
      routes: [{ to }],
      retry: { attempts: 1 },
      samples: { mode: 'off' },
    });
    const path = client === 'anthropic-messages' ? '/v1/messages' : '/v1/chat/completions';
    const { status } = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'r', max_tokens: 99, ...body }),
    });
    await gateway.stop();
    for (const one of vendors) await one.stop(true);
    return { status, asked };
  }
  const tools = [{ type: 'web_search_20250305', name: 'web_search' }];
  const history = (...content: readonly JsonObject[]) => ({
    tools,
    messages: [...MESSAGES, { role: 'assistant', content }],
  });

  test.each<[name: string, body: object, status: number, asked: string[]]>([
    ['is not continued by another vendor', history(call), 529, ['claude']],
    ['that has its result goes on anywhere', history(call, found), 200, ['claude', 'gpt']],
    [
      'and that the client left goes on anywhere',
      { tools, messages: [...history(call).messages, ...MESSAGES] },
      200,
      ['claude', 'gpt'],
    ],
  ])('%s', async (_, body, status, asked) => {
    const targets = ['claude/m', 'gpt/m'];
    const answer = await ask(targets, [overloaded], [{ body: chat }], 'anthropic-messages', body);
    expect(answer).toEqual({ status, asked });
  });

  test('goes to another vendor where the route has none of its kind', async () => {
    const answer = await ask(['gpt/m'], [], [{ body: chat }], 'anthropic-messages', history(call));
    expect(answer).toEqual({ status: 200, asked: ['gpt'] });
  });

  test.each<[string, ProtocolName, object]>([
    ['Chat', 'openai-chat', { messages: MESSAGES, web_search_options: {} }],
    ['Messages', 'anthropic-messages', { messages: MESSAGES, tools }],
  ])(
    'is continued where it paused, though the route begins elsewhere (%s)',
    async (_, client, body) => {
      const failed = { status: 500, body: { error: { message: 'no' } } };
      const claude = [
        { body: said([call], 'pause_turn') },
        { body: said([found, { type: 'text', text: 'Yes.' }], 'end_turn') },
      ];
      const gpt = [failed, { body: chat }];
      expect(await ask(['gpt/m', 'claude/m'], claude, gpt, client, body)).toEqual({
        status: 200,
        asked: ['gpt', 'claude', 'claude'],
      });
    },
  );
});
