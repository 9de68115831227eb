/** What the API under `/ui/api` takes and answers: types alone, shared by the server and the page in the browser. */

import type { FinishReason } from '../../conversation/events.ts';
import type { Note } from '../../conversation/notes.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import type { Usage } from '../../conversation/usage.ts';
import type {
  ExplainedChange,
  SampleError,
  SampleMeta,
  SampleRow,
  SampleStage,
  SampleToolRun,
} from '../../samples/sample.ts';

export type * from './api-body.ts';
export type * from './jobs/api-jobs.ts';

/*
 * Rules that hold for every path:
 * - Same keys as the rest of the gateway: `Authorization: Bearer KEY` or `x-api-key` where keys are
 *   configured (`info.auth` tells; without one the answer is 401). EventSource cannot send headers:
 *   read the event streams with `fetch`.
 * - POST and DELETE need the header `x-hopgate-ui: 1`, POST also `content-type: application/json`; a
 *   page of another origin is refused with 403.
 * - Failures are JSON: `ApiFailure`, with the status 400, 401, 403, 404, 409, 413, 429 or 500.
 * - Texts and names come from clients and models: they are data, never markup.
 * - Times are milliseconds: since 1970 where it says so, else since the exchange began.
 */

/** Header that every state-changing request must carry, with any value. */
export const UI_HEADER = 'x-hopgate-ui';

/** Body of every answer that is no success. */
export interface ApiFailure {
  readonly error: { readonly kind: string; readonly message: string; readonly code?: string };
}

