/** The CPU time of this thread, as exactly as the system tells it. */

import { dlopen, ptr } from 'bun:ffi';

/** `CLOCK_THREAD_CPUTIME_ID` of a system, and its C library. */
const CLOCKS: Partial<Record<NodeJS.Platform, readonly [library: string, clock: number]>> = {
  linux: ['libc.so.6', 3],
  darwin: ['libSystem.B.dylib', 16],
};

/** `process.threadCpuUsage` moves on in ticks of the scheduler, 1 to 10 ms; this clock in less than a microsecond. */
function exactClock(): (() => number) | undefined {
  const found = CLOCKS[process.platform];
  if (found === undefined) return undefined;
  const [library, clock] = found;
  try {
    const { symbols } = dlopen(library, {
      clock_gettime: { args: ['i32', 'ptr'], returns: 'i32' },
    });
    const time = new BigInt64Array(2);
    const address = ptr(time);
    if (symbols.clock_gettime(clock, address) !== 0) return undefined;
    return () => {
      symbols.clock_gettime(clock, address);
      return Number(time[0]) * 1000 + Number(time[1]) / 1e6;
    };
  } catch {
    return undefined;
  }
}

const exact = exactClock();

/** Milliseconds of CPU that this thread has used so far. */
export const threadTime: () => number =
  exact ??
  (() => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  });

/** A time shorter than this (ms) says little: the work is to be done again until it adds up to it. */
export const SHORTEST_MS = exact === undefined ? 12 : 0.25;
