/** Wires the limits: where budgets, and where rates and slots are counted, of this process. */

import { join } from 'node:path';
import type { Principal } from '../keys/principal.ts';
import { NewestMap } from '../lib/loop/newest-map.ts';
import type { KeyValue, Sql } from '../state/engines/engine.ts';
import type { GatewayMetrics } from '../telemetry/gateway-metrics.ts';
import { event, type Log } from '../telemetry/log.ts';
import { OwnBank } from './bank.ts';
import { cacheCounter } from './cache-counter.ts';
import { LEASE_MS } from './counters.ts';
import { DatabaseBank } from './database-bank.ts';
import { openGuard } from './guard.ts';
import { SYSTEM_CLOCK } from './limit-state.ts';
import type { Limits } from './limits.ts';
import { LimitsStore } from './limits-store.ts';
import { BudgetNotices, type Reached } from './notices.ts';
import { ProcessLimits } from './process-limits.ts';
import { budgetsReport, type OwnedBudget, usageReport } from './usage-report.ts';
import {
  FirstProcess,
  type LimitsChannel,
  limitsOfFirst,
  type WorkerLimits,
} from './worker-channel.ts';

/** Budgets of which it is known that a request was larger. */
const MAX_NEVER_FITS = 10_000;

export interface LimitsEngines {
  readonly cache: KeyValue | undefined;
  readonly database: Sql | undefined;
  /** The id of this process among the replicas. */
  readonly replica: string;
  /** How rates and slots limit requests while the cache is away. */
  readonly onError: 'local' | 'open' | 'closed';
}

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
  const { cache, database, replica, onError } = engines;
  const first = channel && limitsOfFirst(channel);
  const bank = database === undefined ? first?.bank : new DatabaseBank({ database });
  const ofCache = cache && {
    counter: cacheCounter({ cache, replica, leaseMs: LEASE_MS }),
    onError,
  };
  const counter = ofCache ?? (first && { counter: first.counter, onError: 'closed' as const });
  const isFirst = shared === undefined && channel === undefined;
  const store = isFirst
    ? new LimitsStore({
        path: join(home, 'state', 'limits.db'),
        clock: SYSTEM_CLOCK,
        onProblem: (message) => event(log, 'limits.store.problem', { message }, 'error'),
      })
    : undefined;
  const ownBank = new OwnBank(store);
  // A gateway inside another one has the limits of that one, engines included.
  const opened =
    shared === undefined
      ? new ProcessLimits({
          process: replica,
          bank: bank ?? ownBank,
          counter,
          store,
          onReached: (reached: Reached) => notices.reached(reached),
        })
      : undefined;
  const limits: Limits = opened ?? shared!;
  const ofWorkers = isFirst ? new FirstProcess(opened!, ownBank) : undefined;
  const neverFits = new NewestMap<string, number>(MAX_NEVER_FITS);
  const guarding = {
    limits,
    onNeverFits: (budget: string, nanoUsd: number) => void neverFits.set(budget, nanoUsd),
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
      if (ofWorkers === undefined) throw new Error('only the first process has workers');
      return ofWorkers.worker();
    },
    handOver: () => opened?.handOver(),
    async close() {
      await opened?.close();
      notices.close();
    },
  };
}

export type OpenLimits = ReturnType<typeof openLimits>;
