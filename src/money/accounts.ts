/** The accounts of exchanges: each try is reserved, priced, counted once, and written to the journal. */

import type {
  MediaTokens,
  Spent,
  TryAccount,
  TryEnd,
  TryResult,
  TryStart,
} from '../conversation/account/payer.ts';
import { GatewayError } from '../conversation/errors.ts';
import { type Target, targetName } from '../conversation/target.ts';
import {
  addUsage,
  type ExtraRun,
  nanoUsd,
  type TokenParts,
  totalInput,
  totalOutput,
  type Usage,
  withExtraRuns,
} from '../conversation/usage.ts';
import type { Account, AccountStart, Accounts } from '../gateway/account.ts';
import type { Principal } from '../keys/principal.ts';
import type { FlatHeaders, ReadonlyHeaders } from '../lib/http/headers.ts';
import { usdText } from '../lib/text/usd.ts';
import type { TryAmounts } from '../limits/limits.ts';
import { type PicoRates, searchesOf, wholeTokens } from './cost.ts';
import type { AnswerKind, OutputEstimate } from './estimate.ts';
import type { FreeSearches } from './free-searches.ts';
import type { RunningPlace, RunningTry, SpendJournal } from './journal.ts';
import { LastPrompts, type Lost } from './lost-cache.ts';
import { BATCH_TIER, type PriceBook, type PriceVersion, type Served } from './price.ts';
import { type CommonRow, CommonRows, type OwnColumns, wholeRow } from './row-parts.ts';
import { NO_TOKENS, type SpendRow, type SpendTokens } from './schema.ts';
import { labelsText } from './totals.ts';

/** The limits and budgets of one exchange; without any, there is no guard. */
export interface ExchangeGuard {
  /**
   * Reserves for a try; what it gives is settled once.
   * @throws GatewayError if a limit or a budget refuses
   */
  reserve(expected: TryAmounts): TryHold | undefined | Promise<TryHold>;
  /** It limits tokens or money. */
  readonly needsUsage: boolean;
  /** A spent budget sends the exchange this way. */
  readonly route: string | undefined;
  /** A budget that refuses is nearly used up: a try more than needed may not be made. */
  readonly scarce: boolean;
  addHeaders(headers: FlatHeaders): void;
  end(): void;
}

export interface TryHold {
  settle(used: TryAmounts): void;
}

export interface AccountsOptions {
  readonly journal: SpendJournal;
  readonly prices: () => PriceBook;
  readonly unpriced: () => 'count' | 'refuse';
  readonly estimate: OutputEstimate;
  readonly freeSearches: FreeSearches;
  /** Undefined: nothing limits this principal. @throws GatewayError if the exchange is refused */
  readonly guard: (
    principal: Principal,
    costs?: boolean,
  ) => ExchangeGuard | undefined | Promise<ExchangeGuard>;
  /** What a try cost: for metrics. */
  readonly onCost: (target: string, nanoUsd: number) => void;
}

// A key may leave streams faster than they end, and each holds a connection to a vendor.
const MAX_OUTLIVING_OF_KEY = 8;

export class SpendAccounts implements Accounts {
  /** By key: tries whose client has left, and whose answer is still read. */
  readonly outliving = new Map<string, Set<SpendTry>>();
  readonly prompts = new LastPrompts();
  readonly commonRows = new CommonRows();

  constructor(private readonly options: AccountsOptions) {}

  open(about: AccountStart): Account | Promise<Account> {
    const guard = this.options.guard(about.principal, about.costs);
    return guard instanceof Promise
      ? this.#openLater(about, guard)
      : new ExchangeAccount(about, this.options, guard, this);
  }

  async #openLater(about: AccountStart, guard: Promise<ExchangeGuard>): Promise<Account> {
    return new ExchangeAccount(about, this.options, await guard, this);
  }

  /** Nothing is read any more: what is still open is counted by estimate. */
  close(): void {
    for (const tries of this.outliving.values())
      for (const one of [...tries]) one.abandon('client_gone');
  }
}

class ExchangeAccount implements Account {
  readonly outliving: SpendAccounts['outliving'];
  readonly prompts: LastPrompts;
  readonly commonRows: CommonRows;
  lost: Lost | undefined;
  #nano = 0;
  #tried = false;
  #hasBegun = false;
  #unpriced = false;
  #over = false;
  #spent: Spent | undefined;
  /** Tries that have not ended; mostly one. */
  readonly #open: SpendTry[] = [];

