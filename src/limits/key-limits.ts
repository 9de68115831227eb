/** The limits of a principal: rates, exchanges at a time and budgets, in the order in which they are charged. */

import type { Budget, LimitName, Principal } from '../keys/principal.ts';
import type { Charge, Limit, RateLimit, SlotsLimit, WindowLimit } from './limits.ts';

const MINUTE_MS = 60_000;
/** Answers at a time for which a budget reserves the likely cost instead of the greatest one. */
const MAX_PARTIAL = 4;

export interface BudgetLimit {
  readonly budget: Budget;
  readonly limit: WindowLimit;
}

export interface KeyLimits {
  readonly requests: RateLimit | undefined;
  readonly tokens: RateLimit | undefined;
  /** Exchanges at a time. */
  readonly concurrent: SlotsLimit | undefined;
  readonly budgets: readonly BudgetLimit[];
  /** For each budget that refuses: answers at a time for which only the likely cost is reserved. */
  readonly partial: readonly SlotsLimit[];
  /** Requests, exchanges at a time, tokens, budgets: what {@link openingCharges} charges, in this order. */
  readonly all: readonly Limit[];
  /** {@link openingCharges} of an exchange that costs and keeps its route. */
  readonly opening: readonly Charge[];
  /**
   * Tokens and money of a try, whose {@link tryAmounts} it takes. A budget with a route does not refuse here: it decides
   * before the exchange, since a request is not taken from one route to another on its way.
   */
  readonly ofTry: readonly Charge[];
  /** The same for one that may cost more than is reserved. */
  readonly ofLikelyTry: readonly Charge[];
}

/** Without what is computed of it. */
type Charged = Pick<KeyLimits, 'requests' | 'tokens' | 'concurrent' | 'budgets'>;

// A principal is replaced as a whole when keys change.
const known = new WeakMap<Principal, KeyLimits>();

export function keyLimitsOf(principal: Principal): KeyLimits {
  let keyLimits = known.get(principal);
  if (keyLimits === undefined) {
    keyLimits = computed(principal);
    known.set(principal, keyLimits);
  }
  return keyLimits;
}

function computed({ id, limits, budgets }: Principal): KeyLimits {
  const rate = (unit: 'requests' | 'tokens', amount: number | undefined): RateLimit | undefined =>
    amount === undefined
      ? undefined
      : { kind: 'rate', id: `${unit}:${id}`, unit, amount, periodMs: MINUTE_MS };
  const requests = rate('requests', limits.requestsPerMinute);
  const tokens = rate('tokens', limits.tokensPerMinute);
  const slots = limits.concurrent;
  const concurrent: SlotsLimit | undefined =
    slots === undefined
      ? undefined
      : // The id is stored, in the file of limits and in the cache.
        { kind: 'slots', id: `streams:${id}`, unit: 'exchanges', amount: slots };
  const money = budgets.map((budget) => ({ budget, limit: budgetLimit(budget) }));
  const rates: readonly (Limit | undefined)[] = [requests, concurrent, tokens];
  const all = [...rates.filter((limit) => limit !== undefined), ...money.map(({ limit }) => limit)];
  const partial = budgets
    .filter(({ over }) => over.action === 'refuse')
    .map((budget): SlotsLimit => {
      const id = `partial:${budget.id}`;
      return { kind: 'slots', id, unit: 'exchanges', amount: MAX_PARTIAL, name: budget.name };
    });
  const charged: Charged = { requests, tokens, concurrent, budgets: money };
  const ofTry: Charge[] = money.map(({ budget, limit }) => ({
    limit,
    amount: 0,
    soft: isSoft(budget, true),
  }));
  if (tokens !== undefined) ofTry.unshift({ limit: tokens, amount: 0 });
  const ofLikelyTry = [...ofTry, ...partial.map((limit) => ({ limit, amount: 1 }))];
  return { ...charged, partial, all, opening: openingCharges(charged, false), ofTry, ofLikelyTry };
}

/** Of {@link KeyLimits.ofTry}: what it reserves, or has used. */
export function tryAmounts(
  { tokens: limit, budgets }: KeyLimits,
  tokens: number,
  nanoUsd: number,
): number[] {
  const amounts = limit === undefined ? [] : [tokens];
  for (let i = 0; i < budgets.length; i++) amounts.push(nanoUsd);
  return amounts;
}

/** The name of a limit in the configuration. */
export function limitNameOf(limit: RateLimit | SlotsLimit): LimitName {
  if (limit.kind === 'slots') return 'concurrent';
  return limit.unit === 'requests' ? 'requests_per_minute' : 'tokens_per_minute';
}

// A shared budget is the same object for all of its keys.
const windows = new WeakMap<Budget, WindowLimit>();

export function budgetLimit(budget: Budget): WindowLimit {
  let limit = windows.get(budget);
  if (limit === undefined) {
    const { id, name, nanoUsd, per, timeZone, warn, webhook } = budget;
    const marks = warn.map((share) => Math.ceil(share * nanoUsd)).filter((mark) => mark < nanoUsd);
    limit = {
      kind: 'window',
      id,
      unit: 'nano_usd',
      amount: nanoUsd,
      per,
      timeZone,
      marks,
      name,
      ...(webhook !== undefined && { webhook }),
    };
    windows.set(budget, limit);
  }
  return limit;
}

/** A budget that only warns, or (rerouted) has sent the exchange to its route, counts and never refuses. */
const isSoft = ({ over }: Budget, rerouted: boolean): boolean =>
  over.action === 'warn' || (over.action === 'route' && rerouted);

/**
 * Before the exchange: one request, one exchange at a time, and whether any token and any money is left.
 * @param costs false: it costs nothing, so tokens and money never refuse
 */
export function openingCharges(
  { requests, concurrent, tokens, budgets }: Charged,
  rerouted: boolean,
  costs = true,
): readonly Charge[] {
  const charges: Charge[] = [];
  if (requests !== undefined) charges.push({ limit: requests, amount: 1 });
  if (concurrent !== undefined) charges.push({ limit: concurrent, amount: 1 });
  const checks = { amount: 0, checks: true } as const;
  if (tokens !== undefined) charges.push({ limit: tokens, ...checks, soft: !costs });
  for (const { budget, limit } of budgets)
    charges.push({ limit, ...checks, soft: !costs || isSoft(budget, rerouted) });
  return charges;
}

/**
 * For a try that is owed already: it reserves nothing, and counts when it is settled.
 * @param countedAt when it was counted by estimate, in milliseconds since 1970
 */
export const owedCharges = ({ ofTry }: KeyLimits, countedAt?: number): readonly Charge[] =>
  ofTry.map(({ limit }) => ({ limit, amount: 0, soft: true, countedAt }));
