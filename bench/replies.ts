/** The bytes that the mock upstream answers with, built once: four dialects, in the vendors' own event order. */

export type Dialect = 'chat' | 'messages' | 'responses' | 'gemini';

/** The byte that stands exactly once in every text delta and nowhere else; receivers count events by it. */
export const EVENT_MARK = '~';
/** Digits of the nanosecond stamp that follows the mark in paced events. */
export const STAMP_DIGITS = 16;

const STAMP_HOLE = '0'.repeat(STAMP_DIGITS);
const CREATED = 1_770_000_000;
const FILLER = ' and the quick brown fox goes on over the lazy dog';

/** The frames of one streamed answer, before HTTP chunking. */
export interface StreamFrames {
  readonly opening: readonly string[];
  delta(index: number, text: string): string;
  closing(texts: readonly string[]): readonly string[];
}

const named = (event: string, data: object) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
const unnamed = (data: object) => `data: ${JSON.stringify(data)}\n\n`;

function chatFrames(model: string, events: number): StreamFrames {
  const chunk = (rest: object) =>
    unnamed({
      id: 'chatcmpl-bench0001',
      object: 'chat.completion.chunk',
      created: CREATED,
      model,
      system_fingerprint: 'fp_bench',
      ...rest,
    });
  const choice = (delta: object, finish: string | null) => ({
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
  });
  return {
    opening: [chunk(choice({ role: 'assistant', content: '' }, null))],
    delta: (_index, text) => chunk(choice({ content: text }, null)),
    closing: () => [
      chunk(choice({}, 'stop')),
      chunk({
        choices: [],
        usage: { prompt_tokens: 120, completion_tokens: events, total_tokens: 120 + events },
      }),
      'data: [DONE]\n\n',
    ],
  };
}

function messagesFrames(model: string, events: number): StreamFrames {
  return {
    opening: [
      named('message_start', {
        type: 'message_start',
        message: {
          id: 'msg_bench0001',
          type: 'message',
          role: 'assistant',
          model,
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: 120, output_tokens: 1 },
        },
      }),
      named('content_block_start', {
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'text', text: '' },
      }),
      named('ping', { type: 'ping' }),
    ],
    delta: (_index, text) =>
      named('content_block_delta', {
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'text_delta', text },
      }),
    closing: () => [
      named('content_block_stop', { type: 'content_block_stop', index: 0 }),
      named('message_delta', {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { output_tokens: events },
      }),
      named('message_stop', { type: 'message_stop' }),
    ],
  };
}

function responsesFrames(model: string, events: number): StreamFrames {
  const response = (status: string, output: readonly object[], usage: object | null) => ({
    id: 'resp_bench0001',
    object: 'response',
    created_at: CREATED,
    status,
    model,
    output,
    usage,
  });
  const at = { item_id: 'msg_bench0001', output_index: 0, content_index: 0 };
  const part = (text: string) => ({ type: 'output_text', text, annotations: [] });
  const item = (status: string, content: readonly object[]) => ({
    id: 'msg_bench0001',
    type: 'message',
    role: 'assistant',
    status,
    content,
  });
  const frame = (type: string, sequence: number, rest: object) =>
    named(type, { type, sequence_number: sequence, ...rest });
  const empty = response('in_progress', [], null);
  return {
    opening: [
      frame('response.created', 0, { response: empty }),
      frame('response.in_progress', 1, { response: empty }),
      frame('response.output_item.added', 2, { output_index: 0, item: item('in_progress', []) }),
      frame('response.content_part.added', 3, { ...at, part: part('') }),
    ],
    delta: (index, text) =>
      frame('response.output_text.delta', 4 + index, { ...at, delta: text, logprobs: [] }),
    closing: (texts) => {
      const text = texts.join('');
      const done = item('completed', [part(text)]);
      const usage = { input_tokens: 120, output_tokens: events, total_tokens: 120 + events };
      const next = 4 + events;
      return [
        frame('response.output_text.done', next, { ...at, text, logprobs: [] }),
        frame('response.content_part.done', next + 1, { ...at, part: part(text) }),
        frame('response.output_item.done', next + 2, { output_index: 0, item: done }),
        frame('response.completed', next + 3, { response: response('completed', [done], usage) }),
      ];
    },
  };
}

function geminiFrames(model: string, events: number): StreamFrames {
  const chunk = (text: string, tokens: number, finish?: string) =>
    unnamed({
      candidates: [
        {
          content: { parts: [{ text }], role: 'model' },
          ...(finish === undefined ? {} : { finishReason: finish }),
          index: 0,
        },
      ],
      usageMetadata: {
        promptTokenCount: 120,
        candidatesTokenCount: tokens,
        totalTokenCount: 120 + tokens,
        promptTokensDetails: [{ modality: 'TEXT', tokenCount: 120 }],
      },
      modelVersion: model,
      responseId: 'gemini-bench0001',
    });
  return {
    opening: [],
    delta: (index, text) => chunk(text, index + 1),
    closing: () => [chunk('', events, 'STOP')],
  };
}

