/** Configures the recovery of leaked calls for chat apps, exchanges with server tools, and all others. */

import type { Target } from '../conversation/target.ts';
import { type LeakReport, leakedCalls } from '../features/leaked-calls/index.ts';
import type { GatewayMetrics } from '../telemetry/gateway-metrics.ts';
import { event, type Log } from '../telemetry/log.ts';
import type { ExchangeSetup } from './exchange-setup.ts';

export function leakedCallsByUse(log: Log, metrics: GatewayMetrics) {
  const report =
    ({ logsAll }: { logsAll: boolean }) =>
    ({ family, outcome, target }: LeakReport) => {
      metrics.leakedCalls.add(1, family, outcome);
      if (outcome === 'recovered' && !logsAll) return;
      const fields = { family, outcome, provider: target.provider, model: target.model };
      event(log, 'leaked_call', fields, 'error');
    };
  const plain = leakedCalls(report({ logsAll: false }));
  const withTools = leakedCalls(report({ logsAll: false }), { everyBody: true });
  // A chat app shows text as it comes: each leak is an error there, even a recovered one.
  const reportChat = report({ logsAll: true });
  const chatApps = leakedCalls(reportChat, { everyAnswer: true });
  return {
    feature: ({ chat, registry }: ExchangeSetup) => {
      if (chat?.chat === true) return chatApps;
      const addsTools =
        registry.starting || registry.tools.some(({ inject }) => inject !== 'declared');
      return addsTools ? withTools : plain;
    },
    /** Markup of a leaked call was taken out of a reply. */
    onMarkup: (target: Target) => reportChat({ family: 'dsml', outcome: 'removed', target }),
  };
}
