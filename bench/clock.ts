/** One clock for all processes of a benchmark: nanoseconds of the kernel's CLOCK_MONOTONIC. */

import { dlopen, FFIType, ptr } from 'bun:ffi';

const ownNanoseconds = () => {
  const [seconds, rest] = process.hrtime();
  return seconds * 1e9 + rest;
};

// Bun's process.hrtime counts from the start of its own process, so two processes cannot compare it.
// The distance to the kernel's clock is read once; a call of clock_gettime per reading would not do,
// because optimised code keeps the struct's old words (seen in Bun 1.4.5).
function distanceToKernelClock(): number {
  const CLOCK_MONOTONIC = 1;
  const libc = dlopen('libc.so.6', {
    clock_gettime: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 },
  });
  // struct timespec of a 64-bit little-endian Linux: seconds in words 0 and 1, nanoseconds in 2 and 3.
  const timespec = new Uint32Array(4);
  let distance = Number.POSITIVE_INFINITY;
  let narrowest = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 20; i++) {
    const before = ownNanoseconds();
    libc.symbols.clock_gettime(CLOCK_MONOTONIC, ptr(timespec));
    const after = ownNanoseconds();
    if (after - before > narrowest) continue;
    narrowest = after - before;
    distance = timespec[0]! * 1e9 + timespec[2]! - (before + after) / 2;
  }
  return distance;
}

const distance = distanceToKernelClock();

/** Whole nanoseconds; exact up to 104 days of uptime, where doubles end. */
export const nanoseconds = () => Math.round(ownNanoseconds() + distance);

/** Waits; benchmarks settle between measurements. */
export const sleep = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));
