/** What a Chat client sees of an answer: the vendor fields, tool names and call form that it knows. */

import { openaiServiceTier } from '../../../conversation/openai-fields.ts';
import { toolNames } from '../../../conversation/tools/tool-names.ts';
import type { Conversation } from '../../../conversation/types.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { NAME_LIMIT, PROTOCOL } from '../wire.ts';

/** Fields beside the answer that Chat clients know; those of other protocols are not theirs to see. */
const CHAT_REST = [
  'system_fingerprint',
  'service_tier',
  'provider',
  'citations',
  'search_results',
  'web_search',
  'x_groq',
  'prompt_filter_results',
];

/** The vendor fields of a reply or a stream's start that a Chat client may be given. */
export function clientRest(rest: JsonObject | undefined): JsonObject {
  const out: Record<string, Json> = {};
  if (rest === undefined) return out;
  for (const key of CHAT_REST) {
    const value = key === 'service_tier' ? openaiServiceTier(rest[key]) : rest[key];
    if (value !== undefined && value !== null) out[key] = value;
  }
  return out;
}

/**
 * A tool's name as the client knows it: its own, however odd; only what it never declared so (a tool
 * in a namespace) is flattened.
 */
export function clientName(asked: Conversation, name: string, namespace?: string): string {
  return namespace === undefined ? name : toolNames(asked.tools, NAME_LIMIT).flat(name, namespace);
}

/** The client declared its tools as `functions` only, so it reads `function_call`. */
export function wantsLegacyCalls(asked: Conversation): boolean {
  const value = asked.origin?.protocol === PROTOCOL ? asked.origin.value : undefined;
  return value?.functions !== undefined && value.tools === undefined;
}
