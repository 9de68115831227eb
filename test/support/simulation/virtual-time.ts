/** Time that passes only when it is told to: timers and clocks of a simulation, many hours in a second. */

import { drainMicrotasks } from 'bun:jsc';
import type { Clock } from '../../../src/limits/limits.ts';

interface Event {
  at: number;
  readonly order: number;
  readonly every: number | undefined;
  work: (() => void) | undefined;
}

/** 2026-01-15, so that no period of the calendar ends soon. */
const BEGINNING = Date.UTC(2026, 0, 15);

export class VirtualTime {
  /** Milliseconds since the beginning. */
  now = 0;
  #events: Event[] = [];
  #order = 0;

  readonly clock: Clock = {
    wall: () => BEGINNING + Math.floor(this.now),
    monotonic: () => Math.floor(this.now),
  };

  after(ms: number, work: () => void, every?: number): Event {
    const event: Event = { at: this.now + Math.max(0, ms), order: ++this.#order, every, work };
    this.#push(event);
    return event;
  }

  /**
   * The timers of the global object are these until everything is over that happens before `end`. The caller's own
   * work does not go on meanwhile.
   */
  run(end: number): Promise<void> {
    // Only outside of a microtask can the others be run to their end.
    return new Promise((resolve, reject) => {
      setImmediate(() => {
        try {
          this.#runNow(end);
          resolve();
        } catch (thrown) {
          reject(thrown);
        }
      });
    });
  }

  #runNow(end: number): void {
    const { setTimeout, setInterval, clearTimeout, clearInterval } = globalThis;
    const handle = (event: Event) => Object.assign(event, { unref: () => event });
    const clear = (event?: Event) => {
      if (event !== undefined) event.work = undefined;
    };
    Object.assign(globalThis, {
      setTimeout: (work: () => void, ms = 0) => handle(this.after(ms, work)),
      setInterval: (work: () => void, ms = 0) => handle(this.after(ms, work, ms)),
      clearTimeout: clear,
      clearInterval: clear,
    });
    try {
      for (;;) {
        drainMicrotasks();
        const event = this.#events[0];
        if (event === undefined || event.at > end) break;
        this.#pop();
        this.now = event.at;
        event.work?.();
        if (event.every === undefined || event.work === undefined) continue;
        event.at += event.every;
        this.#push(event);
      }
      this.now = end;
    } finally {
      Object.assign(globalThis, { setTimeout, setInterval, clearTimeout, clearInterval });
    }
  }

  #push(event: Event): void {
    const events = this.#events;
    let at = events.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(event, events[parent]!)) break;
      events[at] = events[parent]!;
      at = parent;
    }
    events[at] = event;
  }

  #pop(): void {
    const events = this.#events;
    const last = events.pop()!;
    if (events.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= events.length) break;
      if (child + 1 < events.length && isBefore(events[child + 1]!, events[child]!)) child++;
      if (!isBefore(events[child]!, last)) break;
      events[at] = events[child]!;
      at = child;
    }
    events[at] = last;
  }
}

const isBefore = (one: Event, other: Event) =>
  one.at < other.at || (one.at === other.at && one.order < other.order);
