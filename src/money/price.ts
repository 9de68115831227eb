/** Which price applies to a try: that of the configuration, else the one that hopgate knows of the model. */

import { cataloguePrice } from '../config/models/model-facts.ts';
import { isSameModel, MAX_NAME } from '../config/models/names.ts';
import type { ModelPrice, PriceTier, Rates } from '../config/sections/prices.ts';
import { globTest } from '../lib/text/glob.ts';
import { PicoRates } from './cost.ts';

/** The price of one try. */
export interface AppliedPrice {
  readonly rates: PicoRates;
  /** What is written beside the row, as JSON: USD per million tokens by kind, and where the price comes from. */
  readonly json: string;
}

/** The service tier of batches. */
export const BATCH_TIER = 'batch';
/**
 * Where a price has no tier for them: half of it (https://platform.claude.com/docs/en/build-with-claude/batch-processing,
 * https://developers.openai.com/api/docs/guides/batch).
 */
const BATCH_SHARE = 0.5;

/** What one request with so many prompt tokens pays: the last tier that fits, else the usual prices. */
export function ratesFor(
  price: ModelPrice,
  inputTokens: number,
  serviceTier: string | undefined,
): Rates {
  return price.tiers[tierOf(price.tiers, inputTokens, serviceTier)]?.rates ?? price;
}

function tierOf(
  tiers: readonly PriceTier[],
  inputTokens: number,
  serviceTier: string | undefined,
): number {
  return tiers.findLastIndex(
    (tier) =>
      (tier.above === undefined || inputTokens > tier.above) &&
      (tier.serviceTier === undefined || tier.serviceTier === serviceTier),
  );
}

/** One model's prices at one provider. */
export interface KnownPrice {
  /** The price of a try that begins then (milliseconds since 1970); undefined: none is known. */
  at(time: number): PriceVersion | undefined;
}

/** What the book needs to know of a provider. */
export interface PricedProvider {
  /** Its name in the catalogue of models; undefined: the catalogue has none of its prices. */
  readonly vendor?: string | undefined;
  /** A cloud: names are those of deployments and of profiles there, and answers name the model behind them. */
  readonly platform?: unknown;
  readonly prices: readonly ModelPrice[];
}

const TOKEN_RATES = [
  'input',
  'output',
  'cached',
  'cacheWrite',
  'cacheWrite1h',
  'reasoning',
] as const satisfies readonly (keyof Rates)[];

const NO_PRICE: KnownPrice = { at: () => undefined };
/** Targets that are remembered. Clients may name any model where a provider takes all. */
const MAX_TARGETS = 5000;

/** The prices of a configuration. */
export class PriceBook {
  readonly #providers: Readonly<Record<string, PricedProvider>>;
  readonly #known = new Map<string, KnownPrice>();
  /** By target and model that answered. */
  readonly #answered = new Map<string, KnownPrice>();

  constructor({ providers }: { readonly providers: Readonly<Record<string, PricedProvider>> }) {
    this.#providers = providers;
  }

