/** Wires the limits: the engine with its file in the first process, a channel to it in a worker, shared engines. */

import { join } from 'node:path';
import type { Principal } from '../keys/principal.ts';
import type { GatewayMetrics } from '../telemetry/gateway-metrics.ts';
import { event, type Log } from '../telemetry/log.ts';
import { openGuard } from './guard.ts';
import { KeptLimits } from './kept-limits.ts';
import type { Limits } from './limits.ts';
import { BudgetNotices } from './notices.ts';
import { type LimitsEngines, openShared } from './shared/open-shared.ts';
import { budgetsReport, type OwnedBudget, usageReport } from './usage-report.ts';
import { type LimitsChannel, RemoteLimits, WorkerLimits } from './worker-channel.ts';

/** Budgets of which it is known that a request was larger. */
const MAX_NEVER_FITS = 10_000;

export interface OpenLimitsOptions {
  /** The folder of the state. */
  readonly home: string;
  readonly log: Log;
  readonly metrics: GatewayMetrics;
  /** In a worker: the first process. */
  readonly channel: LimitsChannel | undefined;
  /** In a gateway inside another one: the limits of that one. */
  readonly shared: Limits | undefined;
  readonly engines: LimitsEngines;
}

export function openLimits({ home, log, metrics, channel, shared, engines }: OpenLimitsOptions) {
  const notices = new BudgetNotices({ log, fetch: (url, init) => fetch(url, init) });
  const own =
    channel === undefined && shared === undefined
      ? new KeptLimits({
          path: join(home, 'state', 'limits.db'),
          onProblem: (message) => event(log, 'limits.store.problem', { message }, 'error'),
          onReached: (reached) => notices.reached(reached),
        })
      : undefined;
  // A gateway inside another one has the limits of that one, engines included.
  const together =
    shared === undefined
      ? openShared(engines, own ?? new RemoteLimits(channel!), (reached) =>
          notices.reached(reached),
        )
      : undefined;
  const limits: Limits = together?.limits ?? shared!;
  const neverFits = new Map<string, number>();
  const guarding = {
    limits,
    onNeverFits(budget: string, nanoUsd: number) {
      neverFits.delete(budget);
      neverFits.set(budget, nanoUsd);
      if (neverFits.size > MAX_NEVER_FITS) neverFits.delete(neverFits.keys().next().value!);
    },
    onRefused: ({ id, name }: Principal, limit: string) =>
      metrics.limitRefusals.add(1, id, name, limit),
  };
  return {
    limits,
    /** As {@link openGuard}: what an exchange of this principal may use. */
    guard: (principal: Principal, costs?: boolean) => openGuard(guarding, principal, costs),
    usage: (principal: Principal) => usageReport(limits, principal, neverFits),
    budgets: (owned: Iterable<OwnedBudget>, limit: number) =>
      budgetsReport(limits, owned, limit, neverFits),
    workerLimits(): WorkerLimits {
      if (own === undefined) throw new Error('only the first process has workers');
      return new WorkerLimits(own);
    },
    handOver: () => own?.handOver(),
    async close() {
      await together?.close();
      notices.close();
      own?.close();
    },
  };
}

export type OpenLimits = ReturnType<typeof openLimits>;
