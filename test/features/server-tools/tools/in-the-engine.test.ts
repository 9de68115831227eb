/** Network tools in the engine: offered, called by a scripted model, and shown to clients. */

import { afterAll, describe, expect, test } from 'bun:test';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { liveRegistry } from '../../../../src/features/server-tools/registry.ts';
import { httpTool } from '../../../../src/features/server-tools/tools/http/index.ts';
import { type Dial, openSession } from '../../../../src/features/server-tools/tools/mcp/dial.ts';
import { mcpTools } from '../../../../src/features/server-tools/tools/mcp/index.ts';
import { webFetchTool } from '../../../../src/features/server-tools/tools/web-fetch/index.ts';
import { isObject, type JsonObject, parseJson } from '../../../../src/lib/json/json.ts';
import { exchange, expectLegal, textOf } from '../script.ts';

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch(request) {
    const { pathname, search } = new URL(request.url);
    if (pathname === '/page') {
      return new Response('<title>Basil</title><p>Needs <b>sun</b>.</p>', {
        headers: { 'content-type': 'text/html' },
      });
    }
    return Response.json({ path: pathname + search });
  },
});
afterAll(() => server.stop(true));
const here = `http://127.0.0.1:${server.port}`;

const fetcher = (inject: 'force' | 'declared' | 'selective') =>
  webFetchTool({
    inject,
    timeoutMs: 2000,
    maxBytes: 10_000,
    maxText: 1000,
    maxRedirects: 1,
    allow: ['127.0.0.1'],
  });
const lastMessage = (body: JsonObject | undefined) => (body!.messages as JsonObject[]).at(-1)!;
const framesOf = (sse: string): JsonObject[] =>
  sse
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => parseJson(line.slice(6)))
    .filter(isObject);

describe('web_fetch', () => {
  const hops = (url: string) => [
    { say: [{ call: 'web_fetch', id: 'c1', input: JSON.stringify({ url }) }] },
    { say: [{ text: 'It needs sun.' }] },
  ];

  test('declared by a Messages client, it is shown as that protocol shows a fetch', async () => {
    const response = await exchange({
      client: 'anthropic-messages',
      body: {
        max_tokens: 100,
        tools: [{ type: 'web_fetch_20250910', name: 'web_fetch', max_uses: 2 }],
        messages: [{ role: 'user', content: `Read ${here}/page` }],
      },
      tools: [fetcher('declared')],
      hops: hops(`${here}/page`),
    });
    expectLegal(response.events);
    expect(lastMessage(response.bodies[1])).toMatchObject({
      role: 'tool',
      content: expect.stringContaining('Needs **sun**.'),
    });
    const starts = framesOf(response.sse).filter(({ type }) => type === 'content_block_start');
    const blocks = starts.map(({ content_block: block }) => block as JsonObject);
    expect(blocks.map(({ type }) => type)).toEqual([
      'server_tool_use',
      'web_fetch_tool_result',
      'text',
    ]);
    expect(blocks[1]!.tool_use_id).toBe(blocks[0]!.id);
    expect(blocks[1]!.content).toMatchObject({
      type: 'web_fetch_result',
      url: `${here}/page`,
      content: {
        type: 'document',
        title: 'Basil',
        source: { type: 'text', media_type: 'text/plain', data: 'Needs **sun**.' },
      },
    });
  });

  test('a refused page is a result with a reason for the model, and an error for the client', async () => {
    const response = await exchange({
      client: 'anthropic-messages',
      body: {
        max_tokens: 100,
        tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }],
        messages: [{ role: 'user', content: 'Read the metadata' }],
      },
      tools: [fetcher('declared')],
      hops: hops('http://169.254.169.254/latest/meta-data/'),
    });
    expect(lastMessage(response.bodies[1]).content).toContain('not on the public internet');
    expect(response.sse).toContain(
      '"type":"web_fetch_tool_result_error","error_code":"url_not_allowed"',
    );
    expect(textOf(response.events)).toContain('It needs sun.');
  });

  test('selective: offered where the user wrote a URL, and only there', async () => {
    const offered = async (content: string) => {
      const { bodies } = await exchange({
        client: 'openai-chat',
        body: { messages: [{ role: 'user', content }] },
        tools: [fetcher('selective')],
        hops: [{ say: [{ text: 'ok' }] }],
      });
      return bodies[0]!.tools !== undefined;
    };
    expect(await offered(`read ${here}/page`)).toBe(true);
    expect(await offered('hello')).toBe(false);
  });
});

