/** Opens the store of responses: in the database of all replicas, or in a file of this machine. */

import { join } from 'node:path';
import { RESPONSES, ResponseStore } from '../../features/response-store/index.ts';
import type { Engines } from '../../state/engines/open-engines.ts';
import { openPostgres } from '../../state/sql/postgres.ts';
import { openSqlite } from '../../state/sql/sqlite.ts';
import type { GatewayMetrics } from '../../telemetry/gateway-metrics.ts';
import { event, type Log } from '../../telemetry/log.ts';

export interface OpenResponsesOptions {
  readonly home: string;
  readonly log: Log;
  readonly metrics: GatewayMetrics;
  /** Other processes on this machine answer requests, too. */
  readonly workers: boolean;
  readonly engines: Pick<Engines, 'cache' | 'database' | 'seal'>;
}

export function openResponses(options: OpenResponsesOptions): ResponseStore {
  const { home, log, metrics, workers, engines } = options;
  const { database, cache, seal } = engines;
  const warn = (message: string) => event(log, 'responses.store.problem', { message }, 'warn');
  if (database === undefined) {
    const path = join(home, 'state', 'responses.db');
    return new ResponseStore({
      database: () => openSqlite(RESPONSES, { path, shrinks: true }),
      name: path,
      path,
      others: workers,
      warn,
    });
  }
  return new ResponseStore({
    database: () => openPostgres(database, RESPONSES),
    others: true,
    backMs: () => database.state.backMs,
    cache,
    seal,
    waitingPath: join(home, 'state', 'responses-waiting.db'),
    oldSpoolPath: join(home, 'state', 'responses-spool.db'),
    onLate: () => metrics.responsesLate.add(1),
    onDropped: (count) => metrics.responsesDropped.add(count),
    warn,
  });
}
