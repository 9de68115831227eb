/** The API behind the page: one Elysia app under `/ui/api`, put together from the routes of each subject. */

import { Elysia, ValidationError } from 'elysia';
import { needsKey } from '../../config/sections/auth.ts';
import { GatewayError, invalid } from '../../conversation/errors.ts';
import { pathOf } from '../../server/request-path.ts';
import { failure } from './answers.ts';
import type { First } from './api.ts';
import { ApiContext } from './context.ts';
import { guard, viewerOf } from './guard.ts';
import { infoFor, infoRoutes, reportRoutes } from './info.ts';
import { jobRoutes } from './jobs/job-routes.ts';
import { FIRST_ROWS, samplesPage } from './list.ts';
import { liveRoutes } from './live.ts';
import type { UiOptions } from './options.ts';
import { misfit } from './parameters.ts';
import { sampleRoutes } from './sample-routes.ts';
import { sessionRoutes } from './sessions/session-routes.ts';
import { statsRoutes } from './stats.ts';
import { storyRoutes } from './stories.ts';

export interface Api {
  /** Answers any request under `/ui/api/`. Never rejects. */
  answer(request: Request): Promise<Response>;
  /** Info and first rows as JSON of {@link First}, so that the page need not ask; undefined where a key is needed. Never rejects. */
  first(request: Request): Promise<string | undefined>;
  /** Ends event streams and jobs; resolves when they have ended. */
  close(): Promise<void>;
}

export function createApi(options: UiOptions): Api {
  const context = new ApiContext(options);
  let closed = false;
  const app = new Elysia({
    name: 'ui-api',
    prefix: '/ui/api',
    strictPath: true,
    handler: { standardHostname: false },
  })
    .onError(({ error, code, request }) => {
      if (code === 'NOT_FOUND') return failure(unknownPath(request));
      return failure(error instanceof ValidationError ? misfit(error.valueError) : error);
    })
    .use(infoRoutes(options))
    .use(sampleRoutes(context))
    .use(storyRoutes(context))
    .use(sessionRoutes(context))
    .use(liveRoutes(context.live, options))
    .use(statsRoutes(context))
    .use(reportRoutes(options))
    .use(jobRoutes(context))
    .use(guard(options))
    // Last: a request without a valid key learns nothing about which paths exist.
    .all('/*', ({ request }) => {
      throw unknownPath(request);
    });
  return {
    async answer(request) {
      try {
        if (closed) throw new GatewayError('overloaded', 'The gateway is shutting down.');
        if (!isWellEncoded(request)) throw invalid('The path is not well encoded.');
        // Elysia would answer HEAD as GET, and open an event stream for it.
        if (request.method === 'HEAD') throw unknownPath(request);
        return await app.fetch(request);
      } catch (thrown) {
        return failure(thrown);
      }
    },
    async first(request) {
      try {
        if (closed || needsKey(options.config().auth)) return undefined;
        const viewer = await viewerOf(request, options);
        const { store, prices } = context;
        const first: First = {
          info: infoFor(viewer, options),
          page: await samplesPage(store, { limit: FIRST_ROWS }, viewer, prices),
        };
        return JSON.stringify(first);
      } catch {
        // The page asks the API, which says why.
        return undefined;
      }
    },
    async close() {
      closed = true;
      await context.close();
    },
  };
}

function isWellEncoded({ url }: Request): boolean {
  try {
    decodeURIComponent(pathOf(url));
    return true;
  } catch {
    return false;
  }
}

const unknownPath = ({ method, url }: Request) =>
  new GatewayError('not_found', `There is nothing at ${method} ${pathOf(url)}.`);
