/** A bounded queue of captured events, written in batches in the background and retried after failures. */

import { batchesOf } from '../../lib/loop/batches.ts';
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

const LIMITS: CaptureLimits = {
  items: 5000,
  bytes: 8 * 2 ** 20,
  batch: 200,
  batchBytes: 10_000,
  flushAfter: 50,
  retryAfter: 1000,
};

export class CaptureQueue<T> {
  readonly #limits: CaptureLimits;
  #waiting: T[] = [];
  #bytes = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #inFlight: Promise<void> | undefined;
  #closed = false;

  constructor(private readonly options: CaptureQueueOptions<T>) {
    this.#limits = { ...LIMITS, ...options.limits };
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  add(items: readonly T[]): void {
    const { sizeOf, onDropped } = this.options;
    const limits = this.#limits;
    let dropped = 0;
    for (const item of items) {
      const size = sizeOf(item);
      const isFull = this.waiting >= limits.items || this.#bytes + size > limits.bytes;
      if (this.#closed || isFull) dropped++;
      else {
        this.#waiting.push(item);
        this.#bytes += size;
      }
    }
    if (dropped > 0) onDropped(dropped);
    this.#schedule(this.waiting >= limits.batch ? 0 : limits.flushAfter);
  }

  /** Removes unwritten items after the current write; the number of removed items. */
  async remove(which: (item: T) => boolean): Promise<number> {
    await this.#inFlight;
    const gone = this.#waiting.filter(which);
    this.#removeItems(gone);
    return gone.length;
  }

  /** Resolves when everything queued has been tried once. */
  async flush(): Promise<void> {
    for (let before = -1; this.waiting > 0 && this.waiting !== before; ) {
      before = this.waiting;
      this.#step();
      await this.#inFlight;
      await othersTurn();
    }
  }

  /** Tries a last time; what fails now is dropped and reported. */
  async close(): Promise<void> {
    await this.flush();
    this.#closed = true;
    clearTimeout(this.#timer);
    if (this.waiting > 0) this.options.onDropped(this.waiting);
    this.#waiting = [];
  }

  #schedule(after: number): void {
    if (this.#closed || this.#timer !== undefined || this.waiting === 0) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#step();
    }, after).unref();
  }

  #removeItems(items: readonly T[]): void {
    const gone = new Set(items);
    this.#waiting = this.#waiting.filter((item) => !gone.has(item));
    for (const item of gone) this.#bytes -= this.options.sizeOf(item);
  }

  #first(): readonly T[] {
    const { batch, batchBytes } = this.#limits;
    const [first = []] = batchesOf(this.#waiting, batch, batchBytes, this.options.sizeOf);
    return first;
  }

  #step(): void {
    if (this.#inFlight !== undefined || this.waiting === 0) return;
    const batch = this.#first();
    this.#inFlight = (async () => this.options.write(batch))().then(
      () => {
        this.#inFlight = undefined;
        this.#removeItems(batch);
        this.#schedule(0);
      },
      (thrown) => {
        this.#inFlight = undefined;
        this.options.onTrouble(thrown);
        this.#schedule(this.#limits.retryAfter);
      },
    );
  }
}
