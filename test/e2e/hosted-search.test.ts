/** Clients that declare the hosted web search, against vendors without one: each client reads it in its own protocol. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import {
  type Answer,
  type FakeUpstream,
  type Protocol,
  say,
  startFakeUpstream,
  toolNames,
} from '../support/fake-upstream/index.ts';
import {
  pagesFor,
  startToolServers,
  stopAll,
  type ToolServers,
  toolsOf,
} from '../support/tool-servers.ts';
import { PROTOCOLS, VIA } from './clients.ts';
import { framing, OWN, SEARCH_CHATS, type SearchReply } from './search-clients.ts';
import { sentHistory } from './sent-history.ts';

let upstream: FakeUpstream;
let toolServers: ToolServers;
let gateway: Gateway;

beforeAll(async () => {
  upstream = await startFakeUpstream({ keys: ['sk-upstream'], models: ['m1'] });
  toolServers = await startToolServers();
  const { web_search } = toolsOf(toolServers, 'declared');
  gateway = await startGateway(
    threeProviders(upstream, { keep_alive: 0.1, server_tools: { web_search } }),
  );
}, 120_000);
afterEach(() => {
  upstream.clear();
  toolServers.clear();
});
afterAll(() => stopAll(gateway, upstream, toolServers));

const search = (query: string): Answer => ({
  parts: [
    { kind: 'text', text: 'Let me look.' },
    { kind: 'call', name: 'web_search', arguments: JSON.stringify({ query }) },
  ],
  usage: { input: 500, output: 20 },
});
const [FIRST, SECOND] = pagesFor('tides').map(({ url }) => url) as [string, string];
const cited = say('High at noon [1]. Low at six [2].', { usage: { input: 700, output: 30 } });

/** What each client reads of one search and an answer with two citations. */
const SHAPE: Readonly<Record<Protocol, Partial<SearchReply>>> = {
  // Chat has no item for a call that the server ran.
  'openai-chat': {
    shape: ['annotations', 'content', 'role'],
    searches: [],
    results: [],
    text: 'Let me look.\n\nHigh at noon [1]. Low at six [2].',
    cited: [
      { url: FIRST, on: '[1]' },
      { url: SECOND, on: '[2]' },
    ],
  },
  'openai-responses': {
    shape: ['message', 'web_search_call', 'message'],
    searches: ['tides'],
    text: 'Let me look.High at noon [1]. Low at six [2].',
    cited: [
      { url: FIRST, on: '[1]' },
      { url: SECOND, on: '[2]' },
    ],
  },
  'anthropic-messages': {
    shape: ['text', 'server_tool_use', 'web_search_tool_result', 'text', 'text', 'text'],
    searches: ['tides'],
    results: [FIRST, SECOND],
    text: 'Let me look.High at noon. Low at six.',
    cited: [
      { url: FIRST, on: 'High at noon' },
      { url: SECOND, on: '. Low at six' },
    ],
  },
};

