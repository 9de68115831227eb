/** Which price applies to a try: that of the configuration, else the one that hopgate knows of the model. */

import { cataloguePrice, modelsFile } from '../config/models/model-facts.ts';
import { isSameModel, MAX_NAME } from '../config/models/names.ts';
import {
  type ModelPrice,
  PART_RATES,
  type PriceTier,
  type Rates,
} from '../config/sections/prices.ts';
import { isWithin, type TimeWindow, weekTime } from '../config/sections/time-window.ts';
import { totalInput, type Usage } from '../conversation/usage.ts';
import { memberOf } from '../lib/json/json-members.ts';
import { globTest } from '../lib/text/glob.ts';
import { PicoRates } from './cost.ts';

/** The price of one try. */
export interface AppliedPrice {
  readonly rates: PicoRates;
  /** What is written beside the row, as JSON: USD per million tokens by kind, and where the price comes from. */
  readonly json: string;
}

export const BATCH_TIER = 'batch';
/**
 * Where a price has no tier for them: half of it (https://platform.claude.com/docs/en/build-with-claude/batch-processing,
 * https://developers.openai.com/api/docs/guides/batch).
 */
const BATCH_SHARE = 0.5;
/** What a vendor may serve where a request does not say, by the settings of its project (https://developers.openai.com/api/docs/guides/priority-processing). */
const OPEN_TIERS: readonly (string | undefined)[] = [undefined, 'priority'];

/** How a request was served, as far as prices depend on it. What is left out is not known. */
export interface Served {
  readonly serviceTier?: string | undefined;
  /** When it ended, in milliseconds since 1970. */
  readonly time?: number;
  readonly region?: string | undefined;
}

/** What one request with so many prompt tokens pays: the last tier that fits, else the usual prices. */
export const ratesFor = (price: ModelPrice, inputTokens: number, served: Served = {}): Rates =>
  price.tiers[tierOf(price.tiers, inputTokens, served.serviceTier, served.time)]?.rates ?? price;

/** @param at a time (milliseconds since 1970), or the tier whose time it is @returns -1: no tier fits */
function tierOf(
  tiers: readonly PriceTier[],
  inputTokens: number,
  serviceTier: string | undefined,
  at: number | PriceTier | undefined,
): number {
  for (let i = tiers.length - 1; i >= 0; i--) {
    const tier = tiers[i]!;
    if (
      (tier.above === undefined || inputTokens > tier.above) &&
      (tier.serviceTier === undefined || tier.serviceTier === serviceTier) &&
      (tier.time === undefined || tier === at || (typeof at === 'number' && isAt(tier.time, at)))
    )
      return i;
  }
  return -1;
}

const isAt = (windows: readonly TimeWindow[], time: number): boolean =>
  windows.some((window) => isWithin(window, weekTime(time, window.zone ?? 'UTC')));

/** One model's prices at one provider. */
export interface KnownPrice {
  /** The price of a try that begins then (milliseconds since 1970); undefined: none is known. */
  at(time: number): PriceVersion | undefined;
}

/** What the book needs to know of a provider. */
export interface PricedProvider {
  /** Its name in the catalogue of models; undefined: the catalogue has none of its prices. */
  readonly vendor?: string | undefined;
  /** Where its requests are processed, as far as its address tells. */
  readonly region?: string | undefined;
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
  ...(Object.keys(PART_RATES) as (keyof typeof PART_RATES)[]),
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
      const same = isSameModel(asked, model) && this.of(target).at(Date.now()) !== undefined;
      known = same ? this.of(target) : this.#findAnswer(target, model);
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

