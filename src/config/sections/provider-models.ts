/** The keys `models` and `prices` of a provider: which models it serves, what is known of them, and what they cost. */

import type { ModelFacts } from '../../conversation/models/model-entry.ts';
import { catalogueVendor, regionAt } from '../../vendors/index.ts';
import type { Preset } from '../../vendors/vendor.ts';
import {
  choice,
  closed,
  count,
  either,
  flag,
  list,
  oneOrMore,
  type ProgramForm,
  text,
} from '../file/schema.ts';
import { type ModelPrice, prices } from './prices.ts';

/** Where a fact of a model comes from that is not stated. */
const CATALOGUE = 'what is known of it';

export const PROMPT_CACHES = ['auto', 'off', '1h'] as const;
export type PromptCache = (typeof PROMPT_CACHES)[number];

const model = closed('A model with facts that are not known here, or not right.', {
  name: text('A model name.'),
  context: count('Size of its context window in tokens.', 1).optional(CATALOGUE),
  output: count('The most tokens that an answer can have.', 1).optional(CATALOGUE),
  tools: flag('It can call tools.').optional(CATALOGUE),
  reasoning: flag('It can reason.').optional(CATALOGUE),
  prompt_cache: choice(PROMPT_CACHES, 'As prompt_cache of the provider, for this model.').optional(
    "the provider's",
  ),
  input: list(
    choice(['text', 'image', 'pdf', 'audio', 'video'], 'A kind of input.'),
    'Kinds of input that it accepts.',
  ).optional(CATALOGUE),
});

export const models = oneOrMore(
  either([text('A model name or a glob; "*" = any.'), model]),
  'Models that this provider serves, as the vendor spells them; with their facts if necessary.',
).optional("the preset's");

export const modelPrices = prices.byDefault({});

export interface ProviderModels {
  /** Its name in the model catalogue, by its preset or its address; undefined for one that is not there. */
  readonly vendor?: string | undefined;
  /** Where its address says that requests are processed, as prices name it; `global`: anywhere. Undefined: it does not say. */
  readonly region?: string | undefined;
  /** Model names as they go on the wire; `*` = any. May be empty: only named by routes. */
  readonly models: readonly string[];
  /** Of single models: what the file states of them. */
  readonly facts: Readonly<Record<string, ModelFacts>>;
  /** By names and globs of models: how long their prompts are to be kept. */
  readonly modelCaches?: Readonly<Record<string, PromptCache>>;
  /** What its models cost, exact names before globs; empty when the file names no price. */
  readonly prices: readonly ModelPrice[];
}

/** @param presetName of the preset that fills in what the file leaves out */
export function resolveModels(
  own: {
    readonly models?: ProgramForm<typeof models>;
    readonly prices: ProgramForm<typeof modelPrices>;
  },
  presetName: string | undefined,
  preset: Preset | undefined,
  baseUrl: string,
): ProviderModels {
  const all: NonNullable<typeof own.models> = own.models ?? preset?.models ?? [];
  const written = all.map(
    (one): ProgramForm<typeof model> => (typeof one === 'string' ? { name: one } : one),
  );
  const stated = written.flatMap(({ name, promptCache: _, ...facts }) =>
    Object.keys(facts).length === 0 ? [] : [[name, facts] as const],
  );
  const caches = written.flatMap(({ name, promptCache }) =>
    promptCache === undefined ? [] : [[name, promptCache] as const],
  );
  return {
    vendor: catalogueVendor(presetName, baseUrl),
    region: regionAt(baseUrl),
    models: [...new Set(written.map(({ name }) => name))],
    facts: Object.fromEntries(stated),
    ...(caches.length > 0 && { modelCaches: Object.fromEntries(caches) }),
    prices: own.prices,
  };
}
