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
  /** Units of each of {@link all} that an exchange has used when it is over. */
  readonly used: readonly number[];
}

/** Without what is computed of it. */
type Charged = Omit<KeyLimits, 'opening' | 'used'>;

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
  const charged: Charged = { requests, tokens, concurrent, budgets: money, partial, all };
  const used = all.map((limit) => (limit === requests || limit === concurrent ? 1 : 0));
  return { ...charged, opening: openingCharges(charged, false), used };
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
 * @param costs false: it costs nothing, so tokens and money count and never refuse
 */
export function openingCharges(
  keyLimits: Charged,
  rerouted: boolean,
  costs = true,
): readonly Charge[] {
  const charges: Charge[] = [];
  if (keyLimits.requests !== undefined) charges.push({ limit: keyLimits.requests, amount: 1 });
  if (keyLimits.concurrent !== undefined) charges.push({ limit: keyLimits.concurrent, amount: 1 });
  if (keyLimits.tokens !== undefined)
    charges.push({ limit: keyLimits.tokens, amount: 0, soft: !costs });
  for (const { budget, limit } of keyLimits.budgets) {
    charges.push({ limit, amount: 0, soft: !costs || isSoft(budget, rerouted) });
  }
  return charges;
}

/**
 * Before a try: its tokens and its money. A budget with a route does not refuse here: it decides before the
 * exchange, since a request is not taken from one route to another on its way.
 */
export function tryCharges(
  keyLimits: KeyLimits,
  tokens: number,
  nanoUsd: number,
  tentative = false,
): readonly Charge[] {
  const charges: Charge[] = [];
  if (keyLimits.tokens !== undefined) charges.push({ limit: keyLimits.tokens, amount: tokens });
  for (const { budget, limit } of keyLimits.budgets) {
    charges.push({ limit, amount: nanoUsd, soft: isSoft(budget, true), tentative });
  }
  return charges;
}

/**
 * For a try that is owed already: it reserves nothing, and counts when it is settled.
 * @param countedAt when it was counted by estimate, in milliseconds since 1970
 */
export function owedCharges(keyLimits: KeyLimits, countedAt?: number): readonly Charge[] {
  const all = [keyLimits.tokens, ...keyLimits.budgets.map(({ limit }) => limit)];
  return all.flatMap((limit) =>
    limit === undefined ? [] : [{ limit, amount: 0, soft: true, countedAt }],
  );
}
