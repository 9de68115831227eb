/** One exchange under the limits of its key: admitted once, each try reserved and settled, its headers, its end. */

import { GatewayError } from '../conversation/errors.ts';
import type { Principal } from '../keys/principal.ts';
import { FlatHeaders } from '../lib/http/headers.ts';
import { cutText } from '../lib/text/printable-text.ts';
import { usdText } from '../lib/text/usd.ts';
import {
  type KeyLimits,
  keyLimitsOf,
  limitNameOf,
  openingCharges,
  owedCharges,
  tryAmounts,
} from './key-limits.ts';
import { after } from './limit-state.ts';
import type { Admission, Limits, LimitUsage, Refusal, Ticket, TryAmounts } from './limits.ts';

export interface GuardOptions {
  readonly limits: Limits;
  /** A limit or a budget refused: for metrics. `limit`: as in the configuration, or the budget's name. */
  readonly onRefused: (principal: Principal, limit: string) => void;
  /** A budget refused a cost that is more than all of it, in nano-USD. */
  readonly onNeverFits?: (budget: string, nanoUsd: number) => void;
}

const SCARCE_SHARE = 0.1;

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
  return keyLimits.all.length === 0 ? undefined : admit(options, principal, keyLimits, costs);
}

function admit(
  options: GuardOptions,
  principal: Principal,
  keyLimits: KeyLimits,
  costs: boolean,
): LimitGuard | Promise<LimitGuard> {
  const charges = costs ? keyLimits.opening : openingCharges(keyLimits, false, false);
  const admission = options.limits.admit(charges);
  if (!(admission instanceof Promise) && admission.admitted) {
    return new LimitGuard(options, principal, keyLimits, admission, undefined);
  }
  return decideLater(options, principal, keyLimits, admission);
}

/** Another process was asked, or a limit refuses: a budget may send the exchange to its route. */
function decideLater(
  options: GuardOptions,
  principal: Principal,
  keyLimits: KeyLimits,
  admission: Admission | Promise<Admission>,
): LimitGuard | Promise<LimitGuard> {
  return after(admission, (found) => {
    if (found.admitted) return new LimitGuard(options, principal, keyLimits, found, undefined);
    const route = routeFor(keyLimits, found);
    if (route === undefined) throw refuse(options, principal, keyLimits, found);
    return after(options.limits.admit(openingCharges(keyLimits, true)), (second) => {
      if (!second.admitted) throw refuse(options, principal, keyLimits, second);
      return new LimitGuard(options, principal, keyLimits, second, route);
    });
  });
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
  /** The latest try was refused. */
  #refusal: Refusal | undefined;
  /** A try was admitted. */
  #tried = false;

  constructor(
    private readonly options: GuardOptions,
    private readonly principal: Principal,
    private readonly keyLimits: KeyLimits,
    private readonly opening: Ticket,
    /** A budget is used up, and sends the exchange to this route. */
    readonly route: string | undefined,
  ) {}

  /**
   * Reserves the tokens and the money of a try. Undefined: neither is limited.
   * @throws GatewayError if a limit or a budget refuses it (also as a rejection)
   */
  reserve(expected: TryAmounts): LimitHold | undefined | Promise<LimitHold> {
    if (!this.needsUsage) return undefined;
    const { options, keyLimits } = this;
    const { tokens, nanoUsd: likely = 0, owed = false, countedAt } = expected;
    const most = Math.max(likely, expected.mostNanoUsd ?? likely);
    const admission = owed
      ? options.limits.admit(owedCharges(keyLimits, countedAt))
      : options.limits.admit(keyLimits.ofTry, tryAmounts(keyLimits, tokens, most), likely < most);
    return !(admission instanceof Promise) && admission.admitted
      ? this.#admitted(admission)
      : this.#decideLater(admission, expected);
  }

  /** Another process was asked, or a limit refuses: then the likely cost may fit. */
  #decideLater(
    admission: Admission | Promise<Admission>,
    { tokens, nanoUsd: likely = 0, mostNanoUsd: most = likely, choices: asked = 1 }: TryAmounts,
  ): LimitHold | Promise<LimitHold> {
    const { keyLimits } = this;
    const { partial, ofLikelyTry } = keyLimits;
    const choices = Math.max(1, Math.ceil(asked));
    const decide = (found: Admission) => this.#decide(found);
    return after(admission, (found) => {
      if (found.admitted || found.limit.kind !== 'window' || likely >= most) return decide(found);
      // Each answer may be as long as the request allows. Too many of them never run on a likely cost.
      if (partial.some(({ amount }) => choices > amount)) return decide(found);
      const amounts = [...tryAmounts(keyLimits, tokens, likely), ...partial.map(() => choices)];
      return after(this.options.limits.admit(ofLikelyTry, amounts), decide);
    });
  }

  #decide(found: Admission): LimitHold {
    if (found.admitted) return this.#admitted(found);
    if (found.limit.kind !== 'slots') this.#refusal = found;
    // Nothing was done for the exchange: it takes nothing from the rate of requests either.
    if (!this.#tried) this.opening.abandon();
    throw refuse(this.options, this.principal, this.keyLimits, found);
  }

  #admitted(admission: Ticket): LimitHold {
    this.#tried = true;
    this.#refusal = undefined;
    return new LimitHold(admission, this.keyLimits);
  }

  /** Tokens or money are limited: what a vendor reports counts. */
  get needsUsage(): boolean {
    return this.keyLimits.ofTry.length > 0;
  }

  /** Less than a tenth of a budget that does not only warn is left. */
  get scarce(): boolean {
    const { budgets } = this.keyLimits;
    if (budgets.length === 0) return false;
    const usages = this.opening.usages().slice(-budgets.length);
    return budgets.some(
      ({ budget, limit }, i) =>
        budget.over.action !== 'warn' && usages[i]!.remaining < limit.amount * SCARCE_SHARE,
    );
  }

  /** Usage as of now; of what refused the latest try, as of then. */
  addHeaders(headers: FlatHeaders): void {
    addLimitHeaders(headers, this.opening.told());
    if (this.#refusal !== undefined) addLimitHeaders(headers, this.#refusal.usages());
  }

  /** The exchange is over: another one may take its place. Later calls do nothing. */
  end(): void {
    this.opening.settle();
  }
}

