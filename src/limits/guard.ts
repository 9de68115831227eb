/** One exchange under the limits of its key: admitted once, each try reserved and settled, its headers, its end. */

import type { Principal } from '../keys/principal.ts';
import type { FlatHeaders } from '../lib/http/headers.ts';
import { addLimitHeaders } from './headers.ts';
import {
  type KeyLimits,
  keyLimitsOf,
  openingCharges,
  owedCharges,
  tryCharges,
} from './key-limits.ts';
import type { Admission, Charge, Limits, LimitUsage, Refusal, Ticket } from './limits.ts';
import { limitName, refusalError } from './refusals.ts';

export interface GuardOptions {
  readonly limits: Limits;
  /** A limit or a budget refused: for metrics. `limit`: as in the configuration, or the budget's name. */
  readonly onRefused: (principal: Principal, limit: string) => void;
  /** A budget refused a cost that is more than all of it, in nano-USD. */
  readonly onNeverFits?: (budget: string, nanoUsd: number) => void;
}

const SCARCE_SHARE = 0.1;

/** Expected or real use of a try. `nanoUsd` undefined: no price is known. */
export interface Amounts {
  readonly tokens: number;
  readonly nanoUsd: number | undefined;
  /** The greatest possible cost; by default `nanoUsd`. */
  readonly mostNanoUsd?: number | undefined;
  /** Answers that it asks for at once; left out: one. */
  readonly choices?: number | undefined;
  /** It is owed already: it counts, and is never refused. */
  readonly owed?: boolean;
  /** It corrects a count of this time, so it may be settled with less than 0. */
  readonly countedAt?: number | undefined;
}

/**
 * Admits an exchange. Undefined: nothing limits this principal.
 * @param costs false: no vendor is paid for it, so only the rate of requests and the slots can refuse it
 * @throws GatewayError if a limit or a budget refuses it (also as a rejection)
 */
export function openGuard(
  options: GuardOptions,
  principal: Principal,
  costs = true,
): LimitGuard | undefined | Promise<LimitGuard> {
  const keyLimits = keyLimitsOf(principal);
  if (keyLimits.all.length === 0) return undefined;
  const { limits } = options;
  const admission = limits.admit(openingCharges(keyLimits, false, costs));
  const decide = (found: Admission): LimitGuard | Promise<LimitGuard> => {
    if (found.admitted) return new LimitGuard(options, principal, keyLimits, found, undefined);
    const route = routeFor(keyLimits, found);
    if (route === undefined) throw refuse(options, principal, keyLimits, found);
    const again = limits.admit(openingCharges(keyLimits, true));
    const rerouted = (second: Admission) => {
      if (!second.admitted) throw refuse(options, principal, keyLimits, second);
      return new LimitGuard(options, principal, keyLimits, second, route);
    };
    return again instanceof Promise ? again.then(rerouted) : rerouted(again);
  };
  return admission instanceof Promise ? admission.then(decide) : decide(admission);
}

/** The route of the first budget that refuses, if all that refuse name one. */
function routeFor(keyLimits: KeyLimits, { refusedBy }: Refusal): string | undefined {
  const routes = refusedBy.map((limit) => {
    const over = keyLimits.budgets.find((one) => one.limit.id === limit.id)?.budget.over;
    return over?.action === 'route' ? over.route : undefined;
  });
  return routes.includes(undefined) ? undefined : routes[0];
}

function refuse(
  { onRefused, onNeverFits }: GuardOptions,
  principal: Principal,
  keyLimits: KeyLimits,
  refusal: Refusal,
) {
  onRefused(principal, limitName(keyLimits, refusal));
  const { limit, asked } = refusal;
  if (limit.kind === 'window' && asked > limit.amount) onNeverFits?.(limit.id, asked);
  return refusalError(keyLimits, refusal);
}

export class LimitGuard {
  /** A budget is used up, and sends the exchange to this route. */
  readonly route: string | undefined;
  readonly #options: GuardOptions;
  readonly #principal: Principal;
  readonly #keyLimits: KeyLimits;
  readonly #opening: Ticket;
  /** The latest try, admitted or refused, and how many of its limits the exchange has, too. */
  #latest: { readonly admission: Admission; readonly charged: number } | undefined;
  /** A try was admitted. */
  #tried = false;
  #givenBack = false;

  constructor(
    options: GuardOptions,
    principal: Principal,
    keyLimits: KeyLimits,
    opening: Ticket,
    route: string | undefined,
  ) {
    this.#options = options;
    this.#principal = principal;
    this.#keyLimits = keyLimits;
    this.#opening = opening;
    this.route = route;
  }

