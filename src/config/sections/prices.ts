import { isGlob } from '../../lib/text/glob.ts';
import {
  choice,
  closed,
  count,
  date,
  type FileForm,
  inProgram,
  integer,
  list,
  named,
  number,
  oneOrMore,
  type ProgramForm,
  text,
} from '../file/schema.ts';
import { type TimeWindow, timeWindow } from './time-window.ts';

const usd = (unit: string) => number(`USD per ${unit}`, { minimum: 0, maximum: 1_000_000 });
const million = (what: string) => usd(`million ${what}`);
const thousand = (what: string) => usd(`thousand ${what}`);

const KINDS = {
  cached: million("prompt tokens read from the vendor's cache.").optional('as input'),
  cache_write: million('prompt tokens written to the cache.').optional('as input'),
  cache_write_1h: million('prompt tokens written to the cache for one hour.').optional(
    'as cache_write',
  ),
  reasoning: million('tokens of reasoning.').optional('as output'),
  search: thousand("searches that the vendor's own tool made.").optional('nothing'),
  request: thousand('requests that were answered.').optional('nothing'),
};

export const tierTime = oneOrMore(
  timeWindow('UTC'),
  'Only for requests that end in one of these windows, written as `when.time` of a route.',
);

const tier = closed(
  'Other prices for some requests. Kinds that default to `input` or `output` follow those of the tier; others are as for the model.',
  {
    above: integer(
      'Only for requests with more prompt tokens than this, cached ones included.',
      0,
      Number.MAX_SAFE_INTEGER,
    ).optional('any length'),
    service_tier: text(
      'Only for requests in this tier, as the answer names it; if it names none, as the request asks.',
    ).optional('any'),
    time: tierTime.optional('any time'),
    input: million('prompt tokens.').optional("the model's"),
    output: million('generated tokens.').optional("the model's"),
    ...KINDS,
  },
);

export const freeSearches = closed("Searches of the vendor's own tool that cost nothing.", {
  count: count('So many in each period.'),
  per: choice(['day', 'month'], 'The period.'),
  group: text('Models with the same name here share them.').optional('this model alone'),
  zone: text('IANA time zone in which the period begins.').optional('UTC'),
});

export const searchPer = choice(
  ['search', 'request'],
  'The unit of `search`; request: all searches of one request cost as much as one.',
);

const price = closed('The price of a model.', {
  input: million('prompt tokens.'),
  output: million('generated tokens, reasoning included.'),
  ...KINDS,
  tiers: list(
    tier,
    'Other prices for some requests, with the keys of a price; the last tier that applies is used. Kinds that default to `input` or `output` follow those of the tier; others are as for the model.',
  ).optional('none'),
  regions: named(
    number(undefined, { minimum: 0, maximum: 1000 }),
    "Region → factor of the prices of tokens where the request is processed there: as the vendor's address says (eu, us, regional), or its answer (us).",
  ).optional('none'),
  search_per: searchPer.optional('search'),
  free_searches: freeSearches.optional('none'),
  effective_from: date('The day (UTC) from which this price applies.')
    .reads((day) => Date.parse(`${day}T00:00:00Z`))
    .optional('always'),
});

export type FilePrice = FileForm<typeof price>;
export type FileTier = FileForm<typeof tier>;
type OwnTier = ProgramForm<typeof tier>;
type OwnPrice = ProgramForm<typeof price>;
type WrittenRates = Pick<OwnPrice, keyof Rates>;

/** USD per million tokens; `search` and `request` per thousand. */
export type Rates = Required<Pick<OwnPrice, 'input' | 'output' | ProgramName<keyof typeof KINDS>>>;

type ProgramName<K extends string> = K extends 'cache_write'
  ? 'cacheWrite'
  : K extends 'cache_write_1h'
    ? 'cacheWrite1h'
    : K;

export type FreeSearchesPrice = NonNullable<OwnPrice['freeSearches']>;

export interface PriceTier {
  /** Prompt tokens; the tier counts for longer requests. Undefined: for all. */
  readonly above: number | undefined;
  readonly serviceTier: string | undefined;
  /** Windows within one of which a request must end. Undefined: any time. */
  readonly time: readonly TimeWindow[] | undefined;
  readonly rates: Rates;
}

export interface ModelPrice extends Rates {
  /** A model's name or a glob, as the vendor spells it. */
  readonly model: string;
  /** In the order of the file: the last one that fits counts. */
  readonly tiers: readonly PriceTier[];
  /** Factors of the prices of tokens, by region. */
  readonly regions: Readonly<Record<string, number>>;
  readonly searchPer: 'search' | 'request';
  readonly freeSearches: FreeSearchesPrice | undefined;
  /** Milliseconds since 1970; 0: it has always counted. */
  readonly effectiveFrom: number;
}

const written = named(
  oneOrMore(price, 'A price, or a list of prices of which each counts from its `effective_from`.'),
  'Prices by model name or glob. Exact names take precedence, then globs in the order of the file. They override the prices that hopgate knows.',
);

/** Exact names first; of one name the newest price first. A price that is left out is that of an ordinary token. */
export const prices = written.reads((written): readonly ModelPrice[] => {
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
  const { tiers = [], effectiveFrom = 0, regions = {}, searchPer = 'search', freeSearches } = price;
  return {
    model,
    ...ratesOf(price),
    tiers: tiers.map((tier) => ({
      above: tier.above,
      serviceTier: tier.serviceTier,
      // A window that is none has been reported.
      time: tier.time?.filter((window) => window !== undefined),
      rates: tierRates(price, tier),
    })),
    regions,
    searchPer,
    freeSearches,
    effectiveFrom,
  };
}

/** A tier's own `input` and `output` are the defaults of the kinds that follow them. */
function tierRates(price: WrittenRates, tier: OwnTier): Rates {
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
}: WrittenRates): Rates => ({
  input,
  output,
  cached,
  cacheWrite,
  cacheWrite1h,
  reasoning,
  search,
  request,
});
