/** `GET /healthz` and `/readyz`: the process is alive, and it takes requests. */

import { Elysia } from 'elysia';
import { json } from './json.ts';

export interface HealthOptions {
  /** Undefined: ready; otherwise the reason why it is not. */
  readonly unready: () => string | undefined;
}

/** `GET /healthz` and `/readyz`. */
export function healthPlugin({ unready }: HealthOptions) {
  return new Elysia({ name: 'health' })
    .get('/healthz', () => json({ status: 'ok' }))
    .get('/readyz', () => {
      const reason = unready();
      return reason === undefined
        ? json({ status: 'ready' })
        : json({ status: 'not ready', reason }, 503);
    });
}