/** The reservation of one try. */
class LimitHold {
  constructor(
    private readonly ticket: Ticket,
    private readonly keyLimits: KeyLimits,
  ) {}

  /** Once; later calls do nothing. What has no price costs nothing here. */
  settle({ tokens, nanoUsd = 0 }: TryAmounts): void {
    this.ticket.settle(tryAmounts(this.keyLimits, tokens, nanoUsd));
  }
}

/** The name of a limit for messages and metrics: as in the configuration, or the name of the budget. */
function limitName(keyLimits: KeyLimits, { limit }: Pick<Refusal, 'limit'>): string {
  const budget = keyLimits.budgets.find((one) => one.limit.id === limit.id)?.budget;
  if (budget !== undefined) return budget.name;
  if (limit.kind === 'slots' && keyLimits.partial.includes(limit)) return limit.name ?? limit.id;
  return limit.kind === 'window' ? (limit.name ?? limit.id) : limitNameOf(limit);
}

/**
 * The error for a refusal. A limit: 429 with `retry-after`. A budget: kind `budget`, which each codec writes in
 * its protocol (429 `insufficient_quota`, 402 `billing_error`), and which no client should try again by itself.
 * Both have the headers that say what is left.
 */
function refusalError(keyLimits: KeyLimits, refusal: Refusal): GatewayError {
  const { limit, retryAfterMs, usage, asked } = refusal;
  const name = cutText(limitName(keyLimits, refusal), 200);
  const left = new FlatHeaders();
  addLimitHeaders(left, refusal.usages());
  const headers = left.record();
  if (limit.kind === 'window') return budgetError(name, refusal, headers);
  const seconds =
    retryAfterMs === undefined ? undefined : Math.max(1, Math.ceil(retryAfterMs / 1000));
  const more =
    seconds === undefined
      ? { code: 'rate_limit_exceeded', retryable: false, headers }
      : { code: 'rate_limit_exceeded', retryAfter: seconds, headers };
  return new GatewayError('rate_limit', limitMessage(name, usage, asked, seconds), more);
}