/** `GET /ui/api/info`. */
export interface Info {
  readonly version: string;
  /** Milliseconds since 1970, by the server's clock. */
  readonly now: number;
  readonly samples: {
    readonly mode: 'off' | 'errors' | 'all';
    /** Some routes have a mode of their own. */
    readonly by_route: boolean;
    /** Content that is blanked before it is written. */
    readonly redact: readonly string[];
  };
  /** Keys are configured. */
  readonly auth: boolean;
  /** Name of the key that asks; '' without keys. */
  readonly key: string;
  /** Whose exchanges are shown. */
  readonly sees: 'own' | 'all';
  /** Where a replay can be sent. */
  readonly targets: readonly TargetChoice[];
  /** At least one model has a price; without any, every cost is null. */
  readonly priced: boolean;
  readonly limits: {
    /** Jobs that may run at the same time; 0: with several workers there are none. */
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
  /** The provider takes other model names as well. */
  readonly any: boolean;
}

/** An exchange in the list. Costs are in USD; null where the model has no price. */
export interface UiRow extends SampleRow {
  readonly cost: number | null;
}

/**
 * Query of `GET /ui/api/samples`; all that are given must hold.
 * `since`, `until`: milliseconds since 1970, or `30m`, `2h`, `7d`, or a date.
 * `status`: `500`, `5xx`, `429,5xx`, `ok`, `failed`, `cut` (an answer that broke off), `unfinished` (the
 * recording process died), `open`. `model`: part of the model's or
 * target's name, `*` stands for anything. `q`: part of the id, model, target, session, error or notes.
 */
export interface SamplesQuery {
  readonly status?: string;
  readonly model?: string;
  readonly note?: string;
  readonly session?: string;
  readonly entry?: string;
  readonly error?: string;
  readonly since?: string;
  readonly until?: string;
  readonly q?: string;
  /** 1 to 500; 100 when left out. */
  readonly limit?: string;
  /** `cursor` of the page before. */
  readonly cursor?: string;
}

/** `GET /ui/api/samples`: newest first. */
export interface SamplesPage {
  readonly rows: readonly UiRow[];
  /** There are older ones: ask again with it. */
  readonly cursor?: string;
}

/**
 * `GET /ui/api/live?…` (same filters as the list but without `limit` and `cursor`): an event stream.
 * `event:` is the type, `data:` the object. A comment (`: …`) comes every 15 seconds. Rows that do not
 * fit the filter are left out; one that was sent before and no longer fits is sent as `gone`.
 */
export type LiveEvent =
  /** The stream is open; whatever happened before is in the list. */
  | { readonly type: 'hello'; readonly now: number }
  /** New or changed: put it in the place of the row with its id. */
  | { readonly type: 'row'; readonly row: UiRow }
  /** No longer there: aged out, removed, or not kept after all. */
  | { readonly type: 'gone'; readonly ids: readonly string[] };

/** `GET /ui/api/samples/:id`. */
export interface SampleDetail {
  readonly row: UiRow;
  /** As in the meta file, notes included; `meta.edges` is the whole list of bodies. */
  readonly meta: SampleMeta;
  readonly hops: readonly HopView[];
  /** Tools that the gateway ran, with `hop` (the hop before), `at` and `ms` where they are known. */
  readonly tools: readonly SampleToolRun[];
  /** The client's side; `until` of the response is the end of the exchange. */
  readonly client: { readonly request?: SampleStage; readonly response?: SampleStage };
  /** Of all hops together. */
  readonly usage: Usage | null;
  readonly cost: number | null;
  /** Stages between which a diff makes sense, with the pair to show first. */
  readonly diff: { readonly a: string; readonly b: string } | null;
  /** Stages that can be replayed or bisected. */
  readonly sendable: readonly string[];
}

/** One hop: what it took to get one answer of a model. */
export interface HopView {
  /** Counts from 1. */
  readonly hop: number;
  /** In order; the last one is what counted. */
  readonly tries: readonly TryView[];
  /** As the vendor said in its answer. */
  readonly usage: Usage | null;
  readonly cost: number | null;
  readonly finish: FinishReason | null;
}

/** One request at a vendor. Times since the exchange began; null where they are not known. */
export interface TryView {
  readonly try: number;
  /** It is the one whose answer was used. */
  readonly counted: boolean;
  readonly target: string;
  readonly protocol: ProtocolName | null;
  readonly url: string | null;
  readonly status: number | null;
  readonly error: SampleError | null;
  /** Stage names of its bodies. */
  readonly request: string | null;
  readonly response: string | null;
  readonly request_bytes: number;
  readonly response_bytes: number;
  /** The request was sent. */
  readonly sent_at: number | null;
  /** The connection that was made for it stood; null where a kept one was used, or nobody knows. */
  readonly connected_at: number | null;
  /** The answer's head was there: sending and the vendor's thinking until then. */
  readonly head_at: number | null;
  /** The first byte of the body. */
  readonly first_at: number | null;
  readonly end_at: number | null;
  readonly stream: boolean;
  /** The body is not whole. */
  readonly cut: boolean;
}

/*
 * `GET /ui/api/samples/:id/edges/:stage[?from=BYTE&bytes=COUNT]` answers with the body itself as
 * `text/plain; charset=utf-8`; `x-hopgate-bytes` says how long the whole is. At most 4 MiB come at a
 * time; `bytes` may ask for less.
 */
export const BODY_BYTES_HEADER = 'x-hopgate-bytes';

/** `GET /ui/api/samples/:id/diff?a=STAGE&b=STAGE`; left out: the client's request and that of the last hop. */
export interface DiffView {
  readonly a: string;
  readonly b: string;
  /** Byte for byte the same. */
  readonly identical: boolean;
  /** The first 2000. */
  readonly changes: readonly ChangeView[];
  readonly total: number;
  /** Notes of the exchange, for the words of the rules that changes name. */
  readonly notes: readonly Note[];
}

/**
 * A change. A value whose JSON is longer than 10000 characters is given as the beginning of that JSON,
 * as a string; `…_chars` then says how long it is.
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
  /** All of them, oldest first, empty ones too; `time` is where one begins. */
  readonly buckets: readonly (StatsFigures & { readonly time: number })[];
  readonly all: StatsFigures;
  /** By `provider/model`, most requests first. */
  readonly targets: readonly (StatsFigures & { readonly target: string })[];
}

export interface StatsFigures {
  readonly requests: number;
  /** Something failed, be it a try that was made up for. */
  readonly failed: number;
  /** By status: `200`, `429`, … */
  readonly statuses: Readonly<Record<string, number>>;
  /** By kind of error. */
  readonly errors: Readonly<Record<string, number>>;
  /** Null when nothing was measured. */
  readonly first_byte_ms: Percentiles | null;
  readonly total_ms: Percentiles | null;
  /** All prompt tokens, of them those read from and written to a cache. */
  readonly input_tokens: number;
  readonly cached_tokens: number;
  readonly cache_write_tokens: number;
  /** All generated tokens, of them reasoning. */
  readonly output_tokens: number;
  readonly reasoning_tokens: number;
  /** cached / input over exchanges whose vendor tells of its cache; null when none does. */
  readonly cache_hit_rate: number | null;
  /** USD; null when nothing in it has a price. */
  readonly cost: number | null;
  /** Exchanges without a price among those with tokens: the cost leaves them out. */
  readonly unpriced: number;
  /** By name of the rule: how often it changed something. */
  readonly notes: Readonly<Record<string, number>>;
}

/** Nearest rank. */
export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}
