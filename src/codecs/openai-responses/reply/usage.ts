/** Token counts of a Responses answer, converted to and from the one usage model. */

import { openaiCounts } from '../../../conversation/openai-usage.ts';
import {
  type ExtraRun,
  tokenCount,
  totalInput,
  totalOutput,
  type Usage,
  withServiceTier,
} from '../../../conversation/usage.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { object, objects } from '../wire.ts';

/** Usage of a response object. Relays give it by the names of Chat, some beside zeros by its own. */
export function decodeUsage(value: Json | undefined): Usage | undefined {
  if (!isObject(value)) return undefined;
  const count = (own: string, chats: string) =>
    tokenCount(value[own]) || (tokenCount(value[chats]) ?? tokenCount(value[own]));
  return openaiCounts(
    value,
    count('input_tokens', 'prompt_tokens'),
    count('output_tokens', 'completion_tokens'),
  );
}

/** The usage of a whole response object, with the tier that was served and the searches that were made. */
export function usageOf(response: JsonObject): Usage | undefined {
  const usage = withServiceTier(decodeUsage(response.usage), response.service_tier);
  if (usage === undefined) return undefined;
  const searches = objects(response.output).filter(isSearch).length;
  const drawn = drawnIn(response);
  return {
    ...usage,
    ...(searches > 0 && { hosted: { web_search_requests: searches } }),
    ...(drawn !== undefined && { extraRuns: [drawn] }),
  };
}

/** The model of images where the tool names none (openai-node 6.x, responses.ts: ImageGeneration.model). */
const USUAL_PAINTER = 'gpt-image-2.6-sunburst';

/** Images that a hosted tool made, with a model of its own: the counts of the answer leave them out (Wei-Shaw/sub2api#4644). */
function drawnIn({ tool_usage: used, tools }: JsonObject): ExtraRun | undefined {
  const usage = isObject(used) ? decodeUsage(used.image_gen) : undefined;
  if (usage === undefined || totalInput(usage) + totalOutput(usage) === 0) return undefined;
  const { model } = objects(tools).find(({ type }) => type === 'image_generation') ?? {};
  return { model: typeof model === 'string' ? model : USUAL_PAINTER, usage };
}

/**
 * Only the action `search` has a price of its own; pages that are opened or searched through do not
 * (https://developers.openai.com/api/docs/guides/tools-web-search). Older answers name no action.
 */
function isSearch(item: JsonObject): boolean {
  if (item.type !== 'web_search_call' || item.status === 'failed') return false;
  return (object(item.action)?.type ?? 'search') === 'search';
}

/** The `usage` object. The official types require both details. */
export function encodeUsage(usage: Usage): JsonObject {
  const input = totalInput(usage);
  const output = totalOutput(usage);
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: usage.cacheRead ?? 0,
      ...(usage.cacheWrite === undefined ? {} : { cache_write_tokens: usage.cacheWrite }),
    },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    total_tokens: input + output,
  };
}
