/** This replica among the others: what it says of itself, the log line where its configuration differs, and the report. */

import { hostname } from 'node:os';
import { type Config, configFingerprint } from '../../config/config.ts';
import type { Sql } from '../../state/engines/engine.ts';
import { Replicas } from '../../state/engines/replicas.ts';
import { event, type Log } from '../../telemetry/log.ts';

/** A replica as `GET /health/engines` has it. */
export interface ReplicaReport {
  readonly id: string;
  readonly host: string;
  readonly version: string;
  readonly config: string;
  /** ISO 8601. */
  readonly started: string;
  /** Seconds since its last word, as of the last heartbeat here. */
  readonly silent: number;
  /** Absent where it is chosen by the system, or where an older version does not say it. */
  readonly port?: number;
  readonly pid?: number;
  /** The one that answers. */
  readonly own: boolean;
}

export interface ReplicaServices {
  open(): void;
  configure(config: Config): void;
  report(): readonly ReplicaReport[];
  close(): Promise<void>;
}

export function replicaServices(
  database: Sql,
  config: Config,
  { id, version, log }: { readonly id: string; readonly version: string; readonly log: Log },
): ReplicaServices {
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
    configure(next) {
      fingerprint = configFingerprint(next);
    },
    report: () =>
      replicas.all.map(({ id, host, version, config, started, port, pid, silentMs }) => ({
        id,
        host,
        ...(port && { port }),
        ...(pid && { pid }),
        version,
        config,
        started: new Date(started).toISOString(),
        silent: Math.round(silentMs / 1000),
        own: id === facts.id,
      })),
    close: () => replicas.close(),
  };
}
