/** Replays and bisections over the API under `/ui/api`: types alone, see `api.ts`. */

import type { JsonObject } from '../../../lib/json/json.ts';
import type { SampleError } from '../../../samples/sample.ts';

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
}

/** `POST /ui/api/bisect`. */
export interface BisectRequest {
  readonly id: string;
  readonly stage?: string;
  readonly to?: string;
  /** Requests that may be sent; 100 when left out. */
  readonly budget?: number;
  readonly repair?: boolean;
}

/** Answer of both (202); follow it with `GET /ui/api/jobs/:job`. */
export interface JobStarted {
  readonly job: string;
}

/** `GET /ui/api/jobs`: running ones and the latest that are over, newest first. */
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
  /** Requests sent, and how many there will be at most. */
  readonly done: number;
  readonly total: number;
}

/**
 * `GET /ui/api/jobs/:id`: an event stream of everything from the job's beginning on, `event:` being the
 * type; closed after `end`. `DELETE /ui/api/jobs/:id` cancels it (204); what is known is told.
 */
export type JobEvent =
  | { readonly type: 'job'; readonly job: JobView }
  | { readonly type: 'run'; readonly run: ReplayRun; readonly job: JobView }
  | { readonly type: 'probe'; readonly probe: BisectProbe; readonly job: JobView }
  /** Something worth telling: "going on with an earlier run: 12 answers are known". */
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
  /** `error`: said so; `cut`: ended before its end; `empty`: a natural end without an answer. */
  readonly how: 'error' | 'cut' | 'empty';
  readonly kind: string;
  readonly message: string;
  readonly code?: string;
}

/** One request of a replay and what came of it: as in `hopgate replay --json`. */
export interface ReplayRun {
  readonly sample: string;
  /** When settings are compared. */
  readonly setting?: string;
  readonly run: number;
  readonly status: number;
  readonly error: FailureView | null;
  readonly prompt_tokens: number | null;
  readonly output_tokens: number | null;
  readonly first_byte_ms: number | null;
  readonly ms: number;
  readonly target: string;
  readonly notes: string;
  readonly request_id: string;
  /** What the answer says, as text: words and tool calls; null for an error. */
  readonly answer: string | null;
  /** What was recorded then. */
  readonly recorded?: {
    readonly status: number;
    readonly error: FailureView | null;
    readonly prompt_tokens: number | null;
    readonly output_tokens: number | null;
    /** Milliseconds; null when it is not known. */
    readonly ms: number | null;
    readonly answer: string | null;
  };
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
  /** Of the first two settings, by Fisher's exact test. */
  readonly p?: number;
  readonly more_than_chance?: boolean;
}

export interface BisectProbe {
  readonly verdict: 'same' | 'passes' | 'other';
  /** Requests sent by now. */
  readonly spent: number;
  /** What is being left out: `messages`, `texts`, … */
  readonly phase: string;
  /** Bytes of the candidate, and of the smallest failing one so far. */
  readonly bytes: number;
  readonly best: number;
}

/** As in `hopgate bisect --json`. */
export interface BisectResult {
  readonly result: 'minimal' | 'partial' | 'does-not-fail';
  /** The cause in words: "the last tool result: 41 KB JSON at messages[17].content". */
  readonly words: string;
  readonly minimal: JsonObject;
  readonly passing: JsonObject | null;
  readonly probes: number;
  /** 1 = always. */
  readonly failure_rate: number;
  readonly cause: {
    /** JSON pointers: into the request that was looked into, and into the minimal one. */
    readonly at: string;
    readonly in_minimal: string;
    /** Bytes that stand there, and how many of them are enough to fail. */
    readonly bytes: number;
    readonly enough: number;
  } | null;
  /** Both requests were kept as samples. */
  readonly samples: { readonly minimal: string | null; readonly passing: string | null };
  /** The failure that was looked for. */
  readonly failure: FailureView | null;
}
