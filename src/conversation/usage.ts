/** The usage model: token counts that exclude each other, whatever the protocol. */

import { memberOf, put } from '../lib/json/json-members.ts';

/**
 * - `input`: prompt tokens neither read from nor written to a cache
 * - `cacheRead`, `cacheWrite`: prompt tokens read from / written to the vendor's cache
 * - `output`: generated tokens **without** reasoning
 * - `reasoning`: generated tokens spent on reasoning
 *
 * Chat and Responses report prompt tokens with cache reads and writes included and output with
 * reasoning included; Messages reports the prompt without cache tokens and output with reasoning.
 * Each codec converts these counts, and no other file does. A count that the vendor does not report is
 * left out, which is not the same as 0.
 */
export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  readonly reasoning?: number;
  /** The part of `cacheWrite` that is stored for one hour. */
  readonly cacheWrite1h?: number;
  /** Calls of hosted tools: web_search_requests, web_fetch_requests. */
  readonly hosted?: Readonly<Record<string, number>>;
  /** The tier that the vendor says it served, in its own words; prices may depend on it. */
  readonly serviceTier?: string;
  /** Where the vendor says that the request was processed, if that is not anywhere; prices may depend on it. */
  readonly region?: string;
}

/** All prompt tokens, cached or not: Chat `prompt_tokens`, Responses `input_tokens`. */
export function totalInput(usage: Usage): number {
  return usage.input + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0);
}

/** All generated tokens: `completion_tokens`, and `output_tokens` of Responses and Messages. */
export function totalOutput(usage: Usage): number {
  return usage.output + (usage.reasoning ?? 0);
}

/** The average of JSON in vendors' tokenizers; for estimates where nothing has been counted. */
export const BYTES_PER_TOKEN = 4;

/** Estimates the tokens of a body from its bytes. */
export const estimatedTokens = (bytes: number): number => Math.ceil(bytes / BYTES_PER_TOKEN);

/**
 * A token count of a vendor: a number of at least 0. Numbers such as 1e999 and -5 count as not reported.
 */
export const tokenCount = (value: unknown): number | undefined =>
  typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value : undefined;

/** The same usage with the tier that the answer names beside it. */
export const withServiceTier = (usage: Usage | undefined, tier: unknown): Usage | undefined =>
  usage === undefined || typeof tier !== 'string' ? usage : { ...usage, serviceTier: tier };

const sum = (a: number | undefined, b: number | undefined) =>
  a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0);

/** Usage of several hops as one. */
export function addUsage(a: Usage, b: Usage): Usage {
  const hosted: Record<string, number> = { ...a.hosted };
  for (const [name, count] of Object.entries(b.hosted ?? {})) {
    put(hosted, name, (memberOf(hosted, name) ?? 0) + count);
  }
  const total: Usage = {
    input: a.input + b.input,
    output: a.output + b.output,
    cacheRead: sum(a.cacheRead, b.cacheRead),
    cacheWrite: sum(a.cacheWrite, b.cacheWrite),
    cacheWrite1h: sum(a.cacheWrite1h, b.cacheWrite1h),
    reasoning: sum(a.reasoning, b.reasoning),
  };
  return Object.keys(hosted).length > 0 ? { ...total, hosted } : total;
}
