/** Standard error as a place that never keeps the program waiting. */

import { constants, fstatSync, openSync } from 'node:fs';

/**
 * A descriptor to write to stderr by. A pipe that nobody reads takes 64 KB, and then a write to it waits for
 * ever: it is opened once more, for this process alone (whether a descriptor waits is shared with whoever
 * else has it), so that a write says EAGAIN instead. Sockets cannot be opened so, and stay as they are.
 */
export function stderrDescriptor(): number {
  try {
    if (!fstatSync(2).isFIFO()) return 2;
    return openSync('/proc/self/fd/2', constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    // No Linux.
    return 2;
  }
}
