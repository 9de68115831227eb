/** This replica among the others: what it says of itself, the log line where its configuration differs, and the report. */

import { hostname } from 'node:os';
import { type Config, configFingerprint } from '../../config/config.ts';
import type { Sql } from '../../state/engines/engine.ts';
import { Replicas } from '../../state/engines/replicas.ts';
import { event, type Log } from '../../telemetry/log.ts';

export function replicaServices(
  database: Sql,
  config: Config,
  { id, version, log }: { readonly id: string; readonly version: string; readonly log: Log },
) {
  const facts = {
    id,
    host: hostname(),
    version,
    started: Date.now(),
    port: config.listen.port,
    pid: process.pid,
  };
  let fingerprint = configFingerprint(config);
  const replicas = new Replicas({
    database,
    own: () => ({ ...facts, config: fingerprint }),
    onDiffers: (others) =>
      event(
        log,
        'config.differs',
        { config: fingerprint, others: others.map(({ host, id }) => `${host} (${id})`) },
        'warn',
      ),
  });
  return {
    open: () => replicas.open(),
    configure(next: Config) {
      fingerprint = configFingerprint(next);
    },
    /** As `GET /health/engines` has it; `silent`: seconds since the last word, as of the last heartbeat here. */
    report: () =>
      replicas.all.map(({ id, host, version, config, started, port, pid, silentMs }) => ({
        id,
        host,
        // Chosen by the system, or of an older version that does not say it.
        ...(port && { port }),
        ...(pid && { pid }),
        version,
        config,
        started: new Date(started).toISOString(),
        silent: Math.round(silentMs / 1000),
        /** The one that answers. */
        own: id === facts.id,
      })),
    close: () => replicas.close(),
  };
}
