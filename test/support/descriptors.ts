/** A machine that has no file descriptor left, for the length of a function. */

import { libc } from '../../src/lib/process/libc.ts';

const NOFILE = 7;

const system = libc({
  getrlimit: { args: ['i32', 'ptr'], returns: 'i32' },
  setrlimit: { args: ['i32', 'ptr'], returns: 'i32' },
});

/** Linux alone has them. */
export const HAS_LIMITS = system !== undefined;

/** Nothing can be opened while `work` runs, which must not wait for anything. */
export function withoutDescriptors<T>(work: () => T): T {
  const before = new BigUint64Array(2);
  system!.getrlimit(NOFILE, before);
  system!.setrlimit(NOFILE, new BigUint64Array([0n, before[1]!]));
  try {
    return work();
  } finally {
    system!.setrlimit(NOFILE, before);
  }
}
