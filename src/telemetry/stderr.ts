/** Opens stderr so that writing to it never blocks the program. */

import { constants, fstatSync, openSync } from 'node:fs';

/**
 * A file descriptor for stderr. When no process reads a pipe, a write blocks for ever once 64 KB are in it. So
 * the pipe is opened again as non-blocking, and a write fails with EAGAIN instead. (The flag on descriptor 2
 * itself is shared with other processes.) Sockets cannot be opened again, and stay as they are.
 */
export function stderrDescriptor(): number {
  try {
    if (!fstatSync(2).isFIFO()) return 2;
    return openSync('/proc/self/fd/2', constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    // Not Linux.
    return 2;
  }
}
