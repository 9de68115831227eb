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
  input_audio: million('prompt tokens of sound.').optional('as input'),
  output_audio: million('generated tokens of sound.').optional('as output'),
  search: thousand("searches that the vendor's own tool made.").optional('nothing'),
  request: thousand('answered requests.').optional('nothing'),
};

const LENGTHS = {
  minute: thousand('minutes of transcribed sound.').optional('nothing'),
  character: million('spoken characters.').optional('nothing'),
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
  ...LENGTHS,
  tiers: list(
    tier,
    'Other prices for some requests, with the same keys; the last one that applies counts. Kinds that default to `input` or `output` follow those of the tier.',
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
type OwnTier = ProgramForm<typeof tier>;
type OwnPrice = ProgramForm<typeof price>;
type WrittenRates = Pick<OwnPrice, Exclude<keyof Rates, keyof TextRates>> & TextRates;

/** Kinds of tokens that cost as all others of the prompt or of the answer do where they have no price of their own. */
export const PART_RATES = {
  inputAudio: 'input',
  inputText: 'input',
  outputAudio: 'output',
  outputText: 'output',
} as const;
type PartRate = keyof typeof PART_RATES;
/** Prices that few models have. */
const RARE = [
  'minute',
  'character',
  ...(Object.keys(PART_RATES) as PartRate[]),
] as const satisfies readonly string[];
type RareRate = (typeof RARE)[number];

/** Of models whose usual tokens are images; only the catalogue has them. */
export type TextRates = Readonly<Partial<Record<'inputText' | 'outputText', number>>>;

/** USD per million tokens and characters; `search`, `request` and `minute` per thousand. */
export type Rates = Required<
  Pick<OwnPrice, 'input' | 'output' | Exclude<ProgramName<keyof typeof KINDS>, PartRate>>
> &
  Readonly<Partial<Record<RareRate, number>>>;

type ProgramName<K extends string> = K extends `${infer A}_${infer B}`
  ? `${A}${Capitalize<ProgramName<B>>}`
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
  'Prices by model name or glob: exact names first, then globs in the order of the file. They override built-in ones.',
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
export const modelPrice = (model: string, written: FilePrice, text?: TextRates): ModelPrice =>
  priceOf(model, { ...inProgram(price, written), ...text });

function priceOf(model: string, price: OwnPrice & TextRates): ModelPrice {
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
    ...partsOfTier(price, tier),
    ...(tier.input === undefined && { cached, cacheWrite, cacheWrite1h }),
    ...(tier.output === undefined && { reasoning }),
    ...tier,
  });
}

/** The share of the usual price that a part has in the model's own price. */
function partsOfTier(price: WrittenRates, tier: OwnTier): Partial<Rates> {
  const parts: Partial<Record<PartRate, number>> = {};
  for (const [part, whole] of Object.entries(PART_RATES) as [PartRate, 'input' | 'output'][]) {
    const [own, usual, now] = [price[part], price[whole], tier[whole]];
    if (own === undefined) continue;
    parts[part] =
      now === undefined || usual === 0 ? own : Number(((own * now) / usual).toPrecision(12));
  }
  return parts;
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
  ...others
}: WrittenRates): Rates => ({
  input,
  output,
  cached,
  cacheWrite,
  cacheWrite1h,
  reasoning,
  search,
  request,
  ...Object.fromEntries(
    RARE.filter((kind) => others[kind] !== undefined).map((kind) => [kind, others[kind]]),
  ),
});
