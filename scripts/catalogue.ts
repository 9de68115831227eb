/** Writes the model catalogue from a JSON of models.dev: `bun scripts/catalogue.ts FILE [--date YYYY-MM-DD]`. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { CATALOGUE_VENDORS } from '../src/vendors/index.ts';

const OUT = join(import.meta.dir, '../src/config/vendors/catalogue.jsonl');

/**
 * A model of models.dev's `api.json` (https://models.dev/api.json; its README has the schema), or of an
 * extract of it with the fields `context`, `output`, `tools` and `input` at the top.
 */
interface SourceModel {
  readonly name?: string;
  readonly limit?: { readonly context?: number; readonly output?: number };
  readonly modalities?: { readonly input?: readonly string[] };
  readonly tool_call?: boolean;
  readonly reasoning?: boolean;
  readonly cost?: SourceCost;
  readonly context?: number;
  readonly output?: number;
  readonly tools?: boolean;
  readonly input?: readonly string[];
}

interface SourceCost {
  readonly [key: string]: unknown;
  readonly tiers?: readonly SourceTier[];
  /** The older form of one tier. */
  readonly context_over_200k?: Readonly<Record<string, number>>;
}

interface SourceTier {
  readonly [key: string]: unknown;
  readonly tier?: { readonly size?: number };
}

type SourceVendors = Readonly<Record<string, Readonly<Record<string, SourceModel>>>>;

/** Prices in a line of the catalogue, and the names that the source has for each. */
const PRICES: Readonly<Record<string, readonly string[]>> = {
  input: ['input'],
  output: ['output'],
  cached: ['cache_read', 'cache_input', 'cached_input'],
  cache_write: ['cache_write', 'cached_write'],
  reasoning: ['reasoning'],
  input_audio: ['input_audio'],
  output_audio: ['output_audio'],
};

function pricesOf(cost: Readonly<Record<string, unknown>>): Record<string, number> {
  const prices: Record<string, number> = {};
  for (const [key, names] of Object.entries(PRICES)) {
    const value = names.map((name) => cost[name]).find((one) => typeof one === 'number');
    if (value !== undefined) prices[key] = value as number;
  }
  // A price that is that of all generated tokens says nothing.
  if (prices.reasoning === prices.output) delete prices.reasoning;
  return prices;
}

function tiersOf({ tiers, context_over_200k }: SourceCost): Record<string, number>[] {
  const written = tiers ?? (context_over_200k ? [context_over_200k] : []);
  return written
    .map((tier) => ({
      above: (tier as SourceTier).tier?.size ?? 200_000,
      ...pricesOf(tier),
    }))
    .toSorted((a, b) => a.above - b.above);
}

/** One line: id, name, context, output cap, abilities (t: tools, r: reasoning), kinds of input, prices. */
function lineOf(id: string, model: SourceModel): string {
  const { cost } = model;
  const tiers = cost === undefined ? [] : tiersOf(cost);
  const prices = { ...(cost && pricesOf(cost)), ...(tiers.length > 0 && { tiers }) };
  const abilities = `${(model.tools ?? model.tool_call) ? 't' : ''}${model.reasoning ? 'r' : ''}`;
  const priced = 'input' in prices && 'output' in prices;
  return JSON.stringify([
    id,
    (model.name ?? id).replace(/ \(latest\)$/, ''),
    model.context ?? model.limit?.context ?? 0,
    model.output ?? model.limit?.output ?? 0,
    abilities,
    (model.input ?? model.modalities?.input ?? ['text']).join(' '),
    ...(priced ? [prices] : []),
  ]);
}

/** The vendors of the source, whichever of its forms it has. */
function vendorsOf(source: Readonly<Record<string, unknown>>): SourceVendors {
  const written = (source.providers ?? source) as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    Object.entries(written).flatMap(([vendor, value]) => {
      if (typeof value !== 'object' || value === null) return [];
      const models = (value as { models?: unknown }).models;
      return [[vendor, typeof models === 'object' && models !== null ? models : value]];
    }),
  ) as SourceVendors;
}

/**
 * The text of the catalogue: its source and date in the first line, then each vendor's name and its models.
 * Vendors come in the order of {@link CATALOGUE_VENDORS}; those not named there are left out.
 * @throws Error where no date is known, or no vendor
 */
export function catalogueText(source: Readonly<Record<string, unknown>>, date?: string): string {
  const stated = /\d{4}-\d{2}-\d{2}/.exec(String(source.source ?? ''))?.[0];
  const day = date ?? stated;
  if (day === undefined || !/^\d{4}-\d{2}-\d{2}$/.test(day)) {
    throw new Error('the file names no date: say --date YYYY-MM-DD');
  }
  const vendors = vendorsOf(source);
  const known = CATALOGUE_VENDORS.filter((vendor) => Object.hasOwn(vendors, vendor));
  if (known.length === 0) throw new Error('the file has none of the vendors');
  const head = {
    source: 'https://models.dev',
    licence: 'MIT, Copyright (c) 2025 spin.dev',
    date: day,
    prices: 'USD per million tokens',
  };
  const lines = known.flatMap((vendor) => [
    JSON.stringify(vendor),
    ...Object.entries(vendors[vendor]!)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([id, model]) => lineOf(id, model)),
  ]);
  return `${[JSON.stringify(head), ...lines].join('\n')}\n`;
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: { date: { type: 'string' } },
    allowPositionals: true,
  });
  const [file] = positionals;
  if (file === undefined)
    throw new Error('usage: bun scripts/catalogue.ts FILE [--date YYYY-MM-DD]');
  writeFileSync(OUT, catalogueText(JSON.parse(readFileSync(file, 'utf8')), values.date));
}