  /** @param target `provider/model` */
  of(target: string): KnownPrice {
    let known = this.#known.get(target);
    if (known === undefined) {
      known = this.#find(target);
      if (this.#known.size >= MAX_TARGETS) this.#known.clear();
      this.#known.set(target, known);
    }
    return known;
  }

  /**
   * The price of the model that answered, where that is another one and its price is known; else that of the target.
   * @param model as the vendor's answer names it
   */
  ofAnswer(target: string, model: string): KnownPrice {
    const asked = target.slice(target.indexOf('/') + 1);
    if (model === asked || model.length > MAX_NAME) return this.of(target);
    const key = `${target} ${model}`;
    let known = this.#answered.get(key);
    if (known === undefined) {
      known = isSameModel(asked, model) ? this.of(target) : this.#findAnswer(target, model);
      if (this.#answered.size >= MAX_TARGETS) this.#answered.clear();
      this.#answered.set(key, known);
    }
    return known;
  }

  #findAnswer(target: string, model: string): KnownPrice {
    const name = target.slice(0, target.indexOf('/'));
    const asked = this.of(target);
    const answered = this.of(`${name}/${model}`);
    const isDeployed = this.#providers[name]?.platform !== undefined;
    return {
      at(time) {
        const [own, other] = [asked.at(time), answered.at(time)];
        // What the owner has written of a deployment counts before the list price of what it holds.
        const written = isDeployed && own?.isConfigured === true && other?.isConfigured !== true;
        return written ? own : (other ?? own);
      },
    };
  }

  /** Undefined: none is known. */
  modelPrice(target: string, time: number): ModelPrice | undefined {
    return this.of(target).at(time)?.model;
  }

  /** Some price is known. */
  get any(): boolean {
    return Object.values(this.#providers).some(
      ({ prices, vendor }) => prices.length > 0 || vendor !== undefined,
    );
  }

  #find(target: string): KnownPrice {
    const slash = target.indexOf('/');
    const name = target.slice(0, slash);
    const model = target.slice(slash + 1);
    if (!Object.hasOwn(this.#providers, name)) return NO_PRICE;
    const provider = this.#providers[name]!;
    const own = provider.prices.filter((price) => globTest(price.model)(model));
    const prices = own.map((price) => new PriceVersion(price, 'config'));
    const builtIn = cataloguePrice(provider.vendor, model);
    if (builtIn !== undefined) prices.push(new PriceVersion(builtIn, builtIn.source));
    return prices.length === 0
      ? NO_PRICE
      : {
          at: (time) => prices.find((price) => price.effectiveFrom <= time),
        };
  }
}

/** A model's price at one time. */
export class PriceVersion {
  readonly effectiveFrom: number;
  /** The price depends on the `service_tier`. */
  readonly hasServiceTiers: boolean;
  /** What a search of the vendor's own tool costs is known. */
  readonly pricesSearches: boolean;
  /** What an answer costs that is not measured in tokens is known. */
  readonly pricesUnmeasured: boolean;
  /** It stands in the configuration. */
  readonly isConfigured: boolean;
  readonly model: ModelPrice;
  readonly #source: string;
  readonly #usual: AppliedPrice;
  readonly #tiers: readonly AppliedPrice[];
  readonly #halves = new Map<number, AppliedPrice>();

  constructor(price: ModelPrice, source: string) {
    this.effectiveFrom = price.effectiveFrom;
    this.hasServiceTiers = price.tiers.some((tier) => tier.serviceTier !== undefined);
    // In a file a price that is left out is nothing; the catalogue does not know it.
    this.isConfigured = source === 'config';
    this.pricesSearches = this.isConfigured || price.search > 0;
    this.pricesUnmeasured = price.request > 0 || (price.input === 0 && price.output === 0);
    this.model = price;
    this.#source = source;
    this.#usual = this.#applied(price, {});
    this.#tiers = price.tiers.map(({ rates, above, serviceTier }) =>
      this.#applied(rates, { above, service_tier: serviceTier }),
    );
  }

  /** @param inputTokens all prompt tokens of one request, cached ones included */
  applied(inputTokens: number, serviceTier: string | undefined): AppliedPrice {
    const { tiers } = this.model;
    const index = tierOf(tiers, inputTokens, serviceTier);
    if (serviceTier === BATCH_TIER && tiers[index]?.serviceTier !== BATCH_TIER) {
      return this.#halfOf(index);
    }
    return this.#tiers[index] ?? this.#usual;
  }

  /** Tokens alone are cheaper in a batch. */
  #halfOf(index: number): AppliedPrice {
    let half = this.#halves.get(index);
    if (half === undefined) {
      const tier = this.model.tiers[index];
      const { search, request, ...tokens } = tier?.rates ?? this.model;
      const halved = Object.fromEntries(
        TOKEN_RATES.map((kind) => [kind, tokens[kind] * BATCH_SHARE]),
      ) as Omit<Rates, 'search' | 'request'>;
      const about = { above: tier?.above, service_tier: BATCH_TIER };
      half = this.#applied({ ...halved, search, request }, about);
      this.#halves.set(index, half);
    }
    return half;
  }

  #applied(rates: Rates, tier: object): AppliedPrice {
    const { input, output, cached, cacheWrite, cacheWrite1h, reasoning, search, request } = rates;
    const { model, effectiveFrom } = this.model;
    const from =
      effectiveFrom === 0 ? undefined : new Date(effectiveFrom).toISOString().slice(0, 10);
    const json = JSON.stringify({
      source: this.#source,
      model,
      effective_from: from,
      ...tier,
      input,
      output,
      cached,
      cache_write: cacheWrite,
      cache_write_1h: cacheWrite1h,
      reasoning,
      search,
      request,
    });
    return { rates: new PicoRates(rates), json };
  }
}
