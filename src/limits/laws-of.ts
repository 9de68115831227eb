/** The laws of a principal: its limits and budgets, in the order in which they are charged. */

import type { Budget, LimitName, Principal } from '../keys/principal.ts';
import type { Charge, Law, RateLaw, SlotsLaw, WindowLaw } from './limits.ts';

const MINUTE_MS = 60_000;
/** Answers of a budget at a time for which what they are likely to cost may be reserved instead of what they may. */
const MAX_PARTIAL = 4;

export interface BudgetLaw {
  readonly budget: Budget;
  readonly law: WindowLaw;
}

export interface PrincipalLaws {
  readonly requests: RateLaw | undefined;
  readonly tokens: RateLaw | undefined;
  /** Exchanges at a time. */
  readonly concurrent: SlotsLaw | undefined;
  readonly budgets: readonly BudgetLaw[];
  /** Answers at a time for which less is reserved than they may cost, of each budget. */
  readonly partial: readonly SlotsLaw[];
  /** Requests, exchanges at a time, tokens, budgets: what {@link openingCharges} charges, in this order. */
  readonly all: readonly Law[];
}

// A principal is replaced as a whole when keys change.
const known = new WeakMap<Principal, PrincipalLaws>();

export function lawsOf(principal: Principal): PrincipalLaws {
  let laws = known.get(principal);
  if (laws === undefined) {
    laws = computed(principal);
    known.set(principal, laws);
  }
  return laws;
}

function computed({ id, limits, budgets }: Principal): PrincipalLaws {
  const rate = (unit: 'requests' | 'tokens', amount: number | undefined): RateLaw | undefined =>
    amount === undefined
      ? undefined
      : { kind: 'rate', id: `${unit}:${id}`, unit, amount, periodMs: MINUTE_MS };
  const requests = rate('requests', limits.requestsPerMinute);
  const tokens = rate('tokens', limits.tokensPerMinute);
  const slots = limits.concurrent;
  const concurrent: SlotsLaw | undefined =
    slots === undefined
      ? undefined
      : // The id is stored, in the file of limits and in the cache.
        { kind: 'slots', id: `streams:${id}`, unit: 'exchanges', amount: slots };
  const money = budgets.map((budget) => ({ budget, law: budgetLaw(budget) }));
  const rates: readonly (Law | undefined)[] = [requests, concurrent, tokens];
  const all = [...rates.filter((law) => law !== undefined), ...money.map(({ law }) => law)];
  const partial = budgets
    .filter(({ over }) => over.action === 'refuse')
    .map((budget): SlotsLaw => {
      const id = `partial:${budget.id}`;
      return { kind: 'slots', id, unit: 'exchanges', amount: MAX_PARTIAL, name: budget.name };
    });
  return { requests, tokens, concurrent, budgets: money, partial, all };
}

/** The name of a limit in the configuration. */
export function limitNameOf(law: RateLaw | SlotsLaw): LimitName {
  if (law.kind === 'slots') return 'concurrent';
  return law.unit === 'requests' ? 'requests_per_minute' : 'tokens_per_minute';
}

// A shared budget is the same object for all of its keys.
const laws = new WeakMap<Budget, WindowLaw>();

export function budgetLaw(budget: Budget): WindowLaw {
  let law = laws.get(budget);
  if (law === undefined) {
    const { id, name, nanoUsd, per, timeZone, warn, webhook } = budget;
    const marks = warn.map((share) => Math.ceil(share * nanoUsd)).filter((mark) => mark < nanoUsd);
    law = {
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
    laws.set(budget, law);
  }
  return law;
}

/** A budget that only warns, or (rerouted) has sent the exchange to its route, counts and never refuses. */
const isSoft = ({ over }: Budget, rerouted: boolean): boolean =>
  over.action === 'warn' || (over.action === 'route' && rerouted);

/**
 * Before the exchange: one request, one exchange at a time, and whether any token and any money is left.
 * @param costs false: it costs nothing, so tokens and money count and never refuse
 */
export function openingCharges(
  laws: PrincipalLaws,
  rerouted: boolean,
  costs = true,
): readonly Charge[] {
  const charges: Charge[] = [];
  if (laws.requests !== undefined) charges.push({ law: laws.requests, amount: 1 });
  if (laws.concurrent !== undefined) charges.push({ law: laws.concurrent, amount: 1 });
  if (laws.tokens !== undefined) charges.push({ law: laws.tokens, amount: 0, soft: !costs });
  for (const { budget, law } of laws.budgets) {
    charges.push({ law, amount: 0, soft: !costs || isSoft(budget, rerouted) });
  }
  return charges;
}

/**
 * Before a try: its tokens and its money. A budget with a route does not refuse here: it decides before the
 * exchange, since a request is not taken from one route to another on its way.
 */
export function tryCharges(
  laws: PrincipalLaws,
  tokens: number,
  nanoUsd: number,
  tentative = false,
): readonly Charge[] {
  const charges: Charge[] = [];
  if (laws.tokens !== undefined) charges.push({ law: laws.tokens, amount: tokens });
  for (const { budget, law } of laws.budgets) {
    charges.push({ law, amount: nanoUsd, soft: isSoft(budget, true), tentative });
  }
  return charges;
}

/**
 * For a try that is owed already: nothing is reserved, and what it was counts when it is settled.
 * @param countedAt when it was counted by estimate, in milliseconds since 1970
 */
export function owedCharges(laws: PrincipalLaws, countedAt?: number): readonly Charge[] {
  const all = [laws.tokens, ...laws.budgets.map(({ law }) => law)];
  return all.flatMap((law) =>
    law === undefined ? [] : [{ law, amount: 0, soft: true, countedAt }],
  );
}
