/** A message of an MCP server by HTTP is read up to a bound, as one of a program is; a stream of small ones has none. */

import { describe, expect, test } from 'bun:test';
import { tmpdir } from 'node:os';
import { mcpTools } from '../../../../../src/features/server-tools/tools/mcp/index.ts';

const MB = 1024 * 1024;
const JSON_TYPE = 'application/json';
const STREAM = 'text/event-stream';
const answer = (id: unknown, result: object) => JSON.stringify({ jsonrpc: '2.0', id, result });
const RESULT = { content: [{ type: 'text', text: 'done' }] };
const event = (data: string, end = '\n') => `event: message${end}data: ${data}${end}${end}`;
const note = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"${'x'.repeat(MB)}"}}`;

/** Sends pieces until the client has had enough; `sent` counts what it took. */
function served(type: string, pieces: (id: unknown) => Iterable<string>) {
  const state = { sent: 0 };
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      if (request.method !== 'POST') return new Response('', { status: 405 });
      const { id, method } = (await request.json()) as { id?: unknown; method: string };
      if (id === undefined) return new Response(null, { status: 202 });
      const headers = { 'content-type': JSON_TYPE };
      if (method === 'initialize') {
        const serverInfo = { name: 's', version: '1' };
        const protocolVersion = '2025-06-18';
        const result = { protocolVersion, capabilities: { tools: {} }, serverInfo };
        return new Response(answer(id, result), { headers });
      }
      if (method === 'tools/list') {
        const tools = [{ name: 't', inputSchema: { type: 'object' } }];
        return new Response(answer(id, { tools }), { headers });
      }
      const all = pieces(id)[Symbol.iterator]();
      const body = new ReadableStream({
        async pull(controller) {
          const { done, value } = all.next();
          if (done) return controller.close();
          controller.enqueue(Buffer.from(value));
          state.sent += value.length;
          await Bun.sleep(0);
        },
      });
      return new Response(body, { headers: { 'content-type': type } });
    },
  });
  return { state, url: `http://127.0.0.1:${server.port}/mcp`, stop: () => server.stop(true) };
}

async function called(type: string, pieces: (id: unknown) => Iterable<string>) {
  const { state, url, stop } = served(type, pieces);
  const log = () => {};
  const server = { name: 's', url, args: [], env: {}, cwd: tmpdir(), headers: {} };
  const tools = mcpTools({ servers: [{ ...server, timeoutMs: 20_000 }], version: '1', log });
  const { signal } = new AbortController();
  try {
    await tools.ready(signal);
    const run = tools.tools[0]!.run({}, { signal, callId: 'c', options: {}, log });
    const said = await run.then(
      ({ text }) => text,
      (thrown: Error) => thrown.message,
    );
    return { said, sent: state.sent };
  } finally {
    await tools.close();
    await stop();
  }
}

function* endless(head: string): Generator<string> {
  yield head;
  for (let i = 0; i < 200; i++) yield 'x'.repeat(MB);
}

describe('a message of an MCP server by HTTP', () => {
  test.each([
    ['a whole answer', JSON_TYPE, '{"jsonrpc":"2.0","x":"'],
    ['an event', STREAM, `${event(note)}data: {"x":"`],
    ['an event of many lines', STREAM, 'data: {"x":"\ndata: '],
  ])('%s without end is given up, and the call says why', async (_, type, head) => {
    const { said, sent } = await called(type, () => endless(head));
    expect(said).toContain('it sent a message of more than 10485760 bytes');
    expect(sent).toBeLessThan(40 * MB);
  });

  test.each(['\n', '\r\n', '\r'])('many messages of one stream pass, line end %j', async (end) => {
    const { said, sent } = await called(STREAM, function* (id) {
      // Behind a carriage return, parsers wait for what follows.
      const stream = `${event(note, end).repeat(24)}${event(answer(id, RESULT), end)}:\n`;
      // Each cut falls somewhere else in an event, in blank lines, too.
      for (let at = 0; at < stream.length; at += 65_521) yield stream.slice(at, at + 65_521);
    });
    expect(said).toBe('done');
    expect(sent).toBeGreaterThan(24 * MB);
  });
});
