/** Renders an answer for Responses: the body, and the numbered events in the order of the vendor's streams. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { type Answer, usageOf } from './answer.ts';
import type { Frame, Render, RenderRequest } from './render.ts';
import { itemsOf } from './responses-items.ts';

function usageBody(answer: Answer): JsonObject {
  const usage = usageOf(answer);
  return {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: usage.cached },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning },
    total_tokens: usage.input + usage.output,
  };
}

/** The response object's members that echo the request or never change. */
function shell(request: RenderRequest, responseId: string): JsonObject {
  const { body } = request;
  const echo = (key: string, fallback: Json): Json => body[key] ?? fallback;
  const text = (body.text ?? {}) as JsonObject;
  return {
    id: responseId,
    object: 'response',
    created_at: 1_790_000_000,
    background: false,
    error: null,
    incomplete_details: null,
    instructions: echo('instructions', null),
    max_output_tokens: echo('max_output_tokens', null),
    max_tool_calls: null,
    model: request.model,
    parallel_tool_calls: echo('parallel_tool_calls', true),
    previous_response_id: echo('previous_response_id', null),
    prompt_cache_key: echo('prompt_cache_key', null),
    reasoning: { effort: null, summary: null, ...(body.reasoning as JsonObject | undefined) },
    safety_identifier: null,
    service_tier: 'default',
    store: echo('store', true),
    temperature: echo('temperature', 1),
    text: { format: text.format ?? { type: 'text' }, verbosity: text.verbosity ?? 'medium' },
    tool_choice: echo('tool_choice', 'auto'),
    tools: echo('tools', []),
    top_logprobs: echo('top_logprobs', 0),
    top_p: echo('top_p', 1),
    truncation: 'disabled',
    user: null,
    metadata: echo('metadata', {}),
  };
}

export const renderResponses: Render = (answer, request) => {
  const base = shell(request, request.id('resp_'));
  const items = answer.parts.flatMap((part) => itemsOf(part, request, answer));
  const incomplete = answer.finish === 'length' || answer.finish === 'filter';
  const done: JsonObject = {
    ...base,
    status: incomplete ? 'incomplete' : 'completed',
    incomplete_details: incomplete
      ? { reason: answer.finish === 'length' ? 'max_output_tokens' : 'content_filter' }
      : null,
    output: items.map((item) => item.done),
    usage: usageBody(answer),
  };

  const frames: Frame[] = [];
  const push = (type: string, fields: JsonObject) =>
    frames.push({ event: type, data: { type, sequence_number: frames.length, ...fields } });
  const running = { ...base, status: 'in_progress', output: [], usage: null };
  push('response.created', { response: running });
  push('response.in_progress', { response: running });
  items.forEach((item, output_index) => {
    push('response.output_item.added', { output_index, item: item.added });
    for (const { type, ...fields } of item.events) {
      push(type, { item_id: item.id, output_index, ...fields });
    }
    push('response.output_item.done', { output_index, item: item.done });
  });
  const terminal = frames.length;
  push(incomplete ? 'response.incomplete' : 'response.completed', { response: done });

  const failure = {
    code: 'server_error',
    message: 'An error occurred while processing your request.',
  };
  return {
    frames,
    terminal,
    errorFrames: [
      {
        event: 'error',
        data: {
          type: 'error',
          sequence_number: terminal,
          ...failure,
          param: null,
          error: { type: 'server_error', ...failure, param: null },
        },
      },
      {
        event: 'response.failed',
        data: {
          type: 'response.failed',
          sequence_number: terminal + 1,
          response: { ...base, status: 'failed', error: failure, output: [], usage: null },
        },
      },
    ],
    json: done,
  };
};
