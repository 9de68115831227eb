/** Token counts of a Messages answer, converted to and from the one usage model. */

import {
  bothCounts,
  type ExtraRun,
  tokenCount,
  toldCost,
  totalOutput,
  type Usage,
} from '../../../conversation/usage.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { put } from '../../../lib/json/json-members.ts';
import type { ClientContext } from '../../codec.ts';
import { number, objects, text } from '../wire.ts';

/** The `usage` of a message; undefined for other values. Its output tokens include thinking, its input excludes caches. */
export function decodeUsage(value: Json | undefined): Usage | undefined {
  if (!isObject(value)) return undefined;
  const input = tokenCount(value.input_tokens);
  const output = tokenCount(value.output_tokens);
  if (input === undefined && output === undefined) return undefined;
  const details = isObject(value.output_tokens_details) ? value.output_tokens_details : {};
  const creation = isObject(value.cache_creation) ? value.cache_creation : {};
  const reasoning = tokenCount(details.thinking_tokens);
  // Fast mode has prices of its own, whatever the tier: https://platform.claude.com/docs/en/build-with-claude/fast-mode
  const tier = value.speed === 'fast' ? 'fast' : text(value.service_tier);
  // `global` and `not_available` (https://platform.claude.com/docs/en/manage-claude/data-residency) have no prices of their own.
  const region = text(value.inference_geo);
  const both = bothCounts(input, output, undefined);
  const hour = tokenCount(creation.ephemeral_1h_input_tokens);
  const short = tokenCount(creation.ephemeral_5m_input_tokens);
  const written =
    hour === undefined && short === undefined ? undefined : (hour ?? 0) + (short ?? 0);
  const extraRuns = extraRunsOf(value.iterations);
  return {
    ...both,
    output: Math.max(0, both.output - (reasoning ?? 0)),
    cacheRead: tokenCount(value.cache_read_input_tokens),
    // Some relays report the parts alone.
    cacheWrite: tokenCount(value.cache_creation_input_tokens) ?? written,
    reasoning,
    cacheWrite1h: hour,
    nanoUsd: toldCost(value),
    hosted: counts(value.server_tool_use),
    serviceTier: tier,
    region: region === undefined || ANYWHERE.has(region) ? undefined : region,
    ...(extraRuns.length > 0 && { extraRuns }),
  };
}

/**
 * Types of `iterations` that the counts at the top leave out: a compaction
 * (https://platform.claude.com/docs/en/build-with-claude/compaction#understanding-usage), and an advisor, at the price of
 * its own model (https://platform.claude.com/docs/en/agents-and-tools/tool-use/advisor-tool).
 */
const LEFT_OUT: ReadonlySet<Json | undefined> = new Set(['compaction', 'advisor_message']);

function extraRunsOf(iterations: Json | undefined): ExtraRun[] {
  return objects(iterations).flatMap(({ type, model, iterations: _, ...counts }) => {
    const usage = LEFT_OUT.has(type) ? decodeUsage(counts) : undefined;
    return usage === undefined ? [] : [{ model: text(model), usage }];
  });
}

const ANYWHERE: ReadonlySet<string> = new Set(['global', 'not_available']);

function counts(value: Json | undefined): Readonly<Record<string, number>> | undefined {
  if (!isObject(value)) return undefined;
  const out: Record<string, number> = {};
  for (const [name, given] of Object.entries(value)) {
    const count = tokenCount(given);
    if (count !== undefined) put(out, name, count);
  }
  return Object.keys(out).length > 0 ? out : undefined;
}

/** The `usage` of a whole message, in the vendor's order of keys. Unknown counts are 0. */
export function encodeUsage(usage: Usage | undefined): JsonObject {
  if (usage === undefined) return { input_tokens: 0, output_tokens: 0 };
  const write = usage.cacheWrite ?? 0;
  const hour = usage.cacheWrite1h;
  return {
    input_tokens: usage.input,
    cache_creation_input_tokens: write,
    cache_read_input_tokens: usage.cacheRead ?? 0,
    ...(hour === undefined
      ? {}
      : {
          cache_creation: {
            ephemeral_5m_input_tokens: Math.max(0, write - hour),
            ephemeral_1h_input_tokens: hour,
          },
        }),
    output_tokens: totalOutput(usage),
    ...(usage.reasoning === undefined
      ? {}
      : { output_tokens_details: { thinking_tokens: usage.reasoning } }),
    ...(usage.hosted === undefined
      ? {}
      : { server_tool_use: { web_search_requests: 0, web_fetch_requests: 0, ...usage.hosted } }),
  };
}

/**
 * {@link encodeUsage} at the end of an answer. Of a prompt that the vendor does not count, an estimate: agents compact
 * their history by it, and 0 would be none.
 */
export function encodeFinalUsage(
  usage: Usage | undefined,
  context: Pick<ClientContext, 'promptTokens' | 'notes'>,
): JsonObject {
  const told = encodeUsage(usage);
  if (usage !== undefined && usage.unknown !== 'input') return told;
  const { promptTokens, notes } = context;
  if (promptTokens === undefined) return told;
  notes.add('tokens_estimated', 'usage.input_tokens', 'the vendor does not tell them');
  return { ...told, input_tokens: promptTokens };
}

/** The `usage` at the start of a stream: the known counts of the prompt, and at least one output token. */
export function encodeStartUsage(usage: Usage | undefined): JsonObject {
  const whole = encodeUsage(usage);
  return { ...whole, output_tokens: Math.max(1, number(whole.output_tokens) ?? 1) };
}