  /** Where a provider's requests are processed; undefined: its address does not tell. */
  regionOf(provider: string): string | undefined {
    return memberOf(this.#providers, provider)?.region;
  }

  /** Undefined: none is known. */
  modelPrice(target: string, time: number): ModelPrice | undefined {
    return this.of(target).at(time)?.model;
  }

  /** Some provider's models may have searches for nothing. */
  get hasFreeSearches(): boolean {
    return Object.values(this.#providers).some(
      ({ prices, vendor }) =>
        prices.some(({ freeSearches }) => freeSearches !== undefined) ||
        (vendor !== undefined && modelsFile().hasFreeSearches(vendor)),
    );
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
  /** What a search of the vendor's own tool costs is known. */
  readonly pricesSearches: boolean;
  /** It stands in the configuration. */
  readonly isConfigured: boolean;
  readonly model: ModelPrice;
  readonly #usual: AppliedPrice;
  readonly #tiers: readonly AppliedPrice[];
  /** Tiers of a time of day; undefined: any other time. */
  readonly #times: readonly (PriceTier | undefined)[];
  /** Regions; undefined: any other one. */
  readonly #places: readonly (string | undefined)[];
  /** Of a batch or a region, by tier, factor and region. */
  readonly #scaled = new Map<string, AppliedPrice>();

  constructor(
    price: ModelPrice,
    private readonly source: string,
  ) {
    this.effectiveFrom = price.effectiveFrom;
    // In a file a price that is left out is nothing; the catalogue does not know it.
    this.isConfigured = source === 'config';
    this.pricesSearches = this.isConfigured || price.search > 0;
    this.model = price;
    this.#usual = this.#applied(price, {});
    this.#tiers = price.tiers.map(({ rates, above, serviceTier }) =>
      this.#applied(rates, { above, service_tier: serviceTier }),
    );
    this.#times = [undefined, ...price.tiers.filter(({ time }) => time !== undefined)];
    this.#places = [undefined, ...Object.keys(price.regions)];
  }

  /** What an answer costs that tells no tokens is known: by the request, by its length, or nothing. */
  coversUnmeasured({ seconds, characters }: Usage): boolean {
    const { request, input, output, minute = 0, character = 0 } = this.model;
    if (request > 0) return true;
    if (minute > 0 || character > 0)
      return (minute > 0 && seconds !== undefined) || (character > 0 && characters !== undefined);
    return input === 0 && output === 0;
  }

  /** @param inputTokens all prompt tokens of one request, cached ones included */
  applied(inputTokens: number, served: Served): AppliedPrice {
    const { serviceTier, region, time } = served;
    return this.#atTier(
      tierOf(this.model.tiers, inputTokens, serviceTier, time),
      serviceTier,
      region,
    );
  }

  /**
   * What a request can cost at most of which nobody knows yet how it will be served: at any time, in any region where only
   * the answer tells that, by the vendor's priority where the request leaves that open, and with its whole prompt written
   * to the cache.
   */
  most(usage: Usage, { serviceTier, region }: Served): number {
    const inputTokens = totalInput(usage);
    const isOpen = serviceTier === undefined || serviceTier === 'auto';
    const places = region === undefined ? this.#places : [region];
    let most = 0;
    for (const tier of isOpen ? OPEN_TIERS : [serviceTier]) {
      for (const at of this.#times) {
        const index = tierOf(this.model.tiers, inputTokens, tier, at);
        for (const place of places) {
          most = Math.max(most, this.#atTier(index, tier, place).rates.mostOf(usage));
        }
      }
    }
    return most;
  }

  #atTier(
    index: number,
    serviceTier: string | undefined,
    region: string | undefined,
  ): AppliedPrice {
    const tier = this.model.tiers[index];
    const isHalf = serviceTier === BATCH_TIER && tier?.serviceTier !== BATCH_TIER;
    const factor = region === undefined ? undefined : memberOf(this.model.regions, region);
    if (!isHalf && factor === undefined) return this.#tiers[index] ?? this.#usual;
    const key = `${index} ${isHalf} ${region}`;
    let scaled = this.#scaled.get(key);
    if (scaled === undefined) {
      const about = {
        above: tier?.above,
        service_tier: isHalf ? BATCH_TIER : tier?.serviceTier,
        ...(factor !== undefined && { region, factor }),
      };
      const share = (isHalf ? BATCH_SHARE : 1) * (factor ?? 1);
      scaled = this.#applied(scaledBy(tier?.rates ?? this.model, share), about);
      this.#scaled.set(key, scaled);
    }
    return scaled;
  }

  #applied(rates: Rates, tier: object): AppliedPrice {
    const { input, output, cached, cacheWrite, cacheWrite1h, reasoning, search, request } = rates;
    const { model, effectiveFrom } = this.model;
    const from =
      effectiveFrom === 0 ? undefined : new Date(effectiveFrom).toISOString().slice(0, 10);
    const json = JSON.stringify({
      source: this.source,
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
      minute: rates.minute,
      character: rates.character,
      input_audio: rates.inputAudio,
      input_text: rates.inputText,
      output_audio: rates.outputAudio,
      output_text: rates.outputText,
    });
    return { rates: new PicoRates(rates), json };
  }
}

/** Tokens alone are cheaper in a batch, and dearer in a region. */
function scaledBy(rates: Rates, factor: number): Rates {
  const scaled: Record<string, number | undefined> = { ...rates };
  for (const kind of TOKEN_RATES) {
    const rate = rates[kind];
    // Without what a binary fraction adds.
    if (rate !== undefined) scaled[kind] = Number((rate * factor).toPrecision(12));
  }
  return scaled as unknown as Rates;
}
