/** Token counts as both APIs of OpenAI and the many vendors of them report them, in the one usage model. */

import { isObject, type Json, type JsonObject } from '../lib/json/json.ts';
import { bothCounts, heardBeside, partsOf, tokenCount, toldCost, type Usage } from './usage.ts';

const members = (value: Json | undefined): JsonObject => (isObject(value) ? value : {});

/**
 * The prompt includes cache reads and writes, the output includes reasoning. Cache reads may also be in DeepSeek's
 * `prompt_cache_hit_tokens`, Moonshot's `cached_tokens`, Mistral's `num_cached_tokens` and LiteLLM's
 * `cache_read_input_tokens`, beside a `cached_tokens` of 0 (BerriAI/litellm#11789); cache writes in
 * `cache_write_tokens` or `cache_creation_input_tokens` (DashScope, Vercel's gateway), and those that are kept for an hour in
 * Anthropic's `cache_creation` or LiteLLM's `cache_creation_token_details` (types/utils.py: PromptTokensDetailsWrapper).
 */
export function openaiCounts(
  usage: JsonObject,
  prompt: number | undefined,
  output: number | undefined,
): Usage | undefined {
  if (prompt === undefined && output === undefined) return undefined;
  const details = members(usage.prompt_tokens_details ?? usage.input_tokens_details);
  const outputDetails = members(usage.completion_tokens_details ?? usage.output_tokens_details);
  const told =
    tokenCount(details.cached_tokens) ??
    tokenCount(usage.prompt_cache_hit_tokens) ??
    tokenCount(usage.cached_tokens) ??
    tokenCount(usage.num_cached_tokens);
  const cacheRead = told || (tokenCount(usage.cache_read_input_tokens) ?? told);
  const stated =
    tokenCount(details.cache_write_tokens) ??
    tokenCount(details.cache_creation_input_tokens) ??
    tokenCount(details.cache_creation_tokens) ??
    tokenCount(usage.cache_creation_input_tokens);
  const { ephemeral_1h_input_tokens: hour } = members(
    details.cache_creation_token_details ?? details.cache_creation ?? usage.cache_creation,
  );
  const total = tokenCount(usage.total_tokens);
  const both = bothCounts(prompt, output, total);
  const all = both.input + heardBeside(usage, both);
  const beyond = Math.max(0, (total ?? 0) - all - both.output);
  // Cached tokens that the prompt does not include: more than the prompt has (Grok on Azure), or as many as the total has
  // beyond prompt and completion. Tokens that are reported as both read and written (Gemini behind OpenRouter) count as read.
  const cached = (cacheRead ?? 0) + (stated ?? 0);
  const outside = (cacheRead ?? 0) > all || (cached > 0 && beyond === cached);
  const cacheWrite =
    stated === undefined || outside ? stated : Math.min(stated, all - (cacheRead ?? 0));
  const listed = tokenCount(outputDetails.reasoning_tokens);
  // OpenRouter and LiteLLM.
  const searched = members(usage.server_tool_use_details ?? usage.server_tool_use);
  const searches = tokenCount(searched.web_search_requests);
  // Gemini's own endpoint of Chat counts thoughts in the total alone (Clarifai/clarifai-python#978).
  const isUnlisted = !listed && !outside && beyond > 0;
  const reasoning = isUnlisted ? beyond : listed;
  // xAI does not include reasoning in `completion_tokens`, which its total shows. Vercel's gateway leaves Gemini's out of
  // both, which shows only if reasoning exceeds completion.
  const isBeside = (reasoning ?? 0) > 0 && (beyond === reasoning || reasoning! > both.output);
  const made = isBeside ? both.output : both.output - (reasoning ?? 0);
  return {
    input: outside ? all : all - (cacheRead ?? 0) - (cacheWrite ?? 0),
    output: made,
    unknown: both.unknown,
    cacheRead,
    cacheWrite,
    cacheWrite1h: cacheWrite === undefined ? undefined : tokenCount(hour),
    reasoning,
    parts: partsOf(details, outputDetails, made),
    nanoUsd: toldCost(usage),
    hosted: searches === undefined ? undefined : { web_search_requests: searches },
  };
}
