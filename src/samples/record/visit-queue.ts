/** Who is written next: exchanges that are over come before those that still run, a few at a time. */

export interface VisitQueue<T> {
  /** `soon`: it is over; its visit begins behind this turn of the event loop. */
  add(item: T, soon: boolean): void;
  /** Takes it out again; false: its visit is under way. */
  cancel(item: T): boolean;
  /** Begins visits as long as there is room. */
  pump(): void;
  /** Resolves when nothing waits and nothing is under way. */
  idle(): Promise<void>;
}

/**
 * Visits items one at a time each, at most `most` together; those that are over have as many places
 * again for themselves, so that a crash finds as few of them as possible unwritten.
 * @param visit never rejects
 * @param onRest called whenever nothing is under way
 */
export function visitQueue<T>(
  most: number,
  visit: (item: T) => Promise<void>,
  onRest: () => void,
): VisitQueue<T> {
  const first = new Set<T>();
  const later = new Set<T>();
  const busy = new Map<T, Promise<void>>();
  let soon = false;

  const take = (waiting: Set<T>, room: number) => {
    for (const item of waiting) {
      if (busy.size >= room) return;
      if (busy.has(item)) continue;
      first.delete(item);
      later.delete(item);
      const visiting = visit(item).finally(() => {
        busy.delete(item);
        pump();
        if (busy.size === 0) onRest();
      });
      busy.set(item, visiting);
    }
  };
  const pump = () => {
    take(first, 2 * most);
    take(later, most);
  };

  return {
    add(item, over) {
      (over ? first : later).add(item);
      if (!over || soon) return;
      soon = true;
      // Behind the writes to the clients that are under way in this turn.
      setImmediate(() => {
        soon = false;
        pump();
      });
    },
    cancel(item) {
      if (busy.has(item)) return false;
      first.delete(item);
      later.delete(item);
      return true;
    },
    pump,
    async idle() {
      do {
        await new Promise((resolve) => setImmediate(resolve));
        pump();
        await Promise.all(busy.values());
      } while (busy.size > 0 || first.size > 0 || later.size > 0);
    },
  };
}
