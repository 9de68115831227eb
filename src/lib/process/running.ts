/** Whether a process still runs, also where its number has been given to another process since. */

import { readFileSync, statSync } from 'node:fs';
import { sha256Hex } from '../text/sha256.ts';

/**
 * What tells a process from all others that have had its number: the boot of the machine, and the moment of its start.
 * Undefined where the system does not tell (macOS), and for a process that is gone.
 */
export function startOf(pid: number): string | undefined {
  const ticks = statusOf(pid)?.ticks;
  if (ticks === undefined) return undefined;
  boot ??= read('/proc/sys/kernel/random/boot_id').slice(0, 8);
  return `${boot}.${ticks}`;
}

let boot: string | undefined;

/** @param start as {@link startOf} gave it while the process ran; left out or null: its number alone decides */
export function isRunning(pid: number, start?: string | null): boolean {
  if (!Number.isInteger(pid) || pid <= 0 || !isThere(pid)) return false;
  const status = statusOf(pid);
  // Its parent has not asked how it ended.
  if (status?.state === 'Z') return false;
  return status === undefined || start === undefined || start === null || startOf(pid) === start;
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    // EPERM: it belongs to another user.
    return (thrown as { code?: unknown }).code === 'EPERM';
  }
}

/** From proc(5); undefined where that cannot be read. */
function statusOf(pid: number): { readonly state: string; readonly ticks: string } | undefined {
  const stat = read(`/proc/${pid}/stat`);
  // The name of the program stands in parentheses and may hold anything, even those.
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = fields[START];
  return state === undefined || ticks === undefined ? undefined : { state, ticks };
}

// The fields are counted from 1, and the state is the third.
const START = 22 - 4;

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

/** Sixteen hex digits that say nothing of the path; undefined while there is no such folder. */
export function homeMark(folder: string): string | undefined {
  try {
    const { dev, ino } = statSync(folder);
    return sha256Hex(`${dev}:${ino}`).slice(0, 16);
  } catch {
    return undefined;
  }
}
