/** The order in which captures are written: finished exchanges first, a few at a time. */

import { type Linked, LinkedList } from '../../lib/loop/linked-list.ts';
import { othersTurn } from '../../lib/loop/steps.ts';

export interface WriteQueue<T> {
  /** `over`: the exchange has ended; its write begins after this turn of the event loop. */
  add(item: T, over: boolean): void;
  /** Removes an item; false: its write is under way. */
  cancel(item: T): boolean;
  /** Begins writes as long as there is room. */
  pump(): void;
  /** Resolves when nothing waits and no write is under way. */
  idle(): Promise<void>;
}

/** What can be written. Its place is the queue's own: a `Set` would keep what it held (decision 21). */
export interface Queued<T> {
  place: QueuePlace<T> | undefined;
}

export interface QueuePlace<T> extends Linked<QueuePlace<T>> {
  readonly item: T;
  /** Where it waits; undefined: it does not. */
  waiting: LinkedList<QueuePlace<T>> | undefined;
  /** Its write is under way. */
  busy: boolean;
}

/**
 * Writes each item by itself and at most `most` items at a time. Finished exchanges may use as many places
 * again, so that a crash leaves as few of them as possible unwritten.
 * @param write never rejects
 * @param onIdle called whenever no write is under way
 */
export function writeQueue<T extends Queued<T>>(
  most: number,
  write: (item: T) => Promise<void>,
  onIdle: () => void,
): WriteQueue<T> {
  const first = new LinkedList<QueuePlace<T>>();
  const later = new LinkedList<QueuePlace<T>>();
  let busy = 0;
  let onDone: (() => void)[] = [];
  let scheduled = false;

  const leave = (place: QueuePlace<T>) => {
    place.waiting?.remove(place);
    place.waiting = undefined;
  };
  const ended = (place: QueuePlace<T>) => {
    place.busy = false;
    busy--;
    pump();
    if (busy > 0) return;
    onIdle();
    const waiting = onDone;
    onDone = [];
    for (const done of waiting) done();
  };
  const begin = (waiting: LinkedList<QueuePlace<T>>, room: number) => {
    for (let place = waiting.first; place !== undefined; ) {
      if (busy >= room) return;
      const { next } = place;
      if (!place.busy) {
        const begun = place;
        leave(begun);
        begun.busy = true;
        busy++;
        void write(begun.item).finally(() => ended(begun));
      }
      place = next;
    }
  };
  const pump = () => {
    begin(first, 2 * most);
    begin(later, most);
  };

  return {
    add(item, over) {
      item.place ??= { item, waiting: undefined, busy: false, before: undefined, next: undefined };
      const { place } = item;
      const list = over ? first : later;
      if (place.waiting !== first && place.waiting !== list) {
        leave(place);
        list.add(place);
        place.waiting = list;
      }
      if (!over || scheduled) return;
      scheduled = true;
      // Writes to clients in this turn come first.
      setImmediate(() => {
        scheduled = false;
        pump();
      });
    },
    cancel({ place }) {
      if (place === undefined) return true;
      if (place.busy) return false;
      leave(place);
      return true;
    },
    pump,
    async idle() {
      do {
        await othersTurn();
        pump();
        if (busy > 0) await new Promise<void>((resolve) => onDone.push(resolve));
      } while (busy > 0 || first.size > 0 || later.size > 0);
    },
  };
}
