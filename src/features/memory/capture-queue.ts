/** What waits to be kept: bounded, written in batches behind the answers' backs, tried again when that fails. */

export interface CaptureQueueOptions<T> {
  /** Keeps a batch, all of it or none. What it throws means: try again later. */
  readonly write: (items: readonly T[]) => void | Promise<void>;
  readonly sizeOf: (item: T) => number;
  /** Told of items that there was no room for. */
  readonly onDropped: (count: number) => void;
  readonly onTrouble: (thrown: unknown) => void;
  readonly limits?: Partial<CaptureLimits>;
}

export interface CaptureLimits {
  /** Items that wait at most, and their size together. */
  readonly items: number;
  readonly bytes: number;
  /** Items written at a time. */
  readonly batch: number;
  /** Their size together, but for one that is larger alone. */
  readonly batchBytes: number;
  /** Milliseconds between the first item and its batch, and before another try. */
  readonly flushAfter: number;
  readonly retryAfter: number;
}

export interface CaptureQueue<T> {
  add(items: readonly T[]): void;
  /** Takes out what has not been written; how many those were. Resolves when none of them is under way. */
  remove(which: (item: T) => boolean): Promise<number>;
  /** Writes what waits, as far as `write` does so at once. */
  flushNow(): void;
  /** The same in steps, between which others have their turn. */
  settle(): Promise<void>;
  /** Resolves when all that waits has been tried once. */
  flush(): Promise<void>;
  /** The last try; what fails now is lost and told as dropped. */
  close(): Promise<void>;
  readonly waiting: number;
}

const LIMITS: CaptureLimits = {
  items: 5000,
  bytes: 8 * 2 ** 20,
  batch: 200,
  batchBytes: 40_000,
  flushAfter: 50,
  retryAfter: 1000,
};

export function captureQueue<T>(options: CaptureQueueOptions<T>): CaptureQueue<T> {
  const { write, sizeOf, onDropped, onTrouble } = options;
  const limits = { ...LIMITS, ...options.limits };
  let waiting: T[] = [];
  let bytes = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let underWay: Promise<void> | undefined;
  let closed = false;

  const schedule = (after: number) => {
    if (closed || timer !== undefined || waiting.length === 0) return;
    timer = setTimeout(() => {
      timer = undefined;
      step();
    }, after);
    timer.unref();
  };
  const leave = (items: readonly T[]) => {
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

  /** Writes one batch; false when it did not work or is still under way. */
  function step(): boolean {
    if (underWay !== undefined || waiting.length === 0) return false;
    const batch = first();
    try {
      const writing = write(batch);
      if (writing === undefined) {
        leave(batch);
        schedule(0);
        return true;
      }
      underWay = writing
        .then(
          () => leave(batch),
          (thrown) => failed(thrown),
        )
        .finally(() => {
          underWay = undefined;
          schedule(limits.flushAfter);
        });
    } catch (thrown) {
      failed(thrown);
    }
    return false;
  }
  function failed(thrown: unknown): void {
    onTrouble(thrown);
    schedule(limits.retryAfter);
  }

  const flushNow = () => {
    while (step());
  };
  const flush = async () => {
    for (let before = -1; waiting.length > 0 && waiting.length !== before; ) {
      before = waiting.length;
      flushNow();
      await underWay;
    }
  };
  const settle = async () => {
    while (step()) await new Promise((resolve) => setImmediate(resolve));
    await underWay;
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
      await underWay;
      const gone = waiting.filter(which);
      leave(gone);
      return gone.length;
    },
    flushNow,
    settle,
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
