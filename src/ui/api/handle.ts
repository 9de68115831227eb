/** The API behind the page: finds who asks and what for, and answers. */

import type { Config } from '../../config/config.ts';
import { GatewayError, invalid } from '../../conversation/errors.ts';
import { type Prices, pricesOf } from '../../samples/replay/cost.ts';
import type { SampleStore } from '../../samples/sample.ts';
import { empty, json, plain } from './answers.ts';
import { rawBody } from './bodies.ts';
import { conversationOf, eventsView } from './body-views.ts';
import { curlLine } from './curl.ts';
import { diffOf } from './diff-view.ts';
import { viewerOf } from './guard.ts';
import { infoFor } from './info.ts';
import { bisectJob, readJson, replayJob } from './jobs/job-requests.ts';
import { createJobs } from './jobs/jobs.ts';
import { samplesPage } from './list.ts';
import { createLive } from './live.ts';
import type { UiParts } from './parts.ts';
import { detailOf, sampleFor } from './sample.ts';
import { statsFor } from './stats.ts';

export interface Api {
  /** @throws GatewayError for what cannot be answered */
  answer(request: Request): Promise<Response>;
  /** Ends event streams and jobs; resolves when they have ended. */
  close(): Promise<void>;
}

const PREFIX = '/ui/api/';

export function createApi(parts: UiParts): Api {
  let book: SampleStore | undefined;
  let priced: { readonly config: Config; readonly prices: Prices } | undefined;
  let closed = false;
  const samples = (): SampleStore => {
    book ??= parts.samples(parts.root, true);
    return book;
  };
  const prices = (): Prices => {
    const config = parts.config();
    if (priced?.config !== config) priced = { config, prices: pricesOf(config) };
    return priced.prices;
  };
  const live = createLive(parts, samples, prices);
  const jobs = createJobs();

  const kept = (ids: readonly string[]) => {
    for (const id of ids) {
      const meta = samples().find(id);
      if (meta !== undefined) live.tell(samples().row(meta));
    }
  };

  const get = async (path: readonly string[], request: Request, url: URL): Promise<Response> => {
    const viewer = viewerOf(request, parts);
    const query = url.searchParams;
    const [what, id, part, stage, view] = path;
    const length = path.length;
    if (what === 'info' && length === 1) return json(infoFor(viewer, parts));
    if (what === 'live' && length === 1) return live.open(request, query, viewer);
    if (what === 'stats' && length === 1) {
      return json(await statsFor(samples(), query, viewer, prices()));
    }
    if (what === 'jobs' && length === 1) return json(jobs.list(viewer));
    if (what === 'jobs' && length === 2) return jobs.follow(id!, request, viewer);
    if (what !== 'samples' || length > 5) throw nothing(request, url);
    if (length === 1) return json(samplesPage(samples(), query, viewer, prices()));
    const meta = sampleFor(samples(), id!, viewer);
    if (length === 2) return json(detailOf(samples(), meta, prices(), parts));
    if (part === 'diff' && length === 3) return json(diffOf(samples(), meta, query));
    if (part === 'curl' && length === 3) {
      const from = query.get('stage') || 'client-request';
      return plain(curlLine(samples(), meta, from, parts.config(), url.origin));
    }
    if (part === 'export' && length === 3) {
      const redact = query.get('redact') === '1';
      const name = `${meta.id}${redact ? '-redacted' : ''}.json`;
      const disposition = { 'content-disposition': `attachment; filename="${name}"` };
      return json(samples().export(meta, redact), 200, disposition);
    }
    if (part !== 'edges' || stage === undefined) throw nothing(request, url);
    if (length === 4) return rawBody(samples(), meta, stage, query);
    if (view === 'conversation') {
      return json(conversationOf(samples(), meta, stage, query, parts));
    }
    if (view === 'events') return json(eventsView(samples(), meta, stage, query, parts));
    throw nothing(request, url);
  };

  const post = async (path: readonly string[], request: Request, url: URL): Promise<Response> => {
    const viewer = viewerOf(request, parts);
    const [what] = path;
    if (path.length !== 1 || (what !== 'replay' && what !== 'bisect')) throw nothing(request, url);
    if (parts.config().workers > 1) {
      const why = 'With several workers a job could not be followed from here:';
      throw new GatewayError('conflict', `${why} use "hopgate ${what}" on the command line.`);
    }
    const body = await readJson(request);
    const spec =
      what === 'replay'
        ? replayJob(body, samples(), viewer, parts)
        : bisectJob(body, samples(), viewer, parts, kept);
    return json(jobs.start(spec, viewer), 202);
  };

  return {
    async answer(request) {
      if (closed) throw new GatewayError('overloaded', 'The gateway is about to stop.');
      const url = new URL(request.url);
      const path = pathOf(url);
      if (request.method === 'GET') return get(path, request, url);
      if (request.method === 'POST') return post(path, request, url);
      if (request.method === 'DELETE' && path[0] === 'jobs' && path.length === 2) {
        jobs.cancel(path[1]!, viewerOf(request, parts));
        return empty(204);
      }
      throw nothing(request, url);
    },
    async close() {
      closed = true;
      live.close();
      await jobs.close();
      book?.close();
      book = undefined;
    },
  };
}

function pathOf({ pathname }: URL): readonly string[] {
  try {
    return pathname.slice(PREFIX.length).split('/').map(decodeURIComponent);
  } catch {
    throw invalid('The path is not well encoded.');
  }
}

const nothing = ({ method }: Request, { pathname }: URL) =>
  new GatewayError('not_found', `There is nothing at ${method} ${pathname}.`);
