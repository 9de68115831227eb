/** CPU time and memory of a process with all its descendants, from /proc. */

import { readdirSync, readFileSync } from 'node:fs';

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return ''; // the thread or process ended meanwhile
  }
}

function tasks(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

/** The process and its descendants. */
export function processTree(pid: number): number[] {
  const tree = [pid];
  for (let i = 0; i < tree.length; i++) {
    const parent = tree[i]!;
    for (const task of tasks(parent)) {
      const children = read(`/proc/${parent}/task/${task}/children`).trim();
      if (children !== '') tree.push(...children.split(' ').map(Number));
    }
  }
  return tree;
}

interface Thread {
  /** As the kernel tells it, at most 15 characters. */
  readonly name: string;
  /** Nanoseconds on a CPU. */
  readonly spent: number;
}

/** Every thread of a tree, for {@link cpuBetween}. */
export type CpuSample = ReadonlyMap<string, Thread>;

/** Reads `/proc/PID/task/TID/schedstat` of every thread of the tree; finer than the ticks of `stat`. */
export function cpuSample(pid: number): CpuSample {
  const sample = new Map<string, Thread>();
  for (const member of processTree(pid)) {
    for (const task of tasks(member)) {
      const spent = read(`/proc/${member}/task/${task}/schedstat`).split(' ')[0];
      if (spent === undefined || spent === '') continue;
      const name = read(`/proc/${member}/task/${task}/comm`).trim();
      sample.set(`${member}/${task}`, { name, spent: Number(spent) });
    }
  }
  return sample;
}

/**
 * Nanoseconds of CPU between two samples, of all threads or those of one name; what an ended thread spent
 * since the first one is not seen.
 */
export function cpuBetween(before: CpuSample, after: CpuSample, named?: string): number {
  let sum = 0;
  for (const [thread, { name, spent }] of after) {
    if (named === undefined || name === named) sum += spent - (before.get(thread)?.spent ?? 0);
  }
  return sum;
}

/** Resident megabytes (MiB) of the tree; pages shared between its processes count once for each. */
export function residentMegabytes(pid: number): number {
  let kilobytes = 0;
  for (const member of processTree(pid)) {
    kilobytes += Number(/VmRSS:\s+(\d+)/.exec(read(`/proc/${member}/status`))?.[1] ?? 0);
  }
  return kilobytes / 1024;
}

/** Highest resident megabytes of the tree while `work` runs, looked at every 25 ms. */
export async function peakResident<T>(pid: number, work: Promise<T>): Promise<[T, number]> {
  let peak = residentMegabytes(pid);
  const timer = setInterval(() => {
    peak = Math.max(peak, residentMegabytes(pid));
  }, 25);
  try {
    return [await work, peak];
  } finally {
    clearInterval(timer);
  }
}

/** Milliseconds that the first thread of a process, which runs its event loop, has been on a CPU. */
export const loopMilliseconds = (pid: number): number =>
  Number(read(`/proc/${pid}/task/${pid}/schedstat`).split(' ')[0]) / 1e6;