test('an HTTP tool gets the model’s arguments for clients of every protocol', async () => {
  const weather = httpTool({
    name: 'weather',
    description: 'The weather of a city',
    method: 'GET',
    url: `${here}/v1/{city}`,
    schema: {
      type: 'object',
      properties: { city: { type: 'string' }, days: { type: 'integer', 'x-in': 'query' } },
      required: ['city'],
    },
    headers: {},
    query: {},
    timeoutMs: 1000,
    maxBytes: 1000,
  });
  for (const client of ['openai-chat', 'openai-responses', 'anthropic-messages'] as const) {
    const messages = [{ role: 'user', content: 'Weather?' }];
    const response = await exchange({
      client,
      body:
        client === 'openai-responses' ? { input: messages } : { max_tokens: 9, messages: messages },
      tools: [weather],
      hops: [
        { say: [{ call: 'weather', id: 'c1', input: '{"city":"Ulm am See","days":2}' }] },
        { say: [{ call: 'weather', id: 'c2', input: '{"days":2}' }] },
        { say: [{ text: 'Sunny.' }] },
      ],
    });
    expectLegal(response.events);
    expect(JSON.stringify(response.bodies[0]!.tools)).not.toContain('x-in');
    expect(lastMessage(response.bodies[1]).content).toBe('{"path":"/v1/Ulm%20am%20See?days=2"}');
    expect(lastMessage(response.bodies[2]).content).toContain('Missing arguments: city.');
    expect(textOf(response.events)).toBe('Sunny.');
  }
});

test('the first request starts an MCP server and offers its tools', async () => {
  let lives = 0;
  const dial: Dial = async (options, listeners, signal) => {
    lives++;
    const fake = new Server({ name: 'fake', version: '1' }, { capabilities: { tools: {} } });
    fake.setRequestHandler(ListToolsRequestSchema, () => ({
      tools: [{ name: 'shot', description: 'A picture', inputSchema: { type: 'object' as const } }],
    }));
    fake.setRequestHandler(CallToolRequestSchema, () => ({
      content: [
        { type: 'text', text: 'Here it is' },
        { type: 'image', data: 'AAAA', mimeType: 'image/png' },
      ],
    }));
    const [theirs, ours] = InMemoryTransport.createLinkedPair();
    await fake.connect(theirs);
    return openSession(ours, options, listeners, signal);
  };
  const base = { args: [], env: {}, cwd: '/', headers: {}, timeoutMs: 1000 };
  const source = mcpTools({
    servers: [{ ...base, name: 'cam', command: 'unused' }],
    version: '1',
    log: () => {},
    dial,
  });
  const run = () =>
    exchange({
      client: 'openai-chat',
      body: { messages: [{ role: 'user', content: 'Look' }] },
      tools: [],
      options: { registry: liveRegistry([], source) },
      hops: [
        { say: [{ call: 'mcp__cam__shot', id: 'c1', input: '' }] },
        { say: [{ text: 'A cat.' }] },
      ],
    });
  const response = await run();
  expect(response.bodies[0]!.tools).toMatchObject([{ function: { name: 'mcp__cam__shot' } }]);
  expect(JSON.stringify(response.bodies[1]!.messages)).toContain('data:image/png;base64,AAAA');
  expect(textOf(response.events)).toBe('A cat.');
  expect((await run()).bodies).toEqual(response.bodies);
  expect(lives).toBe(1);
  await source.close();
});
