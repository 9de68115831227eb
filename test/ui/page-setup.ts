/** A gateway that records, with a vendor, tools, and traffic for the page to show. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import { call, type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { startToolServers, type ToolServers, toolsOf } from '../support/tool-servers.ts';

export interface PageSetup {
  readonly gateway: Gateway;
  readonly upstream: FakeUpstream;
  readonly tools: ToolServers;
  /** Sends a request and reads the answer to its end; returns the exchange's id. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<string>;
  /** A search in three hops (search, price, answer), Messages in front, Chat behind. */
  threeHops(): Promise<string>;
  stop(): Promise<void>;
}

/** The vendor's text at the end of {@link PageSetup.threeHops}. */
export const TIDES = 'High water at Brest is at noon, and the share stands at 41.5.';

/** @param more parts of the configuration @param prices of the model of all providers, USD per million tokens @param key sent with every request */
export async function startPageSetup(
  more: Record<string, unknown> = {},
  prices?: { readonly input: number; readonly output: number },
  key?: string,
): Promise<PageSetup> {
  const upstream = await startFakeUpstream();
  const tools = await startToolServers();
  const folder = mkdtempSync(join(tmpdir(), 'hopgate-page-'));
  const config = threeProviders(upstream, {
    samples: { mode: 'all', dir: folder },
    server_tools: toolsOf(tools),
    ...more,
  }) as { readonly providers: Readonly<Record<string, object>> };
  const priced = Object.entries(config.providers).map(([name, provider]) => [
    name,
    { ...provider, ...(prices && { prices: { m1: prices } }) },
  ]);
  const gateway = await startGateway({ ...config, providers: Object.fromEntries(priced) });

  async function post(
    path: string,
    body: unknown,
    headers: Record<string, string> = {},
  ): Promise<string> {
    const response = await fetch(gateway.url + path, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...headers,
      },
      body: JSON.stringify(body),
    });
    await response.text().catch(() => '');
    const id = response.headers.get('x-hopgate-request-id');
    if (id === null) throw new Error(`${path} answered ${response.status} without an id`);
    return id;
  }

  return {
    gateway,
    upstream,
    tools,
    post,
    threeHops() {
      tools.slow(60);
      const usage = (input: number, cached: number) => ({
        input,
        cached,
        output: 60,
        reasoning: 20,
      });
      upstream.enqueue(
        {
          ...call({ name: 'web_search', arguments: { query: 'high tide Brest' } }),
          usage: usage(900, 0),
          delivery: { firstByteMs: 120, paceMs: 15 },
        },
        {
          ...call({ name: 'stock_price', arguments: { symbol: 'TIDE' } }),
          usage: usage(1300, 800),
          delivery: { firstByteMs: 90, paceMs: 15 },
        },
        say(TIDES, {
          usage: usage(1700, 1200),
          delivery: { firstByteMs: 150, paceMs: 25, piece: 8 },
        }),
      );
      return post(
        '/v1/messages',
        {
          model: 'via-chat',
          max_tokens: 1000,
          // The vendor does not take it: a note that is shown at once, before those that cost nothing.
          top_k: 5,
          stream: true,
          system: [
            { type: 'text', text: 'Answer in one line.', cache_control: { type: 'ephemeral' } },
          ],
          messages: [
            { role: 'user', content: 'When is high tide at Brest, and what does TIDE cost?' },
          ],
        },
        { 'anthropic-version': '2023-06-01', 'x-claude-code-session-id': 'session-of-the-tides' },
      );
    },
    async stop() {
      await gateway.stop();
      await upstream.stop();
      await tools.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