for (const client of PROTOCOLS) {
  for (const vendor of PROTOCOLS) {
    for (const stream of [true, false]) {
      describe(`${client} → ${vendor}, ${stream ? 'streamed' : 'whole'}`, () => {
        const openChat = (declares = true) =>
          SEARCH_CHATS[client](gateway.url, { model: VIA[vendor], stream, search: declares });
        const sound = (reply: SearchReply) => {
          expect(upstream.refusals).toEqual([]);
          if (!stream) return;
          expect(framing(client, reply.wire)).toEqual({ starts: 1, terminals: 1, gapless: true });
        };

        test('a search and its citations arrive in the client’s own shapes', async () => {
          upstream.enqueue(search('tides'), cited);
          const reply = await openChat().say('When is high tide?');
          sound(reply);
          expect(reply).toMatchObject({ ...SHAPE[client], calls: [], finish: 'stop' });
          expect(reply.usage).toEqual({ input: 1200, output: 50 });
          if (client === 'anthropic-messages') {
            expect(reply.wire).toContain('"server_tool_use":{"web_search_requests":1');
          }
          expect(toolNames(vendor, upstream.modelRequests[0]!.body)).toEqual([OWN, 'web_search']);
        });

        test('on the next turn, the vendor gets the call, the result and the answer again', async () => {
          upstream.enqueue(search('tides'), cited, say('At eighteen hours.'));
          const conversation = openChat();
          await conversation.say('When is high tide?');
          const reply = await conversation.say('And low?');
          sound(reply);
          expect(reply.text).toBe('At eighteen hours.');
          const [, , last] = upstream.modelRequests;
          expect(new TextDecoder().decode(last!.bytes)).not.toMatch(
            /hopgate-hit1|srvtoolu|web_search_call|url_citation|encrypted/,
          );
          const reported = sentHistory(vendor, last!.body);
          const id = reported.flatMap((one) => (one.role === 'tool' ? [one.id] : []))[0];
          expect(reported).toMatchObject([
            { role: 'user', text: 'When is high tide?' },
            {
              role: 'assistant',
              text: 'Let me look.',
              calls: [{ id, name: 'web_search', input: { query: 'tides' } }],
            },
            { role: 'tool', id },
            { role: 'assistant', text: 'High at noon [1]. Low at six [2].', calls: [] },
            { role: 'user', text: 'And low?' },
          ]);
          expect(reported.slice(0, 3)).toEqual([
            ...sentHistory(vendor, upstream.modelRequests[1]!.body),
          ]);
        });

        test('a failed search is shown as failed, and the answer continues', async () => {
          toolServers.fail();
          upstream.enqueue(search('tides'), say('I do not know.'));
          const reply = await openChat().say('When is high tide?');
          sound(reply);
          expect(reply.text).toEndWith('I do not know.');
          expect(reply.cited).toEqual([]);
          const results = {
            'openai-chat': [],
            'openai-responses': ['failed'],
            'anthropic-messages': ['unavailable'],
          };
          expect(reply.results).toEqual(results[client]);
        });

        test('no search is offered when none is declared', async () => {
          upstream.enqueue(say('Hello.'));
          const reply = await openChat(false).say('Search the web for the latest news.');
          sound(reply);
          expect(toolNames(vendor, upstream.modelRequests[0]!.body)).toEqual([OWN]);
        });
      });
    }
  }

  test(`${client}: a keep-alive holds the stream during a slow search, and the SDK skips it`, async () => {
    toolServers.slow(450);
    upstream.enqueue(search('tides'), cited);
    const chat = SEARCH_CHATS[client](gateway.url, {
      model: 'via-chat',
      stream: true,
      search: true,
    });
    const reply = await chat.say('When is high tide?');
    expect(reply).toMatchObject({ ...SHAPE[client], finish: 'stop' });
    const ping = client === 'anthropic-messages' ? /^event: ping$/gm : /^:/gm;
    const between = reply.wire.slice(reply.wire.indexOf('look.'), reply.wire.indexOf('High'));
    expect(between.match(ping)?.length).toBeGreaterThanOrEqual(3);
  });
}

test('a request that only describes a search gets one, even when the model calls nothing', async () => {
  upstream.enqueue(say('High at noon [1].'));
  const response = await fetch(`${gateway.url}/v1/messages?beta=true`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer sk-client' },
    body: JSON.stringify({
      model: 'via-chat',
      max_tokens: 1000,
      system: 'You run a web search.',
      messages: [{ role: 'user', content: 'Perform a web search for the query: tides' }],
      tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 8 }],
      tool_choice: { type: 'auto' },
    }),
  });
  const body = (await response.json()) as { content: { type: string }[] };
  expect(upstream.refusals).toEqual([]);
  expect(body.content.map(({ type }) => type)).toEqual([
    'server_tool_use',
    'web_search_tool_result',
    'text',
    'text',
  ]);
  expect(JSON.stringify(body.content[1])).toContain(FIRST);
  expect(toolServers.reached).toHaveLength(1);
  expect(upstream.modelRequests).toHaveLength(1);
});

describe.each(PROTOCOLS)('a vendor that pauses during its own search: %s', (client) => {
  test.each([true, false])(
    'the gateway continues the paused turn even without configured tools; streamed: %p',
    async (stream) => {
      const plain = await startGateway({
        providers: {
          claude: {
            protocol: 'anthropic-messages',
            profile: 'anthropic',
            base_url: upstream.baseUrl('anthropic-messages'),
            keys: ['sk-upstream'],
            models: ['m1'],
          },
        },
        samples: { mode: 'off' },
      });
      try {
        const paused: Answer = { ...say('Let me look. '), finish: 'pause' };
        upstream.enqueue(paused, say('High at noon.'));
        const reply = await SEARCH_CHATS[client](plain.url, {
          model: 'claude/m1',
          stream,
          search: true,
        }).say('When is high tide?');
        expect(reply.text.replace(/\s+/g, ' ')).toBe('Let me look. High at noon.');
        expect(reply.finish).toBe('stop');
        expect(upstream.modelRequests).toHaveLength(2);
        expect(upstream.refusals).toEqual([]);
      } finally {
        await plain.stop();
      }
    },
  );
});
