/** What MCP servers say of their tools goes into every request: it has a bound, and the log says what is left out. */

import { describe, expect, test } from 'bun:test';
import { tmpdir } from 'node:os';
import { mcpTools } from '../../../../../src/features/server-tools/tools/mcp/index.ts';

const schema = { type: 'object', properties: {} };
const small = { name: 'small', description: 'x'.repeat(10_000), inputSchema: schema };
const long = 'x'.repeat(64_001);

async function offered(pages: readonly (readonly object[])[]) {
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      if (request.method !== 'POST') return new Response('', { status: 405 });
      const { id, method, params } = (await request.json()) as {
        id?: unknown;
        method: string;
        params?: { cursor?: string };
      };
      if (id === undefined) return new Response(null, { status: 202 });
      const at = Number(params?.cursor ?? 0);
      const more = at + 1 < pages.length ? { nextCursor: `${at + 1}` } : {};
      const result =
        method === 'initialize'
          ? {
              protocolVersion: '2025-06-18',
              capabilities: { tools: {} },
              serverInfo: { name: 's', version: '1' },
            }
          : { tools: pages[at], ...more };
      return Response.json({ jsonrpc: '2.0', id, result });
    },
  });
  const skipped: unknown[] = [];
  const tools = mcpTools({
    servers: [
      {
        ...{ name: 's', args: [], env: {}, cwd: tmpdir(), headers: {}, timeoutMs: 20_000 },
        url: `http://127.0.0.1:${server.port}/mcp`,
      },
    ],
    version: '1',
    log: (event, fields) => {
      if (event === 'mcp.tool_skipped') skipped.push(fields);
    },
  });
  try {
    await tools.ready(new AbortController().signal);
    return { names: tools.tools.map(({ name }) => name), skipped };
  } finally {
    await tools.close();
    server.stop(true);
  }
}

describe('a tool that is too large is left out', () => {
  test.each<[string, object]>([
    ['by its description', { description: long, inputSchema: schema }],
    ['by its title', { title: long, inputSchema: schema }],
    [
      'by its schema',
      { inputSchema: { ...schema, properties: { a: { type: 'string', description: long } } } },
    ],
    ['by its name', { name: `large${long}`, inputSchema: schema }],
  ])('%s', async (_, tool) => {
    const { names, skipped } = await offered([[{ name: 'large', ...tool }, small]]);
    expect(names).toEqual(['mcp__s__small']);
    expect(skipped).toEqual([
      {
        server: 's',
        tool: expect.stringMatching(/^large/),
        why: 'its description and schema have more than 64000 characters',
      },
    ]);
  });
});

test('all tools of a server have a bound together, over all pages', async () => {
  const many = (from: number) =>
    Array.from({ length: 60 }, (_, at) => ({ ...small, name: `t${from + at}` }));
  const { names, skipped } = await offered([many(0), many(60), many(120)]);
  expect(names).toHaveLength(99);
  expect(skipped).toEqual([
    {
      server: 's',
      tool: 't99',
      why: 'with it, the tools have more than 1000000 characters; those behind it are left out, too',
    },
  ]);
});

test('large tools of today stay', async () => {
  const tool = { name: 'jql', description: 'x'.repeat(30_000), inputSchema: schema };
  const { names, skipped } = await offered([[tool]]);
  expect([names, skipped]).toEqual([['mcp__s__jql'], []]);
});
