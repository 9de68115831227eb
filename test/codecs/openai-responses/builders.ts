/** Builds streams of events in a short form and encodes them for a Responses client. */

import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import type { BlockHead, StreamEvent } from '../../../src/conversation/events.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { client, conversation } from './material.ts';

export const PLAIN: JsonObject = { model: 'asked-model', input: 'i' };
export const SEALING: JsonObject = {
  ...PLAIN,
  store: false,
  include: ['reasoning.encrypted_content'],
};
export const start: StreamEvent = { type: 'start', id: 'chatcmpl-1', model: 'vendor-model' };
export const finish = (
  reason: 'stop' | 'tool-calls' | 'length' | 'refusal' | 'content-filter' | 'pause',
) => [{ type: 'finish', reason }, { type: 'end' }] as const satisfies readonly StreamEvent[];

export function block(
  index: number,
  head: BlockHead,
  ...inner: readonly (string | object)[]
): StreamEvent[] {
  return [
    { type: 'block-start', index, head },
    ...inner.map((one) =>
      typeof one === 'string'
        ? ({ type: 'delta', index, text: one } as const)
        : ({ index, ...one } as StreamEvent),
    ),
    { type: 'block-stop', index },
  ];
}

export const write = (events: readonly StreamEvent[], body: JsonObject = PLAIN): string => {
  const encoder = openaiResponses.encodeStream(client(conversation(body)));
  return events.map((event) => encoder.event(event)).join('');
};
