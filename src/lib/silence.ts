/** Notices silence: one shared ticker for every timeout and keep-alive, instead of a timer a stream. */

const RESOLUTION_MS = 100;

interface Watch {
  readonly ms: number;
  readonly onSilent: () => void;
  last: number;
  /** Something happened since the last tick. The clock is read once a tick, not for every chunk. */
  touched: boolean;
}

const watches = new Set<Watch>();
let ticker: ReturnType<typeof setInterval> | undefined;

function tick(): void {
  // Left running until a tick finds nothing: starting a timer for every request would not be free.
  if (watches.size === 0) {
    clearInterval(ticker);
    ticker = undefined;
    return;
  }
  const now = performance.now();
  for (const watch of watches) {
    if (watch.touched) {
      watch.touched = false;
      watch.last = now;
      continue;
    }
    // Both times are ticks': half of one makes up for a ticker that is a little early.
    if (now - watch.last < watch.ms - RESOLUTION_MS / 2) continue;
    watch.last = now;
    watch.onSilent();
  }
}

export interface SilenceWatch {
  /** Something happened: the silence starts anew. */
  touch(): void;
  stop(): void;
}

const NEVER: SilenceWatch = { touch() {}, stop() {} };

/**
 * Calls `onSilent` once nothing touched the watch for `ms` (to within 100 ms), and again after each
 * further `ms` of silence until it is stopped. `ms` of 0 never fires.
 */
export function watchSilence(ms: number, onSilent: () => void): SilenceWatch {
  if (ms <= 0 || !Number.isFinite(ms)) return NEVER;
  const watch: Watch = { ms, last: 0, touched: true, onSilent };
  watches.add(watch);
  ticker ??= setInterval(tick, RESOLUTION_MS);
  return {
    touch() {
      watch.touched = true;
    },
    stop() {
      watches.delete(watch);
    },
  };
}
