/** The output items of the Responses protocol, each with the events that build it in a stream. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { type Answer, type Part, pieces } from './answer.ts';
import type { RenderRequest } from './render.ts';
import { encryptedFor } from './seals.ts';

export interface Item {
  id: string;
  added: JsonObject;
  /** `item_id` and `output_index` are added by the renderer. */
  events: ({ type: string } & Record<string, Json>)[];
  done: JsonObject;
}

const logprobs = (text: string): Json[] =>
  pieces(text, 4).map((token) => ({ token, logprob: -0.25, bytes: [], top_logprobs: [] }));

function messageItem(
  part: Extract<Part, { kind: 'text' | 'refusal' }>,
  request: RenderRequest,
  answer: Answer,
): Item {
  const id = request.id('msg_');
  const size = answer.delivery?.piece;
  const include = (request.body.include ?? []) as Json[];
  const wanted = include.includes('message.output_text.logprobs');
  const status = answer.finish === 'length' ? 'incomplete' : 'completed';
  const at = { content_index: 0 };
  const item = { id, type: 'message', role: 'assistant' };
  if (part.kind === 'refusal') {
    const whole = { type: 'refusal', refusal: part.text };
    return {
      id,
      added: { ...item, status: 'in_progress', content: [] },
      events: [
        { type: 'response.content_part.added', ...at, part: { type: 'refusal', refusal: '' } },
        ...pieces(part.text, size).map((delta) => ({
          type: 'response.refusal.delta',
          ...at,
          delta,
        })),
        { type: 'response.refusal.done', ...at, refusal: part.text },
        { type: 'response.content_part.done', ...at, part: whole },
      ],
      done: { ...item, status, content: [whole] },
    };
  }
  const annotations: JsonObject[] = (part.citations ?? []).map((one) => ({
    type: 'url_citation',
    start_index: 0,
    end_index: part.text.length,
    ...one,
  }));
  const all = wanted ? logprobs(part.text) : [];
  const whole = { type: 'output_text', text: part.text, annotations, logprobs: all };
  return {
    id,
    added: { ...item, status: 'in_progress', content: [] },
    events: [
      {
        type: 'response.content_part.added',
        ...at,
        part: { type: 'output_text', text: '', annotations: [], logprobs: [] },
      },
      ...pieces(part.text, size).map((delta) => ({
        type: 'response.output_text.delta',
        ...at,
        delta,
        logprobs: wanted ? logprobs(delta) : [],
      })),
      ...annotations.map((annotation, annotation_index) => ({
        type: 'response.output_text.annotation.added',
        ...at,
        annotation_index,
        annotation,
      })),
      { type: 'response.output_text.done', ...at, text: part.text, logprobs: all },
      { type: 'response.content_part.done', ...at, part: whole },
    ],
    done: { ...item, status, content: [whole] },
  };
}

function reasoningItem(
  part: Extract<Part, { kind: 'reasoning' }>,
  request: RenderRequest,
  size?: number,
): Item {
  const id = request.id('rs_');
  const include = (request.body.include ?? []) as Json[];
  const sealed = part.sealed !== false && include.includes('reasoning.encrypted_content');
  const item = { id, type: 'reasoning' };
  const seal = sealed ? { encrypted_content: encryptedFor(part.text) } : {};
  if (part.raw === true) {
    const at = { content_index: 0 };
    const whole = { type: 'reasoning_text', text: part.text };
    return {
      id,
      added: { ...item, summary: [], content: [] },
      events: [
        { type: 'response.content_part.added', ...at, part: { type: 'reasoning_text', text: '' } },
        ...pieces(part.text, size).map((delta) => ({
          type: 'response.reasoning_text.delta',
          ...at,
          delta,
        })),
        { type: 'response.reasoning_text.done', ...at, text: part.text },
        { type: 'response.content_part.done', ...at, part: whole },
      ],
      done: { ...item, summary: [], content: [whole], ...seal },
    };
  }
  const at = { summary_index: 0 };
  const whole = { type: 'summary_text', text: part.text };
  return {
    id,
    added: { ...item, summary: [], ...(sealed ? { encrypted_content: '' } : {}) },
    events: [
      {
        type: 'response.reasoning_summary_part.added',
        ...at,
        part: { type: 'summary_text', text: '' },
      },
      ...pieces(part.text, size).map((delta) => ({
        type: 'response.reasoning_summary_text.delta',
        ...at,
        delta,
      })),
      { type: 'response.reasoning_summary_text.done', ...at, text: part.text },
      { type: 'response.reasoning_summary_part.done', ...at, part: whole },
    ],
    done: { ...item, summary: [whole], ...seal },
  };
}

function callItem(
  part: Extract<Part, { kind: 'call' | 'custom' }>,
  request: RenderRequest,
  size?: number,
): Item {
  const call_id = part.id ?? request.id('call_');
  if (part.kind === 'custom') {
    const id = request.id('ctc_');
    const item = { id, type: 'custom_tool_call', call_id, name: part.name };
    return {
      id,
      added: { ...item, status: 'in_progress', input: '' },
      events: [
        ...pieces(part.input, size).map((delta) => ({
          type: 'response.custom_tool_call_input.delta',
          delta,
        })),
        { type: 'response.custom_tool_call_input.done', input: part.input },
      ],
      done: { ...item, status: 'completed', input: part.input },
    };
  }
  const id = request.id('fc_');
  const space = part.namespace === undefined ? {} : { namespace: part.namespace };
  const item = { id, type: 'function_call', call_id, name: part.name, ...space };
  return {
    id,
    added: { ...item, status: 'in_progress', arguments: '' },
    events: [
      ...pieces(part.arguments, size).map((delta) => ({
        type: 'response.function_call_arguments.delta',
        delta,
      })),
      { type: 'response.function_call_arguments.done', arguments: part.arguments, name: part.name },
    ],
    done: { ...item, status: 'completed', arguments: part.arguments },
  };
}

/** The items for one part; none where Responses cannot express it. */
export function itemsOf(part: Part, request: RenderRequest, answer: Answer): Item[] {
  const size = answer.delivery?.piece;
  switch (part.kind) {
    case 'text':
    case 'refusal':
      return [messageItem(part, request, answer)];
    case 'reasoning':
      return [reasoningItem(part, request, size)];
    case 'redacted': {
      const id = request.id('rs_');
      const done = {
        id,
        type: 'reasoning',
        summary: [],
        encrypted_content: encryptedFor(part.data),
      };
      return [{ id, added: { ...done, encrypted_content: '' }, events: [], done }];
    }
    case 'call':
    case 'custom':
      return [callItem(part, request, size)];
    case 'search': {
      const id = request.id('ws_');
      const item = { id, type: 'web_search_call' };
      return [
        {
          id,
          added: { ...item, status: 'in_progress', action: { type: 'search', query: part.query } },
          events: [
            { type: 'response.web_search_call.in_progress' },
            { type: 'response.web_search_call.searching' },
            { type: 'response.web_search_call.completed' },
          ],
          done: { ...item, status: 'completed', action: { type: 'search', query: part.query } },
        },
      ];
    }
    case 'wire':
      return [{ id: String(part.value.id ?? ''), added: part.value, events: [], done: part.value }];
  }
}