  constructor(
    readonly about: AccountStart,
    readonly options: AccountsOptions,
    private readonly guard: ExchangeGuard | undefined,
    { outliving, prompts, commonRows }: Pick<SpendAccounts, 'outliving' | 'prompts' | 'commonRows'>,
  ) {
    this.outliving = outliving;
    this.prompts = prompts;
    this.commonRows = commonRows;
  }

  forbids(target: Target): GatewayError | undefined {
    const { unpriced, prices } = this.options;
    if (unpriced() === 'refuse' && prices().of(targetName(target)).at(Date.now()) === undefined) {
      return withoutPrice(target);
    }
    return undefined;
  }

  get route(): string | undefined {
    return this.guard?.route;
  }

  get needsUsage(): boolean {
    return this.guard?.needsUsage === true;
  }

  get mayHedge(): boolean {
    return this.guard?.scarce !== true;
  }

  beginTry(start: TryStart): TryAccount | Promise<TryAccount> {
    const one = new SpendTry(this, start);
    const hold = this.guard?.reserve(one.expected);
    return hold instanceof Promise ? this.#beginLater(one, hold) : this.#begun(one, hold);
  }

  async #beginLater(one: SpendTry, hold: Promise<TryHold>): Promise<SpendTry> {
    return this.#begun(one, await hold);
  }

  #begun(one: SpendTry, hold: TryHold | undefined): SpendTry {
    // A try that settles an earlier request is no request of its own.
    const isFirst = !this.#hasBegun && one.settles === undefined;
    this.#hasBegun ||= isFirst;
    one.begun(hold, isFirst);
    this.#open.push(one);
    return one;
  }

  /** Prompt tokens that the vendor reports as read, over all rounds of an exchange. */
  read(target: string, usage: Usage, rates: PicoRates | undefined): void {
    const { asked, principal } = this.about;
    if (asked === undefined) return;
    const lost = this.prompts.lost(asked, principal.id, target, usage, rates);
    if (lost === undefined) return;
    const { tokens = 0, nanoUsd = 0 } = this.lost ?? {};
    this.lost = { tokens: tokens + lost.tokens, nanoUsd: nanoUsd + lost.nanoUsd };
  }

  /** A try is over. `cost` undefined: its price is unknown; `usage` undefined: it was not answered. */
  ended(one: SpendTry, cost: number | undefined, usage: Usage | undefined): void {
    const at = this.#open.indexOf(one);
    if (at >= 0) this.#open.splice(at, 1);
    this.#tried = true;
    this.#spent = usage && { usage, nanoUsd: cost };
    if (cost === undefined) this.#unpriced = true;
    else this.#nano += cost;
  }

  get spent(): Spent | undefined {
    return this.#spent;
  }

  get cost(): number | undefined {
    return this.#unpriced || !this.#tried ? undefined : this.#nano;
  }

  addHeaders(headers: FlatHeaders, whole: boolean): void {
    this.guard?.addHeaders(headers);
    const { cost } = this;
    if (whole && cost !== undefined) headers.set('x-hopgate-cost-usd', usdText(cost));
  }

  end(ended: 'client_gone' | 'cut'): void {
    if (this.#over) return;
    this.#over = true;
    for (const one of [...this.#open]) if (!one.isOutliving) one.abandon(ended);
    this.guard?.end();
  }
}

/** https://docs.litellm.ai/docs/proxy/response_headers */
const COST_HEADER = 'x-litellm-response-cost';
/** The price of an answer whose vendor tells its cost. */
const TOLD = JSON.stringify({ source: 'answer' });

class SpendTry implements TryAccount, RunningTry, AnswerKind {
  readonly target: string;
  readonly protocol: Target['protocol'];
  readonly stream: boolean;
  /** The prices in force when it began: one that is removed meanwhile still counts. */
  readonly #prices: PriceBook;
  readonly #began = Date.now();
  readonly #price: PriceVersion | undefined;
  #isFirst = false;
  #place: RunningPlace | undefined;
  #hold: TryHold | undefined;
  #status: number | undefined;
  /** The cost that the head of the answer tells. */
  #toldNano: number | undefined;
  #over = false;
  /** Of a batch, so far; without a cost once one of its answers has no known price. */
  #counted: { usage: Usage; cost: number | undefined; json: string | undefined } | undefined;
  /** `refused`: its client has left, and nothing more is read of it. */
  #outlives: 'yes' | 'refused' | undefined;

  constructor(
    private readonly account: ExchangeAccount,
    private readonly start: TryStart,
  ) {
    this.target = targetName(start.target);
    this.protocol = start.target.protocol;
    this.stream = start.stream;
    this.#prices = account.options.prices();
    this.#price = this.#prices.of(this.target).at(this.#began);
  }

  get settles(): TryStart['settles'] {
    return this.start.settles;
  }

  /** @param isFirst of its request */
  begun(hold: TryHold | undefined, isFirst: boolean): void {
    this.#isFirst = isFirst;
    this.#hold = hold;
    this.#place = this.account.options.journal.begin(this);
  }

  answered(status: number, headers?: ReadonlyHeaders): void {
    this.#status = status;
    // A LiteLLM proxy says 0 where it knows no price, and before a stream.
    if (this.#price === undefined) this.#toldNano = nanoUsd(headers?.get(COST_HEADER)) || undefined;
  }

  outlives(): boolean {
    const { about, outliving } = this.account;
    if (this.#over || this.#hold === undefined) return false;
    const others = outliving.get(about.principal.id) ?? new Set();
    this.#outlives = others.size < MAX_OUTLIVING_OF_KEY ? 'yes' : 'refused';
    if (this.#outlives === 'yes') outliving.set(about.principal.id, others.add(this));
    return this.#outlives === 'yes';
  }

  get isOutliving(): boolean {
    return this.#outlives === 'yes';
  }

  /** Nothing is known of its answer. */
  abandon(ended: 'client_gone' | 'cut'): void {
    this.end({ ended, usage: undefined, final: false, content: false, bytes: 0 });
  }

  #leftOutliving(): void {
    const { about, outliving } = this.account;
    const others = outliving.get(about.principal.id);
    others?.delete(this);
    if (others?.size === 0) outliving.delete(about.principal.id);
  }

  /** What is reserved before it goes out. */
  get expected(): TryAmounts {
    const { settles } = this.start;
    if (settles !== undefined)
      return { tokens: 0, nanoUsd: 0, owed: true, countedAt: settles.countedAt };
    const usage = this.#expectedUsage();
    const { maxOutputTokens, media, choices = 1 } = this.start;
    const { estimate } = this.account.options;
    const withMedia = (tokens: MediaTokens | undefined): Usage =>
      tokens === undefined
        ? usage
        : {
            ...usage,
            input: usage.input + tokens.input,
            output: tokens.output * choices,
            seconds: tokens.seconds,
          };
    const output = estimate.allowed(media?.most.output ?? maxOutputTokens, choices);
    const { parts } = this.start;
    const most = { ...withMedia(media?.most), output, parts: partsOf(parts, output) };
    return {
      tokens: totalInput(usage) + usage.output,
      nanoUsd: this.#applied(withMedia(media?.likely))?.cost,
      mostNanoUsd: this.#price?.most(most, this.#served(usage)),
      choices,
    };
  }

  #expectedUsage(): Usage {
    const { inputTokens, maxOutputTokens, choices, characters, parts } = this.start;
    const output = this.account.options.estimate.reserved(this, maxOutputTokens, choices);
    if (characters === undefined && parts === undefined) return { input: inputTokens, output };
    return { input: inputTokens, output, characters, parts: partsOf(parts, output) };
  }

  #served(usage: Usage): Served {
    const { batch, serviceTier, target } = this.start;
    return {
      serviceTier: batch === undefined ? (usage.serviceTier ?? serviceTier) : BATCH_TIER,
      region: this.#prices.regionOf(target.provider) ?? usage.region,
      time: Date.now(),
    };
  }

  /** @param requests that the usage is of: prices depend on the length of each */
  #applied(usage: Usage, price = this.#price, requests = this.start.batch ?? 1) {
    if (price === undefined || (searchesOf(usage) > 0 && !price.pricesSearches)) return undefined;
    const { rates, json } = price.applied(totalInput(usage) / requests, this.#served(usage));
    return { cost: rates.costOf(usage), json, rates };
  }

  /** Books the answer, with the free searches that it used and further runs of models. */
  #paid(usage: Usage, price: PriceVersion | undefined, requests?: number) {
    const applied = this.#answerPaid(usage, price, requests);
    const { extraRuns, nanoUsd } = usage;
    if (applied === undefined) return this.#told(usage);
    // A vendor that tells its cost knows which model it chose, what its tools cost, and its discounts.
    if (nanoUsd && price?.isConfigured !== true) {
      return { ...applied, cost: nanoUsd, json: `${applied.json.slice(0, -1)},"told":true}` };
    }
    if (extraRuns === undefined) return applied;
    let cost = applied.cost;
    for (const run of extraRuns) {
      const runCost = this.#runCost(run, price);
      if (runCost === undefined) return this.#told(usage);
      cost += runCost;
    }
    const about = `${applied.json.slice(0, -1)},"extra_runs_nano_usd":${cost - applied.cost}}`;
    return { ...applied, cost, json: about };
  }

  /** By the cost that the answer tells, or else its head. */
  #told({ nanoUsd: cost = this.#toldNano }: Usage) {
    return cost === undefined ? undefined : { cost, json: TOLD, rates: undefined };
  }

  #runCost({ model, usage }: ExtraRun, price: PriceVersion | undefined): number | undefined {
    return this.#applied(usage, model === undefined ? price : this.#priceOf(model), 1)?.cost;
  }

  #answerPaid(usage: Usage, price: PriceVersion | undefined, requests?: number) {
    const applied = this.#applied(usage, price, requests);
    const searches = searchesOf(usage);
    if (applied === undefined || price === undefined || searches === 0) return applied;
    const { freeSearches } = this.account.options;
    const paid = freeSearches.paid(this.target, price, searches, Date.now());
    if (paid === searches) return applied;
    const { rates, json } = applied;
    const about = `${json.slice(0, -1)},"paid_searches":${paid}}`;
    return { cost: rates.costOf(usage, paid), json: about, rates };
  }

  #priceOf(model: string | undefined): PriceVersion | undefined {
    return model ? this.#prices.ofAnswer(this.target, model).at(this.#began) : this.#price;
  }

  count(usage: Usage, model: string | undefined): void {
    const applied = this.#paid(usage, this.#priceOf(model), 1);
    const before = this.#counted;
    this.#counted =
      before === undefined
        ? { usage, cost: applied?.cost, json: applied?.json }
        : {
            usage: addUsage(before.usage, usage),
            cost:
              before.cost === undefined || applied === undefined
                ? undefined
                : before.cost + applied.cost,
            json: before.json,
          };
  }

  end(result: TryResult): void {
    if (this.#over) return;
    this.#over = true;
    if (this.#outlives === 'yes') this.#leftOutliving();
    const { estimate, journal, onCost } = this.account.options;
    const counted = this.#counted;
    const usage = counted?.usage ?? this.#spoken(this.#used(result));
    const exact = usage === undefined || (result.final && this.#isWhole(usage));
    const price = this.#priceOf(result.model);
    const isUnpriced = usage === undefined || counted !== undefined;
    const isUnknown =
      result.unmeasured === true && !isUnpriced && price?.coversUnmeasured(usage) !== true;
    const known = isUnpriced ? undefined : isUnknown ? this.#told(usage) : this.#paid(usage, price);
    const applied = counted ?? known;
    // A try without an answer costs nothing, whatever the price.
    const whole = usage === undefined ? 0 : applied?.cost;
    const before = this.start.settles?.spent;
    const cost = whole === undefined ? undefined : whole - (before?.nanoUsd ?? 0);
    const isOne = this.start.batch === undefined;
    const { ended, final, usage: told } = result;
    if (isOne && ended === 'done' && final && told !== undefined && told.unknown === undefined) {
      estimate.learn(this, result.bytes, totalOutput(told));
    }
    const place = this.#place;
    if (place !== undefined) {
      const { own, common } = this.#row(result, usage, !exact, applied?.json, cost);
      journal.end(place, own, common);
    }
    if (cost !== undefined && cost > 0) onCost(this.target, cost);
    const tokens = (usage ? allTokens(usage) : 0) - (before ? allTokens(before.usage) : 0);
    this.#hold?.settle({ tokens: Math.max(0, tokens), nanoUsd: cost });
    if (isOne && exact && usage?.cacheRead !== undefined)
      this.account.read(this.target, usage, known?.rates);
    this.account.ended(this, cost, usage);
  }

  #spoken(usage: Usage | undefined): Usage | undefined {
    const { characters } = this.start;
    return usage === undefined || characters === undefined ? usage : { ...usage, characters };
  }

  /** What is paid for; undefined: nothing. */
  #used({ ended, usage, final, content, pending, bytes }: TryResult): Usage | undefined {
    if (usage !== undefined && final && (usage.unknown === undefined || !content)) return usage;
    // The vendor works for a client that leaves, and for a gateway that stops: under a limit that is not free.
    const left = (ended === 'client_gone' || ended === 'stopped') && this.#hold !== undefined;
    const status = this.#status ?? (left ? 200 : 0);
    if (status < 200 || status > 299) return undefined;
    if (ended === 'error' && !content) return undefined;
    if (pending === true) return this.#expectedUsage();
    const { inputTokens, maxOutputTokens } = this.start;
    const complete = ended === 'done';
    const { estimate } = this.account.options;
    const usual = left && (!content || this.#outlives === 'refused');
    const seen = Math.max(
      maxOutputTokens === 0 ? 0 : estimate.tokens(this, bytes, complete),
      usual ? this.#expectedUsage().output : 0,
    );
    if (usage === undefined) return { input: inputTokens, output: seen };
    const nanoUsd = final ? usage.nanoUsd : undefined;
    if (usage.unknown === 'input')
      return { ...usage, nanoUsd, input: Math.max(usage.input, inputTokens) };
    const output = Math.max(usage.output, seen - (usage.reasoning ?? 0));
    return { ...usage, nanoUsd, output };
  }

  /** Where an answer has no tokens, none are missing. */
  #isWhole({ unknown }: Usage): boolean {
    return unknown === undefined || (unknown === 'output' && this.start.maxOutputTokens === 0);
  }

  #row(
    { ended }: Pick<TryResult, 'ended'>,
    usage: Usage | undefined,
    estimated: boolean,
    price: string | undefined,
    cost: number | undefined,
  ): { readonly own: OwnColumns; readonly common: CommonRow } {
    const { principal, request, session, client, trace } = this.account.about;
    const { model, upstreamKey, hop, attempt, settles } = this.start;
    const common = this.account.commonRows.of({
      key: principal.id,
      labels: labelsText(principal.labels),
      client,
      model,
      target: this.target,
      upstream_key: upstreamKey,
      hop,
      attempt,
      status: this.#status,
      ended: this.#rowEnd(ended, usage),
      estimated: estimated ? 1 : 0,
      price,
      requests: this.#isFirst ? 1 : 0,
    });
    const all = usage === undefined ? NO_TOKENS : tokensOf(usage);
    const tokens = settles?.spent === undefined ? all : without(all, tokensOf(settles.spent.usage));
    const own = {
      time: Date.now(),
      request: settles?.request ?? request,
      session: settles === undefined ? session : settles.session,
      trace,
      cost,
      input: some(tokens.input),
      output: some(tokens.output),
      cache_read: some(tokens.cache_read),
      cache_write: some(tokens.cache_write),
      cache_write_1h: some(tokens.cache_write_1h),
      reasoning: some(tokens.reasoning),
      searches: some(tokens.searches),
    };
    return { common, own };
  }

  #rowEnd(ended: TryEnd, usage: Usage | undefined): Exclude<TryEnd, 'stopped'> {
    if (ended !== 'cut' && ended !== 'stopped') return ended;
    // Without a head there was nothing to cut, unless it is paid for.
    return this.#status === undefined && usage === undefined ? 'error' : 'cut';
  }

  reservedRow(): SpendRow {
    const usage = this.#expectedUsage();
    const applied = this.#applied(usage);
    const row = this.#row({ ended: 'cut' }, usage, true, applied?.json, applied?.cost);
    return { ...wholeRow(row.own, row.common), ended: 'cut' };
  }
}

