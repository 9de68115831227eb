/** Types of the API under `/ui/api`, shared by the server and the page in the browser. */

import type { SampleMode } from '../../config/sections/samples.ts';
import type { Steps } from '../../lib/loop/steps.ts';
import type { ConversationView, eventsView } from './bodies/body-views.ts';
import type { diffOf } from './bodies/diff-view.ts';
import type { infoFor } from './info.ts';
import type { JobEvent } from './jobs/jobs.ts';
import type { SamplesPage } from './list.ts';
import type { detailOf } from './sample-routes.ts';
import type { SessionView, sessionsOf } from './sessions/session-routes.ts';
import type { statsFor } from './stats.ts';
import type { Story } from './stories.ts';

export type * from '../../samples/compare/types.ts';
export type { SpendPlan } from '../../samples/replay/types.ts';
export type { ApiFailure } from './answers.ts';
export type { ConversationView } from './bodies/body-views.ts';
export type { BlockView, TextView, ToolView, TurnView } from './bodies/conversation-view.ts';
export type { ChangeView } from './bodies/diff-view.ts';
export type { BisectRequest, ReplayRequest } from './jobs/job-routes.ts';
export type * from './jobs/jobs.ts';
export type { UiRow } from './list.ts';
export type { LiveEvent } from './live.ts';
export type { Hit } from './search/text-search.ts';

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

/**
 * `POST /ui/api/recording`: the mode of this process until its configuration is loaded again. Answers with
 * `Info`. 403 for a key that sees only its own exchanges: the mode holds for all of them. 409 with several workers.
 */
export interface RecordingRequest {
  readonly mode: SampleMode;
}

/** Answers of `GET /ui/api…` by path, so that the page and the server share one list of routes. */
export interface Answers {
  '/info': ReturnType<typeof infoFor>;
  /** Newest first, unless `sort` says otherwise. Query: {@link SamplesQuery} */
  '/samples': SamplesPage;
  '/samples/:id': ReturnType<typeof detailOf>;
  /** `a`, `b`: stages; left out: the client's request and that of the first hop. */
  '/samples/:id/diff': Made<typeof diffOf>;
  /** `text`: longer texts are cut, 20000 characters when left out. */
  '/samples/:id/edges/:stage/conversation': ConversationView;
  /** `limit`: the first 500 when left out. */
  '/samples/:id/edges/:stage/events': Made<typeof eventsView>;
  /** `ids`: at most 50, between commas. What the list says of each; unknown ids are left out. */
  '/stories': { readonly stories: readonly Story[] };
  /** The sessions of the last exchanges, the newest first. */
  '/sessions': { readonly sessions: ReturnType<typeof sessionsOf> };
  /** At most the first 400 exchanges of a session, oldest first. */
  '/sessions/:id': SessionView;
  /**
   * `since` and `until` as in the list, the last 24 hours when left out; `buckets` 1 to 500, 60 when left out; filters
   * of the list may be given as well.
   */
  '/stats': Awaited<ReturnType<typeof statsFor>>;
  /** `from`: the first one that is wanted, counted from 0. The last event of a job is its end. */
  '/jobs/:id': { readonly events: readonly JobEvent[] };
}

/*
 * - `GET /ui/api/samples/:id/edges/:stage[?from=BYTE&bytes=COUNT]` answers with the body itself as
 *   `text/plain; charset=utf-8`; `x-hopgate-bytes` is its full length. At most 4 MiB are sent at a time; `bytes` may ask
 *   for less.
 * - `GET /ui/api/samples/:id/export[?redact=1]`: the sample as one file (`ExportedSample`), as a download.
 * - `GET /ui/api/samples/:id/curl`: text/plain, a command line that sends the client's request again; its key is
 *   `$HOPGATE_KEY`, never a real one.
 * - `POST /ui/api/replay` (`ReplayRequest`) and `POST /ui/api/bisect` (`BisectRequest`) begin a job and answer with its
 *   id, 202: `{ job }`. `…/plan` with the same body: `SpendPlan`, or 400 with what is wrong with it; nothing is sent.
 * - `DELETE /ui/api/jobs/:id` cancels a job, 204.
 */

/** Where no key is needed, the page comes with it: in `<template id="first">`. */
export interface First {
  readonly info: Info;
  readonly page: SamplesPage;
}

export type Info = Answers['/info'];
export type SampleDetail = Answers['/samples/:id'];
/** All tries for one answer of a model. */
export type HopView = SampleDetail['hops'][number];
export type EventsView = Answers['/samples/:id/edges/:stage/events'];
export type DiffView = Answers['/samples/:id/diff'];
export type Stories = Answers['/stories'];
export type SessionRow = Answers['/sessions']['sessions'][number];
/** One exchange of a session: only what it added to its conversation. */
export type SessionStep = SessionView['steps'][number];
export type Stats = Answers['/stats'];
export type StatsFigures = Stats['all'];
export type { SamplesPage, SessionView, Story };

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

/** Routes that work in steps hand on their result. */
type Made<F extends (...given: never[]) => Steps<unknown>> =
  ReturnType<F> extends Steps<infer T> ? T : never;
