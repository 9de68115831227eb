/** Reads a JSON of models.dev: `api.json` as it is published, or an extract. */

import type { Line, Vendors } from '../models.ts';

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

/** Prices in a line, and the names that the source has for each. */
const PRICES: Readonly<Record<string, readonly string[]>> = {
  input: ['input'],
  output: ['output'],
  cached: ['cache_read', 'cache_input', 'cached_input'],
  cache_write: ['cache_write', 'cached_write'],
  reasoning: ['reasoning'],
  input_audio: ['input_audio'],
  output_audio: ['output_audio'],
};

function pricesOf(cost: Readonly<Record<string, unknown>>, hour: boolean): Record<string, number> {
  const prices: Record<string, number> = {};
  for (const [key, names] of Object.entries(PRICES)) {
    const value = names.map((name) => cost[name]).find((one) => typeof one === 'number');
    if (value !== undefined) prices[key] = value as number;
  }
  // A price that is that of all generated tokens says nothing.
  if (prices.reasoning === prices.output) delete prices.reasoning;
  // The source has only the price for five minutes; one hour costs twice an ordinary token
  // (https://platform.claude.com/docs/en/build-with-claude/prompt-caching).
  if (hour && prices.cache_write !== undefined && prices.input !== undefined) {
    prices.cache_write_1h = 2 * prices.input;
  }
  return prices;
}

function tiersOf(cost: SourceCost, hour: boolean): readonly Line[] {
  const written = cost.tiers ?? (cost.context_over_200k ? [cost.context_over_200k] : []);
  return written
    .map((tier) => ({
      above: (tier as SourceTier).tier?.size ?? 200_000,
      ...pricesOf(tier, hour),
    }))
    .toSorted((a, b) => a.above - b.above);
}

const letters = (tools: boolean, reasons: boolean) => `${tools ? 't' : ''}${reasons ? 'r' : ''}`;

function lineOf(id: string, model: SourceModel): Line {
  const { cost } = model;
  const hour = /claude/i.test(id);
  const tiers = cost === undefined ? [] : tiersOf(cost, hour);
  const prices = {
    ...(cost && pricesOf(cost, hour)),
    // https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool: 10 USD per thousand.
    ...(hour && { search: 10 }),
    ...(tiers.length > 0 && { tiers }),
  };
  const context = model.context ?? model.limit?.context ?? 0;
  const output = model.output ?? model.limit?.output ?? 0;
  return {
    name: (model.name ?? id).replace(/ \(latest\)$/, ''),
    ...(context > 0 && { context }),
    ...(output > 0 && { output }),
    can: letters((model.tools ?? model.tool_call) === true, model.reasoning === true),
    cannot: letters((model.tools ?? model.tool_call) === false, model.reasoning === false),
    in: (model.input ?? model.modalities?.input ?? ['text']).join(' '),
    ...('input' in prices && 'output' in prices && { usd: prices }),
  };
}

/** The vendors of the source, whichever of its forms it has. */
export function modelsDevVendors(source: Readonly<Record<string, unknown>>): Vendors {
  const written = (source.providers ?? source) as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    Object.entries(written).flatMap(([vendor, value]) => {
      if (typeof value !== 'object' || value === null) return [];
      const models = (value as { models?: unknown }).models;
      const own = typeof models === 'object' && models !== null ? models : value;
      const lines = Object.entries(own as Readonly<Record<string, SourceModel>>);
      return [[vendor, Object.fromEntries(lines.map(([id, model]) => [id, lineOf(id, model)]))]];
    }),
  );
}
