/** Types of replays and bisections over the API under `/ui/api`; see `api.ts`. */

import type { JsonObject } from '../../../lib/json/json.ts';
import type { BisectCause, BisectReport, ProbeReport } from '../../../samples/bisect/types.ts';
import type { RequestEdit, SpendPlan } from '../../../samples/replay/types.ts';
import type { SampleError } from '../../../samples/sample.ts';

export type { RequestEdit, SpendPlan };

/** `POST /ui/api/replay`. Settings are those of `hopgate replay --compare`. */
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
  /** Two settings or more: `profile.FACT=VALUE`, `profile=NAME`, `to=…`, `repair=on|off`, `body.MEMBER=VALUE`. */
  readonly compare?: readonly string[];
  /** Several targets, `provider/model`, each a column of the result; not together with `compare`. */
  readonly targets?: readonly string[];
  /** Changes to the body before it is sent: JSON pointers and values, null removes. */
  readonly edits?: readonly RequestEdit[];
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

/** `GET /ui/api/jobs`: running jobs and the latest finished ones, newest first. */
export interface JobsList {
  readonly jobs: readonly JobView[];
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

export interface FailureView {
  /** `error`: reported as one; `cut`: ended early; `empty`: a regular end without an answer. */
  readonly how: 'error' | 'cut' | 'empty';
  readonly kind: string;
  readonly message: string;
  readonly code?: string;
}

/** How a request ended, now or when it was recorded. */
export interface ReplayOutcome {
  readonly status: number;
  readonly error: FailureView | null;
  readonly prompt_tokens: number | null;
  readonly output_tokens: number | null;
  readonly first_byte_ms: number | null;
  /** Null when unknown, as it may be of a recorded answer. */
  readonly ms: number | null;
  /** USD; null when the tokens or the price are unknown. */
  readonly cost: number | null;
  /** The text of the answer with its tool calls; null for an error. */
  readonly answer: string | null;
}

/** One request of a replay and its outcome, as in `hopgate replay --json`. */
export interface ReplayRun extends ReplayOutcome {
  readonly sample: string;
  /** When settings are compared. */
  readonly setting?: string;
  readonly run: number;
  readonly target: string;
  readonly notes: string;
  readonly request_id: string;
  readonly recorded?: ReplayOutcome;
}

export interface ReplayResult {
  readonly runs: readonly ReplayRun[];
  readonly settings: readonly {
    readonly setting: string;
    readonly runs: number;
    readonly failed: number;
    readonly failure_rate: number;
    /** 95 % interval of the rate. */
    readonly interval: readonly [low: number, high: number];
    readonly prompt_tokens: number | null;
    readonly output_tokens: number | null;
    readonly ms: number;
  }[];
  /** Fisher's exact test on the first two settings. */
  readonly p?: number;
  readonly more_than_chance?: boolean;
}

export type BisectProbe = Omit<ProbeReport, 'key'>;

/** As in `hopgate bisect --json`. */
export interface BisectResult extends Omit<BisectReport, 'passing' | 'cause'> {
  readonly passing: JsonObject | null;
  readonly cause: BisectCause | null;
  /** Ids of both requests as samples. */
  readonly samples: { readonly minimal: string | null; readonly passing: string | null };
  /** The failure to reproduce. */
  readonly failure: FailureView | null;
}
