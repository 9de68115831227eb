/** Types of the API under `/ui/api`, shared by the server and the page in the browser. */

import type { FinishReason } from '../../conversation/events.ts';
import type { Note } from '../../conversation/notes.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import type { Usage } from '../../conversation/usage.ts';
import type { MeaningDiff } from '../../samples/compare/types.ts';
import type {
  ExplainedChange,
  SampleError,
  SampleMeta,
  SamplePercentiles,
  SampleStage,
  SampleToolRun,
} from '../../samples/sample.ts';
import type { UiRow } from './sessions/api-sessions.ts';

export type * from '../../samples/compare/types.ts';
export type * from './bodies/api-body.ts';
export type * from './jobs/api-jobs.ts';
export type * from './sessions/api-sessions.ts';

/*
 * Rules that hold for every path:
 * - Same keys as the rest of the gateway: `Authorization: Bearer KEY` or `x-api-key` where keys are
 *   configured (see `info.auth`; without one the answer is 401). EventSource cannot send headers:
 *   read the event streams with `fetch`.
 * - POST and DELETE need the header `x-hopgate-ui: 1`, POST also `content-type: application/json`; pages
 *   of other origins are refused with 403.
 * - Failures are JSON: `ApiFailure`, with the status 400, 401, 403, 404, 409, 413, 429 or 500.
 * - Texts and names come from clients and models: they are data, never markup.
 * - Times are in milliseconds: since 1970 where noted, else since the exchange began.
 */

/** Header that every state-changing request must carry, with any value. */
export const UI_HEADER = 'x-hopgate-ui';

/** Body of every failure. */
export interface ApiFailure {
  readonly error: { readonly kind: string; readonly message: string; readonly code?: string };
}

export type RecordingMode = 'off' | 'errors' | 'all';

/**
 * `POST /ui/api/recording`: the mode of this process until its configuration is loaded again. Answers with
 * `Info`. 403 for a key that sees only its own exchanges: the mode holds for all of them. 409 with several workers.
 */
export interface RecordingRequest {
  readonly mode: RecordingMode;
}

/** `GET /ui/api/info`. */
export interface Info {
  readonly version: string;
  /** Milliseconds since 1970, by the server's clock. */
  readonly now: number;
  readonly samples: {
    readonly mode: RecordingMode;
    /** What the configuration says; another mode is in force until the process reloads or restarts. */
    readonly configured: RecordingMode;
    /** This caller may switch the mode: `POST /ui/api/recording`. */
    readonly may_switch: boolean;
    /** The folder; left out for callers that see only their own exchanges. */
    readonly dir?: string;
    /** Days after which recorded exchanges are deleted, and failed ones; 0 = never. */
    readonly keep_days: number;
    readonly keep_failed_days: number;
    /**
     * Most exchanges and bytes that this process holds in memory beside the recorded ones; null: it holds
     * none, which is so with several workers.
     */
    readonly recent: { readonly count: number; readonly bytes: number } | null;
    /** Some routes have their own mode. */
    readonly by_route: boolean;
    /** Content that is blanked before it is written. */
    readonly redact: readonly string[];
  };
  /** Keys are configured. */
  readonly auth: boolean;
  /** There are admin keys, so that the admin API is on. Without any keys, `GET /ui/api/reports/` has usage, spend and health. */
  readonly admin: boolean;
  /** Name of the caller's key; '' without keys. */
  readonly key: string;
  /** Whose exchanges are shown. */
  readonly sees: 'own' | 'all';
  /** Possible targets of a replay. */
  readonly targets: readonly TargetChoice[];
  /** At least one model has a price; otherwise every cost is null. */
  readonly priced: boolean;
  readonly limits: {
    /** Most jobs at the same time; 0 with several workers, which cannot run jobs. */
    readonly jobs: number;
    /** Most requests of one replay (sources × settings × repeat). */
    readonly runs: number;
    /** Most probes of one bisection. */
    readonly budget: number;
  };
}

/** A provider in the menu of replay targets. */
export interface TargetChoice {
  readonly provider: string;
  readonly protocol: ProtocolName;
  /** `provider/model`, ready for `to`. */
  readonly models: readonly string[];
  /** The provider accepts other model names as well. */
  readonly any: boolean;
}

