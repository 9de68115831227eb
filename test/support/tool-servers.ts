/** The network side of server tools, on loopback: a metasearch engine, an HTTP tool, a page; with scripted failures. */

import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FakeUpstream } from './fake-upstream/index.ts';

/** A request that a tool made. */
export interface Reached {
  readonly path: string;
  readonly query: URLSearchParams;
  /** Milliseconds until the other side disconnected without an answer; undefined if it did not. */
  goneAfterMs?: number;
}

export interface ToolServers {
  readonly origin: string;
  /** In order of arrival. */
  readonly reached: readonly Reached[];
  /** The largest number of concurrent requests. */
  readonly together: number;
  /** Resolves with the nth (from 0) request. */
  request(n: number, timeoutMs?: number): Promise<Reached>;
  /** Delays further answers by this many milliseconds. */
  slow(ms: number): void;
  /** Answers every further request with 503. */
  fail(): void;
  clear(): void;
  stop(): Promise<void>;
}

/** The two pages that every search finds. */
export const pagesFor = (query: string) => [
  { url: `https://a.example/${encodeURIComponent(query)}`, title: `First on ${query}` },
  { url: `https://b.example/${encodeURIComponent(query)}`, title: `Second on ${query}` },
];

export const PRICE = 41.5;

async function drained(request: IncomingMessage): Promise<void> {
  for await (const _ of request);
}

/** Starts the server on a free port. `/search` is SearXNG's, `/stock/SYMBOL` the HTTP tool's, `/page` a page. */
export async function startToolServers(): Promise<ToolServers> {
  const reached: Reached[] = [];
  let wait = 0;
  let failing = false;
  let open = 0;
  let together = 0;
  const server = createServer(async (request, response) => {
    await drained(request);
    const url = new URL(request.url ?? '/', 'http://world');
    const result: Reached = { path: url.pathname, query: url.searchParams };
    reached.push(result);
    open++;
    together = Math.max(together, open);
    const started = performance.now();
    const gone = Promise.withResolvers<void>();
    response.on('error', () => {});
    response.on('close', () => {
      if (!response.writableEnded) result.goneAfterMs = performance.now() - started;
      gone.resolve();
    });
    await Promise.race([Bun.sleep(wait), gone.promise]);
    open--;
    const { status, type, body } = failing
      ? { status: 503, type: 'text/plain', body: 'the world is closed' }
      : answer(url);
    response.writeHead(status, { 'content-type': type });
    response.end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    reached,
    get together() {
      return together;
    },
    async request(n, timeoutMs = 4000) {
      const until = performance.now() + timeoutMs;
      for (;;) {
        const found = reached[n];
        if (found !== undefined) return found;
        if (performance.now() > until) throw new Error(`no tool made request number ${n}`);
        await Bun.sleep(5);
      }
    },
    slow: (ms) => {
      wait = ms;
    },
    fail: () => {
      failing = true;
    },
    clear: () => {
      reached.length = 0;
      wait = 0;
      failing = false;
      together = 0;
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function answer(url: URL): { status: number; type: string; body: string } {
  const json = (value: unknown) => ({
    status: 200,
    type: 'application/json',
    body: JSON.stringify(value),
  });
  if (url.pathname === '/search') {
    if (url.searchParams.get('format') !== 'json') {
      return { status: 403, type: 'text/plain', body: 'only json' };
    }
    const query = url.searchParams.get('q') ?? '';
    const results = pagesFor(query).map((page) => ({ ...page, content: `Text of ${page.title}` }));
    return json({ query, results, answers: [] });
  }
  const symbol = /^\/stock\/(\w+)$/.exec(url.pathname)?.[1];
  if (symbol !== undefined) return json({ symbol, price: PRICE });
  if (url.pathname === '/page') {
    const body =
      '<!doctype html><title>Tide table</title><main><h1>Tides</h1><p>High at noon.</p></main>';
    return { status: 200, type: 'text/html; charset=utf-8', body };
  }
  return { status: 404, type: 'text/plain', body: 'nothing here' };
}

/** `server_tools` of a configuration with this server's engine and HTTP tool `stock_price`. */
export const toolsOf = (toolServers: ToolServers, inject: 'force' | 'declared' = 'force') => ({
  web_search: { inject, engines: [{ type: 'searxng', base_url: toolServers.origin }] },
  http: {
    stock_price: {
      description: 'The price of a stock.',
      url: `${toolServers.origin}/stock/{symbol}`,
      schema: {
        type: 'object',
        properties: { symbol: { type: 'string' } },
        required: ['symbol'],
      },
    },
  },
});

/** Stops the servers in the order in which requests flow. */
export async function stopAll(
  ...all: readonly ({ stop(): Promise<unknown> } | FakeUpstream | undefined)[]
): Promise<void> {
  for (const one of all) await one?.stop();
}
