/** Whole answers through interceptors: long texts in slices, untouched ones as they came. */

import { describe, expect, test } from 'bun:test';
import type { StreamEvent } from '../../src/conversation/events.ts';
import type { Interceptor } from '../../src/features/feature.ts';
import { intercept } from '../../src/gateway/intercept.ts';

const LONG = `${'words, '.repeat(100_000)}😀`.repeat(2);
const answer = (text: string): readonly StreamEvent[] => [
  { type: 'block-start', index: 0, head: { type: 'text' } },
  { type: 'delta', index: 0, text },
  { type: 'block-stop', index: 0 },
];

class Watching implements Interceptor {
  readonly seen: string[] = [];
  readonly #change: (text: string) => string;

  constructor(change: (text: string) => string = (text) => text) {
    this.#change = change;
  }

  event(event: StreamEvent): StreamEvent | readonly StreamEvent[] {
    if (event.type !== 'delta') return event;
    this.seen.push(event.text);
    const text = this.#change(event.text);
    return text === event.text ? event : [{ ...event, text }];
  }

  end(): readonly StreamEvent[] {
    return [];
  }
}

const textOf = (events: readonly StreamEvent[]) =>
  events.map((event) => (event.type === 'delta' ? event.text : '')).join('');

describe('an answer', () => {
  test('that is short is done at once', () => {
    const events = answer('words');
    const watching = new Watching();
    expect(intercept(events, [watching])).toEqual({ events, next: undefined });
    expect(watching.seen).toEqual(['words']);
  });

  test('with a long text is given in slices, between which other requests run', async () => {
    const events = answer(LONG);
    const first = new Watching();
    const second = new Watching();
    let turns = 0;
    const another = () => {
      turns++;
      next = setImmediate(another);
    };
    let next = setImmediate(another);
    const { events: after } = await intercept(events, [first, second]);
    clearImmediate(next);
    expect(after).toBe(events);
    for (const { seen } of [first, second]) {
      expect(seen.length).toBeGreaterThan(4);
      expect(seen.join('')).toBe(LONG);
      for (const slice of seen) expect(slice.isWellFormed()).toBe(true);
    }
    expect(turns).toBeGreaterThan(1);
  });

  test('with a long text that is changed says what the interceptor made of it', async () => {
    const shout = new Watching((text) => text.toUpperCase());
    const { events } = await intercept(answer(LONG), [shout, new Watching()]);
    expect(textOf(events)).toBe(LONG.toUpperCase());
    expect(events.at(-1)).toEqual({ type: 'block-stop', index: 0 });
  });

  test('is cut between characters wherever the slices end', async () => {
    for (let shift = 0; shift < 2; shift++) {
      const text = 'x'.repeat(shift) + '😀'.repeat(300_000);
      const watching = new Watching();
      await intercept(answer(text), [watching]);
      expect(watching.seen.every((slice) => slice.isWellFormed())).toBe(true);
      expect(watching.seen.join('')).toBe(text);
    }
  });
});
