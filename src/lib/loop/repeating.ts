/** Work in the background that is done again and again: never twice at once, sooner when it is woken. */

export interface RepeatingOptions {
  /** What it rejects with is given to `onProblem`; it is tried again after the usual time. */
  readonly work: () => Promise<unknown>;
  /** Milliseconds between the end of one run and the next. */
  readonly everyMs: number;
  readonly onProblem: (thrown: unknown) => void;
}

export class Repeating {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running: Promise<void> | undefined;
  #again = false;
  #closed = false;

  constructor(private readonly options: RepeatingOptions) {}

  /** Begins, or runs once more as soon as the run of now has ended. */
  wake(): void {
    if (this.#closed) return;
    this.#again = true;
    if (this.#running !== undefined) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#run(), 0).unref();
  }

  /** Ends; resolves when no run is under way. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  #run(): void {
    const { work, everyMs, onProblem } = this.options;
    this.#again = false;
    this.#running = work()
      .catch(onProblem)
      .then(() => {
        this.#running = undefined;
        if (this.#closed) return;
        if (this.#again) return this.wake();
        this.#timer = setTimeout(() => this.#run(), everyMs).unref();
      });
  }
}