/**
 * Query of `GET /ui/api/samples`; all given conditions must hold.
 * `since`, `until`: milliseconds since 1970, or `30m`, `2h`, `7d`, or a date.
 * `status`: `500`, `5xx`, `429,5xx`, `ok`, `failed`, `cut` (the answer ended early), `unfinished` (the
 * recording process died), `open`. `model`: part of the model's or
 * target's name, `*` stands for anything. `key`: name of a gateway key.
 * `client`, `target`: like `model`. `slower`: at least so long in all, `800ms`, `5s`, `2m`. `cost`: at least so
 * many USD. `sort`: a name of `SAMPLE_SORTS`, largest first; `:up` behind it, smallest first.
 * `q`: part of the id, model, target, session, error or notes, or words that were said in one text of the
 * request or the answer; words between quotes belong together.
 */
export interface SamplesQuery extends Readonly<Record<string, string | undefined>> {
  /** 1 to 500; 100 when left out. */
  readonly limit?: string;
  /** `cursor` of the previous page. */
  readonly cursor?: string;
}

/** `GET /ui/api/samples`: newest first, unless `sort` says otherwise. */
export interface SamplesPage {
  readonly rows: readonly UiRow[];
  /** Older rows exist: send it with the next request. */
  readonly cursor?: string;
  /** With `q`: where the words stand, by the ids of rows. */
  readonly hits?: Readonly<Record<string, Hit>>;
  /** With `q`: only the newest texts were searched, since very many fit. */
  readonly partial?: boolean;
  /** With `q`: recorded exchanges that the search does not know yet; it reads them in the background. */
  readonly unread?: number;
}

/** A place in a text, with a few words around it. */
export interface Hit {
  readonly before: string;
  readonly hit: string;
  readonly after: string;
}

/** `GET /ui/api/stories?ids=ID,ID,…` (at most 50): what the list says of each; unknown ids are left out. */
export interface Stories {
  readonly stories: readonly Story[];
}

/** Texts are cut to one line; '' where nothing is known. */
export interface Story {
  readonly id: string;
  /** `Claude Code`, `Codex`, `OpenAI SDK`, … */
  readonly client: string;
  /** What the user said last, or the tools whose results the request brings. */
  readonly asked: string;
  /** The answer's first text, the tools that it calls, or what went wrong. */
  readonly answered: string;
}

/**
 * `GET /ui/api/live?…` (same filters as the list but without `limit` and `cursor`): an event stream.
 * `event:` is the type, `data:` the object. A comment (`: …`) is sent every 15 seconds. Rows that do not
 * match the filter are left out; a row that was sent and no longer matches is sent as `gone`.
 */
export type LiveEvent =
  /** The stream is open; everything before is in the list. */
  | { readonly type: 'hello'; readonly now: number }
  /** A new or changed row: it replaces the row with its id. */
  | { readonly type: 'row'; readonly row: UiRow }
  /** Removed: too old, deleted, or not kept after all. */
  | { readonly type: 'gone'; readonly ids: readonly string[] };

/** `GET /ui/api/samples/:id`. */
export interface SampleDetail {
  readonly row: UiRow;
  /** As in the meta file, notes included; `meta.edges` is the whole list of bodies. */
  readonly meta: SampleMeta;
  readonly hops: readonly HopView[];
  /** Tools that the gateway ran; `hop` is the hop that asked, `at` and `ms` are given where known. */
  readonly tools: readonly SampleToolRun[];
  /** The client's side; `until` of the response is the end of the exchange. */
  readonly client: { readonly request?: SampleStage; readonly response?: SampleStage };
  /** Of all hops together. */
  readonly usage: Usage | null;
  readonly cost: number | null;
  /** The pair of stages that a diff shows first; null when a body of it is missing. */
  readonly diff: { readonly a: string; readonly b: string } | null;
  /** Stages that can be replayed or bisected. */
  readonly sendable: readonly string[];
}

/** One hop: all tries for one answer of a model. */
export interface HopView {
  /** Counts from 1. */
  readonly hop: number;
  /** In order; the last one counted. */
  readonly tries: readonly TryView[];
  /** As the vendor reported in its answer. */
  readonly usage: Usage | null;
  readonly cost: number | null;
  readonly finish: FinishReason | null;
}

