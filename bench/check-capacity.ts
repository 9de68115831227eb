/** Checks of memory and numbers: many streams at once, a stalled reader, several workers, a soak. */

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
import { slope } from './statistics.ts';
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

/** Starts the product with `--workers 2` and looks which of its processes work. */
export async function workers(bench: Bench, generator: Generator): Promise<Workers> {
  const { child, port } = await startProduct(bench, {
    upstream: 'openai-chat',
    name: 'workers',
    arguments: ['--port', '0', '--workers', '2'],
  });
  try {
    const entrance = {
      port,
      dialect: 'chat' as const,
      headers: CLIENT_HEADERS,
      model: (name: string) => name,
    };
    await sleep(300);
    const before = cpuSample(child.pid);
    const result = await generator.run(planFor(named('J50'), entrance));
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