const FRAMES = {
  chat: chatFrames,
  messages: messagesFrames,
  responses: responsesFrames,
  gemini: geminiFrames,
};

/** The frames of an answer of `events` text deltas in a dialect. */
export function streamFrames(dialect: Dialect, model: string, events: number): StreamFrames {
  return FRAMES[dialect](model, events);
}

/** One HTTP chunk of the chunked transfer coding (RFC 9112, 7.1). */
export const httpChunk = (payload: string) =>
  `${Buffer.byteLength(payload).toString(16)}\r\n${payload}\r\n`;

export const LAST_CHUNK = '0\r\n\r\n';

/** Head of every streamed answer. */
export const STREAM_HEAD =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n';

/** A whole streamed answer, each event in its own HTTP chunk. */
export function burst(dialect: Dialect, model: string, events: number): Buffer {
  const frames = streamFrames(dialect, model, events);
  const texts = Array.from({ length: events }, (_, i) => ` w${i}${EVENT_MARK}`);
  const all = [
    ...frames.opening,
    ...texts.map((text, i) => frames.delta(i, text)),
    ...frames.closing(texts),
  ];
  return Buffer.from(STREAM_HEAD + all.map(httpChunk).join('') + LAST_CHUNK);
}

/** The text of a paced event: mark, stamp, filler. `stamp` has {@link STAMP_DIGITS} digits. */
export const pacedText = (stamp: string) => `${EVENT_MARK}${stamp} tok`;

/** A paced event as an HTTP chunk with a hole for its stamp: `hole` is the offset of the first digit. */
export interface PacedTemplate {
  readonly bytes: Buffer;
  readonly hole: number;
}

/** One template per event of a paced stream. */
export function pacedTemplates(dialect: Dialect, model: string, events: number): PacedTemplate[] {
  const frames = streamFrames(dialect, model, events);
  return Array.from({ length: events }, (_, i) => {
    const bytes = Buffer.from(httpChunk(frames.delta(i, pacedText(STAMP_HOLE))));
    return { bytes, hole: bytes.indexOf(EVENT_MARK) + 1 };
  });
}

/** About 64 KB of text deltas as HTTP chunks, to be sent again and again. */
export function block(dialect: Dialect, model: string): Buffer {
  const frames = streamFrames(dialect, model, 0);
  const one = httpChunk(frames.delta(0, EVENT_MARK + FILLER.repeat(4)));
  return Buffer.from(one.repeat(Math.ceil(65_536 / one.length)));
}

function jsonReply(dialect: Dialect, model: string): object {
  const text = FILLER.repeat(12);
  if (dialect === 'gemini') {
    return {
      candidates: [
        { content: { role: 'model', parts: [{ text }] }, finishReason: 'STOP', index: 0 },
      ],
      usageMetadata: { promptTokenCount: 120, candidatesTokenCount: 130, totalTokenCount: 250 },
      modelVersion: model,
      responseId: 'gemini-bench0001',
    };
  }
  if (dialect === 'chat') {
    return {
      id: 'chatcmpl-bench0001',
      object: 'chat.completion',
      created: CREATED,
      model,
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: text, refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 120, completion_tokens: 130, total_tokens: 250 },
      system_fingerprint: 'fp_bench',
    };
  }
  if (dialect === 'messages') {
    return {
      id: 'msg_bench0001',
      type: 'message',
      role: 'assistant',
      model,
      content: [{ type: 'text', text }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 120, output_tokens: 130 },
    };
  }
  const content = [{ type: 'output_text', text, annotations: [] }];
  return {
    id: 'resp_bench0001',
    object: 'response',
    created_at: CREATED,
    status: 'completed',
    model,
    output: [
      { id: 'msg_bench0001', type: 'message', role: 'assistant', status: 'completed', content },
    ],
    usage: { input_tokens: 120, output_tokens: 130, total_tokens: 250 },
  };
}

/** A complete JSON answer of about 1 KB with its HTTP head. */
export function json(dialect: Dialect, model: string): Buffer {
  return jsonHttp(200, jsonReply(dialect, model));
}

/** Any JSON value as an HTTP answer. */
export function jsonHttp(status: number, body: object): Buffer {
  const text = JSON.stringify(body);
  return Buffer.from(
    `HTTP/1.1 ${status} ${status === 200 ? 'OK' : 'Error'}\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
}
