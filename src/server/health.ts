/** Is it alive, and does it take requests? */

import type { Routes } from '../codecs/codec.ts';
import { json } from './json.ts';

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
