/** Feeds streams to the decoder and encoder under test, and their output to the official SDK. */

import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream';
import type { ChatCompletion } from 'openai/resources/chat/completions';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import type { Reply, StreamEvent } from '../../../src/conversation/events.ts';
import { ReplyBuilder } from '../../../src/conversation/reply-builder.ts';
import type { Conversation } from '../../../src/conversation/types.ts';
import { decodeCut } from '../../support/chunkings.ts';
import { client, NOTHING_SENT, upstream } from './recorded.ts';

/** Decodes a body, cut at the given offsets. */
export const decodeAll = (
  bytes: Uint8Array,
  cuts: readonly number[] = [],
  sent: Conversation = NOTHING_SENT,
): StreamEvent[] => decodeCut(openaiChat.decodeStream(upstream(sent)), bytes, cuts);

/** Data lines as a stream body. */
export const sse = (...data: readonly unknown[]): Uint8Array =>
  new TextEncoder().encode(
    data.map((d) => `data: ${typeof d === 'string' ? d : JSON.stringify(d)}\n\n`).join(''),
  );

/** One chunk of a handmade stream. */
export const chunk = (delta: unknown, finish: string | null = null, more: object = {}) => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
});

export function encodeAll(events: readonly StreamEvent[], request: Conversation = NOTHING_SENT) {
  const encoder = openaiChat.encodeStream(client(request));
  return events.map((event) => encoder.event(event)).join('');
}

export function fold(events: readonly StreamEvent[]): Reply & { complete: boolean } {
  const folded = new ReplyBuilder();
  for (const event of events) folded.push(event);
  return { ...folded.reply, complete: folded.complete };
}

/** Violations of the order that `events.ts` promises. */
export function disorder(events: readonly StreamEvent[]): readonly string[] {
  const wrong: string[] = [];
  let open: number | undefined;
  let next = 0;
  let state: 'new' | 'started' | 'finished' | 'over' = 'new';
  for (const event of events) {
    if (state === 'over') wrong.push(`${event.type} behind the end`);
    if (state === 'new' && event.type !== 'start' && event.type !== 'error') {
      wrong.push(`${event.type} before start`);
    }
    switch (event.type) {
      case 'start':
        if (state !== 'new') wrong.push('second start');
        state = 'started';
        break;
      case 'block-start':
        if (open !== undefined) wrong.push('two blocks open');
        if (event.index !== next) wrong.push(`index ${event.index} for ${next}`);
        open = event.index;
        next++;
        break;
      case 'delta':
      case 'sealed':
      case 'citation':
      case 'logprobs':
        if (event.index !== open) wrong.push(`${event.type} outside its block`);
        break;
      case 'block-stop':
        if (event.index !== open) wrong.push('stop of a block that is not open');
        open = undefined;
        break;
      case 'finish':
        if (open !== undefined) wrong.push('finish in an open block');
        state = 'finished';
        break;
      case 'end':
        if (state !== 'finished') wrong.push('end without finish');
        state = 'over';
        break;
      case 'error':
        if (open !== undefined) wrong.push('error in an open block');
        state = 'over';
        break;
    }
  }
  return wrong;
}

/** What the official SDK reads from a stream; rejects where it would throw in a client. */
export function accumulate(text: string): Promise<ChatCompletion> {
  const lines = text
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: ') && frame !== 'data: [DONE]')
    .map((frame) => `${frame.slice(6)}\n`);
  const body = new Blob(lines).stream();
  return ChatCompletionStream.fromReadableStream(
    body as unknown as ReadableStream,
  ).finalChatCompletion();
}
