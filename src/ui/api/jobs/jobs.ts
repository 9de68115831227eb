/** The registry of background jobs (replays and bisections): they are started, followed and cancelled, a few at a time. */

import { asGatewayError, GatewayError } from '../../../conversation/errors.ts';
import { randomBase36 } from '../../../lib/text/ids.ts';
import { type EventStream, eventStream } from '../event-stream.ts';
import type { Viewer } from '../guard.ts';
import { LIMITS } from '../info.ts';
import type { JobEvent, JobResult, JobStarted, JobView } from './api-jobs.ts';

/** What a running job gets from the registry. */
export interface JobHandle {
  readonly signal: AbortSignal;
  /** Reports one more answered request. */
  progress(event: Omit<Extract<JobEvent, { type: 'run' }>, 'job'>): void;
  progress(event: Omit<Extract<JobEvent, { type: 'probe' }>, 'job'>): void;
  note(text: string): void;
}

export interface JobSpec extends Pick<JobView, 'kind' | 'sample' | 'stage' | 'total'> {
  /** The work; rejects with GatewayError. Ends soon after `signal` fires, with the result so far. */
  readonly run: (handle: JobHandle) => Promise<JobResult>;
}

export type Jobs = ReturnType<typeof createJobs>;

interface Job {
  readonly key: string;
  readonly abort: AbortController;
  readonly events: JobEvent[];
  readonly followers: Set<EventStream<JobEvent>>;
  readonly over: Promise<void>;
  view: JobView;
}

/** Finished jobs that are kept. */
const REMEMBERED = 30;
/** Jobs at a time of one key that sees its own exchanges alone. */
const MAX_PER_KEY = 2;

export function createJobs() {
  const jobs = new Map<string, Job>();
  let closed = false;

  const running = () => [...jobs.values()].filter(({ view }) => view.state === 'running');
  const seen = ({ key }: Job, { owner }: Viewer) => owner === undefined || owner === key;
  const find = (id: string, viewer: Viewer): Job => {
    const job = jobs.get(id);
    if (job !== undefined && seen(job, viewer)) return job;
    const what = 'There is no such job. A job ends with the process that runs it;';
    throw new GatewayError('not_found', `${what} a bisection that is started again resumes.`);
  };
  const forget = () => {
    const over = [...jobs.values()].filter(({ view }) => view.state !== 'running');
    for (const { view } of over.slice(0, Math.max(0, over.length - REMEMBERED))) {
      jobs.delete(view.id);
    }
  };

  return {
    /** @throws GatewayError rate_limit when too many jobs run, conflict when the same bisection runs */
    start(spec: JobSpec, { key, owner }: Viewer): JobStarted {
      if (closed) throw new GatewayError('overloaded', 'The gateway is shutting down.');
      const { kind, sample, stage, total, run } = spec;
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
      const same = ({ view }: Job) =>
        view.kind === 'bisect' && view.sample === sample && view.stage === stage;
      if (kind === 'bisect' && now.some(same)) {
        throw new GatewayError('conflict', 'This request is already being bisected.');
      }
      const id = `job_${Date.now()}_${randomBase36(8)}`;
      const state = 'running' as const;
      const job: Job = {
        key,
        abort: new AbortController(),
        events: [],
        followers: new Set(),
        over: Promise.resolve().then(() => perform(job, run)),
        view: { id, kind, state, sample, stage, started: Date.now(), ended: null, done: 0, total },
      };
      jobs.set(id, job);
      publish(job, { type: 'job', job: job.view });
      void job.over.then(forget);
      return { job: id };
    },
    /** An event stream of all events of a job. @throws GatewayError not_found */
    follow(id: string, request: Request, viewer: Viewer): Response {
      const job = find(id, viewer);
      const stream = eventStream<JobEvent>({
        signal: request.signal,
        onClose: () => job.followers.delete(stream),
      });
      for (const event of job.events) stream.send(event);
      if (job.view.state === 'running') job.followers.add(stream);
      else stream.end();
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

function publish(job: Job, event: JobEvent): void {
  job.events.push(event);
  for (const follower of job.followers) follower.send(event);
}

/** Runs a job to its end. Never rejects. */
async function perform(job: Job, run: JobSpec['run']): Promise<void> {
  const { signal } = job.abort;
  const step = (event: { readonly type: 'run' | 'probe' }) => {
    job.view = { ...job.view, done: job.view.done + 1 };
    publish(job, { ...event, job: job.view } as JobEvent);
  };
  const note = (text: string) => publish(job, { type: 'note', text });
  const end = (
    state: JobView['state'],
    rest: Pick<Extract<JobEvent, { type: 'end' }>, 'result' | 'error'>,
  ) => {
    job.view = { ...job.view, state, ended: Date.now() };
    publish(job, { type: 'end', job: job.view, ...rest });
    for (const follower of [...job.followers]) follower.end();
  };
  try {
    const result = await run({ signal, progress: step, note });
    end(signal.aborted ? 'cancelled' : 'done', { result, error: null });
  } catch (thrown) {
    const { kind, message } = asGatewayError(thrown);
    if (signal.aborted) end('cancelled', { result: null, error: null });
    else end('failed', { result: null, error: { kind, message } });
  }
}
