/** A call whose answer is lost may have taken effect: the model is told so, and never to repeat it blindly. */

import { afterAll, describe, expect, test } from 'bun:test';
import type { Socket, TCPSocketListener } from 'bun';
import type { ToolContext } from '../../../../src/features/server-tools/tool.ts';
import { httpTool } from '../../../../src/features/server-tools/tools/http/index.ts';
import { mcpTools } from '../../../../src/features/server-tools/tools/mcp/index.ts';
import type { Json, JsonObject } from '../../../../src/lib/json/json.ts';

const context = (): ToolContext => ({
  signal: new AbortController().signal,
  callId: 'c',
  options: {},
  log: () => {},
});

/** What becomes of a call: its message and whether the model may repeat it. */
async function fate(running: Promise<{ payload: Json }>) {
  const { message, retryable } = (await running.then(
    ({ payload }) => payload,
    (thrown) => thrown,
  )) as { message: string; retryable: boolean };
  return { unknown: message.includes('may have taken effect'), retryable, message };
}

describe('HTTP tools', () => {
  const sockets: TCPSocketListener[] = [];
  const serving = (onData: (socket: Socket) => void) => {
    const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: onData } });
    sockets.push(server);
    return `http://127.0.0.1:${server.port}/pay`;
  };
  afterAll(() => {
    for (const socket of sockets) socket.stop(true);
  });
  const answering = (status: string) =>
    serving((socket) => socket.end(`HTTP/1.1 ${status}\r\ncontent-length: 2\r\n\r\nno`));
  const FAULTS = {
    reset: () => serving((socket) => socket.terminate()),
    'closed without an answer': () => serving((socket) => socket.end()),
    'no answer in time': () => serving(() => {}),
    500: () => answering('500 Internal'),
    502: () => answering('502 Bad Gateway'),
    504: () => answering('504 Gateway Timeout'),
    503: () => answering('503 Busy'),
    429: () => answering('429 Slow'),
    400: () => answering('400 Bad'),
    'connection refused': () => 'http://127.0.0.1:1/pay',
    'unknown name': () => 'http://no-such-name.invalid/pay',
  } as const;
  const UNKNOWN = new Set([
    'reset',
    'closed without an answer',
    'no answer in time',
    '500',
    '502',
    '504',
  ]);
  const FINAL = new Set(['400']);

  for (const method of ['POST', 'PATCH', 'DELETE', 'GET', 'PUT']) {
    const repeatable = method === 'GET' || method === 'PUT';
    for (const [fault, url] of Object.entries(FAULTS)) {
      const unknown = UNKNOWN.has(fault) && !repeatable;
      const retryable = !unknown && !FINAL.has(fault);
      test(`${method}, ${fault}: ${unknown ? 'the outcome is unknown' : retryable ? 'may be repeated' : 'final'}`, async () => {
        const tool = httpTool({
          name: 'pay',
          description: '',
          method,
          url: url(),
          schema: { type: 'object', properties: {} },
          headers: {},
          query: {},
          timeoutMs: 300,
          maxBytes: 1000,
        });
        const { message, ...rest } = await fate(tool.run({}, context()));
        expect({ message, ...rest }).toEqual({ message, unknown, retryable });
        if (unknown) expect(message).not.toContain('cannot be reached');
      });
    }
  }
});

describe('MCP servers', () => {
  /** A server over streamable HTTP that handles `tools/call` as told and notes every request. */
  function mcpServer(tools: readonly JsonObject[], call: () => Response | Promise<Response>) {
    const seen: string[] = [];
    const server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch(request) {
        const session = request.headers.get('mcp-session-id') ?? '';
        if (request.method !== 'POST') {
          seen.push(`${request.method} ${session}`.trim());
          return new Response(null, { status: request.method === 'DELETE' ? 200 : 405 });
        }
        const { id, method, params } = (await request.json()) as JsonObject;
        seen.push(String(method));
        const result = (value: Json) =>
          Response.json(
            { jsonrpc: '2.0', id, result: value },
            { headers: { 'mcp-session-id': 's1' } },
          );
        if (method === 'initialize') {
          const { protocolVersion } = params as JsonObject;
          const info = { name: 'fake', version: '1' };
          return result({
            protocolVersion: protocolVersion!,
            capabilities: { tools: {} },
            serverInfo: info,
          });
        }
        if (method === 'tools/list') return result({ tools });
        return method === 'tools/call' ? call() : new Response(null, { status: 202 });
      },
    });
    const made = mcpTools({
      servers: [
        {
          name: 'fake',
          args: [],
          env: {},
          cwd: '/',
          headers: {},
          url: `http://127.0.0.1:${server.port}/mcp`,
          timeoutMs: 1000,
        },
      ],
      version: '1',
      log: () => {},
    });
    return { made, seen, stop: () => server.stop(true) };
  }
  const TOOL = { name: 'pay', inputSchema: { type: 'object' } };

  test.each([
    ['changes something', {}, true],
    ['says that it only reads', { readOnlyHint: true }, false],
    ['says that a second call changes nothing', { idempotentHint: true }, false],
  ])('a call without an answer, of a tool that %s', async (_, annotations, unknown) => {
    const never = () => new Promise<Response>(() => {});
    const { made, stop } = mcpServer([{ ...TOOL, annotations }], never);
    await made.ready(new AbortController().signal);
    const found = await fate(made.tools[0]!.run({}, context()));
    expect([found.unknown, found.retryable]).toEqual([unknown, !unknown]);
    await made.close();
    await stop();
  });

  test('a stream that closes without the answer is waited for until the time limit: it could be resumed', async () => {
    const closed = () => new Response('', { headers: { 'content-type': 'text/event-stream' } });
    const { made, stop } = mcpServer([TOOL], closed);
    await made.ready(new AbortController().signal);
    const found = await fate(made.tools[0]!.run({}, context()));
    expect([found.unknown, found.retryable]).toEqual([true, false]);
    await made.close();
    await stop();
  });

  test('a session is ended by DELETE when the gateway needs it no more', async () => {
    const { made, seen, stop } = mcpServer([TOOL], () => new Response(null, { status: 500 }));
    await made.ready(new AbortController().signal);
    await made.close();
    expect(seen).toContain('DELETE s1');
    await stop();
  });

  test('a server that does not take the DELETE does not hold up the end', async () => {
    const { made, stop } = mcpServer([TOOL], () => new Response(null));
    await made.ready(new AbortController().signal);
    await stop();
    await made.close();
  });

  test('the initialize request is never cancelled, neither late nor after its answer', async () => {
    const { made, seen, stop } = mcpServer([TOOL], () => new Response(null));
    await made.ready(new AbortController().signal);
    await Bun.sleep(1300);
    expect(seen).not.toContain('notifications/cancelled');
    await made.close();
    await stop();
  });
});
