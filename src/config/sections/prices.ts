/** The `prices` of a provider: what its models cost. */

import { Type } from '@sinclair/typebox';
import { closed, date, named, oneOrMore, optional } from '../file/schema-types.ts';

const usd = (unit: string) =>
  Type.Number({ minimum: 0, maximum: 1_000_000, description: `USD per ${unit}` });
const million = (what: string) => usd(`million ${what}`);
const thousand = (what: string) => usd(`thousand ${what}`);

const KINDS = {
  cached: optional(million("prompt tokens read from the vendor's cache."), 'as input'),
  cache_write: optional(million('prompt tokens written to the cache.'), 'as input'),
  cache_write_1h: optional(
    million('prompt tokens written to the cache for one hour.'),
    'as cache_write',
  ),
  reasoning: optional(million('tokens of reasoning.'), 'as output'),
  search: optional(thousand("searches that the vendor's own tool made."), 'nothing'),
  request: optional(thousand('requests that were answered.'), 'nothing'),
};

const tier = closed(
  {
    above: optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'Only for requests with more prompt tokens than this, cached ones included.',
      }),
      'any length',
    ),
    service_tier: optional(
      Type.String({
        minLength: 1,
        description:
          'Only for requests that were served in this tier, as the answer names it; if it names none, for requests that ask for this `service_tier`.',
      }),
      'any',
    ),
    input: optional(million('prompt tokens.'), "the model's"),
    output: optional(million('generated tokens.'), "the model's"),
    ...KINDS,
  },
  'Other prices for some requests. `input` and `output` count for the kinds that follow them, too; what else is left out is as for the model.',
);

const price = closed(
  {
    input: million('prompt tokens.'),
    output: million('generated tokens, reasoning included.'),
    ...KINDS,
    tiers: optional(
      Type.Array(tier, {
        description: 'Other prices for some requests. The last tier that applies is used.',
      }),
      'none',
    ),
    effective_from: optional(date('The day (UTC) from which this price applies.'), 'always'),
  },
  'What a model costs.',
);

interface FileKinds {
  readonly cached?: number;
  readonly cache_write?: number;
  readonly cache_write_1h?: number;
  readonly reasoning?: number;
  readonly search?: number;
  readonly request?: number;
}

export interface FileTier extends FileKinds {
  readonly above?: number;
  readonly service_tier?: string;
  readonly input?: number;
  readonly output?: number;
}

export interface FilePrice extends FileKinds {
  readonly input: number;
  readonly output: number;
  readonly tiers?: readonly FileTier[];
  readonly effective_from?: string;
}

/** What `prices` holds, written out because TypeScript cannot work out a schema this deep. */
type FilePrices = Readonly<Record<string, FilePrice | readonly FilePrice[]>>;

export const prices = Type.Unsafe<FilePrices>(
  named(
    oneOrMore(
      price,
      'A price, or a list of prices of which each counts from its `effective_from`.',
    ),
    'Prices by model name or glob. An exact name takes precedence over globs; globs are tried in the order of the file. They override the prices that hopgate knows.',
  ),
);

/** USD per million tokens; `search` and `request` per thousand. */
export interface Rates {
  readonly input: number;
  readonly output: number;
  /** Prompt tokens read from the vendor's cache. */
  readonly cached: number;
  /** Prompt tokens written to the cache, and those written for one hour. */
  readonly cacheWrite: number;
  readonly cacheWrite1h: number;
  readonly reasoning: number;
  readonly search: number;
  readonly request: number;
}

export interface PriceTier {
  /** Prompt tokens; the tier counts for longer requests. Undefined: for all. */
  readonly above: number | undefined;
  readonly serviceTier: string | undefined;
  readonly rates: Rates;
}

export interface ModelPrice extends Rates {
  /** A model's name or a glob, as the vendor spells it. */
  readonly model: string;
  /** In the order of the file: the last one that fits counts. */
  readonly tiers: readonly PriceTier[];
  /** Milliseconds since 1970; 0: it has always counted. */
  readonly effectiveFrom: number;
}

/** Exact names first; of one name the newest price first. A price that is left out is that of an ordinary token. */
export function resolvePrices(written: FilePrices): readonly ModelPrice[] {
  const isGlob = (model: string) => /[*?]/.test(model);
  return Object.entries(written)
    .map(([model, one]) =>
      (Array.isArray(one) ? (one as readonly FilePrice[]) : [one as FilePrice])
        .map((price) => modelPrice(model, price))
        .toSorted((a, b) => b.effectiveFrom - a.effectiveFrom),
    )
    .toSorted(([a], [b]) => Number(isGlob(a!.model)) - Number(isGlob(b!.model)))
    .flat();
}

/** One price of a model. */
export function modelPrice(model: string, price: FilePrice): ModelPrice {
  const { tiers = [], effective_from: from } = price;
  return {
    model,
    ...ratesOf(price),
    tiers: tiers.map((tier) => ({
      above: tier.above,
      serviceTier: tier.service_tier,
      rates: tierRates(price, tier),
    })),
    effectiveFrom: from === undefined ? 0 : Date.parse(`${from}T00:00:00Z`),
  };
}

/** A tier's own `input` and `output` are the defaults of the kinds that follow them. */
function tierRates(price: FilePrice, tier: FileTier) {
  const { cached, cache_write, cache_write_1h, reasoning, ...rest } = price;
  return ratesOf({
    ...rest,
    ...(tier.input === undefined ? definedOf({ cached, cache_write, cache_write_1h }) : {}),
    ...(tier.output === undefined ? definedOf({ reasoning }) : {}),
    ...tier,
  });
}

const definedOf = (kinds: Readonly<Record<string, number | undefined>>): FileKinds =>
  Object.fromEntries(Object.entries(kinds).filter(([, price]) => price !== undefined));

const ratesOf = ({ input, output, cached = input, cache_write = input, ...more }: FilePrice) => ({
  input,
  output,
  cached,
  cacheWrite: cache_write,
  cacheWrite1h: more.cache_write_1h ?? cache_write,
  reasoning: more.reasoning ?? output,
  search: more.search ?? 0,
  request: more.request ?? 0,
});
