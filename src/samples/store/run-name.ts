/** Names of processes in the files of open exchanges, and whether such a process still runs. */

import { randomBase36 } from '../../lib/text/ids.ts';

/** `<pid>-<random>`: another process of the same pid later is told apart. */
export const runName = () => `${process.pid}-${randomBase36(8)}`;

/** @param own the name of this very process's recorder, if it has one */
export function isRunning(run: string, own?: string): boolean {
  if (run === own) return true;
  const pid = Number(run.split('-')[0]);
  if (!Number.isInteger(pid) || pid <= 0) return false;
  // This process (in a container often the first one) under another name: the one before it.
  if (pid === process.pid) return own === undefined;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
