/** Input and output of the load generator: one JSON line each. */

import { median } from './statistics.ts';

export interface LoadPlan {
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly connections: number;
  /** New requests start only within this time. */
  readonly durationMs: number;
  /** At most this many requests in all. */
  readonly maxRequests: number;
  /** How long answers under way may take after the last start; then they count as unfinished. */
  readonly graceMs: number;
  /** The first requests of the connections are spread over this time. */
  readonly spreadMs: number;
  /** Text deltas that every answer must hold; 0 for JSON answers. */
  readonly events: number;
  /** Events carry the nanosecond at which the mock sent them. */
  readonly stamped: boolean;
  /** Closes every connection this long after its request went out, instead of reading to the end. */
  readonly abortAfterMs?: number;
  /** Gives back every start and latency, for joining with another run. */
  readonly log?: boolean;
  /** Reads the first bytes, then nothing for this long, then hangs up. */
  readonly stallMs?: number;
}

export interface Spread {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export interface LoadResult {
  /** Answers read to their end. */
  readonly requests: number;
  /** Of these, finished within `durationMs`. */
  readonly requestsInTime: number;
  readonly events: number;
  readonly eventsInTime: number;
  readonly bytes: number;
  /** Events missing from answers that ended. */
  readonly lost: number;
  /** Answers still under way when the run ended. */
  readonly unfinished: number;
  readonly aborted: number;
  readonly errors: Readonly<Record<string, number>>;
  readonly elapsedMs: number;
  /** Microseconds. */
  readonly latency: Spread;
  /** Microseconds from the request to the first body byte. */
  readonly firstByte: Spread;
  /** Microseconds from the mock's stamp to here. */
  readonly delay: Spread;
  /** Nanosecond and microseconds of every request, in pairs. */
  readonly log?: readonly number[];
}

function spreadOf(spreads: readonly Spread[]): Spread {
  return {
    p50: median(spreads.map((one) => one.p50)),
    p99: median(spreads.map((one) => one.p99)),
    max: Math.max(...spreads.map((one) => one.max)),
  };
}

/** Several runs as one: counts and times are sums, spreads the medians of their percentiles; no log. */
export function together(runs: readonly LoadResult[]): LoadResult {
  const sum = (value: (run: LoadResult) => number) =>
    runs.reduce((total, run) => total + value(run), 0);
  const errors: Record<string, number> = {};
  for (const run of runs) {
    for (const [kind, n] of Object.entries(run.errors)) errors[kind] = (errors[kind] ?? 0) + n;
  }
  return {
    requests: sum((run) => run.requests),
    requestsInTime: sum((run) => run.requestsInTime),
    events: sum((run) => run.events),
    eventsInTime: sum((run) => run.eventsInTime),
    bytes: sum((run) => run.bytes),
    lost: sum((run) => run.lost),
    unfinished: sum((run) => run.unfinished),
    aborted: sum((run) => run.aborted),
    errors,
    elapsedMs: sum((run) => run.elapsedMs),
    latency: spreadOf(runs.map((run) => run.latency)),
    firstByte: spreadOf(runs.map((run) => run.firstByte)),
    delay: spreadOf(runs.map((run) => run.delay)),
  };
}
