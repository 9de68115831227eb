/** The shared engines of a process, and what is told of them: log lines, metrics, and `GET /health/engines`. */

import type { Config } from '../../config/config.ts';
import type { EngineState } from '../../state/engines/engine.ts';
import { type Engines, openEngines } from '../../state/engines/open-engines.ts';
import type { GatewayMetrics } from '../../telemetry/gateway-metrics.ts';
import { event, type Log } from '../../telemetry/log.ts';

/** One engine as `GET /health/engines` has it. */
export interface EngineReport {
  readonly state: EngineState['status'];
  /** ISO 8601. */
  readonly since: string;
  readonly message?: string;
  readonly trips: number;
}

export interface EngineServices extends Engines {
  /** By name, those that are configured. */
  report(): Readonly<Record<string, EngineReport>>;
  /** Puts the numbers of now into the metrics. */
  measure(): void;
}

export function engineServices(
  { engines: config }: Config,
  { log, metrics }: { readonly log: Log; readonly metrics: GatewayMetrics },
): EngineServices {
  /** Since when each engine is away. */
  const away = new Map<string, number>();
  const measured = new Map<string, number>();
  const engines = openEngines(config, ({ name, status, since, message }) => {
    if (status === 'down') {
      away.set(name, since);
      event(log, 'engine.away', { engine: name, message }, 'warn');
      return;
    }
    const began = away.get(name);
    if (began === undefined) return;
    away.delete(name);
    event(log, 'engine.back', { engine: name, seconds: Math.round((since - began) / 100) / 10 });
  });
  return {
    ...engines,
    report() {
      const entries = engines.all.map(({ state }) => {
        const { name, status, since, message, trips } = state;
        const report: EngineReport = {
          state: status,
          since: new Date(since).toISOString(),
          ...(message !== undefined && { message }),
          trips,
        };
        return [name, report] as const;
      });
      return Object.fromEntries(entries);
    },
    measure() {
      for (const { state } of engines.all) {
        const { name, status, trips } = state;
        metrics.engineUp.set(status === 'up' ? 1 : 0, name);
        metrics.engineTrips.add(trips - (measured.get(name) ?? 0), name);
        measured.set(name, trips);
      }
    },
  };
}
