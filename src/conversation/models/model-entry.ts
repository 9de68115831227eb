/** Facts about a model, and how the OpenAI APIs list models. */

import type { JsonObject } from '../../lib/json/json.ts';
import { withoutTrailing } from '../../lib/text/trim-end.ts';

export type InputKind = 'text' | 'image' | 'pdf' | 'audio' | 'video';

/** Facts of a model, wherever it is served; what is left out is not known. */
export interface ModelFacts {
  /** For people: `GPT-5.1 Codex`. */
  readonly name?: string;
  /** Tokens of the window. */
  readonly context?: number;
  /** Tokens that an answer may have. */
  readonly output?: number;
  readonly tools?: boolean;
  readonly reasoning?: boolean;
  readonly input?: readonly InputKind[];
}

/** USD per million tokens. */
export interface ListedPrice {
  readonly input: number;
  readonly output: number;
  readonly cached: number;
  readonly cacheWrite: number;
}

/** A model in `GET /v1/models`. */
export interface ModelEntry {
  readonly id: string;
  readonly provider: string;
  /** Seconds since 1970. */
  readonly created: number;
  /** Left out: nothing is known of it. */
  readonly facts?: ModelFacts;
  /** Left out: its price is not known. */
  readonly price?: ListedPrice;
}

/**
 * The list of OpenAI's APIs, with the members that other gateways have made usual (OpenRouter's names and units):
 * `context_length`, `max_output_tokens`, `pricing` in USD per token as text, `capabilities`. Unknown facts are left
 * out: clients take a zero for a limit.
 */
export const openaiModels = (models: readonly ModelEntry[]): JsonObject => ({
  object: 'list',
  data: models.map(({ id, created, provider, facts, price }) => ({
    id,
    object: 'model',
    created,
    owned_by: provider,
    ...(facts?.name !== undefined && { name: facts.name }),
    ...(facts?.context !== undefined && { context_length: facts.context }),
    ...(facts?.output !== undefined && { max_output_tokens: facts.output }),
    ...(price !== undefined && { pricing: pricing(price) }),
    ...(facts !== undefined && { capabilities: capabilities(facts) }),
  })),
});

const capabilities = ({ tools, reasoning, input }: ModelFacts): JsonObject => ({
  ...(tools !== undefined && { tools }),
  ...(reasoning !== undefined && { reasoning }),
  ...(input !== undefined && { input: [...input] }),
});

const pricing = ({ input, output, cached, cacheWrite }: ListedPrice): JsonObject => ({
  prompt: perToken(input),
  completion: perToken(output),
  input_cache_read: perToken(cached),
  input_cache_write: perToken(cacheWrite),
});

/** `0.000003` of 3 USD per million: a decimal without an exponent, which some clients cannot read. */
export function perToken(perMillion: number): string {
  const text = (perMillion / 1e6).toFixed(12);
  return withoutTrailing(withoutTrailing(text, '0'), '.');
}
