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

export interface JobView {
  readonly id: string;
  readonly kind: 'replay' | 'bisect';
  readonly state: 'running' | 'done' | 'failed' | 'cancelled';
  readonly sample: string;
  readonly stage: string;
  /** Milliseconds since 1970. */
  readonly started: number;
  readonly ended: number | null;
  /** Requests sent, and the most that will be sent. */
  readonly done: number;
  readonly total: number;
}

/**
 * `GET /ui/api/jobs/:id`: an event stream of all events of the job from its beginning, `event:` being the
 * type; it closes after `end`. `DELETE /ui/api/jobs/:id` cancels the job (204); its `end` holds the result so far.
 */
export type JobEvent =
  | { readonly type: 'job'; readonly job: JobView }
  | { readonly type: 'run'; readonly run: ReplayRun; readonly job: JobView }
  | { readonly type: 'probe'; readonly probe: BisectProbe; readonly job: JobView }
  /** A message for people: "Resuming an earlier run: 12 answers are known." */
  | { readonly type: 'note'; readonly text: string }
  /** The last one. */
  | {
      readonly type: 'end';
      readonly job: JobView;
      readonly result: JobResult | null;
      readonly error: SampleError | null;
    };

export type JobResult =
  | { readonly kind: 'replay'; readonly result: ReplayResult }
  | { readonly kind: 'bisect'; readonly result: BisectResult };

/** One request of a replay and its outcome, as in `hopgate replay --json`. */
export type ReplayRun = ReturnType<typeof runAsJson>;

/** How a request ended when it was recorded; a run says the same of now. */
export type ReplayOutcome = NonNullable<ReplayRun['recorded']>;

export type ReplayResult = ReturnType<typeof runsAsJson>;

export type BisectProbe = Omit<ProbeReport, 'key'>;

/** As in `hopgate bisect --json`. */
export type BisectResult = ReturnType<typeof bisectionAsJson>;