/** One request at a vendor. Times since the exchange began; null where unknown. */
export interface TryView {
  readonly try: number;
  /** Its answer was used. */
  readonly counted: boolean;
  readonly target: string;
  readonly protocol: ProtocolName | null;
  readonly url: string | null;
  readonly status: number | null;
  readonly error: SampleError | null;
  /** Stage names of its bodies. */
  readonly request: string | null;
  readonly response: string | null;
  readonly response_bytes: number;
  /** The request was sent. */
  readonly sent_at: number | null;
  /** Its new connection was established; null where a kept connection was used, or unknown. */
  readonly connected_at: number | null;
  /** The answer's head arrived: until then the request was sent and the vendor worked. */
  readonly head_at: number | null;
  /** The first byte of the body. */
  readonly first_at: number | null;
  readonly end_at: number | null;
  readonly stream: boolean;
  /** The body is incomplete. */
  readonly cut: boolean;
}

/*
 * `GET /ui/api/samples/:id/edges/:stage[?from=BYTE&bytes=COUNT]` answers with the body itself as
 * `text/plain; charset=utf-8`; `x-hopgate-bytes` is its full length. At most 4 MiB are sent at a time;
 * `bytes` may ask for less.
 */
export const BODY_BYTES_HEADER = 'x-hopgate-bytes';

/** `GET /ui/api/samples/:id/diff?a=STAGE&b=STAGE`; left out: the client's request and that of the first hop. */
export interface DiffView {
  readonly a: string;
  readonly b: string;
  /** Byte for byte the same. */
  readonly identical: boolean;
  /** The first 2000. */
  readonly changes: readonly ChangeView[];
  readonly total: number;
  /** Notes of the exchange, which describe the rules of the changes. */
  readonly notes: readonly Note[];
  /** By what both bodies say, whatever their protocols; null where that cannot be read. Texts: 200,000 characters at most. */
  readonly meaning: MeaningDiff | null;
}

/**
 * A change. A value whose JSON is longer than 10000 characters is replaced by the beginning of that JSON as
 * a string; `…_chars` is then its full length.
 */
export interface ChangeView extends ExplainedChange {
  readonly before_chars?: number;
  readonly after_chars?: number;
}

/*
 * `GET /ui/api/samples/:id/export[?redact=1]`: the sample as one file (`ExportedSample`), as a download.
 * `GET /ui/api/samples/:id/curl[?stage=STAGE]`: text/plain, a command line; keys are `$HOPGATE_KEY` or
 * `$PROVIDER_KEY`, never real ones.
 */

/**
 * `GET /ui/api/stats?since&until&buckets` (filters of the list may be given as well). `since` and `until`
 * as in the list, the last 24 hours when left out; `buckets` 1 to 500, 60 when left out.
 */
export interface Stats {
  /** Milliseconds since 1970. */
  readonly since: number;
  readonly until: number;
  readonly bucket_ms: number;
  /** All buckets, oldest first, empty ones included; `time` is the beginning of a bucket. */
  readonly buckets: readonly (StatsFigures & { readonly time: number })[];
  readonly all: StatsFigures;
  /** By `provider/model`, most requests first. */
  readonly targets: readonly (StatsFigures & { readonly target: string })[];
}

export interface StatsFigures {
  readonly requests: number;
  /** Something failed, even if only a try that a later one made good. */
  readonly failed: number;
  /** By status: `200`, `429`, … */
  readonly statuses: Readonly<Record<string, number>>;
  /** By kind of error. */
  readonly errors: Readonly<Record<string, number>>;
  /** Null when nothing was measured. */
  readonly first_byte_ms: SamplePercentiles | null;
  readonly total_ms: SamplePercentiles | null;
  /** All prompt tokens, then the parts read from and written to a cache. */
  readonly input_tokens: number;
  readonly cached_tokens: number;
  readonly cache_write_tokens: number;
  /** All generated tokens, then the part for reasoning. */
  readonly output_tokens: number;
  readonly reasoning_tokens: number;
  /** cached / input over exchanges whose vendor reports cache use; null when none does. */
  readonly cache_hit_rate: number | null;
  /** In USD; null when no exchange has a price. */
  readonly cost: number | null;
  /** Exchanges with tokens but without a price, which the cost leaves out. */
  readonly unpriced: number;
  /** By name of the note: how often it occurs. */
  readonly notes: Readonly<Record<string, number>>;
}
