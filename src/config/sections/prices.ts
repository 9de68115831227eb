/** The `prices` of a provider: what its models cost. */

import { Type } from '@sinclair/typebox';
import { closed, named, optional } from '../file/schema-types.ts';

const usd = (description: string) =>
  Type.Number({ minimum: 0, maximum: 1_000_000, description: `USD per million ${description}` });

const price = closed(
  {
    input: usd('prompt tokens.'),
    output: usd('generated tokens, reasoning included.'),
    cached: optional(usd("prompt tokens read from the vendor's cache."), 'as input'),
    cache_write: optional(usd('prompt tokens written to the cache.'), 'as input'),
    cache_write_1h: optional(
      usd('prompt tokens written to the cache for one hour.'),
      'as cache_write',
    ),
  },
  'What a model costs.',
);

/** What `prices` holds, written out because TypeScript cannot work out a schema this deep. */
type FilePrices = Readonly<
  Record<
    string,
    {
      readonly input: number;
      readonly output: number;
      readonly cached?: number;
      readonly cache_write?: number;
      readonly cache_write_1h?: number;
    }
  >
>;

export const prices = Type.Unsafe<FilePrices>(
  named(
    price,
    'Prices by model name or glob. An exact name comes before globs; globs are tried in the order of the file. Used for the costs that samples and charts show.',
  ),
);

/** USD per million tokens. */
export interface ModelPrice {
  /** A model's name or a glob, as the vendor spells it. */
  readonly model: string;
  readonly input: number;
  readonly output: number;
  /** Prompt tokens read from the vendor's cache. */
  readonly cached: number;
  /** Prompt tokens written to the cache, and those written for one hour. */
  readonly cacheWrite: number;
  readonly cacheWrite1h: number;
}

/** Exact names first. A price that is left out is that of an ordinary prompt token. */
export function resolvePrices(written: FilePrices): readonly ModelPrice[] {
  const isGlob = (model: string) => /[*?]/.test(model);
  return Object.entries(written)
    .map(([model, { input, output, cached = input, cache_write = input, cache_write_1h }]) => ({
      model,
      input,
      output,
      cached,
      cacheWrite: cache_write,
      cacheWrite1h: cache_write_1h ?? cache_write,
    }))
    .toSorted((a, b) => Number(isGlob(a.model)) - Number(isGlob(b.model)));
}
