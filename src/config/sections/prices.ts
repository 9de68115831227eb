/** The `prices` of a provider: what its models cost. */

import {
  closed,
  date,
  type FileForm,
  inProgram,
  integer,
  list,
  named,
  number,
  oneOrMore,
  optional,
  type ProgramForm,
  reads,
  text,
} from '../file/schema.ts';

const usd = (unit: string) => number(`USD per ${unit}`, { minimum: 0, maximum: 1_000_000 });
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
      integer(
        'Only for requests with more prompt tokens than this, cached ones included.',
        0,
        Number.MAX_SAFE_INTEGER,
      ),
      'any length',
    ),
    service_tier: optional(
      text(
        'Only for requests that were served in this tier, as the answer names it; if it names none, for requests that ask for this `service_tier`.',
      ),
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
      list(tier, 'Other prices for some requests. The last tier that applies is used.'),
      'none',
    ),
    effective_from: optional(
      reads(date('The day (UTC) from which this price applies.'), (day) =>
        Date.parse(`${day}T00:00:00Z`),
      ),
      'always',
    ),
  },
  'What a model costs.',
);

export type FilePrice = FileForm<typeof price>;
export type FileTier = FileForm<typeof tier>;
type OwnTier = ProgramForm<typeof tier>;
type OwnPrice = ProgramForm<typeof price>;

/** USD per million tokens; `search` and `request` per thousand. */
export type Rates = Required<Omit<OwnPrice, 'tiers' | 'effectiveFrom'>>;

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

const written = named(
  oneOrMore(price, 'A price, or a list of prices of which each counts from its `effective_from`.'),
  'Prices by model name or glob. An exact name takes precedence over globs; globs are tried in the order of the file. They override the prices that hopgate knows.',
);

/** Exact names first; of one name the newest price first. A price that is left out is that of an ordinary token. */
export const prices = reads(written, (written): readonly ModelPrice[] => {
  const isGlob = (model: string) => /[*?]/.test(model);
  return Object.entries(written)
    .map(([model, all]) =>
      all
        .map((price) => priceOf(model, price))
        .toSorted((a, b) => b.effectiveFrom - a.effectiveFrom),
    )
    .toSorted(([a], [b]) => Number(isGlob(a!.model)) - Number(isGlob(b!.model)))
    .flat();
});

export const resolvePrices = (written: FileForm<typeof prices>): readonly ModelPrice[] =>
  inProgram(prices, written);

/** One price of a model, as the file has it. */
export const modelPrice = (model: string, written: FilePrice): ModelPrice =>
  priceOf(model, inProgram(price, written));

function priceOf(model: string, price: OwnPrice): ModelPrice {
  const { tiers = [], effectiveFrom = 0 } = price;
  return {
    model,
    ...ratesOf(price),
    tiers: tiers.map((tier) => ({
      above: tier.above,
      serviceTier: tier.serviceTier,
      rates: tierRates(price, tier),
    })),
    effectiveFrom,
  };
}

/** A tier's own `input` and `output` are the defaults of the kinds that follow them. */
function tierRates(price: OwnPrice, tier: OwnTier): Rates {
  const { cached, cacheWrite, cacheWrite1h, reasoning, ...rest } = price;
  return ratesOf({
    ...rest,
    ...(tier.input === undefined && { cached, cacheWrite, cacheWrite1h }),
    ...(tier.output === undefined && { reasoning }),
    ...tier,
  });
}

const ratesOf = ({
  input,
  output,
  cached = input,
  cacheWrite = input,
  cacheWrite1h = cacheWrite,
  reasoning = output,
  search = 0,
  request = 0,
}: OwnPrice): Rates => ({
  input,
  output,
  cached,
  cacheWrite,
  cacheWrite1h,
  reasoning,
  search,
  request,
});
