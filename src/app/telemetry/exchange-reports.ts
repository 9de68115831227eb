/** Reports exchanges that ended or were turned away, tries that got no answer, requests to unknown paths, and the states of targets. */

import { targetName } from '../../conversation/target.ts';
import type { GatewayOptions } from '../../gateway/gateway.ts';
import type { ClientAddresses } from '../../lib/http/client-address.ts';
import { Throttle } from '../../lib/loop/throttle.ts';
import { atTickEnd } from '../../lib/loop/tick-end.ts';
import type { Connections } from '../../server/connections.ts';
import type { UnknownPath } from '../../server/errors.ts';
import { type ReceiveSettings, rested } from '../../server/receive.ts';
import { shortAgent } from '../../telemetry/client-name.ts';
import { countExchange, logExchange } from '../../telemetry/exchange.ts';
import type { GatewayMetrics } from '../../telemetry/gateway-metrics.ts';
import { event, type Log } from '../../telemetry/log.ts';
import { type HealthSnapshot, STATE_VALUES } from '../../upstream/health/snapshot.ts';
import { refusedKeys } from '../../upstream/refused-keys.ts';
import { EndedExchange, type ReportExchange, refusedRecord } from '../exchange-log.ts';
import type { Telemetry } from './index.ts';

export interface ExchangeReportsOptions {
  readonly log: Log;
  readonly metrics: GatewayMetrics;
  readonly telemetry: Telemetry;
  readonly connections: Connections;
  readonly addresses: ClientAddresses;
}

export function exchangeReports(options: ExchangeReportsOptions) {
  const { log, metrics, telemetry, connections, addresses } = options;
  const report: ReportExchange = (record, summary) => {
    countExchange(metrics, record);
    logExchange(log, record);
    if (summary !== undefined) telemetry.ended(record, summary);
  };
  const ofGateway: Required<
    Pick<GatewayOptions, 'onRetry' | 'onHedge' | 'onKeyRefused' | 'onEnd'>
  > = {
    onRetry: ({ target, error }) => {
      metrics.retries.add(1, target?.provider ?? '', error.kind);
      const tooLarge = error.kind === 'context_overflow' || error.kind === 'too_large';
      if (tooLarge && target !== undefined) {
        event(log, 'upstream.passed', { target: targetName(target), reason: error.kind });
      }
    },
    onHedge: (provider) => metrics.retries.add(1, provider, 'slow'),
    onKeyRefused: refusedKeys((provider, key, status) =>
      event(log, 'upstream.key_refused', { provider, key, status }, 'warn'),
    ),
    onEnd: (summary) => {
      rested(connections, summary.exchange);
      atTickEnd(new EndedExchange(summary, report, telemetry.vendorOf));
    },
  };
  const refused: ReceiveSettings['onRefused'] = (request, codec, id, error, who, ms) => {
    const record = refusedRecord(request, codec, id, error, who, addresses.of(request), ms);
    atTickEnd(new EndedExchange(record, report, telemetry.vendorOf));
  };
  return { ofGateway, refused };
}

/** @returns a function that is called before each rendering of the metrics */
export function targetStates(gauge: { set(value: number, target: string): void }) {
  let shown: ReadonlySet<string> = new Set();
  return (targets: HealthSnapshot['targets']): void => {
    // A target that a reload took away must not stay so for ever.
    for (const target of shown) gauge.set(STATE_VALUES.serving, target);
    for (const { target, state } of targets) gauge.set(STATE_VALUES[state], target);
    shown = new Set(targets.map(({ target }) => target));
  };
}

/** At most one line a minute for each path, and 20 in all: a scanner fills no log. */
export function logUnknownPaths(log: Log, addressOf: (request: Request) => string | undefined) {
  const throttle = new Throttle({ everyMs: 60_000, most: 20 });
  return (request: Request, { method, path, use }: UnknownPath): void => {
    // Browsers and crawlers ask for icons and the like by themselves.
    if (use === undefined && (method === 'GET' || method === 'HEAD')) return;
    if (!throttle.allows(`${method} ${path}`)) return;
    const client = shortAgent(request.headers.get('user-agent') ?? undefined);
    const address = addressOf(request);
    event(log, 'path.unknown', { method, path, use, client, address }, 'warn');
  };
}
