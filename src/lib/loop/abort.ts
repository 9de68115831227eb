/** An AbortController for whoever makes one for every request. */

// A controller, its signal and a listener are native objects: they cost more than all else that watches
// over a short exchange.

export interface AbortListener {
  /** Must not throw. */
  onAbort(reason: unknown): void;
}

/** Whose signal is read only when it is needed: the one of a request is a native object made then. */
export interface Asker {
  readonly signal: AbortSignal;
}

// Most exchanges that take no longer than this are over before anyone listens.
const SOON_MS = 5;
let starting: Abort[] = [];

function followAll(): void {
  const all = starting;
  starting = [];
  for (const one of all) one.followNow();
}

export class Abort {
  #aborted = false;
  #reason: unknown;
  readonly #listeners: AbortListener[] = [];
  #controller: AbortController | undefined;
  #asker: Asker | undefined;
  #followed: AbortSignal | undefined;

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  /** For those who want a real one; made when first asked for. */
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

  /** Tells `listener` when it comes to that, once; at once when it has. */
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

  /** From now until `unfollow` it aborts when this signal does; at once when it has. One at a time. */
  follow(signal: AbortSignal): void {
    if (signal.aborted) {
      this.abort(signal.reason);
      return;
    }
    this.unfollow();
    signal.addEventListener('abort', this);
    this.#followed = signal;
  }

  /**
   * The same for a signal that stays aborted once it has been: it is not looked at before some milliseconds
   * have gone by, nor at all when `unfollow` comes first. To make it, and to listen to it, costs a short
   * exchange more than finding its route.
   */
  followLater(asker: Asker): void {
    this.unfollow();
    this.#asker = asker;
    if (starting.push(this) === 1) setTimeout(followAll, SOON_MS);
  }

  /** What {@link followLater} put off. */
  followNow(): void {
    if (this.#asker !== undefined && !this.#aborted) this.follow(this.#asker.signal);
  }

  unfollow(): void {
    this.#asker = undefined;
    this.#followed?.removeEventListener('abort', this);
    this.#followed = undefined;
  }

  /** The signal's own call: as a listener an object costs half of what a function made for it does. */
  handleEvent(): void {
    this.abort(this.#followed?.reason);
  }
}
