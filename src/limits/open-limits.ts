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
import { ProcessLimits, type ProcessLimitsOptions } from './process-limits.ts';
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
  const options = {
    process: replica,
    ...(bank !== undefined && { bank }),
    counter,
    onReached: (reached: Reached) => notices.reached(reached),
  };
  const own =
    shared === undefined && channel === undefined
      ? new KeptLimits({
          ...options,
          path: join(home, 'state', 'limits.db'),
          onProblem: (message) => event(log, 'limits.store.problem', { message }, 'error'),
        })
      : undefined;
  // A gateway inside another one has the limits of that one, engines included.
  const opened = shared === undefined ? (own ?? new ProcessLimits(options)) : undefined;
  const limits: Limits = opened ?? shared!;
  const ofWorkers = own && new FirstProcess(own, own.bank);
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
    handOver: () => own?.handOver(),
    async close() {
      await opened?.close();
      notices.close();
    },
  };
}

export type OpenLimits = ReturnType<typeof openLimits>;

interface KeptLimitsOptions extends ProcessLimitsOptions {
  /** `state/limits.db` of the home folder: for what has no place elsewhere. */
  readonly path: string;
  readonly onProblem: (message: string) => void;
}

/** Turns between two looks at rates; those below the share are written only at the end. */
const RATES_TURNS = 5;
const RATES_SHARE = 0.25;
const CLEAN_TURNS = 60;
/** Turns for which a new process asks whether another one hands over to it. */
const HAND_OVER_TURNS = 60;
/** Milliseconds between two looks at what an old process still holds, while requests come. */
const LOOK_AT_OTHERS_MS = 50;
const RATES_AT_ONCE = 500;

export class KeptLimits extends ProcessLimits {
  readonly #store: LimitsStore;
  /** For budgets that are counted in the file. */
  readonly bank: OwnBank;
  readonly #keepsBudgets: boolean;
  readonly #keepsRates: boolean;
  #turns = 0;
  #isUsed = false;
  #handedOver = false;
  #closed = false;
  #hasOthers = false;
  #lookedAtOthers = Number.NEGATIVE_INFINITY;

  constructor({ path, onProblem, clock = SYSTEM_CLOCK, ...options }: KeptLimitsOptions) {
    const store = new LimitsStore({ path, clock, onProblem });
    const bank = new OwnBank(store);
    super({ bank, rate: (id) => store.rate(id), ...options, clock });
    this.#store = store;
    this.bank = bank;
    this.#keepsBudgets = options.bank === undefined;
    this.#keepsRates = options.counter === undefined;
  }

  /** A gateway without limits opens no file. */
  protected override wake(): void {
    super.wake();
    if (this.#closed || !this.#keepsRates) return;
    // A new process: streams of the old one must count from its first word on.
    if (!this.#isUsed) this.#followOthers();
    else if (this.#turns <= HAND_OVER_TURNS && !this.#handedOver) this.#lookAtOthers();
    this.#isUsed = true;
  }

  protected override turn(): void {
    super.turn();
    this.#turns++;
    this.bank.save();
    if (this.#keepsRates) {
      if (this.#handedOver) this.#saveSlots();
      else if (this.#hasOthers || this.#turns <= HAND_OVER_TURNS) this.#followOthers();
      if (this.#turns % RATES_TURNS === 0) this.#saveRates(this.#handedOver ? 0 : RATES_SHARE);
    }
    if (this.#turns % CLEAN_TURNS !== 1) return;
    this.bank.sweep(this.clock.wall());
    this.#store.clean();
  }

  /** Another process takes over: from now on it learns from the file what is still used here. */
  handOver(): void {
    if (this.#closed) return;
    this.#handedOver = true;
    if (this.isAwake) this.#writeAll();
  }

  override close(): void | Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const closed = super.close();
    if (this.isAwake) this.#writeAll();
    this.#store.close();
    return closed;
  }

  #writeAll(): void {
    if (this.#keepsBudgets) this.save(true);
    if (!this.#keepsRates) return;
    this.#saveRates(0);
    this.#saveSlots();
  }

  #saveRates(share: number): void {
    let slice: { id: string; debt: number }[] = [];
    for (const { limit, debt } of this.rates(share)) {
      slice.push({ id: limit.id, debt });
      if (slice.length < RATES_AT_ONCE) continue;
      this.#store.saveRates(slice);
      slice = [];
    }
    this.#store.saveRates(slice);
  }

  #saveSlots(): void {
    const held = [...this.slots()].map(({ limit, held }) => ({ id: limit.id, held }));
    this.#store.saveSlots(this.#closed ? [] : held);
  }

  #lookAtOthers(): void {
    if (this.clock.monotonic() - this.#lookedAtOthers >= LOOK_AT_OTHERS_MS) this.#followOthers();
  }

  #followOthers(): void {
    this.#lookedAtOthers = this.clock.monotonic();
    const others = this.#store.slotsOfOthers();
    if (others === undefined || (others.size === 0 && !this.#hasOthers)) return;
    this.#hasOthers = others.size > 0;
    this.setOthers(others);
  }
}
