/** Which headers and parameters go on between clients and vendors; everything unknown stays here. */

import { describe, expect, test } from 'bun:test';
import { environmentFrom } from '../../src/config/environment.ts';
import { parseConfig } from '../../src/config/load.ts';
import { forwardedHeaders } from '../../src/gateway/response-headers.ts';
import { FlatHeaders } from '../../src/lib/http/headers.ts';
import { Abort } from '../../src/lib/loop/abort.ts';
import { answerOf } from '../../src/upstream/fetch-transport.ts';
import type { UpstreamRequest } from '../../src/upstream/transport.ts';
import { Upstream } from '../../src/upstream/upstream.ts';
import { PROTOCOLS } from '../gateway/scripted.ts';

const protocols = Object.keys(PROTOCOLS) as (keyof typeof PROTOCOLS)[];

function provider(protocol: string, more = '') {
  const loaded = parseConfig(
    `providers: { up: { protocol: ${protocol}, base_url: "http://up.test", keys: [k], models: ["*"]${more} } }`,
    'test.yaml',
    environmentFrom({}, '/nowhere'),
  );
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.config.providers.up!;
}

async function sent(
  config: ReturnType<typeof provider>,
  headers: Record<string, string>,
  search = '',
  owner = '',
): Promise<UpstreamRequest> {
  let request: UpstreamRequest | undefined;
  const upstream = new Upstream(config, async (given) => {
    request = given;
    return answerOf(Response.json({}));
  });
  await upstream.send({
    path: '/x',
    search,
    body: new Uint8Array(2),
    clientHeaders: FlatHeaders.of(headers),
    owner,
    sameProtocol: true,
    stream: false,
    abort: new Abort(),
  });
  return request!;
}

const names = (headers: Iterable<readonly [string, string]>) => [...headers].map(([name]) => name);
const valued = (all: readonly string[]) => Object.fromEntries(all.map((name) => [name, 'told']));

const PRIVATE = [
  'openai-organization',
  'openai-project',
  'anthropic-organization-id',
  'anthropic-workspace-id',
  'chatgpt-account-id',
  'x-goog-user-project',
  'x-goog-request-params',
  'x-gemini-api-privileged-user-id',
  'x-amz-security-token',
  'x-amz-date',
  'ocp-apim-subscription-key',
  'x-dashscope-workspace',
  'x-openai-actor-authorization',
  'x-codex-account-id',
  'x-claude-user-email',
  'helicone-auth',
  'cf-aig-authorization',
  'x-kilocode-organizationid',
  'cf-connecting-ip',
  'cf-ipcountry',
  'cf-ray',
  'cdn-loop',
  'true-client-ip',
  'fastly-client-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-original-forwarded-for',
  'x-envoy-external-address',
  'x-azure-clientip',
  'x-forwarded-for',
  'x-forwarded-email',
  'x-auth-request-user',
  'remote-user',
  'from',
  'x-real-ip',
  'forwarded',
  'via',
  'cookie',
  'set-cookie',
  'proxy-authorization',
  'x-hopgate-target',
  'x-unheard-of',
];

const OF_AGENTS = [
  'accept-language',
  'user-agent',
  'idempotency-key',
  'openai-beta',
  'anthropic-beta',
  'anthropic-dangerous-direct-browser-access',
  'anthropic-not-yet-invented',
  'x-app',
  'x-claude-code-session-id',
  'x-claude-code-prev-tool-durations',
  'x-claude-1p-request-class',
  'x-stainless-retry-count',
  'x-stainless-helper-method',
  'x-codex-turn-metadata',
  'x-codex-turn-state',
  'x-openai-internal-codex-responses-lite',
  'x-openai-subagent',
  'originator',
  'version',
  'session-id',
  'session_id',
  'thread-id',
  'x-client-request-id',
  'x-session-affinity',
  'x-session-id',
  'x-goog-api-client',
  'http-referer',
  'x-title',
  'x-grok-conv-id',
];

const OF_VENDORS = [
  'content-type',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'request-id',
  'x-request-id',
  'openai-processing-ms',
  'openai-version',
  'openai-model',
  'anthropic-ratelimit-tokens-remaining',
  'anthropic-ratelimit-unified-status',
  'x-ratelimit-limit-requests',
  'x-ratelimit-remaining-project-tokens',
  'ratelimit-reset',
  'x-codex-primary-used-percent',
  'x-codex-turn-state',
  'x-reasoning-included',
  'x-groq-region',
];

