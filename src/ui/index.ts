/** The page in the browser and its API: one function that answers everything under `/ui`. */

import { GatewayError } from '../conversation/errors.ts';
import { printableLine } from '../lib/text/printable-text.ts';
import { pathOf } from '../server/request-path.ts';
import { failure } from './api/answers.ts';
import type { Api } from './api/handle.ts';
import type { UiParts } from './api/parts.ts';
import { servePage } from './serve-page.ts';

export interface Ui {
  /** Answers whatever is under `/ui`. Never rejects. */
  answer(request: Request): Promise<Response>;
  /** Ends open event streams and jobs, since the server is about to stop; resolves when they have. */
  close(): Promise<void>;
}

/** Costs nothing until somebody visits: the API and the page are loaded with the first request. */
export function createUi(parts: UiParts): Ui {
  let api: Promise<Api> | undefined;
  return {
    async answer(request) {
      try {
        const pathname = pathOf(request.url);
        if (pathname.startsWith('/ui/api/')) {
          api ??= import('./api/handle.ts').then(({ createApi }) => createApi(parts));
          return await (await api).answer(request);
        }
        const page = request.method === 'GET' ? await servePage(request) : undefined;
        if (page !== undefined) return page;
        throw new GatewayError(
          'not_found',
          `There is nothing at ${request.method} ${printableLine(pathname, 200)}.`,
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
