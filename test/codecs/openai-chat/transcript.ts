/** Builds Chat streams and prints decoded events as short transcripts. */

import { expect } from 'bun:test';
import type { StreamEvent } from '../../../src/conversation/events.ts';
import type { Conversation } from '../../../src/conversation/types.ts';
import { NOTHING_SENT } from './recorded.ts';
import { chunk, decodeAll, disorder, sse } from './streams.ts';

/** One entry of `tool_calls`; undefined omits a member. */
export const call = (
  index: number | undefined,
  id: string | undefined,
  name: string | undefined,
  args: string,
) => ({
  ...(index === undefined ? {} : { index }),
  ...(id === undefined ? {} : { id, type: 'function' }),
  function: { ...(name === undefined ? {} : { name }), arguments: args },
});
export const calls = (...list: readonly unknown[]) => chunk({ tool_calls: list });

/** Events, one per line. */
export function lines(events: readonly StreamEvent[]): string[] {
  return events.map((event) => {
    switch (event.type) {
      case 'block-start':
        return `+${event.index} ${event.head.type}${event.head.type === 'tool-call' ? ` ${event.head.id} ${event.head.name}` : ''}`;
      case 'delta':
        return `${event.index} ${event.text}`;
      case 'block-stop':
        return `-${event.index}`;
      case 'finish':
        return `finish ${event.reason}`;
      case 'citation':
        return `${event.index} cites ${event.citation.url}`;
      case 'sealed':
        return `${event.index} sealed ${event.sealed.kind}`;
      default:
        return event.type;
    }
  });
}

/** A handmade stream decoded, one event per line, in the order that `events.ts` promises. */
export function transcript(data: readonly unknown[], sent: Conversation = NOTHING_SENT): string[] {
  const events = decodeAll(sse(...data), [], sent);
  expect(disorder(events)).toEqual([]);
  return lines(events);
}

/** The usual first chunk. */
export const role = chunk({ role: 'assistant', content: '' });
