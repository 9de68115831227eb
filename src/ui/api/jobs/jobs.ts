/** The registry of background jobs (replays and bisections): they are started, read and cancelled, a few at a time. */

import { asGatewayError, GatewayError } from '../../../conversation/errors.ts';
import { randomBase36 } from '../../../lib/text/ids.ts';
import type { bisectionAsJson } from '../../../samples/bisect/run.ts';
import type { ProbeReport } from '../../../samples/bisect/types.ts';
import type { runAsJson, runsAsJson } from '../../../samples/replay/runs.ts';
import type { SampleError } from '../../../samples/sample.ts';
import type { Viewer } from '../guard.ts';
import { LIMITS } from '../info.ts';

export type JobEvent =
  /** The first one: the most requests that will be sent. */
  | { readonly type: 'begin'; readonly total: number }
  | { readonly type: 'run'; readonly run: ReplayRun }
  | { readonly type: 'probe'; readonly probe: BisectProbe }
  /** A message for people: "Resuming an earlier run: 12 answers are known." */
  | { readonly type: 'note'; readonly text: string }
  | JobEnd;

/** The last event of a job. One that was cancelled holds the result so far. */
export interface JobEnd {
  readonly type: 'end';
  readonly state: 'done' | 'failed' | 'cancelled';
  readonly result: ReplayResult | BisectResult | null;
  readonly error: SampleError | null;
}

/** One request of a replay and its outcome, as in `hopgate replay --json`. */
export type ReplayRun = ReturnType<typeof runAsJson>;

/** How a request ended when it was recorded; a run says the same of now. */
export type ReplayOutcome = NonNullable<ReplayRun['recorded']>;

export type ReplayResult = ReturnType<typeof runsAsJson>;

export type BisectProbe = Omit<ProbeReport, 'key'>;

/** As in `hopgate bisect --json`. */
export type BisectResult = ReturnType<typeof bisectionAsJson>;

export interface JobSpec {
  readonly kind: 'replay' | 'bisect';
  readonly sample: string;
  readonly stage: string;
  /** Most requests that it sends. */
  readonly total: number;
  /** The work; rejects with GatewayError. Ends soon after `signal` fires, with the result so far. */
  run(signal: AbortSignal, send: (event: JobEvent) => void): Promise<ReplayResult | BisectResult>;
}

export type Jobs = ReturnType<typeof createJobs>;

interface Job extends JobSpec {
  readonly key: string;
  readonly abort: AbortController;
  readonly events: JobEvent[];
  readonly over: Promise<void>;
}

/** Finished jobs that are kept. */
const REMEMBERED = 30;
/** Jobs at a time of one key that sees its own exchanges alone. */
const MAX_PER_KEY = 2;

const tooMany = (running: string) =>
  new GatewayError('rate_limit', `${running} already; wait for one to end.`);

export function createJobs() {
  const jobs = new Map<string, Job>();
  let closed = false;

  const running = () => [...jobs.values()].filter((job) => !isOver(job));
  const seen = ({ key }: Job, { owner }: Viewer) => owner === undefined || owner === key;
  const find = (id: string, viewer: Viewer): Job => {
    const job = jobs.get(id);
    if (job !== undefined && seen(job, viewer)) return job;
    const what = 'There is no such job. A job ends with the process that runs it;';
    throw new GatewayError('not_found', `${what} a bisection that is started again resumes.`);
  };
  const forget = () => {
    const over = [...jobs].filter(([, job]) => isOver(job));
    for (const [id] of over.slice(0, Math.max(0, over.length - REMEMBERED))) jobs.delete(id);
  };

  return {
    /** @throws GatewayError rate_limit when too many jobs run, conflict when the same bisection runs */
    start(spec: JobSpec, { key, owner }: Viewer): { readonly job: string } {
      if (closed) throw new GatewayError('overloaded', 'The gateway is shutting down.');
      const { kind, sample, stage, total } = spec;
      const now = running();
      if (now.length >= LIMITS.jobs) {
        throw tooMany(`${LIMITS.jobs} jobs are running`);
      }
      const own = now.filter((job) => job.key === key).length;
      if (owner !== undefined && own >= MAX_PER_KEY) {
        throw tooMany(`This key runs ${MAX_PER_KEY} jobs`);
      }
      // Two bisections of the same request would write to the same files.
      const same = (job: Job) =>
        job.kind === 'bisect' && job.sample === sample && job.stage === stage;
      if (kind === 'bisect' && now.some(same)) {
        throw new GatewayError('conflict', 'This request is already being bisected.');
      }
      const id = `job_${Date.now()}_${randomBase36(8)}`;
      const job: Job = {
        ...spec,
        key,
        abort: new AbortController(),
        events: [{ type: 'begin', total }],
        over: Promise.resolve().then(() => perform(job)),
      };
      jobs.set(id, job);
      void job.over.then(forget);
      return { job: id };
    },
    /** The events of a job so far. @throws GatewayError not_found */
    events: (id: string, viewer: Viewer): readonly JobEvent[] => find(id, viewer).events,
    /** @throws GatewayError not_found */
    cancel(id: string, viewer: Viewer): void {
      find(id, viewer).abort.abort();
    },
    /** Cancels all jobs; resolves when they have ended. */
    async close(): Promise<void> {
      closed = true;
      const open = running();
      for (const { abort } of open) abort.abort();
      await Promise.all(open.map(({ over }) => over));
    },
  };
}

const isOver = ({ events }: Job): boolean => events.at(-1)!.type === 'end';

/** Runs a job to its end. Never rejects. */
async function perform({ abort: { signal }, events, run }: Job): Promise<void> {
  const send = (event: JobEvent) => void events.push(event);
  try {
    const result = await run(signal, send);
    send({ type: 'end', state: signal.aborted ? 'cancelled' : 'done', result, error: null });
  } catch (thrown) {
    const { kind, message } = asGatewayError(thrown);
    if (signal.aborted) send({ type: 'end', state: 'cancelled', result: null, error: null });
    else send({ type: 'end', state: 'failed', result: null, error: { kind, message } });
  }
}
