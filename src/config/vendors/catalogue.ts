/** The model catalogue: context windows, output caps, abilities and prices of known models, with the file's own over them. */

import type { InputKind, ModelFacts } from '../../conversation/models/model-entry.ts';
import { memberOf } from '../../lib/json/json-members.ts';
import { globTest } from '../../lib/text/glob.ts';
import { type ModelPrice, modelPrice } from '../sections/prices.ts';
import text from './catalogue.jsonl' with { type: 'text' };

/** USD per million tokens. */
export interface Price extends ModelPrice {
  /** configuration: from `prices` of the provider; catalogue: from the dated data. */
  readonly source: 'configuration' | 'catalogue';
  /** Audio tokens of the prompt and of the answer where they have prices of their own. */
  readonly inputAudio?: number;
  readonly outputAudio?: number;
}

interface LinePrices {
  readonly input: number;
  readonly output: number;
  readonly cached?: number;
  readonly cache_write?: number;
  readonly reasoning?: number;
  readonly input_audio?: number;
  readonly output_audio?: number;
  readonly tiers?: readonly (Partial<LinePrices> & { readonly above: number })[];
}

/** id, name, context, output cap, abilities, kinds of input, prices. */
type Line = readonly [string, string, number, number, string, string, LinePrices?];

interface Entry {
  readonly facts: ModelFacts;
  readonly price: Price | undefined;
}

interface Catalogue {
  readonly date: string;
  /** By vendor, then by id in lower case. */
  readonly vendors: ReadonlyMap<string, ReadonlyMap<string, Entry>>;
  /** By {@link plainName}: the entry of the first vendor that has the model. */
  readonly models: ReadonlyMap<string, Entry>;
}

let loaded: Catalogue | undefined;

/** Read at the first question: most commands ask none. */
function catalogue(): Catalogue {
  loaded ??= read(text);
  return loaded;
}

function read(lines: string): Catalogue {
  const [head, ...rest] = lines.trimEnd().split('\n');
  const vendors = new Map<string, Map<string, Entry>>();
  const models = new Map<string, Entry>();
  let vendor = '';
  for (const one of rest) {
    const line = JSON.parse(one) as string | Line;
    if (typeof line === 'string') {
      vendor = line;
      vendors.set(vendor, new Map());
      continue;
    }
    const entry = { facts: factsIn(line), price: priceIn(line) };
    vendors.get(vendor)!.set(line[0].toLowerCase(), entry);
    const name = plainName(line[0]);
    // A maker's vendors come first in the file, and a name comes before its own dated forms.
    if (!models.has(name)) models.set(name, entry);
  }
  return { date: (JSON.parse(head!) as { date: string }).date, vendors, models };
}

function factsIn([, name, context, output, abilities, input]: Line): ModelFacts {
  return {
    name,
    ...(context > 0 && { context }),
    ...(output > 0 && { output }),
    tools: abilities.includes('t'),
    reasoning: abilities.includes('r'),
    input: input.split(' ') as InputKind[],
  };
}

function priceIn([id, , , , , , prices]: Line): Price | undefined {
  if (prices === undefined) return undefined;
  const { tiers = [], input_audio: inputAudio, output_audio: outputAudio, ...tokens } = prices;
  const known = { ...tokens, ...hourOf(id, tokens), ...searchOf(id) };
  return {
    ...modelPrice(id, {
      ...known,
      tiers: tiers.map((tier) => ({ ...tier, ...hourOf(id, { ...tokens, ...tier }) })),
    }),
    source: 'catalogue',
    ...(inputAudio !== undefined && { inputAudio }),
    ...(outputAudio !== undefined && { outputAudio }),
  };
}

/**
 * The source has only the price for five minutes. One hour costs twice an ordinary token
 * (https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching).
 */
const hourOf = (id: string, { input, cache_write }: LinePrices) =>
  cache_write !== undefined && /claude/i.test(id) ? { cache_write_1h: 2 * input } : {};

/**
 * The source has no prices of searches. USD per thousand: Claude 10
 * (https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/web-search-tool). Where none stands here, what an
 * answer with searches cost is unknown.
 */
const searchOf = (id: string) => (/claude/i.test(id) ? { search: 10 } : {});

/** `-20250929`, `-2025-09-29`, `@20250929`, `@default`, `-latest`: what marks a version of the same model. */
const VERSION = /(?:-20\d{6}|-20\d{2}-\d{2}-\d{2}|-latest|@[a-z0-9]+)$/;

/**
 * A model's name without what differs between vendors: case, what stands before the last slash, Bedrock's region
 * and maker before it and version behind it, a tag (`:free`), a date, dots (`4.5` is `4-5`).
 */
