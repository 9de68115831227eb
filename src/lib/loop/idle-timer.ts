/** Idle timers that share one ticker, for timeouts and keep-alives of streams (decision 4). */

const RESOLUTION_MS = 100;

export interface IdleTimer {
  /** There was activity: the idle time starts anew. */
  touch(): void;
  stop(): void;
}

/** Records activity itself and is polled once a tick, which is cheaper than `touch` for every chunk. */
export interface ActivitySource {
  /** Whether there was activity since the last call. */
  takeActivity(): boolean;
}

class TimerEntry implements IdleTimer {
  /** Undefined once it is stopped. */
  onIdle: (() => void) | undefined;
  last = 0;
  /** There was activity since the last tick. The clock is read once a tick, not for every chunk. */
  touched = true;
  before: TimerEntry | undefined;

  constructor(
    readonly ms: number,
    onIdle: () => void,
    private readonly source: ActivitySource | undefined,
    public next: TimerEntry | undefined,
  ) {
    this.onIdle = onIdle;
  }

  /** Whether there was activity since the last call. */
  wasActive(): boolean {
    const reported = this.source?.takeActivity() ?? false;
    const active = this.touched || reported;
    this.touched = false;
    return active;
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
    this.onIdle = undefined;
  }
}

/**
 * The first entry of a linked list. Not a `Set`: when a `Set` is rehashed, its old table, by then in the old
 * generation, keeps its entries alive until a full garbage collection (decision 21).
 */
let head: TimerEntry | undefined;
let ticker: ReturnType<typeof setInterval> | undefined;

function tick(): void {
  // The ticker stops only when a tick finds no entry: starting a timer for every request would cost too much.
  if (head === undefined) {
    clearInterval(ticker);
    ticker = undefined;
    return;
  }
  const now = performance.now();
  for (let entry: TimerEntry | undefined = head; entry !== undefined; ) {
    // The callback may stop this timer and others. Where that breaks the list, the rest waits for the next tick.
    const { next }: TimerEntry = entry;
    if (entry.wasActive()) {
      entry.last = now;
      // Both times are those of ticks; half a tick allows for a ticker that is a little early.
    } else if (now - entry.last >= entry.ms - RESOLUTION_MS / 2) {
      entry.last = now;
      entry.onIdle?.();
    }
    entry = next;
  }
}

const NO_TIMER: IdleTimer = { touch() {}, stop() {} };

/**
 * Calls `onIdle` after `ms` without activity (to within 100 ms), and again after each further `ms`, until it is
 * stopped. `ms` of 0 never fires. Activity that `source` reports counts like a `touch`.
 */
export function startIdleTimer(ms: number, onIdle: () => void, source?: ActivitySource): IdleTimer {
  if (ms <= 0 || !Number.isFinite(ms)) return NO_TIMER;
  const entry = new TimerEntry(ms, onIdle, source, head);
  if (head !== undefined) head.before = entry;
  head = entry;
  ticker ??= setInterval(tick, RESOLUTION_MS);
  return entry;
}

/** How many timers run. One that is never stopped keeps what its callback refers to. */
export function runningIdleTimers(): number {
  let count = 0;
  for (let entry = head; entry !== undefined; entry = entry.next) count++;
  return count;
}
