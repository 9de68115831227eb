/** Server tools with outside access, through the binary: an MCP server, web pages, and vision for text models. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import {
  call,
  type FakeUpstream,
  type Protocol,
  say,
  startFakeUpstream,
  toolNames,
} from '../support/fake-upstream/index.ts';
import { startToolServers, stopAll, type ToolServers } from '../support/tool-servers.ts';
import { PROTOCOLS, post, VIA } from './clients.ts';
import { framing, OWN, SEARCH_CHATS } from './search-clients.ts';
import { sentHistory } from './sent-history.ts';

const NOTES = Bun.fileURLToPath(new URL('../support/mcp-notes-server.ts', import.meta.url));

let upstream: FakeUpstream;
let toolServers: ToolServers;

beforeAll(async () => {
  upstream = await startFakeUpstream({ keys: ['sk-upstream'], models: ['m1'] });
  toolServers = await startToolServers();
});
afterEach(() => {
  upstream.clear();
  toolServers.clear();
});
afterAll(() => stopAll(upstream, toolServers));

describe('an MCP server', () => {
  let gateway: Gateway;
  beforeAll(async () => {
    const notes = {
      command: process.execPath,
      args: [NOTES],
      env: { NOTES_OWNER: 'anna' },
      tools: ['*_note'],
    };
    const tools = { server_tools: { mcp: { notes } } };
    gateway = await startGateway(threeProviders(upstream, tools), {
      env: { HOPGATE_SECRET: 'sk-not-for-servers' },
    });
  }, 120_000);
  afterAll(() => stopAll(gateway));

  for (const client of PROTOCOLS) {
    test(`${client}: its tools are offered from the first request, called, and hidden`, async () => {
      upstream.enqueue(
        call(
          { name: 'mcp__notes__read_note', arguments: { name: 'list' } },
          { name: 'mcp__notes__delete_note', arguments: { name: 'list' } },
        ),
        say('Buy milk.'),
      );
      const chat = SEARCH_CHATS[client](gateway.url, { model: 'via-chat', stream: true });
      const reply = await chat.say('What is on my list?');
      expect(upstream.refusals).toEqual([]);
      expect(reply).toMatchObject({ text: 'Buy milk.', calls: [], finish: 'stop' });
      expect(framing(client, reply.wire)).toEqual({ starts: 1, terminals: 1, gapless: true });
      expect(reply.wire).not.toContain('mcp__');
      const offered = toolNames('openai-chat', upstream.modelRequests[0]!.body);
      expect(offered.sort()).toEqual([OWN, 'mcp__notes__delete_note', 'mcp__notes__read_note']);
      const [, , read, deleted] = sentHistory('openai-chat', upstream.modelRequests[1]!.body);
      expect(read?.text).toBe('list: buy milk (anna, no secret)');
      expect(deleted?.text).toContain('list is locked');
      expect(deleted?.text).toStartWith('Error: ');
    });
  }
});

test.each([200, 401])(
  'a tool that repeats its credentials tells them to no one (%i)',
  async (status) => {
    const mirror = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: ({ url, headers }) =>
        Response.json({ url, sent: Object.fromEntries(headers) }, { status }),
    });
    const tool = {
      description: 'Reads a ticket.',
      url: `http://127.0.0.1:${mirror.port}/ticket`,
      headers: { authorization: 'Bearer tool-token-1', cookie: 'sid=tool-cookie-1' },
      query: { key: 'tool-query/key' },
    };
    const tools = { server_tools: { http: { ticket: tool } } };
    const gateway = await startGateway(threeProviders(upstream, tools));
    try {
      upstream.enqueue(call({ name: 'ticket', arguments: {} }), say('done'));
      await SEARCH_CHATS['openai-chat'](gateway.url, { model: 'via-chat', stream: true }).say(
        'Go.',
      );
      const result = sentHistory('openai-chat', upstream.modelRequests[1]!.body)[2]!.text ?? '';
      expect(result).toContain('authorization');
      for (const secret of ['tool-token-1', 'tool-cookie-1', 'tool-query']) {
        expect(result).not.toContain(secret);
      }
    } finally {
      await gateway.stop();
      await mirror.stop(true);
    }
  },
  60_000,
);

describe('web_fetch', () => {
  const fetching = (allow: readonly string[]) =>
    startGateway(
      threeProviders(upstream, { server_tools: { web_fetch: { inject: 'force', allow } } }),
    );
  const read = async (gateway: Gateway) => {
    const url = `${toolServers.origin}/page`;
    upstream.enqueue(call({ name: 'web_fetch', arguments: { url } }), say('High at noon.'));
    const chat = SEARCH_CHATS['anthropic-messages'](gateway.url, {
      model: 'via-chat',
      stream: true,
    });
    const reply = await chat.say('When is high tide?');
    expect(reply).toMatchObject({ text: 'High at noon.', calls: [], finish: 'stop' });
    return sentHistory('openai-chat', upstream.modelRequests[1]!.body)[2]!.text;
  };

  test('a page on this machine is read only if its host is allowed', async () => {
    const gateway = await fetching([]);
    try {
      const text = await read(gateway);
      expect(text).toStartWith('Error: ');
      expect(text).not.toContain('High at noon.');
      expect(toolServers.reached).toEqual([]);
    } finally {
      await gateway.stop();
    }
  }, 60_000);

  test('an allowed page arrives as Markdown', async () => {
    const gateway = await fetching([new URL(toolServers.origin).host]);
    try {
      const text = await read(gateway);
      expect(text).toContain('Tide table');
      expect(text).toContain('# Tides\n\nHigh at noon.');
      expect(toolServers.reached.map(({ path }) => path)).toEqual(['/page']);
    } finally {
      await gateway.stop();
    }
  }, 60_000);

  test('a client that declared web_fetch reads the page in the vendor’s shape', async () => {
    const gateway = await fetching([new URL(toolServers.origin).host]);
    try {
      const url = `${toolServers.origin}/page`;
      upstream.enqueue(call({ name: 'web_fetch', arguments: { url } }), say('High at noon.'));
      const response = await post(gateway.url, '/v1/messages', {
        model: 'via-chat',
        max_tokens: 1000,
        messages: [{ role: 'user', content: `Read ${url}` }],
        tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }],
      });
      const body = (await response.json()) as { content: Record<string, unknown>[] };
      expect(body.content).toMatchObject([
        { type: 'server_tool_use', name: 'web_fetch', input: { url } },
        { type: 'web_fetch_tool_result', content: { type: 'web_fetch_result', url } },
        { type: 'text', text: 'High at noon.' },
      ]);
      expect(body.content[1]!.tool_use_id).toBe(body.content[0]!.id as string);
    } finally {
      await gateway.stop();
    }
  }, 60_000);
});

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const DATA_URL = `data:image/png;base64,${PIXEL}`;

/** One request with a text and a picture, in each protocol. */
const PICTURE: Readonly<Record<Protocol, { path: string; body: Record<string, unknown> }>> = {
  'openai-chat': {
    path: '/v1/chat/completions',
    body: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image_url', image_url: { url: DATA_URL } },
          ],
        },
      ],
    },
  },
  'openai-responses': {
    path: '/v1/responses',
    body: {
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'What is this?' },
            { type: 'input_image', image_url: DATA_URL, detail: 'auto' },
          ],
        },
      ],
    },
  },
  'anthropic-messages': {
    path: '/v1/messages',
    body: {
      max_tokens: 1000,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } },
          ],
        },
      ],
    },
  },
};

