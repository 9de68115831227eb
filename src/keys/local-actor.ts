/** Who changes keys by a command on this machine, for the audit. */

import { userInfo } from 'node:os';

/** `local:` and the name of the user. */
export function localActor(): string {
  try {
    return `local:${userInfo().username}`;
  } catch {
    // A container may have no name for its user.
    return `local:${process.getuid?.() ?? 'unknown'}`;
  }
}
