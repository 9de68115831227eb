/** Checks of time: start to first answer, client gone to upstream closed, event loop blocked by a large request. */

import { freePort, startChild } from './children.ts';
import { nanoseconds, sleep } from './clock.ts';
import type { Generator } from './generator.ts';
import type { LoadPlan } from './load-plan.ts';
import { productCommand } from './product.ts';
import { type Entrance, pathOf, requestBody } from './scenarios.ts';
import { median, percentile, shuffled } from './statistics.ts';
import type { Bench, Target, TargetName } from './target.ts';

/** A plan of one connection and one request, to be varied. */
export function singlePlan(entrance: Entrance, model: string, stream: boolean): LoadPlan {
  return {
    port: entrance.port,
    path: pathOf(entrance.dialect, entrance.model(model), stream),
    headers: entrance.headers,
    body: requestBody(entrance.dialect, entrance.model(model), stream, {
      tools: entrance.tools ?? false,
    }),
    connections: 1,
    durationMs: 10_000,
    maxRequests: 1,
    graceMs: 500,
    spreadMs: 0,
    events: 0,
    stamped: false,
  };
}

/** Resolves once a GET of `path` is answered with 200; tries to connect again at once. @throws after `limitMs` */
function firstAnswer(port: number, path: string, limitMs: number): Promise<void> {
  const deadline = Date.now() + limitMs;
  return new Promise((done, fail) => {
    const attempt = () => {
      if (Date.now() > deadline) return fail(new Error(`no answer within ${limitMs} ms`));
      const again = () => {
        setTimeout(attempt, 0.5);
      };
      Bun.connect({
        hostname: '127.0.0.1',
        port,
        socket: {
          open(socket) {
            socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n`);
          },
          data(socket, bytes) {
            socket.terminate();
            if (bytes.toString('latin1', 9, 12) === '200') done();
            else again();
          },
          error() {},
          connectError: again,
        },
      }).catch(() => {}); // connectError has been called
    };
    attempt();
  });
}

/** Milliseconds from starting the binary to its first 200 on /healthz: the median of `times` starts. */
export async function startup(bench: Bench, times: number): Promise<number> {
  const taken: number[] = [];
  for (let i = 0; i < times; i++) {
    const port = freePort();
    const { command, env } = productCommand(bench, {
      upstream: 'openai-chat',
      name: 'startup',
      arguments: ['--port', String(port)],
    });
    const from = nanoseconds();
    const child = startChild(command, { env, logFile: `${bench.dir}/startup.log`, cwd: bench.dir });
    await firstAnswer(port, '/healthz', 10_000);
    taken.push((nanoseconds() - from) / 1e6);
    await child.stop();
  }
  return median(taken);
}

// Times that it is asked whether the upstream's connection has ended, every 120 ms.
const PATIENCE = 20;

export interface AbortTimes {
  /** Milliseconds from the client's hang-up to the upstream connection's end; medians and the worst. */
  readonly beforeHeaders: { readonly p50: number; readonly max: number; readonly unseen: number };
  readonly midStream: { readonly p50: number; readonly max: number; readonly unseen: number };
}

/** Hangs up `times` times, one after the other, before the answer begins and in the middle of it. */
export async function aborts(
  bench: Bench,
  generator: Generator,
  entrance: Entrance,
  times: number,
): Promise<AbortTimes> {
  const state = async () => {
    const answer = await fetch(`http://127.0.0.1:${bench.mockPort}/control`);
    return (await answer.json()) as { aborts: number[]; servedRequests: number };
  };
  const phase = async (model: string) => {
    const delays: number[] = [];
    let unseen = 0;
    let early = 0;
    for (let i = 0; i < times; ) {
      const { servedRequests: before } = await state();
      const plan = { ...singlePlan(entrance, model, true), abortAfterMs: 40 };
      const hungUpAt = (await generator.run(plan)).log?.[0] ?? 0;
      let closedAt: number | undefined;
      let reached = 0;
      // Polled until it matches: a machine that pauses for a moment must not look like a leak.
      for (let asked = 1; closedAt === undefined && asked <= PATIENCE; asked++) {
        await sleep(120);
        const { aborts: seen, servedRequests } = await state();
        closedAt = seen[0];
        reached = servedRequests - before - asked;
      }
      // Gone before the gateway had so much as read the request: there was nothing to close.
      if (closedAt === undefined && reached === 0 && ++early < times) continue;
      i++;
      if (closedAt === undefined) unseen++;
      else delays.push(Math.max(0, (closedAt - hungUpAt) / 1e6));
    }
    return { p50: median(delays), max: Math.max(...delays), unseen };
  };
  return { beforeHeaders: await phase('slow'), midStream: await phase('paced-1000x5ms') };
}

export interface Block {
  /** The longest that a small request had to wait while a large one went through: median and p90 over requests, milliseconds. */
  readonly p50: number;
  readonly p90: number;
  /** The same over windows of equal length without large requests. */
  readonly quiet: number;
}

interface Waits {
  /** The longest wait of a small request within each large one, milliseconds. */
  readonly waits: number[];
  readonly quiet: number[];
}

/**
 * Sends large requests one after the other while another process asks /healthz without pause; for
 * every large request the longest wait among the small ones that overlap it tells how long nothing
 * else was served.
 */
async function waitsOf(
  generator: Generator,
  pinger: Generator,
  entrance: Entrance,
  bytes: number,
  requests: number,
): Promise<Waits> {
  const body = requestBody(entrance.dialect, entrance.model('json-1k'), false, {
    padding: bytes,
    tools: entrance.tools ?? false,
  });
  const ping: LoadPlan = {
    ...singlePlan(entrance, 'json-1k', false),
    path: '/healthz',
    body: '',
    maxRequests: 1_000_000,
    log: true,
  };
  const worst = (pings: readonly number[], from: number, to: number) => {
    let longest = 0;
    for (let i = 0; i + 1 < pings.length; i += 2) {
      const start = pings[i]!;
      const micros = pings[i + 1]!;
      if (start < to && start + micros * 1000 > from) longest = Math.max(longest, micros);
    }
    return longest / 1000;
  };
  // A first part without pings warms the path up.
  const large = { ...singlePlan(entrance, 'json-1k', false), body, log: true };
  await generator.run({ ...large, maxRequests: 10 });
  const pinging = pinger.run({ ...ping, durationMs: 500 + requests * 40 });
  await sleep(300);
  const windows: [number, number][] = [];
  for (let i = 0; i < requests; i++) {
    const log = (await generator.run(large)).log ?? [];
    if (log.length === 2) windows.push([log[0]!, log[0]! + log[1]! * 1000]);
    await sleep(15);
  }
  const pings = (await pinging).log ?? [];
  const first = pings[0] ?? 0;
  const length = median(windows.map(([from, to]) => to - from));
  return {
    waits: windows.map(([from, to]) => worst(pings, from, to)),
    quiet: windows.map((_, i) => worst(pings, first + i * 5e6, first + i * 5e6 + length)),
  };
}

/** Large requests to a target in each of so many passes. */
const A_PASS = 8;

/** {@link waitsOf} each target in turn, again and again: what is to be compared stands side by side. */
export async function loopBlocks(
  generator: Generator,
  pinger: Generator,
  targets: readonly Target[],
  bytes: number,
  passes: number,
): Promise<Partial<Record<TargetName, Block>>> {
  const all = new Map<TargetName, Waits>(
    targets.map(({ name }) => [name, { waits: [], quiet: [] }]),
  );
  for (let pass = 0; pass < passes; pass++) {
    for (const target of shuffled(targets)) {
      const { waits, quiet } = await waitsOf(generator, pinger, target, bytes, A_PASS);
      all.get(target.name)!.waits.push(...waits);
      all.get(target.name)!.quiet.push(...quiet);
    }
  }
  const blocks: Partial<Record<TargetName, Block>> = {};
  for (const [name, { waits, quiet }] of all) {
    waits.sort((a, b) => a - b);
    blocks[name] = { p50: median(waits), p90: percentile(waits, 0.9), quiet: median(quiet) };
  }
  return blocks;
}
