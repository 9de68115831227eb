/** `GET /healthz` and `/readyz`: the process is alive, and it takes requests. */

import { Elysia } from 'elysia';
import { json } from './json.ts';

export interface HealthOptions {
  /** Undefined: ready; otherwise the reason why it is not. */
  readonly unready: () => string | undefined;
  /** The mark of the folder of the program's files, by which commands know whose files they see. */
  readonly homeMark?: () => string | undefined;
}

/** `GET /healthz` and `/readyz`. */
export function healthPlugin({ unready, homeMark }: HealthOptions) {
  return new Elysia({ name: 'health' })
    .get('/healthz', () => {
      const home = homeMark?.();
      return json(home === undefined ? { status: 'ok' } : { status: 'ok', home });
    })
    .get('/readyz', () => {
      const reason = unready();
      return reason === undefined
        ? json({ status: 'ready' })
        : json({ status: 'not ready', reason }, 503);
    });
}
