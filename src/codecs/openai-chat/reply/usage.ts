/** Token counts of Chat Completions and its vendors, converted to and from the one usage model. */

import { openaiCounts } from '../../../conversation/openai-usage.ts';
import {
  tokenCount,
  totalInput,
  totalOutput,
  type Usage,
  withServiceTier,
} from '../../../conversation/usage.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { compact, object } from '../wire.ts';

/** The `usage` of a reply or a chunk; undefined for other values. Some servers have the names of Messages (earendil-works/pi#2326). */
export function decodeUsage(value: unknown): Usage | undefined {
  const usage = object(value);
  if (usage === undefined) return undefined;
  const prompt = tokenCount(usage.prompt_tokens) ?? messagesPrompt(usage);
  const completion = tokenCount(usage.completion_tokens) ?? tokenCount(usage.output_tokens);
  return openaiCounts(usage, prompt, completion);
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
