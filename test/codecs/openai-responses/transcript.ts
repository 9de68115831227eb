/** Builds Responses streams from lists of events, and prints decoded events as short transcripts. */

import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import type { StreamEvent } from '../../../src/conversation/events.ts';
import type { Conversation } from '../../../src/conversation/types.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { conversation, upstream } from './material.ts';

export const ASKED = conversation({ model: 'm', input: 'i' });

export function run(events: readonly JsonObject[], sent: Conversation = ASKED, event = true) {
  const decoder = openaiResponses.decodeStream(upstream(sent));
  const none = { bytes: new Uint8Array(), from: 0, to: 0 };
  const out = events.flatMap((data) =>
    decoder.push({ event: event ? String(data.type) : '', data: JSON.stringify(data), ...none }),
  );
  return [...out, ...decoder.end()];
}

/** Events in short form: `[0 text]` opens, `0:abc` adds, `]` closes. */
export function transcript(events: readonly StreamEvent[]): string {
  return events
    .map((event) => {
      switch (event.type) {
        case 'block-start': {
          const { head } = event;
          const what =
            head.type === 'tool-call'
              ? `call ${head.namespace ? `${head.namespace}.` : ''}${head.name}/${head.kind}`
              : head.type === 'whole'
                ? `whole ${head.block.type}`
                : head.type;
          return `[${event.index} ${what}`;
        }
        case 'delta':
          return `${event.newPart ? '+' : ''}"${event.text}"`;
        case 'block-stop':
          return ']';
        case 'sealed':
          return `sealed:${event.sealed.value}`;
        case 'citation':
          return `cite:${event.citation.url}@${event.citation.start}-${event.citation.end}`;
        case 'finish':
          return `finish:${event.reason}`;
        case 'error':
          return `error:${event.error.kind}`;
        default:
          return event.type;
      }
    })
    .join(' ');
}

export const created = {
  type: 'response.created',
  response: { id: 'resp_1', model: 'gpt', created_at: 7 },
};
export const message = { id: 'msg_1', type: 'message', role: 'assistant', content: [] };
export const said = (text: string) => [{ type: 'output_text', text, annotations: [] }];
export const added = (index: number, item: JsonObject) => ({
  type: 'response.output_item.added',
  output_index: index,
  item,
});
export const done = (index: number, item: JsonObject) => ({
  type: 'response.output_item.done',
  output_index: index,
  item,
});
export const text = (index: number, delta: string, part = 0) => ({
  type: 'response.output_text.delta',
  output_index: index,
  content_index: part,
  delta,
});
export const completed = (output: readonly JsonObject[] = [], more: JsonObject = {}) => ({
  type: 'response.completed',
  response: { id: 'resp_1', status: 'completed', output, ...more },
});
