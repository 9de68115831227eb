/** Types of replays and bisections over the API under `/ui/api`; see `api.ts`. */

import type { bisectionAsJson } from '../../../samples/bisect/run.ts';
import type { ProbeReport } from '../../../samples/bisect/types.ts';
import type { runAsJson, runsAsJson } from '../../../samples/replay/runs.ts';
import type { SpendPlan } from '../../../samples/replay/types.ts';
import type { SampleError } from '../../../samples/sample.ts';

export type { SpendPlan };

/** `POST /ui/api/replay`. */
export interface ReplayRequest {
  readonly id: string;
  /** `client-request` when left out. */
  readonly stage?: string;
  /** `provider/model`. */
  readonly to?: string;
  /** 1 when left out. */
  readonly repeat?: number;
  /** false: without any repair. */
  readonly repair?: boolean;
  /** Several targets, `provider/model`, each a column of the result. */
  readonly targets?: readonly string[];
  /** Changes to the body before it is sent, as `hopgate replay --edit` takes them: `MEMBER=VALUE`; null removes. */
  readonly edits?: readonly string[];
}

/*
 * `POST /ui/api/replay/plan` and `/ui/api/bisect/plan`, with the same bodies: `SpendPlan`, or 400 with what is
 * wrong with the request. Nothing is sent.
 */

/** `POST /ui/api/bisect`. */
export interface BisectRequest extends Pick<ReplayRequest, 'id' | 'stage' | 'to' | 'repair'> {
  /** Most requests to send; 100 when left out. */
  readonly budget?: number;
}

/** Answer of both (202); follow it with `GET /ui/api/jobs/:job`. */
export interface JobStarted {
  readonly job: string;
}

export type JobResult = ReplayResult | BisectResult;

/**
 * `GET /ui/api/jobs/:id`: an event stream of all events of the job from its beginning, `event:` being the
 * type; it closes after `end`. `DELETE /ui/api/jobs/:id` cancels the job (204); its `end` holds the result so far.
 */
export type JobEvent =
  /** The first one: the most requests that will be sent. */
  | { readonly type: 'begin'; readonly total: number }
  | { readonly type: 'run'; readonly run: ReplayRun }
  | { readonly type: 'probe'; readonly probe: BisectProbe }
  /** A message for people: "Resuming an earlier run: 12 answers are known." */
  | { readonly type: 'note'; readonly text: string }
  | JobEnd;

/** The last event of a job. */
export interface JobEnd {
  readonly type: 'end';
  readonly state: 'done' | 'failed' | 'cancelled';
  readonly result: JobResult | null;
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
