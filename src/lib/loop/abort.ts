/** A cheap AbortController for code that needs one for every request. */

/** A cheap AbortController for code that needs one for every request. */

// A native controller with its signal and listener costs more than all other supervision of a short exchange.

export interface AbortListener {
  /** Must not throw. */
  onAbort(reason: unknown): void;
}

/** Asked when a followed signal aborts. */
export interface AbortGuard {
  /** True: what it guards goes on; the signal is not followed any more. Must not throw. */
  keeps(reason: unknown): boolean;
}

/** The signal is read only when it is needed: that of a request is a native object, created on first access. */
export interface SignalSource {
  readonly signal: AbortSignal;
}

// Exchanges that are shorter than this never listen to the signal (decision 19).
const SOON_MS = 10;
let followSoon: Abort[] = [];

function followAll(): void {
  const all = followSoon;
  followSoon = [];
  for (const one of all) one.followNow();
}

export class Abort {
  #aborted = false;
  #reason: unknown;
  readonly #listeners: AbortListener[] = [];
  #controller: AbortController | undefined;
  #source: SignalSource | undefined;
  #followed: AbortSignal | undefined;
  #left = false;
  /** Undefined: it aborts whenever the followed signal does. */
  guard: AbortGuard | undefined;

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  /** It aborted because the followed signal did: the client has left. */
  get left(): boolean {
    return this.#left;
  }

  /** A native signal for APIs that need one; created on first access. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** Only the first call counts. */
  abort(reason: unknown = new DOMException('The operation was aborted.', 'AbortError')): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason;
    this.unfollow();
    this.#controller?.abort(reason);
    for (const listener of this.#listeners.splice(0)) listener.onAbort(reason);
  }

  /** Calls `listener` once when it aborts; at once when it already has. */
  listen(listener: AbortListener): void {
    if (this.#aborted) listener.onAbort(this.#reason);
    else this.#listeners.push(listener);
  }

  unlisten(listener: AbortListener): void {
    const at = this.#listeners.indexOf(listener);
    // Mostly the last, and the only one: no list is made of what goes.
    if (at >= 0 && at === this.#listeners.length - 1) this.#listeners.pop();
    else if (at >= 0) this.#listeners.splice(at, 1);
  }

  /** Aborts when this signal does, until `unfollow`; at once when it already has. It follows one signal at a time. */
  follow(signal: AbortSignal): void {
    if (signal.aborted) {
      this.#leave(signal.reason);
      return;
    }
    this.unfollow();
    signal.addEventListener('abort', this);
    this.#followed = signal;
  }

  /**
   * Follows the signal of `source` some milliseconds later, unless `unfollow` comes first. Creating a signal and
   * listening to it costs a short exchange more than its routing.
   */
  followLater(source: SignalSource): void {
    this.unfollow();
    this.#source = source;
    if (followSoon.push(this) === 1) setTimeout(followAll, SOON_MS);
  }

  /** Does now what {@link followLater} postponed. */
  followNow(): void {
    if (this.#source !== undefined && !this.#aborted) this.follow(this.#source.signal);
  }

  unfollow(): void {
    this.#source = undefined;
    this.#followed?.removeEventListener('abort', this);
    this.#followed = undefined;
  }

  /** Called by the followed signal: an object as listener costs half as much as a closure. */
  handleEvent(): void {
    this.#leave(this.#followed?.reason);
  }

  #leave(reason: unknown): void {
    if (this.guard?.keeps(reason) === true) {
      this.unfollow();
      return;
    }
    this.#left = !this.#aborted;
    this.abort(reason);
  }
}

/** Settles as the promise does, or rejects with the signal's reason as soon as the signal fires. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

/** Settles as the promise does, or after so many milliseconds as `late` does. */
export async function within<T, L>(ms: number, work: Promise<T>, late: () => L): Promise<T | L> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    return await Promise.race([work, over.then(late)]);
  } finally {
    clearTimeout(timer);
  }
}
