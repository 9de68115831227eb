/** Token counts of a Responses answer, converted to and from the one usage model. */

import { tokenCount, totalInput, totalOutput, type Usage } from '../../../conversation/usage.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { object } from '../wire.ts';

/** Usage of a response object. Its input tokens include cached ones, its output tokens include reasoning. */
export function decodeUsage(value: Json | undefined): Usage | undefined {
  if (!isObject(value)) return undefined;
  const input = tokenCount(value.input_tokens);
  const output = tokenCount(value.output_tokens);
  if (input === undefined && output === undefined) return undefined;
  const inner = object(value, 'input_tokens_details') ?? {};
  const cacheRead = tokenCount(inner.cached_tokens);
  const cacheWrite = tokenCount(inner.cache_write_tokens);
  const reasoning = tokenCount(object(value, 'output_tokens_details')?.reasoning_tokens);
  return {
    input: Math.max(0, (input ?? 0) - (cacheRead ?? 0) - (cacheWrite ?? 0)),
    output: Math.max(0, (output ?? 0) - (reasoning ?? 0)),
    ...(cacheRead === undefined ? {} : { cacheRead }),
    ...(cacheWrite === undefined ? {} : { cacheWrite }),
    ...(reasoning === undefined ? {} : { reasoning }),
  };
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
