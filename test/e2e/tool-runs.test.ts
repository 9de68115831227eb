/** Tool runs of the gateway in the recorded exchange: arguments, result, start and duration. */

import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import type { SampleMeta } from '../../src/samples/sample.ts';
import { type Gateway, runBinary, startGateway, threeProviders } from '../support/binary.ts';
import { call, type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import {
  PRICE,
  startToolServers,
  stopAll,
  type ToolServers,
  toolsOf,
} from '../support/tool-servers.ts';

setDefaultTimeout(60_000);

let upstream: FakeUpstream;
let toolServers: ToolServers;
let gateway: Gateway;

beforeAll(async () => {
  upstream = await startFakeUpstream({ keys: ['sk-upstream'], models: ['m1'] });
  toolServers = await startToolServers();
  gateway = await startGateway(
    threeProviders(upstream, { server_tools: toolsOf(toolServers), samples: { mode: 'all' } }),
  );
}, 120_000);
afterEach(() => {
  upstream.clear();
  toolServers.clear();
});
afterAll(() => stopAll(gateway, upstream, toolServers));

async function metaOf(id: string): Promise<SampleMeta> {
  const file = join(gateway.home, 'state/samples/openai-chat', `${id}_meta.json`);
  for (let waited = 0; ; waited += 20) {
    const text = await Bun.file(file)
      .text()
      .catch(() => '{}');
    const meta = JSON.parse(text) as SampleMeta;
    if (meta.state === 'done') return meta;
    if (waited > 15_000) throw new Error(`no complete sample ${id}: ${text.slice(0, 400)}`);
    await Bun.sleep(20);
  }
}

const ask = async (stream: boolean, hopgate?: object) => (await runExchange(stream, hopgate)).id;

async function runExchange(stream: boolean, hopgate?: object) {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'via-messages',
      stream,
      messages: [{ role: 'user', content: 'And the price?' }],
      ...(hopgate === undefined ? {} : { hopgate }),
    }),
  });
  const text = await response.text();
  return { id: response.headers.get('x-hopgate-request-id')!, text };
}

for (const stream of [true, false]) {
  test(`a sample records start, duration and result of each run, ${stream ? 'streamed' : 'whole'}`, async () => {
    toolServers.slow(60);
    upstream.enqueue(
      call(
        { name: 'stock_price', arguments: { symbol: 'KO' } },
        { name: 'web_search', arguments: { query: 'tides' } },
      ),
      call({ name: 'stock_price', arguments: { symbol: 'PEP' } }),
      say('Here.'),
    );
    const meta = await metaOf(await ask(stream));
    expect(meta.hops).toBe(3);
    expect(meta.tools?.map(({ name, hop }) => [name, hop])).toEqual([
      ['stock_price', 1],
      ['web_search', 1],
      ['stock_price', 2],
    ]);
    const [first, second, third] = meta.tools!;
    expect(first).toMatchObject({ arguments: '{"symbol":"KO"}' });
    expect(JSON.parse(first!.result!)).toMatchObject({ symbol: 'KO', price: PRICE });
    expect(second!.result).toContain('First on tides');
    expect(first!.error).toBeUndefined();
    for (const run of meta.tools!) {
      expect(run.ms).toBeGreaterThanOrEqual(55);
    }
    // Calls requested together run together, between the hops.
    expect(Math.abs(first!.at! - second!.at!)).toBeLessThan(50);
    expect(third!.at).toBeGreaterThanOrEqual(first!.at! + first!.ms!);
    const hopEnd = meta.edges.find(({ stage }) => stage === 'provider-response')!.until!;
    const hopStart = meta.edges.find(({ stage }) => stage === 'hop2-provider-request')!.at!;
    expect(first!.at).toBeGreaterThanOrEqual(hopEnd - 1);
    expect(first!.at! + first!.ms!).toBeLessThanOrEqual(hopStart + 1);
  });
}

test('a failed run is recorded with its error, and the command line shows all runs', async () => {
  toolServers.fail();
  upstream.enqueue(call({ name: 'stock_price', arguments: { symbol: 'KO' } }), say('Not known.'));
  const id = await ask(true);
  const meta = await metaOf(id);
  expect(meta.tools).toHaveLength(1);
  expect(meta.tools![0]!.error).toContain('503');
  expect(meta.tools![0]!.result).toBeUndefined();
  const { stdout } = await runBinary(['samples', 'show', id, '--config', gateway.configPath], {
    env: { HOPGATE_HOME: join(gateway.home, 'state') },
  });
  expect(stdout).toMatch(/^tool stock_price after hop 1, at \d+ ms: .*503.* in \d+ ms$/m);
});

test('forced recalls are recorded before the first hop, with the space they used', async () => {
  upstream.enqueue(say('Nothing.'));
  const hopgate = { memory: { space: 'shop', recall: 'always' } };
  const meta = await metaOf(await ask(true, hopgate));
  expect(meta.tools).toHaveLength(1);
  const [run] = meta.tools!;
  expect(run).toMatchObject({ name: 'recall_memory', arguments: '{"query":"And the price?"}' });
  expect(run!.result).toBe('{"events":[]}');
  expect(run).not.toHaveProperty('hop');
  const sent = meta.edges.find(({ stage }) => stage === 'provider-request')!;
  expect(run!.at! + run!.ms!).toBeLessThanOrEqual(sent.at! + 1);
  expect(meta).toMatchObject({ memory_space: 'shop' });
  const { stdout } = await runBinary(['samples', 'show', meta.id, '--config', gateway.configPath], {
    env: { HOPGATE_HOME: join(gateway.home, 'state') },
  });
  expect(stdout).toMatch(/^tool recall_memory before hop 1, at \d+ ms: done in \d+ ms$/m);
});

test('an app that subscribes to tool events sees web searches and HTTP tools, too', async () => {
  const steps = () => [
    call({ name: 'web_search', arguments: { query: 'tides' } }),
    call({ name: 'stock_price', arguments: { symbol: 'KO' } }),
    say('Done.'),
  ];
  upstream.enqueue(...steps());
  const { text } = await runExchange(true, { tool_events: true });
  const events = [...text.matchAll(/"hopgate":(\{.*\})\}\n/g)].map(
    ([, found]) => JSON.parse(found!) as Record<string, unknown>,
  );
  expect(events.map(({ event, name }) => `${event} ${name}`)).toEqual([
    'tool_call web_search',
    'tool_result web_search',
    'tool_call stock_price',
    'tool_result stock_price',
  ]);
  expect(events[3]!.result).toMatchObject({ symbol: 'KO', price: PRICE });
  upstream.enqueue(...steps());
  expect((await runExchange(true)).text).not.toContain('hopgate');
});
