/** Is it alive, and does it take requests? */

import { json } from './json.ts';
import type { Routes } from './routes.ts';

/** `GET /healthz` and `/readyz`. @param unready undefined: ready; otherwise why not */
export function healthRoutes(unready: () => string | undefined): Routes {
  return {
    '/healthz': { GET: () => json({ status: 'ok' }) },
    '/readyz': {
      GET() {
        const reason = unready();
        return reason === undefined
          ? json({ status: 'ready' })
          : json({ status: 'not ready', reason }, 503);
      },
    },
  };
}
