/** The registry of background jobs (replays and bisections): they are started, followed and cancelled, a few at a time. */

import { asGatewayError, GatewayError } from '../../../conversation/errors.ts';
import { randomBase36 } from '../../../lib/text/ids.ts';
import { type EventStream, eventStream } from '../event-stream.ts';
import type { Viewer } from '../guard.ts';
import { LIMITS } from '../info.ts';
import type { JobEvent, JobResult, JobStarted } from './api-jobs.ts';

export interface JobSpec {
  readonly kind: 'replay' | 'bisect';
  readonly sample: string;
  readonly stage: string;
  /** Most requests that it sends. */
  readonly total: number;
  /** The work; rejects with GatewayError. Ends soon after `signal` fires, with the result so far. */
  run(signal: AbortSignal, send: (event: JobEvent) => void): Promise<JobResult>;
}

export type Jobs = ReturnType<typeof createJobs>;

interface Job extends JobSpec {
  readonly key: string;
  readonly abort: AbortController;
  readonly events: JobEvent[];
  readonly followers: Set<EventStream<JobEvent>>;
  readonly over: Promise<void>;
}

/** Finished jobs that are kept. */
const REMEMBERED = 30;
/** Jobs at a time of one key that sees its own exchanges alone. */
const MAX_PER_KEY = 2;

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
    start(spec: JobSpec, { key, owner }: Viewer): JobStarted {
      if (closed) throw new GatewayError('overloaded', 'The gateway is shutting down.');
      const { kind, sample, stage, total } = spec;
      const now = running();
      if (now.length >= LIMITS.jobs) {
        throw new GatewayError(
          'rate_limit',
          `${LIMITS.jobs} jobs are running already; wait for one to end.`,
        );
      }
      const own = now.filter((job) => job.key === key).length;
      if (owner !== undefined && own >= MAX_PER_KEY) {
        throw new GatewayError(
          'rate_limit',
          `This key runs ${MAX_PER_KEY} jobs already; wait for one to end.`,
        );
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
        followers: new Set(),
        over: Promise.resolve().then(() => perform(job)),
      };
      jobs.set(id, job);
      void job.over.then(forget);
      return { job: id };
    },
    /** An event stream of all events of a job. @throws GatewayError not_found */
    follow(id: string, request: Request, viewer: Viewer): Response {
      const job = find(id, viewer);
      const close = () => void job.followers.delete(stream);
      const stream = eventStream<JobEvent>(request.signal, close);
      for (const event of job.events) stream.send(event);
      if (isOver(job)) stream.end();
      else job.followers.add(stream);
      return stream.response;
    },
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
async function perform({ abort: { signal }, events, followers, run }: Job): Promise<void> {
  const send = (event: JobEvent) => {
    events.push(event);
    for (const follower of followers) follower.send(event);
  };
  try {
    const result = await run(signal, send);
    send({ type: 'end', state: signal.aborted ? 'cancelled' : 'done', result, error: null });
  } catch (thrown) {
    const { kind, message } = asGatewayError(thrown);
    if (signal.aborted) send({ type: 'end', state: 'cancelled', result: null, error: null });
    else send({ type: 'end', state: 'failed', result: null, error: { kind, message } });
  }
  for (const follower of [...followers]) follower.end();
}
