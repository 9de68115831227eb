/** Builds frames, events and conversations for transcript tests of the Messages codec. */

import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import type { StartEvent, StreamEvent } from '../../../src/conversation/events.ts';
import type { Conversation } from '../../../src/conversation/types.ts';
import { SseParser } from '../../../src/lib/bytes/sse.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { bytes, client, EMPTY, eventsOf, sse, upstream } from './recorded.ts';

export const START = {
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [],
    usage: { input_tokens: 5, output_tokens: 1 },
  },
};
export const done = (reason: string) => ({
  type: 'message_delta',
  delta: { stop_reason: reason, stop_sequence: null },
  usage: { output_tokens: 9 },
});
export const STOP = { type: 'message_stop' };
export const open = (index: number, block: JsonObject) => ({
  type: 'content_block_start',
  index,
  content_block: block,
});
export const delta = (index: number, change: JsonObject) => ({
  type: 'content_block_delta',
  index,
  delta: change,
});
export const close = (index: number) => ({ type: 'content_block_stop', index });
export const say = (index: number, text: string) => delta(index, { type: 'text_delta', text });

export const decode = (events: readonly JsonObject[], sent: Conversation = EMPTY) =>
  eventsOf([bytes(sse(...events))], upstream(sent));

/** The events sent to the client. */
export function encode(events: readonly StreamEvent[], request: Conversation = EMPTY) {
  const context = client(request);
  const encoder = anthropicMessages.encodeStream(context);
  const text = events.map((event) => encoder.event(event)).join('');
  const frames = new SseParser().push(bytes(text));
  return {
    sent: frames.map(({ data }) => JSON.parse(data ?? '') as JsonObject),
    notes: context.notes.summary(),
    text,
  };
}

export const types = (events: readonly StreamEvent[]) => events.map(({ type }) => type).join(' ');
export const begin: StartEvent = { type: 'start', id: 'chatcmpl-1.x', model: 'glm' };
export const finish = (
  reason: 'stop' | 'tool-calls' | 'length' = 'stop',
): readonly StreamEvent[] => [{ type: 'finish', reason }, { type: 'end' }];
