/** Renders an answer for Messages: the body, and the events in the order of the vendor's streams. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { type Answer, type Part, pieces, usageOf } from './answer.ts';
import type { Frame, Render, RenderRequest } from './render.ts';
import { encryptedFor, signatureFor } from './seals.ts';

/** One content block: in a whole message, at the start of a stream, and its deltas. */
interface Block {
  whole: JsonObject;
  start: JsonObject;
  deltas: JsonObject[];
}

const citation = (one: { url: string; title: string }): JsonObject => ({
  type: 'web_search_result_location',
  url: one.url,
  title: one.title,
  cited_text: one.title,
  encrypted_index: encryptedFor(one.url),
});

function inputOf(text: string): Json {
  try {
    return JSON.parse(text || '{}');
  } catch {
    // Cut arguments: the body cannot hold them, the stream can.
    return {};
  }
}

function jsonDeltas(text: string, size?: number): JsonObject[] {
  return ['', ...pieces(text, size)].map((partial_json) => ({
    type: 'input_json_delta',
    partial_json,
  }));
}

function searchBlocks(part: Extract<Part, { kind: 'search' }>, request: RenderRequest): Block[] {
  const id = request.id('srvtoolu_');
  const use = { type: 'server_tool_use', id, name: 'web_search' };
  const result: JsonObject = {
    type: 'web_search_tool_result',
    tool_use_id: id,
    content: part.results.map((one) => ({
      type: 'web_search_result',
      ...one,
      encrypted_content: encryptedFor(one.url),
      page_age: null,
    })),
  };
  const input = { query: part.query };
  return [
    {
      whole: { ...use, input },
      start: { ...use, input: {} },
      deltas: jsonDeltas(JSON.stringify(input)),
    },
    { whole: result, start: result, deltas: [] },
  ];
}

function blocksOf(part: Part, request: RenderRequest, size?: number): Block[] {
  switch (part.kind) {
    case 'refusal':
    case 'text': {
      const cited = part.kind === 'text' ? part.citations?.map(citation) : undefined;
      const base = { type: 'text', text: '', ...(cited ? { citations: [] } : {}) };
      return [
        {
          whole: { type: 'text', text: part.text, ...(cited ? { citations: cited } : {}) },
          start: base,
          deltas: [
            ...(cited ?? []).map((one) => ({ type: 'citations_delta', citation: one })),
            ...pieces(part.text, size).map((text) => ({ type: 'text_delta', text })),
          ],
        },
      ];
    }
    case 'reasoning': {
      const signature = part.sealed === false ? '' : signatureFor(part.text);
      return [
        {
          whole: { type: 'thinking', thinking: part.text, signature },
          start: { type: 'thinking', thinking: '', signature: '' },
          deltas: [
            ...pieces(part.text, size).map((thinking) => ({ type: 'thinking_delta', thinking })),
            ...(signature === '' ? [] : [{ type: 'signature_delta', signature }]),
          ],
        },
      ];
    }
    case 'redacted': {
      const whole = { type: 'redacted_thinking', data: encryptedFor(part.data) };
      return [{ whole, start: whole, deltas: [] }];
    }
    case 'call':
    case 'custom': {
      const text = part.kind === 'call' ? part.arguments : JSON.stringify({ input: part.input });
      const head = { type: 'tool_use', id: part.id ?? request.id('toolu_'), name: part.name };
      return [
        {
          whole: { ...head, input: inputOf(text) },
          start: { ...head, input: {} },
          deltas: jsonDeltas(text, size),
        },
      ];
    }
    case 'search':
      return searchBlocks(part, request);
    case 'wire':
      return [{ whole: part.value, start: part.value, deltas: [] }];
  }
}

function stopOf(answer: Answer): string {
  if (answer.finish === 'length') return 'max_tokens';
  if (answer.finish === 'pause') return 'pause_turn';
  if (answer.finish === 'filter' || answer.parts.some((part) => part.kind === 'refusal')) {
    return 'refusal';
  }
  return answer.parts.some((part) => part.kind === 'call' || part.kind === 'custom')
    ? 'tool_use'
    : 'end_turn';
}

export const renderMessages: Render = (answer, request) => {
  const size = answer.delivery?.piece;
  const blocks = answer.parts.flatMap((part) => blocksOf(part, request, size));
  const usage = usageOf(answer);
  const searches = answer.parts.filter((part) => part.kind === 'search').length;
  const inputSide = {
    input_tokens: usage.input - usage.cached - usage.cacheWrite,
    cache_creation_input_tokens: usage.cacheWrite,
    cache_read_input_tokens: usage.cached,
  };
  const outputSide = {
    output_tokens: usage.output,
    ...(usage.reasoning > 0 ? { output_tokens_details: { thinking_tokens: usage.reasoning } } : {}),
    ...(searches > 0 ? { server_tool_use: { web_search_requests: searches } } : {}),
  };
  const cacheCreation = {
    cache_creation: {
      ephemeral_5m_input_tokens: usage.cacheWrite,
      ephemeral_1h_input_tokens: 0,
    },
    service_tier: 'standard',
  };
  const message = {
    model: request.model,
    id: request.id('msg_'),
    type: 'message',
    role: 'assistant',
  };

  const frames: Frame[] = [];
  const push = (type: string, fields: JsonObject) =>
    frames.push({ event: type, data: { type, ...fields } });
  push('message_start', {
    message: {
      ...message,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...inputSide, ...cacheCreation, output_tokens: 1 },
    },
  });
  blocks.forEach((block, index) => {
    push('content_block_start', { index, content_block: block.start });
    if (index === 0) push('ping', {});
    for (const delta of block.deltas) push('content_block_delta', { index, delta });
    push('content_block_stop', { index });
  });
  const terminal = frames.length;
  push('message_delta', {
    delta: { stop_reason: stopOf(answer), stop_sequence: null },
    usage: { ...inputSide, ...outputSide },
  });
  push('message_stop', {});

  return {
    frames,
    terminal,
    errorFrames: [
      {
        event: 'error',
        data: {
          type: 'error',
          error: { type: 'api_error', message: 'Internal server error' },
          request_id: request.id('req_'),
        },
      },
    ],
    json: {
      ...message,
      content: blocks.map((block) => block.whole),
      stop_reason: stopOf(answer),
      stop_sequence: null,
      usage: { ...inputSide, ...cacheCreation, ...outputSide },
    },
  };
};
