/** The page in the browser and its API: one function that answers everything under `/ui`. */

import { GatewayError } from '../conversation/errors.ts';
import { lineText } from '../lib/text/shown-text.ts';
import { pathOf } from '../server/request-path.ts';
import { failure } from './api/answers.ts';
import type { Api } from './api/app.ts';
import type { UiOptions } from './api/options.ts';
import { servePage } from './serve-page.ts';

export interface Ui {
  /** Answers whatever is under `/ui`. Never rejects. */
  answer(request: Request): Promise<Response>;
  /** Ends open event streams and jobs, since the server is about to stop; resolves when they have. */
  close(): Promise<void>;
}

/** Costs nothing until somebody visits: the API and the page are loaded with the first request. */
export function createUi(options: UiOptions): Ui {
  let api: Promise<Api> | undefined;
  return {
    async answer(request) {
      try {
        const pathname = pathOf(request.url);
        if (pathname.startsWith('/ui/api/')) {
          api ??= import('./api/app.ts').then(({ createApi }) => createApi(options));
          return await (await api).answer(request);
        }
        const page = request.method === 'GET' ? await servePage(request) : undefined;
        if (page !== undefined) return page;
        throw new GatewayError(
          'not_found',
          `There is nothing at ${request.method} ${lineText(pathname, 200)}.`,
          { code: 'not_found' },
        );
      } catch (thrown) {
        return failure(thrown);
      }
    },
    async close() {
      await (await api)?.close();
    },
  };
}
