/** Notices silence: one shared ticker for every timeout and keep-alive, instead of a timer a stream. */

const RESOLUTION_MS = 100;

export interface IdleTimer {
  /** Something happened: the silence starts anew. */
  touch(): void;
  stop(): void;
}

/** Whoever remembers by itself that something happened; is asked once a tick, where `touch` is told each time. */
export interface ActivitySource {
  /** Something happened since this was last asked. */
  takeActivity(): boolean;
}

class Watch implements IdleTimer {
  readonly ms: number;
  readonly #stirring: ActivitySource | undefined;
  /** Undefined once it is stopped. */
  onSilent: (() => void) | undefined;
  last = 0;
  /** Something happened since the last tick. The clock is read once a tick, not for every chunk. */
  touched = true;
  before: Watch | undefined;
  next: Watch | undefined;

  constructor(
    ms: number,
    onSilent: () => void,
    stirring: ActivitySource | undefined,
    next: Watch | undefined,
  ) {
    this.ms = ms;
    this.onSilent = onSilent;
    this.#stirring = stirring;
    this.next = next;
  }

  /** Whether something happened since this was last asked. */
  heard(): boolean {
    const stirred = this.#stirring?.takeActivity() ?? false;
    const heard = this.touched || stirred;
    this.touched = false;
    return heard;
  }

  touch(): void {
    this.touched = true;
  }

  stop(): void {
    const { before, next } = this;
    if (before !== undefined) before.next = next;
    else if (head === this) head = next;
    if (next !== undefined) next.before = before;
    this.before = undefined;
    this.next = undefined;
    this.onSilent = undefined;
  }
}

/**
 * The first of a list that is linked through its members. A `Set` would do but for the garbage
 * collector: whenever it is rehashed its old table, by then of the old generation, keeps what it held
 * until a full collection. Of 700 short exchanges 450 survived every young collection that way.
 */
let head: Watch | undefined;
let ticker: ReturnType<typeof setInterval> | undefined;

function tick(): void {
  // Left running until a tick finds nothing: starting a timer for every request would not be free.
  if (head === undefined) {
    clearInterval(ticker);
    ticker = undefined;
    return;
  }
  const now = performance.now();
  for (let watch: Watch | undefined = head; watch !== undefined; ) {
    // Whoever is told may stop watches, its own and others: where the list broke, the rest comes next time.
    const { next }: Watch = watch;
    if (watch.heard()) {
      watch.last = now;
      // Both times are ticks': half of one makes up for a ticker that is a little early.
    } else if (now - watch.last >= watch.ms - RESOLUTION_MS / 2) {
      watch.last = now;
      watch.onSilent?.();
    }
    watch = next;
  }
}

const NEVER: IdleTimer = { touch() {}, stop() {} };

/**
 * Calls `onSilent` once nothing touched the watch for `ms` (to within 100 ms), and again after each
 * further `ms` of silence until it is stopped. `ms` of 0 never fires. What `stirring` tells counts as a touch.
 */
export function startIdleTimer(
  ms: number,
  onSilent: () => void,
  stirring?: ActivitySource,
): IdleTimer {
  if (ms <= 0 || !Number.isFinite(ms)) return NEVER;
  const watch = new Watch(ms, onSilent, stirring, head);
  if (head !== undefined) head.before = watch;
  head = watch;
  ticker ??= setInterval(tick, RESOLUTION_MS);
  return watch;
}