describe('vision for a text model', () => {
  let eyes: FakeUpstream;
  let gateway: Gateway;
  beforeAll(async () => {
    eyes = await startFakeUpstream({ keys: ['sk-eyes'], models: ['seer'] });
    eyes.answerWith(() => say('A single blue dot.'));
    const config = threeProviders(upstream, {
      profiles: { blind: { images: false } },
      server_tools: { vision: { target: 'eyes/seer' } },
    }) as { providers: Record<string, Record<string, unknown>> };
    for (const provider of Object.values(config.providers)) provider.profile = 'blind';
    config.providers.eyes = {
      protocol: 'anthropic-messages',
      base_url: eyes.baseUrl('anthropic-messages'),
      keys: ['sk-eyes'],
      models: ['seer'],
    };
    gateway = await startGateway(config);
  }, 120_000);
  afterAll(() => stopAll(gateway, eyes));

  test('one description serves every client, every vendor and every later turn, unchanged', async () => {
    for (const client of PROTOCOLS) {
      for (const vendor of PROTOCOLS) {
        const { path, body } = PICTURE[client];
        const requestCount = upstream.modelRequests.length;
        upstream.enqueue(say('A dot.'));
        const response = await post(gateway.url, path, { ...body, model: VIA[vendor] });
        expect(response.status).toBe(200);
        expect(await response.text()).toContain('A dot.');
        const [user] = sentHistory(vendor, upstream.modelRequests[requestCount]!.body);
        expect(user?.text).toContain('What is this?');
        expect(user?.text).toContain('A single blue dot.');
        expect(new TextDecoder().decode(upstream.modelRequests[requestCount]!.bytes)).not.toContain(
          PIXEL,
        );
      }
    }
    expect(upstream.refusals).toEqual([]);
    expect(eyes.refusals).toEqual([]);
    // The vision target got the picture and the question once.
    expect(eyes.modelRequests).toHaveLength(1);
    const received = new TextDecoder().decode(eyes.modelRequests[0]!.bytes);
    expect(received).toContain(PIXEL);
    expect(received).toContain('What is this?');
  });
});
