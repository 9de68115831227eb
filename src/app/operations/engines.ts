/** The shared engines of a process, and what is reported about them: log lines, metrics, and `GET /health/engines`. */

import type { Config } from '../../config/config.ts';
import { openEngines } from '../../state/engines/open-engines.ts';
import type { GatewayMetrics } from '../../telemetry/gateway-metrics.ts';
import { event, type Log } from '../../telemetry/log.ts';

export function engineServices(
  { engines: config }: Config,
  { log, metrics }: { readonly log: Log; readonly metrics: GatewayMetrics },
) {
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
    /** By name, those that are configured, as `GET /health/engines` has them. */
    report: () =>
      Object.fromEntries(
        engines.all.map(({ state: { name, status, since, message, trips } }) => [
          name,
          {
            state: status,
            since: new Date(since).toISOString(),
            ...(message !== undefined && { message }),
            trips,
          },
        ]),
      ),
    /** Puts the numbers of now into the metrics. */
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
