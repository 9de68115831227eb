/** Opens the store of responses: with a shared database one for all replicas, else one on this machine. */

import { join } from 'node:path';
import {
  openResponseStore,
  type ResponseStore,
  SharedResponses,
} from '../../features/response-store/index.ts';
import { lazy } from '../../state/lazy.ts';
import type { GatewayMetrics } from '../../telemetry/gateway-metrics.ts';
import { event, type Log } from '../../telemetry/log.ts';
import type { EngineServices } from '../operations/engines.ts';

export interface OpenResponsesOptions {
  readonly home: string;
  readonly log: Log;
  readonly metrics: GatewayMetrics;
  /** Other processes on this machine answer requests, too. */
  readonly shared: boolean;
  readonly engines: Pick<EngineServices, 'cache' | 'database' | 'seal'>;
}

export interface OpenedResponses {
  readonly store: ResponseStore;
  /** Other processes write the same file, and are waited for. */
  readonly shared: boolean;
  /** Opens the file now. */
  open(): void;
  close(): Promise<void>;
}

export function openResponses(options: OpenResponsesOptions): OpenedResponses {
  const { home, log, metrics, shared, engines } = options;
  const warn = (message: string) => event(log, 'responses.store.problem', { message }, 'warn');
  const { database, cache, seal } = engines;
  if (database === undefined) {
    const opened = lazy(() =>
      openResponseStore({ shared, path: join(home, 'state', 'responses.db'), warn }),
    );
    return {
      store: opened.value,
      shared,
      open: opened.create,
      async close() {
        opened.created?.close();
      },
    };
  }
  const store = new SharedResponses({
    database,
    cache,
    seal,
    path: join(home, 'state', 'responses-spool.db'),
    onLate: () => metrics.responsesLate.add(1),
    onDropped: (count) => metrics.responsesDropped.add(count),
    warn,
  });
  return { store, shared: false, open() {}, close: () => store.close() };
}
