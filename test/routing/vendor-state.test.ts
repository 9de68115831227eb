/** A prompt of which a part lies at a vendor is never answered without that part. */

import { describe, expect, test } from 'bun:test';
import { CODECS } from '../../src/app/codecs.ts';
import { PROTOCOL_NAMES, type ProtocolName } from '../../src/conversation/protocol-names.ts';
import { ClientRequest } from '../../src/gateway/client-request.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { type RoutedTarget, targetsWithState } from '../../src/routing/index.ts';
import { scriptedGateway } from '../gateway/scripted.ts';

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
