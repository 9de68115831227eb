/** The name of a recording process in the files of open exchanges, and whether that process still runs. */

import { randomBase36 } from '../../lib/text/ids.ts';

/** `<pid>-<random>`: tells apart a later process with the same pid. */
export const runName = () => `${process.pid}-${randomBase36(8)}`;

/** @param own the name of this process's recorder, if it has one */
export function isRunning(run: string, own?: string): boolean {
  if (run === own) return true;
  const pid = Number(run.split('-')[0]);
  if (!Number.isInteger(pid) || pid <= 0) return false;
  // The same pid under another name (common in containers) is an earlier process.
  if (pid === process.pid) return own === undefined;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
