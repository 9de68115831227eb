/** The usage model: token counts that exclude each other, whatever the protocol. */

import { isObject, type JsonObject } from '../lib/json/json.ts';
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
  /** The cost of the answer as its vendor tells it, in nano-USD. Only a price of the configuration goes before it. */
  readonly nanoUsd?: number | undefined;
  /** A count that nothing in the answer says; it is 0 here, and what is paid for is an estimate. */
  readonly unknown?: 'input' | 'output';
  /** Tokens of `input` and `output` that a vendor tells apart, and may charge differently for. */
  readonly parts?: TokenParts | undefined;
  /** Sound that was heard, where it is paid for by time. */
  readonly seconds?: number | undefined;
  /** Letters that were spoken. */
  readonly characters?: number | undefined;
  /** Further runs of models that the vendor charges for and leaves out of the counts above. */
  readonly extraRuns?: readonly ExtraRun[];
}

export interface TokenParts {
  readonly inputAudio?: number | undefined;
  readonly inputText?: number | undefined;
  readonly outputAudio?: number | undefined;
  readonly outputText?: number | undefined;
}

export interface ExtraRun {
  /** Undefined: the model that answered. */
  readonly model?: string | undefined;
  readonly usage: Usage;
}

/**
 * The parts that OpenAI's APIs tell in the details of a prompt and of an answer, and OpenRouter, which tells images in place
 * of text (https://openrouter.ai/docs/api/api-reference/chat); undefined: none.
 * @param output all that was made, without reasoning
 */
export function partsOf(
  prompt: JsonObject,
  made: JsonObject,
  output: number,
): TokenParts | undefined {
  const [inputText, inputAudio] = [tokenCount(prompt.text_tokens), tokenCount(prompt.audio_tokens)];
  const outputAudio = tokenCount(made.audio_tokens);
  const images = tokenCount(made.image_tokens);
  const outputText =
    tokenCount(made.text_tokens) ?? (images ? Math.max(0, output - images) : undefined);
  return inputText || inputAudio || outputText || outputAudio
    ? { inputText, inputAudio, outputText, outputAudio }
    : undefined;
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

export const estimatedTokens = (bytes: number): number => Math.ceil(bytes / BYTES_PER_TOKEN);

const DIGITS = /^\d{1,15}$/;

/**
 * A token count of a vendor: a number of at least 0, or its digits. Numbers such as 1e999 and -5 count as not reported.
 */
export function tokenCount(value: unknown): number | undefined {
  if (typeof value === 'string' && DIGITS.test(value)) return Number(value);
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER
    ? value
    : undefined;
}

/**
 * The cost that a vendor tells in a `usage`, in nano-USD: `cost` (OpenRouter, Vercel's gateway, LiteLLM; what an own key costs
 * at the vendor behind is beside it: https://openrouter.ai/docs/cookbook/administration/usage-accounting), `cost.total_cost`
 * (Perplexity), `estimated_cost` (DeepInfra), `cost_in_usd_ticks` (https://docs.x.ai/developers/cost-tracking).
 */
export function toldCost(usage: JsonObject): number | undefined {
  const { cost, estimated_cost: estimated, cost_in_usd_ticks: ticks } = usage;
  if (cost === undefined && ticks === undefined && estimated === undefined) return undefined;
  if (typeof ticks === 'number') return nanoUsd(ticks / 1e10);
  if (isObject(cost)) {
    return (cost.currency ?? 'USD') === 'USD' ? nanoUsd(cost.total_cost) : undefined;
  }
  const told = nanoUsd(cost ?? estimated);
  if (told === undefined || usage.is_byok !== true) return told;
  const behind = isObject(usage.cost_details) ? usage.cost_details.upstream_inference_cost : null;
  const paidBehind = nanoUsd(behind);
  return paidBehind === undefined ? undefined : told + paidBehind;
}

/** Of an amount in USD, or its digits; undefined: it is none. */
export function nanoUsd(usd: unknown): number | undefined {
  const amount = typeof usd === 'string' ? Number.parseFloat(usd) : usd;
  const nano = typeof amount === 'number' ? Math.round(amount * 1e9) : Number.NaN;
  return nano >= 0 && nano <= MAX_TOLD ? nano : undefined;
}

/** A million USD: no answer costs more. */
const MAX_TOLD = 1e15;

/** Prompt and output as a vendor counts them. One that is not reported is the rest of their total. */
export function bothCounts(
  input: number | undefined,
  output: number | undefined,
  total: number | undefined,
): Pick<Usage, 'input' | 'output' | 'unknown'> {
  if (input !== undefined && output !== undefined) return { input, output };
  const known = input ?? output ?? 0;
  const unknown = input === undefined ? 'input' : 'output';
  if (total === undefined || total < known)
    return { input: input ?? 0, output: output ?? 0, unknown };
  return { input: input ?? total - known, output: output ?? total - known };
}

/** Mistral counts what it heard in the total alone. @returns tokens that belong to the prompt */
export const heardBeside = (
  usage: JsonObject,
  { input, output }: Pick<Usage, 'input' | 'output'>,
): number =>
  tokenCount(usage.prompt_audio_seconds)
    ? Math.max(0, (tokenCount(usage.total_tokens) ?? 0) - input - output)
    : 0;

/** Of two reports of one answer the one that counts: the later, unless it forgets prompt or output (relays end streams with zeros). */
export function laterUsage(before: Usage | undefined, later: Usage): Usage {
  if (before === undefined || before.unknown === 'output') return later;
  if (totalInput(later) === 0 && totalInput(before) > 0) {
    const { input, cacheRead, cacheWrite, cacheWrite1h } = before;
    return laterUsage(before, { ...later, input, cacheRead, cacheWrite, cacheWrite1h });
  }
  return totalOutput(later) === 0 && totalOutput(before) > 0 ? before : later;
}

/** The same usage with the tier that the answer names beside it. */
export const withServiceTier = (usage: Usage | undefined, tier: unknown): Usage | undefined =>
  usage === undefined || typeof tier !== 'string' ? usage : { ...usage, serviceTier: tier };

const sum = (a: number | undefined, b: number | undefined) =>
  a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0);

const NO_PARTS: TokenParts = {};

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
  const extraRuns = [...(a.extraRuns ?? []), ...(b.extraRuns ?? [])];
  const { parts: own = NO_PARTS } = a;
  const { parts: more = NO_PARTS } = b;
  return {
    ...total,
    ...((own !== NO_PARTS || more !== NO_PARTS) && {
      parts: {
        inputAudio: sum(own.inputAudio, more.inputAudio),
        inputText: sum(own.inputText, more.inputText),
        outputAudio: sum(own.outputAudio, more.outputAudio),
        outputText: sum(own.outputText, more.outputText),
      },
    }),
    ...((a.seconds ?? b.seconds) !== undefined && { seconds: sum(a.seconds, b.seconds) }),
    ...(Object.keys(hosted).length > 0 && { hosted }),
    ...(extraRuns.length > 0 && { extraRuns }),
  };
}

/** All that the vendor charges for, as one usage. */
export function withExtraRuns(usage: Usage): Usage {
  // Asked first: to take a usage apart is to copy it, and each answer comes by here.
  if (usage.extraRuns === undefined) return usage;
  const { extraRuns, ...own } = usage;
  return extraRuns.reduce<Usage>((total, run) => addUsage(total, run.usage), own);
}