describe.each(protocols)('%s to a vendor of the same protocol', (protocol) => {
  test('what names an account, a person or an address, and what nobody knows, stays here', async () => {
    const { headers } = await sent(provider(protocol), valued(PRIVATE));
    expect(names(headers).filter((name) => PRIVATE.includes(name))).toEqual([]);
  });

  test('what agents and SDKs send goes on', async () => {
    const { headers } = await sent(provider(protocol), valued(OF_AGENTS));
    expect(OF_AGENTS.filter((name) => headers.get(name) !== 'told')).toEqual([]);
  });

  test('configured headers win over the client’s', async () => {
    const config = provider(protocol, ', headers: { openai-organization: own, x-title: own }');
    const asked = { 'openai-organization': 'client', 'x-title': 'client' };
    const { headers } = await sent(config, asked);
    expect([headers.get('openai-organization'), headers.get('x-title')]).toEqual(['own', 'own']);
  });

  test.each([
    ['?beta=true', '?beta=true'],
    ['?beta=true&key=other&access_token=t&api-version=1', '?beta=true'],
    ['?%6Bey=other&%62eta=1', '?%62eta=1'],
    ['?api-version=1999-01-01&key=other', ''],
    ['?beta=1;key=other', '?beta=1%3Bkey=other'],
    ['?include[]=a&include[]=b&after=x', '?include[]=a&include[]=b&after=x'],
    ['?project=p&organization=o&user=u&quotaUser=q&$userProject=p', ''],
    ['?&&=1', ''],
  ])('of the query %s go on: "%s"', async (asked, left) => {
    expect((await sent(provider(protocol), {}, asked)).url).toEndWith(`/x${left}`);
  });

  test('a configured parameter is sent once, whatever the client says of it', async () => {
    const config = provider(protocol, ', query: { api-version: "2", beta: "own" }');
    const { url } = await sent(config, {}, '?api-version=1&beta=true&%62eta=2');
    expect(url).toEndWith('/x?api-version=2&beta=own');
  });
});

describe('a vendor’s answer to a client of its protocol', () => {
  test('tells nothing of the account, and nothing that nobody knows', () => {
    expect(names(forwardedHeaders(FlatHeaders.of(valued(PRIVATE))))).toEqual([]);
  });

  test('keeps limits, request ids and what agents read', () => {
    const headers = forwardedHeaders(FlatHeaders.of(valued(OF_VENDORS)));
    expect(names(headers)).toEqual(OF_VENDORS);
  });
});

describe('providers.NAME.forward_headers', () => {
  test('lets further names through, exact ones and beginnings, on this provider alone', async () => {
    const asked = valued(['x-team', 'x-tag-a', 'x-tag-user-id', 'x-other', 'openai-project']);
    const config = provider(
      'openai-chat',
      ', forward_headers: [X-Team, "x-tag-*", openai-project]',
    );
    const { headers } = await sent(config, asked);
    expect(names(headers).filter((name) => name in asked)).toEqual([
      'x-team',
      'x-tag-a',
      'openai-project',
    ]);
    const others = (await sent(provider('openai-chat'), asked)).headers;
    expect(names(others).filter((name) => name in asked)).toEqual([]);
  });

  test.each(['authorization', 'X-Api-Key', 'cookie', 'host', 'x-forwarded-for', 'x-hopgate-a'])(
    'refuses %s',
    (name) => {
      expect(() => provider('openai-chat', `, forward_headers: [${name}]`)).toThrow('cannot go on');
    },
  );

  test('a beginning does not let credentials of this hop through', async () => {
    const config = provider('openai-chat', ', forward_headers: ["x-*", "c*"]');
    const asked = valued(['x-api-key', 'x-forwarded-for', 'cookie', 'x-new']);
    const { headers } = await sent(config, asked);
    expect(names(headers).filter((name) => name in asked)).toEqual(['x-new']);
  });
});

test.each(protocols)('%s: a repetition of one key is none of another', async (protocol) => {
  const named = async (owner: string) => {
    const { headers } = await sent(provider(protocol), { 'idempotency-key': 'retry-1' }, '', owner);
    return FlatHeaders.from(headers).get('idempotency-key');
  };
  expect(await named('')).toBe('retry-1');
  expect(await named('a')).toBe(await named('a'));
  expect(new Set([await named('a'), await named('b'), 'retry-1'])).toHaveProperty('size', 3);
});
