/** The name of a recording process in the files of open exchanges, and whether that process still runs. */

import { isRunning, startOf } from '../../lib/process/running.ts';
import { randomBase36 } from '../../lib/text/ids.ts';

/** `<pid>-<random>-<start>`: tells apart a later process with the same pid. The start is left out where it is not known. */
export function runName(): string {
  const start = startOf(process.pid);
  return `${process.pid}-${randomBase36(8)}${start === undefined ? '' : `-${start}`}`;
}

/** @param own the name of this process's recorder, if it has one */
export function runs(name: string, own?: string): boolean {
  if (name === own) return true;
  const [number, , start] = name.split('-');
  const pid = Number(number);
  // The same pid under another name (common in containers) is an earlier process.
  if (pid === process.pid && (own !== undefined || start === undefined)) return own === undefined;
  return isRunning(pid, start);
}
