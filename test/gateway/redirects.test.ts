/** An upstream's redirect ends at the gateway: no key and no prompt follows it. */

import { describe, expect, test } from 'bun:test';
import { CODECS } from '../../src/app/codecs.ts';
import { environmentFrom } from '../../src/config/environment.ts';
import { parseConfig } from '../../src/config/load.ts';
import { createTokenCounter } from '../../src/gateway/count-tokens/count-tokens.ts';
import { forwardedHeaders } from '../../src/gateway/response-headers.ts';
import { WITHOUT_KEY } from '../../src/keys/principal.ts';
import { FlatHeaders } from '../../src/lib/http/headers.ts';
import { routingTable } from '../../src/routing/index.ts';
import { ConcurrencyLimit } from '../../src/upstream/concurrency-limit.ts';
import { answerOf } from '../../src/upstream/fetch-transport.ts';
import { Upstream } from '../../src/upstream/upstream.ts';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';
import { PROTOCOLS, scriptedGateway } from './scripted.ts';

const location = 'https://elsewhere.example/v1?signature=s3cret';
const redirect = (status: number) => ({ json: { gone: location }, status, headers: { location } });
const reply = {
  id: 'c1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Here.' }, finish_reason: 'stop' }],
};
const asked = (model: string) => ({
  model,
  max_tokens: 9,
  messages: [{ role: 'user', content: 'hi' }],
});

describe('a redirect of the upstream', () => {
  test.each([300, 301, 302, 303, 307, 308])('%i is never handed to the client', async (status) => {
    for (const client of ['openai-chat', 'anthropic-messages'] satisfies ProtocolName[]) {
      for (const vendor of ['openai-chat', 'anthropic-messages'] satisfies ProtocolName[]) {
        const gateway = scriptedGateway(vendor, [redirect(status)]);
        const { status: told, headers, text } = await gateway.ask(client, asked('m'));
        expect(told).toBe(502);
        expect(headers.has('location')).toBe(false);
        expect(text).toContain(`Provider up answered with a redirect (${status})`);
        expect(text).toContain('base_url');
        expect(text).not.toContain('elsewhere');
        expect(gateway.sent).toHaveLength(1);
        expect(gateway.summaries[0]).toMatchObject({ status: 502, error: { kind: 'upstream' } });
      }
    }
  });

  test('does not keep the next target from being asked, whatever the vendor says of retries', async () => {
    const { json, status, headers } = redirect(307);
    const first = { json, status, headers: { ...headers, 'x-should-retry': 'false' } };
    const gateway = scriptedGateway(
      'openai-chat',
      [first, { json: reply }],
      [],
      'routes: [{ to: [up/a, up/b] }]',
    );
    const answer = await gateway.ask('openai-chat', asked('m'));
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('Here.');
    expect(gateway.sent).toMatchObject([{ model: 'a' }, { model: 'b' }]);
  });

  test('of a count of tokens is not handed to the client, but counted by size', async () => {
    const loaded = parseConfig(
      'providers: { up: { protocol: anthropic-messages, base_url: "http://up.test", models: ["*"] } }',
      'test.yaml',
      environmentFrom({}, '/nowhere'),
    );
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    const table = routingTable(loaded.config);
    const count = createTokenCounter({
      protocols: CODECS,
      foreignIds: async () => [],
      services: () => ({
        table,
        slots: new ConcurrencyLimit(0),
        upstream: ({ provider }) =>
          new Upstream(provider, async () =>
            answerOf(Response.json({ input_tokens: 1 }, { status: 308, headers: { location } })),
          ),
      }),
    });
    const response = await count({
      id: 'req_1790000000000_abcdef',
      protocol: PROTOCOLS['anthropic-messages'],
      body: new TextEncoder().encode(JSON.stringify(asked('m'))),
      headers: new Headers(),
      sessionId: '',
      search: '',
      signal: new AbortController().signal,
      principal: WITHOUT_KEY,
      owner: '',
      started: performance.now(),
    });
    expect(response.status).toBe(200);
    expect(response.headers.has('location')).toBe(false);
    expect(response.headers.get('x-hopgate-notes')).toContain('tokens_estimated');
  });
});

test('a Location beside another status does not lead a client away either', () => {
  const headers = forwardedHeaders(FlatHeaders.of({ location, 'x-request-id': 'r' }));
  expect([...headers]).toEqual([['x-request-id', 'r']]);
});
