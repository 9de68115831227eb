/** Runs the interceptors over a whole answer. */

import type { StreamEvent } from '../conversation/events.ts';
import type { Continuation, Interceptor } from '../features/feature.ts';
import { othersTurn } from '../lib/loop/steps.ts';

export interface Intercepted {
  readonly events: readonly StreamEvent[];
  readonly next: Continuation | undefined;
}

/** Characters of a text that are looked through between two turns of the event loop. */
const SLICE = 256 * 1024;

const isLong = (event: StreamEvent) => event.type === 'delta' && event.text.length > SLICE;

/** What the interceptors make of the events; long texts are given to them in slices, with a turn of the event loop between two. */
export function intercept(
  before: readonly StreamEvent[],
  interceptors: readonly Interceptor[],
): Intercepted | Promise<Intercepted> {
  if (before.some(isLong)) return interceptLong(before, interceptors);
  let current = before;
  for (const interceptor of interceptors) {
    const out: StreamEvent[] = [];
    for (const event of current) add(out, interceptor.event(event));
    add(out, interceptor.end());
    current = out;
  }
  return outcome(before, current, interceptors);
}

async function interceptLong(
  before: readonly StreamEvent[],
  interceptors: readonly Interceptor[],
): Promise<Intercepted> {
  let current = before;
  for (const interceptor of interceptors) {
    const out: StreamEvent[] = [];
    for (const event of current) {
      if (!isLong(event)) {
        add(out, interceptor.event(event));
        continue;
      }
      const made: StreamEvent[] = [];
      let same = true;
      for (const slice of slices(event)) {
        const at = made.length;
        add(made, interceptor.event(slice));
        same &&= made.length === at + 1 && made[at] === slice;
        await othersTurn();
      }
      add(out, same ? event : made);
    }
    add(out, interceptor.end());
    current = out;
  }
  return outcome(before, current, interceptors);
}

/** Never cut within a character. */
function* slices(event: StreamEvent): Generator<StreamEvent> {
  if (event.type !== 'delta') return;
  const { text } = event;
  for (let from = 0; from < text.length; ) {
    let to = from + SLICE;
    if ((text.charCodeAt(to - 1) & 0xfc00) === 0xd800) to++;
    yield { ...event, text: text.slice(from, to) };
    from = to;
  }
}

function add(out: StreamEvent[], given: StreamEvent | readonly StreamEvent[]): void {
  if (!Array.isArray(given)) out.push(given as StreamEvent);
  else for (const event of given as readonly StreamEvent[]) out.push(event);
}

function outcome(
  before: readonly StreamEvent[],
  current: readonly StreamEvent[],
  interceptors: readonly Interceptor[],
): Intercepted {
  let next: Continuation | undefined;
  for (const interceptor of interceptors) next ??= interceptor.continuation?.();
  const same = current.length === before.length && current.every((event, i) => event === before[i]);
  return { events: same ? before : current, next };
}
