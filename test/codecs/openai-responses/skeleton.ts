/** Checks the order of events in a Responses stream. */

import { expect } from 'bun:test';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { frames } from './material.ts';

export interface WireEvent extends JsonObject {
  readonly type: string;
}

/** The events of an SSE text; their `event:` lines must name their types. */
export function eventsOfText(sse: string): readonly WireEvent[] {
  return frames(sse)
    .filter((frame) => frame.data !== undefined)
    .map((frame) => {
      const data = JSON.parse(frame.data ?? '') as WireEvent;
      expect(frame.event).toBe(data.type);
      return data;
    });
}

const TERMINAL = ['response.completed', 'response.incomplete', 'response.failed'];

/** Checks the structure of the stream and returns the response object of the last event. */
export function checkSkeleton(sse: string, name = ''): JsonObject {
  const events = eventsOfText(sse);
  expect(events.map((e) => e.sequence_number) as number[], name).toEqual(events.map((_, i) => i));
  expect(events[0]?.type, name).toBe('response.created');
  expect(events[1]?.type, name).toBe('response.in_progress');
  for (const event of events.slice(0, 2)) {
    const response = event.response as JsonObject;
    expect([response.status, response.usage, response.output] as unknown[], name).toEqual([
      'in_progress',
      null,
      [],
    ]);
  }
  const ends = events.filter((event) => TERMINAL.includes(event.type));
  expect(ends.length, name).toBe(1);
  expect(events.at(-1), name).toBe(ends[0]!);
  const response = ends[0]!.response as JsonObject;
  checkItems(events, response.output as readonly JsonObject[], name);
  return response;
}

function checkItems(
  events: readonly WireEvent[],
  output: readonly JsonObject[],
  name: string,
): void {
  let open = -1;
  let next = 0;
  let id: unknown;
  const finished: unknown[] = [];
  for (const event of events) {
    if (event.type === 'response.output_item.added') {
      expect(open, `${name}: an item begins while another is open`).toBe(-1);
      expect(event.output_index as number, name).toBe(next++);
      open = event.output_index as number;
      id = (event.item as JsonObject).id;
      expect(typeof id, name).toBe('string');
    } else if (event.type === 'response.output_item.done') {
      expect(event.output_index as number, name).toBe(open);
      expect((event.item as JsonObject).id as unknown, name).toBe(id);
      finished.push(event.item);
      open = -1;
    } else if (event.output_index !== undefined) {
      expect([event.output_index, event.item_id] as unknown[], name).toEqual([open, id]);
    }
  }
  expect(open, `${name}: an item is never done`).toBe(-1);
  expect(output as unknown, name).toEqual(finished);
}
