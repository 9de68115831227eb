/** Each hop of an exchange is paid once: what its vendor counted, not the sum that the client is told. */

import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import { threeProviders } from '../support/binary.ts';
import { call, type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { startToolServers, type ToolServers, toolsOf } from '../support/tool-servers.ts';
import { until } from '../support/until.ts';

let upstream: FakeUpstream;
let tools: ToolServers;
let gateway: InProcess;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  tools = await startToolServers();
  const config = threeProviders(upstream, { server_tools: toolsOf(tools) });
  gateway = await startInProcess(config as Record<string, unknown>);
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
  await tools.stop();
});

const HOPS = [
  { input: 900, cached: 0, output: 60, reasoning: 20 },
  { input: 1300, cached: 800, output: 61, reasoning: 0 },
  { input: 1700, cached: 1200, output: 62, reasoning: 7 },
];

function rowsOf(request: string): readonly object[] {
  try {
    const db = new Database(join(gateway.home, 'state', 'spend.db'), { readonly: true });
    const sums = 'input + cache_read + cache_write AS input, output + reasoning AS output';
    const found = db.query(`SELECT ${sums} FROM spend WHERE request = ? ORDER BY hop`).all(request);
    db.close();
    return found as object[];
  } catch {
    // The file or its table is not there yet.
    return [];
  }
}

const CLIENTS: Readonly<Record<string, (stream: boolean) => object>> = {
  '/v1/chat/completions': (stream) => ({
    stream,
    ...(stream && { stream_options: { include_usage: true } }),
    messages: [{ role: 'user', content: 'Tides?' }],
  }),
  '/v1/messages': (stream) => ({
    stream,
    max_tokens: 1000,
    messages: [{ role: 'user', content: 'Tides?' }],
  }),
  '/v1/responses': (stream) => ({ stream, input: 'Tides?' }),
};

for (const [path, body] of Object.entries(CLIENTS)) {
  for (const model of ['via-chat', 'via-messages', 'via-responses']) {
    for (const stream of [true, false]) {
      test(`no hop is paid for those before it: ${path} with ${model}, ${stream ? 'streamed' : 'whole'}`, async () => {
        const search = call({ name: 'web_search', arguments: { query: 'high tide Brest' } });
        upstream.enqueue(
          { ...search, usage: HOPS[0]! },
          { ...search, usage: HOPS[1]! },
          say('At noon.', { usage: HOPS[2]! }),
        );
        const answer = await fetch(gateway.url + path, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
          body: JSON.stringify({ model, ...body(stream) }),
        });
        await answer.text();
        const id = answer.headers.get('x-hopgate-request-id')!;
        const rows = await until(() => {
          const found = rowsOf(id);
          return found.length >= HOPS.length && found;
        });
        expect(rows).toEqual(HOPS.map(({ input, output }) => ({ input, output })));
      });
    }
  }
}
