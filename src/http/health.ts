/** Is it alive, and does it take requests? */

import type { Routes } from '../protocols/protocol.ts';

const json = (value: unknown, status = 200) =>
  new Response(JSON.stringify(value), { status, headers: { 'content-type': 'application/json' } });

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