function limitMessage(
  name: string,
  { limit, used }: LimitUsage,
  asked: number,
  seconds: number | undefined,
): string {
  if (limit.kind === 'slots' && limit.name !== undefined) {
    return `The budget "${name}" has room only for what this request is likely to cost, and answers on such terms are running already, ${limit.amount} at most. Try again when one has ended, or set a lower limit of output tokens.`;
  }
  if (limit.kind === 'slots') {
    return `This key has ${used} requests running, and may have ${limit.amount} at a time (limits.${name}). Try again when one has ended.`;
  }
  if (seconds === undefined) {
    return `This request needs about ${asked} ${limit.unit}, more than this key may use in a minute: ${limit.amount} (limits.${name}).`;
  }
  return `This key may use ${limit.amount} ${limit.unit} per minute and has used ${used} (limits.${name}). Try again in ${seconds} s.`;
}

function budgetError(
  name: string,
  { limit, usage, asked }: Refusal,
  headers: Readonly<Record<string, string>>,
): GatewayError {
  const { used, held, resetAt } = usage;
  const spent = `$${usdText(used - held)} of $${usdText(limit.amount)} is spent`;
  const reserved = held === 0 ? '' : `, $${usdText(held)} is reserved by requests that still run`;
  const needs = asked === 0 ? '' : `, and this request may cost $${usdText(asked)}`;
  const reset =
    resetAt === undefined
      ? 'It does not reset.'
      : `It resets at ${new Date(resetAt).toISOString().replace(/\.\d+Z$/, 'Z')}.`;
  const isSpent = used >= limit.amount;
  const what = isSpent ? 'is used up' : 'has too little left for this request';
  // Waiting for the next period is in vain then, and nothing is ever spent.
  const never =
    asked > limit.amount
      ? ' That is more than the whole budget: only a larger budget, fewer answers (n) or a lower limit of output tokens let such a request through.'
      : '';
  const message = `The budget "${name}" ${what}: ${spent}${reserved}${needs}.${never} ${reset}`;
  const code = 'insufficient_quota';
  return new GatewayError('budget', message, { code, retryable: false, headers });
}

/**
 * `x-ratelimit-limit-requests`, `-remaining-requests`, `-reset-requests`, the same with `-tokens`, and
 * `x-hopgate-budget-remaining-usd`. With several limits of a unit, the one of which least is left.
 */
export function addLimitHeaders(headers: FlatHeaders, usages: readonly LimitUsage[]): void {
  // With each answer: one pass, and no lists in between.
  let requests: LimitUsage | undefined;
  let tokens: LimitUsage | undefined;
  let budget: LimitUsage | undefined;
  for (const one of usages) {
    const { limit } = one;
    if (limit.unit === 'nano_usd') budget = tighter(budget, one);
    else if (limit.kind !== 'rate') continue;
    else if (limit.unit === 'requests') requests = tighter(requests, one);
    else tokens = tighter(tokens, one);
  }
  if (requests !== undefined) addRate(headers, REQUEST_HEADERS, requests);
  if (tokens !== undefined) addRate(headers, TOKEN_HEADERS, tokens);
  if (budget !== undefined) {
    headers.setOwn('x-hopgate-budget-remaining-usd', usdText(budget.remaining));
  }
}

const REQUEST_HEADERS = [
  'x-ratelimit-limit-requests',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-reset-requests',
] as const;
const TOKEN_HEADERS = [
  'x-ratelimit-limit-tokens',
  'x-ratelimit-remaining-tokens',
  'x-ratelimit-reset-tokens',
] as const;

function addRate(
  headers: FlatHeaders,
  [most, left, reset]: typeof REQUEST_HEADERS | typeof TOKEN_HEADERS,
  { limit, remaining, resetMs }: LimitUsage,
) {
  headers.setOwn(most, String(limit.amount));
  headers.setOwn(left, String(remaining));
  headers.setOwn(reset, durationText(resetMs ?? 0));
}

const tighter = (known: LimitUsage | undefined, one: LimitUsage): LimitUsage =>
  known === undefined || one.remaining < known.remaining ? one : known;

/** As OpenAI writes it: `120ms`, `1.5s`, `6m0s`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${ms}ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds}s`;
  const whole = Math.ceil(seconds);
  return `${Math.floor(whole / 60)}m${whole % 60}s`;
}
