/** The order in which captures are written: finished exchanges first, a few at a time. */

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

/**
 * Writes each item by itself and at most `most` items at a time. Finished exchanges may use as many places
 * again, so that a crash leaves as few of them as possible unwritten.
 * @param write never rejects
 * @param onIdle called whenever no write is under way
 */
export function writeQueue<T>(
  most: number,
  write: (item: T) => Promise<void>,
  onIdle: () => void,
): WriteQueue<T> {
  const first = new Set<T>();
  const later = new Set<T>();
  const busy = new Map<T, Promise<void>>();
  let scheduled = false;

  const begin = (waiting: Set<T>, room: number) => {
    for (const item of waiting) {
      if (busy.size >= room) return;
      if (busy.has(item)) continue;
      first.delete(item);
      later.delete(item);
      const writing = write(item).finally(() => {
        busy.delete(item);
        pump();
        if (busy.size === 0) onIdle();
      });
      busy.set(item, writing);
    }
  };
  const pump = () => {
    begin(first, 2 * most);
    begin(later, most);
  };

  return {
    add(item, over) {
      (over ? first : later).add(item);
      if (!over || scheduled) return;
      scheduled = true;
      // Writes to clients in this turn come first.
      setImmediate(() => {
        scheduled = false;
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
