/** Closed-loop load over raw TCP, its own process: one plan per line on stdin, one result per line on stdout; loopback only, bounded in count and time. */

import { nanoseconds, sleep } from './clock.ts';
import { type Client, connect, type Tally } from './load-client.ts';
import type { LoadPlan, LoadResult, Spread } from './load-plan.ts';
import { percentile } from './statistics.ts';

/** No run lasts longer than this, whatever its plan says. */
const HARD_LIMIT_MS = 180_000;

function requestBytes(plan: LoadPlan): Buffer {
  const body = Buffer.from(plan.body);
  const headers = Object.entries({
    host: `127.0.0.1:${plan.port}`,
    ...(body.length > 0 ? { 'content-type': 'application/json' } : {}),
    'content-length': String(body.length),
    ...plan.headers,
  });
  const method = body.length > 0 ? 'POST' : 'GET';
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.concat([Buffer.from(`${method} ${plan.path} HTTP/1.1\r\n${lines}\r\n`), body]);
}

function spread(values: number[]): Spread {
  const sorted = Float64Array.from(values).sort();
  return {
    p50: percentile(sorted, 0.5),
    p99: percentile(sorted, 0.99),
    max: percentile(sorted, 1),
  };
}

async function run(plan: LoadPlan): Promise<LoadResult> {
  const tally: Tally = {
    requests: 0,
    events: 0,
    bytes: 0,
    lost: 0,
    aborted: 0,
    errors: new Map(),
    latency: [],
    firstByte: [],
    delay: [],
    log: [],
  };
  const request = requestBytes(plan);
  const clients = new Set<Client>();
  let started = 0;
  let connecting = 0;
  const begin = nanoseconds();
  const elapsed = () => (nanoseconds() - begin) / 1e6;
  const mayStart = () => started < plan.maxRequests && elapsed() < plan.durationMs;

  const open = async () => {
    connecting++;
    try {
      const client = await connect(plan, request, tally, done);
      clients.add(client);
      next(client);
    } catch {
      tally.errors.set('connect', (tally.errors.get('connect') ?? 0) + 1);
    }
    connecting--;
  };

  const next = (client: Client) => {
    if (!mayStart()) return;
    started++;
    client.send();
  };

  const done = (client: Client, usable: boolean) => {
    if (usable) return next(client);
    clients.delete(client);
    client.close();
    if (mayStart()) void open();
  };

  const step = plan.spreadMs / plan.connections;
  for (let i = 0; i < plan.connections; i++) {
    if (step > 0 && elapsed() < i * step) await sleep(1);
    void open();
  }
  const end = Math.min(HARD_LIMIT_MS, plan.durationMs);
  const active = () => connecting > 0 || [...clients].some((client) => client.busy);
  if (plan.stallMs !== undefined) await sleep(plan.stallMs);
  else while (elapsed() < end && (active() || mayStart())) await sleep(2);
  const inTime = { requests: tally.requests, events: tally.events };
  const elapsedMs = elapsed();
  const limit = Math.min(HARD_LIMIT_MS, elapsedMs + plan.graceMs);
  while (plan.stallMs === undefined && elapsed() < limit && active()) await sleep(2);
  const unfinished = [...clients].filter((client) => client.busy).length;
  for (const client of clients) client.close();
  return {
    requests: tally.requests,
    requestsInTime: inTime.requests,
    events: tally.events,
    eventsInTime: inTime.events,
    bytes: tally.bytes,
    lost: tally.lost,
    unfinished,
    aborted: tally.aborted,
    errors: Object.fromEntries(tally.errors),
    elapsedMs,
    latency: spread(tally.latency),
    firstByte: spread(tally.firstByte),
    delay: spread(tally.delay),
    ...(plan.log === true || plan.abortAfterMs !== undefined ? { log: tally.log } : {}),
  };
}

for await (const line of console) {
  if (line === '') continue;
  console.log(JSON.stringify(await run(JSON.parse(line) as LoadPlan)));
}
