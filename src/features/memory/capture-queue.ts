/** A bounded queue of captured events, written in batches in the background and retried after failures. */

import { othersTurn } from '../../lib/loop/steps.ts';

export interface CaptureQueueOptions<T> {
  /** Writes a whole batch or nothing. Where it throws, the batch is tried again later. */
  readonly write: (items: readonly T[]) => void | Promise<void>;
  readonly sizeOf: (item: T) => number;
  /** Called for items that the queue had no room for. */
  readonly onDropped: (count: number) => void;
  readonly onTrouble: (thrown: unknown) => void;
  readonly limits?: Partial<CaptureLimits>;
}

export interface CaptureLimits {
  /** The largest number of queued items, and their largest total size. */
  readonly items: number;
  readonly bytes: number;
  /** Items written at a time. */
  readonly batch: number;
  /** Their largest total size; a larger single item is a batch of its own. */
  readonly batchBytes: number;
  /** Milliseconds between the first item and its batch, and before a retry. */
  readonly flushAfter: number;
  readonly retryAfter: number;
}

export interface CaptureQueue<T> {
  add(items: readonly T[]): void;
  /** Removes unwritten items after the current write; the number of removed items. */
  remove(which: (item: T) => boolean): Promise<number>;
  /** Resolves when everything queued has been tried once. */
  flush(): Promise<void>;
  /** Tries a last time; what fails now is dropped and reported. */
  close(): Promise<void>;
  readonly waiting: number;
}

const LIMITS: CaptureLimits = {
  items: 5000,
  bytes: 8 * 2 ** 20,
  batch: 200,
  batchBytes: 10_000,
  flushAfter: 50,
  retryAfter: 1000,
};

export function captureQueue<T>(options: CaptureQueueOptions<T>): CaptureQueue<T> {
  const { write, sizeOf, onDropped, onTrouble } = options;
  const limits = { ...LIMITS, ...options.limits };
  let waiting: T[] = [];
  let bytes = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let inFlight: Promise<void> | undefined;
  let closed = false;

  const schedule = (after: number) => {
    if (closed || timer !== undefined || waiting.length === 0) return;
    timer = setTimeout(() => {
      timer = undefined;
      step();
    }, after);
    timer.unref();
  };
  const removeItems = (items: readonly T[]) => {
    const gone = new Set(items);
    waiting = waiting.filter((item) => !gone.has(item));
    for (const item of gone) bytes -= sizeOf(item);
  };

  function first(): readonly T[] {
    let count = 0;
    for (let size = 0; count < Math.min(limits.batch, waiting.length); count++) {
      size += sizeOf(waiting[count]!);
      if (size > limits.batchBytes && count > 0) break;
    }
    return waiting.slice(0, count);
  }

  function step(): void {
    if (inFlight !== undefined || waiting.length === 0) return;
    const batch = first();
    inFlight = (async () => write(batch))().then(
      () => {
        inFlight = undefined;
        removeItems(batch);
        schedule(0);
      },
      (thrown) => {
        inFlight = undefined;
        onTrouble(thrown);
        schedule(limits.retryAfter);
      },
    );
  }
  const flush = async () => {
    for (let before = -1; waiting.length > 0 && waiting.length !== before; ) {
      before = waiting.length;
      step();
      await inFlight;
      await othersTurn();
    }
  };

  return {
    add(items) {
      let dropped = 0;
      for (const item of items) {
        const size = sizeOf(item);
        if (closed || waiting.length >= limits.items || bytes + size > limits.bytes) dropped++;
        else {
          waiting.push(item);
          bytes += size;
        }
      }
      if (dropped > 0) onDropped(dropped);
      schedule(waiting.length >= limits.batch ? 0 : limits.flushAfter);
    },
    async remove(which) {
      await inFlight;
      const gone = waiting.filter(which);
      removeItems(gone);
      return gone.length;
    },
    flush,
    async close() {
      await flush();
      closed = true;
      clearTimeout(timer);
      if (waiting.length > 0) onDropped(waiting.length);
      waiting = [];
    },
    get waiting() {
      return waiting.length;
    },
  };
}
