/** Checks of memory and numbers: many streams at once, a stalled reader, several workers, a soak. */

import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { startCache } from '../test/support/engines/cache-servers.ts';
import { startPostgres } from '../test/support/engines/database-servers.ts';
import { singlePlan } from './check-latency.ts';
import { sleep } from './clock.ts';
import type { Generator } from './generator.ts';
import {
  type CpuSample,
  cpuBetween,
  cpuSample,
  peakResident,
  processTree,
  residentMegabytes,
} from './process-usage.ts';
import { CLIENT_HEADERS, gatewayTarget, startProduct } from './product.ts';
import { planFor, SCENARIOS, type Scenario } from './scenarios.ts';
import { median, slope } from './statistics.ts';
import type { Bench, Target, TargetName } from './target.ts';

const named = (name: Scenario['name']) => SCENARIOS.find((scenario) => scenario.name === name)!;

export interface ManyStreams {
  readonly asked: number;
  readonly completed: number;
  /** Milliseconds to the first byte of the slowest stream: all must be under way at once. */
  readonly slowestStart: number;
  readonly residentPeak: number;
}

/** Holds `streams` streams of 3 s at once: above the 256 that Bun's fetch allows by itself. */
export async function manyStreams(
  generator: Generator,
  target: Target,
  streams: number,
): Promise<ManyStreams> {
  const plan = {
    ...planFor(named('P500'), target),
    body: singlePlan(target, 'paced-6x500ms', true).body,
    connections: streams,
    maxRequests: streams,
    events: 6,
    spreadMs: 500,
  };
  const [result, residentPeak] = await peakResident(target.pid, generator.run(plan));
  return {
    asked: streams,
    completed: result.requests,
    slowestStart: result.firstByte.max / 1000,
    residentPeak,
  };
}

export interface PacedStreams {
  readonly streams: number;
  /** Milliseconds from the mock's stamp to the client. */
  readonly delayP50: number;
  readonly delayP99: number;
  readonly eventRate: number;
  /** Events that were lost, and streams that failed or did not end. */
  readonly faults: number;
  readonly residentPeak: number;
}

export const PACED_STREAMS = 10_000;

/** Streams at once, each with an event every 200 ms. @throws where this machine cannot hold so many */
export async function pacedStreams(
  generator: Generator,
  target: Target,
  streams: number,
): Promise<PacedStreams> {
  const limits = readFileSync('/proc/self/limits', 'latin1');
  const files = Number(/Max open files +\d+ +(\d+)/.exec(limits)?.[1]);
  if (files < 2.2 * streams) throw new Error(`this machine allows ${files} open files`);
  if (availableParallelism() < 4) throw new Error('it needs four cores');
  const plan = {
    ...planFor(named('P500'), target),
    body: singlePlan(target, 'paced-25x200ms', true).body,
    connections: streams,
    maxRequests: streams,
    durationMs: 30_000,
    graceMs: 15_000,
    spreadMs: 4000,
    events: 25,
  };
  const [result, residentPeak] = await peakResident(target.pid, generator.run(plan));
  const errors = Object.values(result.errors).reduce((sum, n) => sum + n, 0);
  return {
    streams,
    delayP50: result.delay.p50 / 1000,
    delayP99: result.delay.p99 / 1000,
    eventRate: (result.eventsInTime / result.elapsedMs) * 1000,
    faults: result.lost + result.unfinished + errors,
    residentPeak,
  };
}

export interface EnginesCost {
  /** Requests a second of a replica with engines, by those of an embedded gateway; and CPU of both, µs a request. */
  readonly rate: number;
  readonly cpu: number;
  readonly embeddedCpu: number;
}

/** A replica beside a gateway without engines, slice by slice. @throws where Postgres or Valkey is not installed */
export async function enginesCost(
  bench: Bench,
  generator: Generator,
  slices: number,
): Promise<EnginesCost> {
  const [cache, database] = await Promise.all([startCache(), startPostgres()]);
  const started = await Promise.all(
    [undefined, { cache: `redis://127.0.0.1:${cache.port}`, database: database.url }].map(
      (engines, i) =>
        startProduct(bench, {
          upstream: 'openai-chat',
          name: `engines-${i}`,
          limited: true,
          ...(engines && { engines }),
        }),
    ),
  );
  try {
    const found = started.map(() => ({ rate: [] as number[], cpu: [] as number[] }));
    for (let slice = -4; slice < slices; slice++) {
      for (const [i, { child, port }] of started.entries()) {
        const model = (name: string) => name;
        const entrance = { port, dialect: 'chat' as const, headers: CLIENT_HEADERS, model };
        const plan = { ...planFor(named('J50'), entrance), durationMs: 700 };
        const before = cpuSample(child.pid);
        const result = await generator.run(plan);
        if (slice < 0) continue;
        found[i]!.rate.push(result.requestsInTime / result.elapsedMs);
        found[i]!.cpu.push(cpuBetween(before, cpuSample(child.pid)) / 1000 / result.requests);
      }
    }
    const [embedded, replica] = found;
    return {
      rate: median(replica!.rate.map((rate, i) => rate / embedded!.rate[i]!)),
      cpu: median(replica!.cpu),
      embeddedCpu: median(embedded!.cpu),
    };
  } finally {
    for (const { child } of started) await child.stop();
    await Promise.all([cache.stop(), database.stop()]);
  }
}