const partsOf = (parts: TryStart['parts'], output: number): TokenParts | undefined =>
  parts && { inputAudio: parts.inputAudio, ...(parts.speaks && { outputAudio: output }) };

function allTokens(usage: Usage): number {
  const all = withExtraRuns(usage);
  return wholeTokens(totalInput(all) + totalOutput(all));
}

function tokensOf(usage: Usage): SpendTokens {
  const all = withExtraRuns(usage);
  return {
    input: wholeTokens(all.input),
    output: wholeTokens(all.output),
    cache_read: wholeTokens(all.cacheRead ?? 0),
    cache_write: wholeTokens(all.cacheWrite ?? 0),
    cache_write_1h: wholeTokens(all.cacheWrite1h ?? 0),
    reasoning: wholeTokens(all.reasoning ?? 0),
    searches: wholeTokens(searchesOf(all)),
  };
}

const some = (count: number): number | undefined => (count === 0 ? undefined : count);

function without(tokens: SpendTokens, before: SpendTokens): SpendTokens {
  const rest: Record<keyof SpendTokens, number> = { ...tokens };
  for (const name of Object.keys(before) as (keyof SpendTokens)[]) rest[name] -= before[name];
  return rest;
}

const withoutPrice = (target: Target) =>
  new GatewayError(
    'permission',
    `No price is known for ${targetName(target)}, and models without a price are refused (unpriced: refuse).`,
    { code: 'model_without_price', retryable: false },
  );
