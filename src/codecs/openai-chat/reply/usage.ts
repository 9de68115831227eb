/** Token counts of Chat Completions and its vendors, converted to and from the one usage model. */

import {
  bothCounts,
  tokenCount,
  toldCost,
  totalInput,
  totalOutput,
  type Usage,
  withServiceTier,
} from '../../../conversation/usage.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { compact, object } from '../wire.ts';

/**
 * The `usage` of a reply or a chunk; undefined for other values. `prompt_tokens` includes cache reads and
 * writes, `completion_tokens` includes reasoning. Cache reads may also be in DeepSeek's
 * `prompt_cache_hit_tokens`, Moonshot's `cached_tokens`, Mistral's `num_cached_tokens` and LiteLLM's
 * `cache_read_input_tokens`, beside a `cached_tokens` of 0 (BerriAI/litellm#11789); cache writes in
 * `cache_write_tokens` or `cache_creation_input_tokens` (DashScope, Vercel's gateway). Some servers have the names of
 * Messages (earendil-works/pi#2326).
 */
export function decodeUsage(value: unknown): Usage | undefined {
  const usage = object(value);
  if (usage === undefined) return undefined;
  const prompt = tokenCount(usage.prompt_tokens) ?? messagesPrompt(usage);
  const completion = tokenCount(usage.completion_tokens) ?? tokenCount(usage.output_tokens);
  if (prompt === undefined && completion === undefined) return undefined;
  const promptDetails = object(usage.prompt_tokens_details) ?? {};
  const told =
    tokenCount(promptDetails.cached_tokens) ??
    tokenCount(usage.prompt_cache_hit_tokens) ??
    tokenCount(usage.cached_tokens) ??
    tokenCount(usage.num_cached_tokens);
  const cacheRead = told || (tokenCount(usage.cache_read_input_tokens) ?? told);
  const stated =
    tokenCount(promptDetails.cache_write_tokens) ??
    tokenCount(promptDetails.cache_creation_input_tokens) ??
    tokenCount(promptDetails.cache_creation_tokens) ??
    tokenCount(usage.cache_creation_input_tokens);
  const total = tokenCount(usage.total_tokens);
  const both = bothCounts(prompt, completion, total);
  const all = both.input;
  const beyond = Math.max(0, (total ?? 0) - all - both.output);
  // Cached tokens that the prompt does not include: more than the prompt has (Grok on Azure), or as many as the total has
  // beyond prompt and completion. Tokens that are reported as both read and written (Gemini behind OpenRouter) count as read.
  const cached = (cacheRead ?? 0) + (stated ?? 0);
  const outside = (cacheRead ?? 0) > all || (cached > 0 && beyond === cached);
  const cacheWrite =
    stated === undefined || outside ? stated : Math.min(stated, all - (cacheRead ?? 0));
  const listed = tokenCount(object(usage.completion_tokens_details)?.reasoning_tokens);
  const searches = tokenCount(object(usage.server_tool_use_details)?.web_search_requests);
  // Gemini's own endpoint of this form counts thoughts in the total alone (Clarifai/clarifai-python#978).
  const isUnlisted = !listed && !outside && beyond > 0;
  const reasoning = isUnlisted ? beyond : listed;
  // xAI does not include reasoning in `completion_tokens`, which its total shows. Vercel's gateway leaves Gemini's out of
  // both, which shows only if reasoning exceeds completion.
  const isBeside = (reasoning ?? 0) > 0 && (beyond === reasoning || reasoning! > both.output);
  return {
    input: outside ? all : all - (cacheRead ?? 0) - (cacheWrite ?? 0),
    output: isBeside ? both.output : both.output - (reasoning ?? 0),
    unknown: both.unknown,
    cacheRead,
    cacheWrite,
    reasoning,
    nanoUsd: toldCost(usage),
    hosted: searches === undefined ? undefined : { web_search_requests: searches },
  };
}

/** The `usage` object of a reply or of a stream's usage chunk. */
export function encodeUsage(usage: Usage): JsonObject {
  const prompt = totalInput(usage);
  const completion = totalOutput(usage);
  const promptDetails: Record<string, Json> = { cached_tokens: usage.cacheRead ?? 0 };
  if (usage.cacheWrite !== undefined) promptDetails.cache_write_tokens = usage.cacheWrite;
  return compact({
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: promptDetails,
    completion_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    server_tool_use_details:
      usage.hosted === undefined || Object.keys(usage.hosted).length === 0
        ? undefined
        : { ...usage.hosted },
  });
}

/** The same with the tier that the answer names. */
export const servedUsage = (
  value: unknown,
  { service_tier: tier }: JsonObject,
): Usage | undefined => withServiceTier(decodeUsage(value), tier);

/** The prompt by its name in Messages, where cached tokens are beside it. */
function messagesPrompt(usage: JsonObject): number | undefined {
  const input = tokenCount(usage.input_tokens);
  if (input === undefined) return undefined;
  const cached = ['cache_read_input_tokens', 'cache_creation_input_tokens'] as const;
  return cached.reduce((sum, name) => sum + (tokenCount(usage[name]) ?? 0), input);
}
