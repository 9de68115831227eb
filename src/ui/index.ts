/** Answers everything under `/ui`: the page in the browser and its API, both loaded with the first request. */

import { GatewayError } from '../conversation/errors.ts';
import { MadeOnce } from '../lib/loop/made-once.ts';
import { printableLine } from '../lib/text/printable-text.ts';
import { pathOf } from '../server/request-path.ts';
import { failure } from './api/answers.ts';
import type { Api } from './api/app.ts';
import type { UiOptions } from './api/options.ts';
import { servePage } from './serve-page.ts';

export interface Ui {
  /** Answers any request under `/ui`. Never rejects. */
  answer(request: Request): Promise<Response>;
  /** Ends open event streams and jobs before the server stops; resolves when they have ended. */
  close(): Promise<void>;
}

/** Costs nothing until the first request under `/ui`. */
export function createUi(options: UiOptions): Ui {
  const api = new MadeOnce(async (): Promise<Api> => {
    const { createApi } = await import('./api/app.ts');
    return createApi(options);
  });
  return {
    async answer(request) {
      try {
        const pathname = pathOf(request.url);
        if (pathname.startsWith('/ui/api/')) return await (await api.get()).answer(request);
        const first = async () => (await api.get()).first(request);
        const page = request.method === 'GET' ? await servePage(request, first) : undefined;
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
      await (await api.made)?.close();
    },
  };
}
