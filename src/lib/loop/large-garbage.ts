/** Collects garbage soon after large buffers were made, so that their memory is given back. */

// The collector counts the bytes of a buffer, but waits until there is twice what was left last time: beside
// bodies of 50 MB that is a gigabyte. A collection stops everything for 5 to 30 ms, so it is asked for rarely.

/** Bytes of large buffers after which it is worth a collection. */
const WORTH_BYTES = 192 * 1024 * 1024;
/** A smaller buffer is the collector's own affair. */
const LARGE_BYTES = 1024 * 1024;
/** After this time a large buffer is probably no longer in use. */
const DELAY_MS = 250;
/** Between two collections, and so many times as long as the last one took. */
const REST_MS = 2000;
const REST_FACTOR = 200;

let bytes = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
let notBefore = 0;

/** A buffer of so many bytes has been made, and will not be kept for long. */
export function madeLarge(size: number): void {
  if (size < LARGE_BYTES) return;
  bytes += size;
  if (bytes < WORTH_BYTES || timer !== undefined) return;
  timer = setTimeout(collect, Math.max(DELAY_MS, notBefore - performance.now())).unref();
}

async function collect(): Promise<void> {
  // Loaded when it is first needed, which it hardly ever is.
  const { fullGC } = await import('bun:jsc');
  const before = performance.now();
  fullGC();
  const now = performance.now();
  notBefore = now + Math.max(REST_MS, REST_FACTOR * (now - before));
  bytes = 0;
  timer = undefined;
}
