/** Reports exchanges that ended or were turned away, and tries that got no answer: to the log, the metrics and traces. */

import { targetName } from '../../conversation/target.ts';
import type { GatewayOptions } from '../../gateway/gateway.ts';
import type { ClientAddresses } from '../../lib/http/client-address.ts';
import { atTickEnd } from '../../lib/loop/tick-end.ts';
import type { Connections } from '../../server/connections.ts';
import { type ReceiveSettings, rested } from '../../server/receive.ts';
import { countExchange, logExchange } from '../../telemetry/exchange.ts';
import type { GatewayMetrics } from '../../telemetry/gateway-metrics.ts';
import { event, type Log } from '../../telemetry/log.ts';
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