function plainName(model: string): string {
  const last = model.slice(model.lastIndexOf('/') + 1).toLowerCase();
  const own = last
    .replace(
      /^(?:(?:us|eu|apac|jp|au|global)\.)?(?:anthropic|amazon|meta|mistral|cohere|deepseek|openai|qwen|google|minimax|moonshotai?|nvidia|writer|zai)\./,
      '',
    )
    .replace(/-v\d(?::\d)?$/, '')
    .replace(/:[a-z]+$/, '');
  return own.replace(VERSION, '').replaceAll('.', '-');
}

/** The longest name that is looked up: clients choose them. */
const LONGEST = 256;

function entryAt(vendor: string | undefined, model: string): Entry | undefined {
  if (vendor === undefined || model.length > LONGEST) return undefined;
  const own = catalogue().vendors.get(vendor);
  const id = model.toLowerCase();
  return own?.get(id) ?? own?.get(id.replace(VERSION, ''));
}

/**
 * What is known of a model: by the vendor that serves it, or else by any other, its maker first. Undefined for
 * names that the catalogue does not have.
 * @param vendor `ProviderConfig.vendor`
 * @param model as the vendor spells it; with or without a date, in any case
 */
export function modelFacts(vendor: string | undefined, model: string): ModelFacts | undefined {
  if (model.length > LONGEST) return undefined;
  return (entryAt(vendor, model) ?? catalogue().models.get(plainName(model)))?.facts;
}

/** What is known of a model at this very vendor. */
export const vendorFacts = (vendor: string | undefined, model: string): ModelFacts | undefined =>
  entryAt(vendor, model)?.facts;

/** The parts of a provider that say what its models are and cost. */
interface CatalogueProvider {
  /** Its name in the catalogue. */
  readonly vendor?: string | undefined;
  readonly prices: readonly ModelPrice[];
  /** Of single models, from the configuration. */
  readonly facts: Readonly<Record<string, ModelFacts>>;
}

/**
 * What is known of a provider's model: what the configuration says, then what the vendor lists, then the catalogue.
 * Undefined where nothing is.
 * @param listed what the vendor said last in its own list
 */
export function factsOf(
  provider: Pick<CatalogueProvider, 'vendor' | 'facts'>,
  model: string,
  listed?: ModelFacts,
): ModelFacts | undefined {
  const own = memberOf(provider.facts, model);
  const known = modelFacts(provider.vendor, model);
  return own === undefined && listed === undefined ? known : { ...known, ...listed, ...own };
}

/**
 * What a model costs at a provider now: by the file's `prices`, or else by the catalogue. Undefined where neither
 * has a price: a vendor that the catalogue does not know may ask for anything.
 */
export function priceOf(
  provider: Pick<CatalogueProvider, 'vendor' | 'prices'>,
  model: string,
): Price | undefined {
  const now = Date.now();
  const own = provider.prices.find(
    (price) => price.effectiveFrom <= now && globTest(price.model)(model),
  );
  return own === undefined
    ? cataloguePrice(provider.vendor, model)
    : { ...own, source: 'configuration' };
}

/** What the catalogue says that a model costs at a vendor. */
export const cataloguePrice = (vendor: string | undefined, model: string): Price | undefined =>
  entryAt(vendor, model)?.price;

/** The day of the catalogue's data, `2026-07-02`. */
export const catalogueDate = (): string => catalogue().date;

/**
 * The lowest window and output cap of the models whose names begin as this one does, for a model that is newer than
 * the catalogue; undefined for a family that it does not know.
 */
export function familyFacts(model: string): Pick<ModelFacts, 'context' | 'output'> | undefined {
  if (model.length > LONGEST) return undefined;
  const { models } = catalogue();
  for (let name = plainName(model); /-|\d/.test(name); name = withoutLast(name)) {
    const own = models.get(name)?.facts;
    if (own?.context !== undefined) return { context: own.context, output: own.output };
    const family = [...models].flatMap(([other, { facts }]) =>
      other.startsWith(`${name}-`) && facts.tools ? [facts] : [],
    );
    const least = (key: 'context' | 'output') =>
      Math.min(...family.map((facts) => facts[key] ?? Number.POSITIVE_INFINITY));
    const context = least('context');
    if (Number.isFinite(context)) {
      const output = least('output');
      return { context, ...(Number.isFinite(output) && { output }) };
    }
  }
  return undefined;
}

const withoutLast = (name: string): string => name.slice(0, Math.max(0, name.lastIndexOf('-')));
