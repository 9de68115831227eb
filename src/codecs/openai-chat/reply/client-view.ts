/** What a Chat client sees of an answer: the vendor fields, tool names and call form that it knows. */

import { openaiServiceTier } from '../../../conversation/openai-fields.ts';
import { toolNames } from '../../../conversation/tools/tool-names.ts';
import type { Conversation } from '../../../conversation/types.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { NAME_LIMIT, PROTOCOL } from '../wire.ts';

/** Vendor fields of a reply that Chat clients know. Fields of other protocols are not sent to them. */
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
 * A tool's name as the client declared it. Only a tool in a namespace, which a Chat client cannot declare, gets
 * a flat name.
 */
export function clientName(request: Conversation, name: string, namespace?: string): string {
  return namespace === undefined
    ? name
    : toolNames(request.tools, NAME_LIMIT).flat(name, namespace);
}

/** Did the client declare its tools only as legacy `functions`, so that it expects `function_call`? */
export function wantsLegacyCalls(request: Conversation): boolean {
  const value = request.origin?.protocol === PROTOCOL ? request.origin.value : undefined;
  return value?.functions !== undefined && value.tools === undefined;
}
