/** Token counts of Chat Completions and its vendors to the one usage model, and back. */

import { tokenCount, totalInput, totalOutput, type Usage } from '../../../conversation/usage.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { compact, object } from '../wire.ts';

/**
 * `usage` of a reply or a chunk; undefined where it is not one. `prompt_tokens` holds cached and
 * written tokens, `completion_tokens` holds reasoning. Cached tokens also stand in DeepSeek's
 * `prompt_cache_hit_tokens`, Moonshot's `cached_tokens` and Mistral's `num_cached_tokens`; writes
 * in `cache_write_tokens`, or in `cache_creation_input_tokens` (DashScope, Vercel's gateway).
 */
export function decodeUsage(value: unknown): Usage | undefined {
  const usage = object(value);
  if (usage === undefined) return undefined;
  const prompt = tokenCount(usage.prompt_tokens);
  const completion = tokenCount(usage.completion_tokens);
  if (prompt === undefined && completion === undefined) return undefined;
  const promptDetails = object(usage.prompt_tokens_details) ?? {};
  const cacheRead =
    tokenCount(promptDetails.cached_tokens) ??
    tokenCount(usage.prompt_cache_hit_tokens) ??
    tokenCount(usage.cached_tokens) ??
    tokenCount(usage.num_cached_tokens);
  const stated =
    tokenCount(promptDetails.cache_write_tokens) ??
    tokenCount(promptDetails.cache_creation_input_tokens) ??
    tokenCount(usage.cache_creation_input_tokens);
  // Grok on Azure counts cached tokens beside the prompt: more cached than prompted says so. What is
  // both read and written (Gemini behind OpenRouter) was read.
  const all = prompt ?? 0;
  const outside = (cacheRead ?? 0) > all;
  const cacheWrite =
    stated === undefined || outside ? stated : Math.min(stated, all - (cacheRead ?? 0));
  const reasoning = tokenCount(object(usage.completion_tokens_details)?.reasoning_tokens);
  const searches = tokenCount(object(usage.server_tool_use_details)?.web_search_requests);
  const found: { -readonly [K in keyof Usage]: Usage[K] } = {
    input: outside ? all : all - (cacheRead ?? 0) - (cacheWrite ?? 0),
    output: outputWithoutReasoning(usage, prompt, completion ?? 0, reasoning ?? 0),
  };
  // What was not said has no member: counts are laid over those that came before.
  if (cacheRead !== undefined) found.cacheRead = cacheRead;
  if (cacheWrite !== undefined) found.cacheWrite = cacheWrite;
  if (reasoning !== undefined) found.reasoning = reasoning;
  if (searches !== undefined) found.hosted = { web_search_requests: searches };
  return found;
}

/**
 * xAI leaves reasoning out of `completion_tokens`, and says so by its `total_tokens`; Vercel's gateway
 * leaves Gemini's out of both, and shows it only by more reasoning than completion.
 */
function outputWithoutReasoning(
  usage: JsonObject,
  prompt: number | undefined,
  completion: number,
  reasoning: number,
): number {
  const total = tokenCount(usage.total_tokens);
  const summed = reasoning > 0 && total === (prompt ?? 0) + completion + reasoning;
  return summed || reasoning > completion ? completion : completion - reasoning;
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
