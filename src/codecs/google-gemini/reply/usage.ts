/** Token counts of Gemini, converted to and from the one usage model. */

import {
  bothCounts,
  type TokenParts,
  tokenCount,
  totalInput,
  type Usage,
} from '../../../conversation/usage.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { compact, field, object } from '../wire.ts';

/**
 * The `usageMetadata` of a reply or a chunk; undefined for other values. `promptTokenCount` includes cached
 * tokens; tokens that Google's own tools put into the prompt are counted beside it; `candidatesTokenCount`
 * excludes thoughts (https://ai.google.dev/api/generate-content#UsageMetadata). A count of 0 is left out on
 * the wire.
 */
export function decodeUsage(value: unknown): Usage | undefined {
  const usage = object(value);
  if (usage === undefined) return undefined;
  const count = (name: string) => tokenCount(field(usage, name));
  const prompt = count('promptTokenCount');
  const candidates = count('candidatesTokenCount');
  const total = count('totalTokenCount');
  if (prompt === undefined && candidates === undefined && total !== 0) return undefined;
  const tools = count('toolUsePromptTokenCount') ?? 0;
  const cached = count('cachedContentTokenCount');
  const listed = count('thoughtsTokenCount');
  const rest = total === undefined ? undefined : total - tools - (listed ?? 0);
  const { input, output, unknown } = bothCounts(prompt, candidates, rest);
  // Relays that do not know the field leave thoughts in the total alone (Wei-Shaw/sub2api#554).
  const beyond = (rest ?? 0) - input - output;
  const reasoning = beyond > 0 ? (listed ?? 0) + beyond : listed;
  return {
    input: Math.max(0, input + tools - (cached ?? 0)),
    output,
    unknown,
    cacheRead: cached,
    reasoning,
    parts: partsOf(usage),
    serviceTier: servedTier(usage),
  };
}

/** Sound in the prompt that no cache had, and what was made (googleapis/js-genai, types.ts: ModalityTokenCount). */
function partsOf(usage: JsonObject): TokenParts | undefined {
  const made = field(usage, 'candidatesTokensDetails');
  const heard = modality(field(usage, 'promptTokensDetails'), 'AUDIO');
  if (made === undefined && heard === 0) return undefined;
  const cached = heard === 0 ? 0 : modality(field(usage, 'cacheTokensDetails'), 'AUDIO');
  return {
    inputAudio: Math.max(0, heard - cached),
    ...(made !== undefined && {
      outputAudio: modality(made, 'AUDIO'),
      outputText: modality(made, 'TEXT'),
    }),
  };
}

function modality(details: Json | undefined, name: string): number {
  if (!Array.isArray(details)) return 0;
  let sum = 0;
  for (const detail of details) {
    if (!isObject(detail) || detail.modality !== name) continue;
    sum += tokenCount(field(detail, 'tokenCount')) ?? 0;
  }
  return sum;
}

/** Vertex's `trafficType` (googleapis/python-genai, types.py: TrafficType) in the words of requests. */
const TRAFFIC: Readonly<Record<string, string>> = {
  ON_DEMAND: 'standard',
  ON_DEMAND_FLEX: 'flex',
  ON_DEMAND_PRIORITY: 'priority',
  PROVISIONED_THROUGHPUT: 'provisioned_throughput',
};

function servedTier(usage: JsonObject): string | undefined {
  const traffic = field(usage, 'trafficType');
  const tier = field(usage, 'serviceTier');
  if (typeof traffic === 'string' && Object.hasOwn(TRAFFIC, traffic)) return TRAFFIC[traffic];
  return typeof tier === 'string' ? tier.toLowerCase() : undefined;
}

/** The `usageMetadata` of a reply or of a stream's last chunk. */
export function encodeUsage(usage: Usage): JsonObject {
  const prompt = totalInput(usage);
  const { output, reasoning, cacheRead } = usage;
  return compact({
    promptTokenCount: prompt,
    candidatesTokenCount: output,
    totalTokenCount: prompt + output + (reasoning ?? 0),
    cachedContentTokenCount: cacheRead ? cacheRead : undefined,
    thoughtsTokenCount: reasoning ? reasoning : undefined,
  });
}