  /**
   * Reserves the tokens and the money of a try. Undefined: neither is limited.
   * @throws GatewayError if a limit or a budget refuses it (also as a rejection)
   */
  reserve(expected: Amounts): LimitHold | undefined | Promise<LimitHold> {
    const keyLimits = this.#keyLimits;
    if (keyLimits.tokens === undefined && keyLimits.budgets.length === 0) return undefined;
    const { limits } = this.#options;
    const {
      tokens,
      nanoUsd: likely = 0,
      mostNanoUsd: most = likely,
      owed = false,
      countedAt,
    } = expected;
    const choices = Math.max(1, Math.ceil(expected.choices ?? 1));
    const charges = owed
      ? owedCharges(keyLimits, countedAt)
      : tryCharges(keyLimits, tokens, Math.max(likely, most), likely < most);
    const admission = limits.admit(charges);
    const decide = (found: Admission): LimitHold => {
      if (found.admitted) {
        this.#tried = true;
        this.#latest = { admission: found, charged: charges.length };
        return new LimitHold(found, keyLimits);
      }
      const { limit } = found;
      if (limit.kind !== 'slots') this.#latest = { admission: found, charged: charges.length };
      // Nothing was done for the exchange: it takes nothing from the rate of requests either.
      if (!this.#tried) this.#giveBack();
      throw refuse(this.#options, this.#principal, keyLimits, found);
    };
    const decideOrTryLikely = (found: Admission): LimitHold | Promise<LimitHold> => {
      if (found.admitted || found.limit.kind !== 'window' || likely >= most) return decide(found);
      // Each answer may be as long as the request allows. Too many of them never run on a likely cost.
      if (keyLimits.partial.some(({ amount }) => choices > amount)) return decide(found);
      const slots = keyLimits.partial.map((limit): Charge => ({ limit, amount: choices }));
      const second = limits.admit([...tryCharges(keyLimits, tokens, likely), ...slots]);
      return second instanceof Promise ? second.then(decide) : decide(second);
    };
    return admission instanceof Promise
      ? admission.then(decideOrTryLikely)
      : decideOrTryLikely(admission);
  }

  /** Tokens or money are limited: what a vendor reports counts. */
  get needsUsage(): boolean {
    return this.#keyLimits.tokens !== undefined || this.#keyLimits.budgets.length > 0;
  }

  #giveBack(): void {
    if (this.#givenBack) return;
    this.#givenBack = true;
    this.#opening.abandon();
  }

  /** Less than a tenth of a budget that does not only warn is left. */
  get scarce(): boolean {
    const budgets = this.#keyLimits.budgets.filter(({ budget }) => budget.over.action !== 'warn');
    if (budgets.length === 0) return false;
    const left = new Map(this.usages().map(({ limit, remaining }) => [limit.id, remaining]));
    return budgets.some(
      ({ limit }) => (left.get(limit.id) ?? limit.amount) < limit.amount * SCARCE_SHARE,
    );
  }

  /** Usage of each limit, as of the latest admission. */
  usages(): readonly LimitUsage[] {
    if (this.#latest === undefined) return this.#opening.usages();
    // A try is charged for tokens and budgets, which are the last limits of the opening.
    const { admission, charged } = this.#latest;
    const latest = admission.usages().slice(0, charged);
    return this.#opening.usages(this.#keyLimits.all.length - charged).concat(latest);
  }

  addHeaders(headers: FlatHeaders): void {
    addLimitHeaders(headers, this.usages());
  }

  /** The exchange is over: another one may take its place. Later calls do nothing. */
  end(): void {
    const { requests, concurrent, all } = this.#keyLimits;
    this.#opening.settle(all.map((limit) => (limit === requests || limit === concurrent ? 1 : 0)));
  }
}

/** The reservation of one try. */
export class LimitHold {
  readonly #ticket: Ticket;
  readonly #keyLimits: KeyLimits;

  constructor(ticket: Ticket, keyLimits: KeyLimits) {
    this.#ticket = ticket;
    this.#keyLimits = keyLimits;
  }

  /** Once; later calls do nothing. What has no price costs nothing here. */
  settle({ tokens, nanoUsd = 0 }: Amounts): void {
    const used = this.#keyLimits.tokens === undefined ? [] : [tokens];
    for (const _ of this.#keyLimits.budgets) used.push(nanoUsd);
    this.#ticket.settle(used);
  }
}