/** Megabytes that a target grows by while a client reads the first bytes of a 1 GB stream and then stalls. */
export async function stalledReader(generator: Generator, target: Target): Promise<number> {
  // A first short stream brings in what any stream needs.
  await generator.run(singlePlan(target, 'burst-100', true));
  await sleep(300);
  const before = residentMegabytes(target.pid);
  const plan = { ...singlePlan(target, 'giga', true), stallMs: 3000 };
  const [, peak] = await peakResident(target.pid, generator.run(plan));
  return peak - before;
}

export interface FreshMemory {
  readonly idle: number;
  readonly streams500: number;
}

/** Resident megabytes of a process that has done nothing yet, and with 500 streams in it. */
export async function freshMemory(
  bench: Bench,
  generator: Generator,
  name: TargetName,
): Promise<FreshMemory> {
  const target = await gatewayTarget(name, bench);
  try {
    await sleep(1000);
    const idle = residentMegabytes(target.pid);
    const [, streams500] = await peakResident(
      target.pid,
      generator.run(planFor(named('P500'), target)),
    );
    return { idle, streams500 };
  } finally {
    await target.child?.stop();
  }
}

export interface Workers {
  readonly processes: number;
  readonly errors: number;
  /** Requests per second, and each busy process's share of the CPU time. */
  readonly rate: number;
  readonly shares: readonly number[];
}

/** Starts the product with so many workers, and looks which of its processes work. */
export async function workers(bench: Bench, generator: Generator, count: number): Promise<Workers> {
  const { child, port } = await startProduct(bench, {
    upstream: 'openai-chat',
    name: `workers-${count}`,
    arguments: ['--port', '0', '--workers', String(count)],
  });
  try {
    const entrance = {
      port,
      dialect: 'chat' as const,
      headers: CLIENT_HEADERS,
      model: (name: string) => name,
    };
    const plan = { ...planFor(named('J50'), entrance), connections: 128, durationMs: 4000 };
    // What runs is compiled.
    await generator.run(plan);
    const before = cpuSample(child.pid);
    const result = await generator.run(plan);
    const after = cpuSample(child.pid);
    const spent = processTree(child.pid).map((pid) => {
      const own = (sample: CpuSample) =>
        new Map([...sample].filter(([key]) => key.startsWith(`${pid}/`)));
      return cpuBetween(own(before), own(after));
    });
    const total = spent.reduce((sum, each) => sum + each, 0);
    const errors = Object.values(result.errors).reduce((sum, n) => sum + n, 0);
    return {
      processes: spent.length,
      errors,
      rate: (result.requestsInTime / result.elapsedMs) * 1000,
      shares: spent.map((each) => each / total).sort((a, b) => b - a),
    };
  } finally {
    await child.stop();
  }
}

export interface Soak {
  readonly requests: number;
  readonly aborted: number;
  readonly errors: Readonly<Record<string, number>>;
  /** Resident megabytes at rest: after the warm-up and after every part. */
  readonly atRest: readonly number[];
  /** The most it was under load. */
  readonly peak: number;
  /** Least-squares growth of what stays, from the end of the warm-up to the end, in megabytes. */
  readonly growth: number;
}

const PARTS = 5;
// Under load memory rises and falls by forty megabytes, over 100,000 requests and more, as the runtime
// looks through its old objects: a slope through that says what moment it was. What stays is seen at rest,
// where the runtime has collected and given back within twelve seconds.
const REST_MS = 14_000;

/**
 * Sends `requests` requests (half JSON, half streams) and `hangUps` aborted streams in equal parts, after
 * one such part for warming up.
 */
export async function soak(
  generator: Generator,
  target: Target,
  requests: number,
  hangUps: number,
): Promise<Soak> {
  const errors: Record<string, number> = {};
  const atRest: number[] = [];
  let peak = 0;
  let answered = 0;
  let aborted = 0;
  const half = (scenario: Scenario) => ({
    ...planFor(scenario, target),
    durationMs: 60_000,
    maxRequests: Math.round(requests / PARTS / 2),
  });
  const plans = [
    half(named('J50')),
    half(named('S50')),
    {
      ...singlePlan(target, 'paced-1000x5ms', true),
      connections: 50,
      maxRequests: Math.round(hangUps / PARTS),
      abortAfterMs: 30,
    },
  ];
  for (let part = 0; part <= PARTS; part++) {
    for (const plan of plans) {
      const [result, most] = await peakResident(target.pid, generator.run(plan));
      peak = Math.max(peak, most);
      for (const [kind, n] of Object.entries(result.errors)) {
        errors[kind] = (errors[kind] ?? 0) + n;
      }
      if (part === 0) continue;
      answered += result.requests;
      aborted += result.aborted;
    }
    await sleep(REST_MS);
    atRest.push(residentMegabytes(target.pid));
  }
  return {
    requests: answered,
    aborted,
    errors,
    atRest,
    peak,
    growth: slope(atRest) * (atRest.length - 1),
  };
}
