/** Builds the response object around an answer: identity and status, the echoed request fields, output and usage. */

import { openaiServiceTier } from '../../../conversation/openai-fields.ts';
import type { Usage } from '../../../conversation/usage.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import type { ClientContext } from '../../codec.ts';
import { object, PROTOCOL } from '../wire.ts';
import { failureCode } from './errors.ts';
import type { ResponseStatus } from './finish-reason.ts';
import { encodeUsage } from './usage.ts';

export interface ResponseIdentity {
  readonly id: string;
  /** The middle part of item ids: the response id without its prefix. */
  readonly stem: string;
  readonly model: string;
  /** Seconds since 1970. */
  readonly created: number;
}

// `msg_<stem>_<index>` must be an item id that the API accepts: at most 64 of these characters.
const LEGAL_STEM = /^[a-zA-Z0-9_-]{1,54}$/;

/** The upstream's id if it has this protocol's form, else an id made from the request id. */
export function responseIdentity(
  start: { readonly id: string; readonly model: string; readonly created?: number } | undefined,
  context: ClientContext,
): ResponseIdentity {
  const given = start?.id.startsWith('resp_') === true ? start.id.slice(5) : undefined;
  const stem = given ?? context.requestId.replace(/^req_/, '');
  const requestedAt = Number(/^req_(\d{13})_/.exec(context.requestId)?.[1] ?? Number.NaN);
  return {
    id: `resp_${stem}`,
    stem: LEGAL_STEM.test(stem) ? stem : Bun.hash.wyhash(stem).toString(16).padStart(16, '0'),
    model: start?.model || context.request.model,
    created:
      start?.created ?? Math.floor((Number.isNaN(requestedAt) ? Date.now() : requestedAt) / 1000),
  };
}

/** The request fields that every response object repeats, with the API's defaults. */
export function echoRequest(context: ClientContext, rest: JsonObject | undefined): JsonObject {
  const { origin, settings } = context.request;
  const body: JsonObject = origin?.protocol === PROTOCOL ? origin.value : {};
  return {
    background: false,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: body.max_tool_calls ?? null,
    metadata: body.metadata ?? {},
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: settings.previousResponseId ?? null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    reasoning: { effort: null, summary: null, ...object(body.reasoning) },
    safety_identifier: body.safety_identifier ?? null,
    service_tier: openaiServiceTier(rest?.service_tier) ?? body.service_tier ?? null,
    store: body.store ?? true,
    temperature: body.temperature ?? null,
    text: { format: { type: 'text' }, ...object(body.text) },
    tool_choice: body.tool_choice ?? 'auto',
    tools: body.tools ?? [],
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? null,
    truncation: body.truncation ?? 'disabled',
    user: body.user ?? null,
  };
}

/** By the list of tools, which is one object for as long as its session is kept, and is echoed with every answer. */
const toolsTexts = new WeakMap<object, string>();

/** What {@link echoRequest} gives as JSON text without braces. */
export function echoedText(echo: JsonObject): string {
  const { tools } = echo;
  if (!Array.isArray(tools) || tools.length === 0) return JSON.stringify(echo).slice(1, -1);
  let text = toolsTexts.get(tools);
  if (text === undefined) {
    text = JSON.stringify(tools);
    toolsTexts.set(tools, text);
  }
  return Object.entries(echo)
    .map(([name, value]) => `"${name}":${value === tools ? text : JSON.stringify(value)}`)
    .join(',');
}

/** The members before the echoed fields. */
export function head(identity: ResponseIdentity, outcome: ResponseStatus): JsonObject {
  const completed = outcome.status === 'completed';
  return {
    id: identity.id,
    object: 'response',
    created_at: identity.created,
    status: outcome.status,
    completed_at: completed ? Math.max(identity.created, Math.floor(Date.now() / 1000)) : null,
    error:
      outcome.status === 'failed'
        ? { code: failureCode(outcome.error), message: outcome.error.message }
        : null,
    incomplete_details:
      outcome.status === 'incomplete' ? { reason: outcome.reason ?? 'max_output_tokens' } : null,
    model: identity.model,
  };
}

/** The members after the echoed fields. */
export function tail(output: readonly JsonObject[], usage: Usage | undefined): JsonObject {
  return { output, usage: usage === undefined ? null : encodeUsage(usage) };
}
