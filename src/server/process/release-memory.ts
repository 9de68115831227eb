/** Releases memory pages of the program's own file that only the start needed. */

import { FFIType, type Pointer } from 'bun:ffi';
import { readFileSync } from 'node:fs';
import { libc } from '../../lib/process/libc.ts';

const SYMBOLS = {
  madvise: { args: [FFIType.ptr, FFIType.u64, FFIType.i32], returns: FFIType.i32 },
} as const;
const MADV_DONTNEED = 4;

// `00200000-01a39000 r--p 00000000 fe:00 10108956   /usr/bin/hopgate` (proc_pid_maps(5))
const MAPPING = /^([0-9a-f]+)-([0-9a-f]+) (r..p) \S+ \S+ \S+\s+(\/.*)$/;
const COPIED = /^Anonymous:\s+(\d+) kB$/;

interface Mapping {
  readonly from: number;
  readonly to: number;
}

/**
 * The read-only mappings of a file that hold no page of their own, so that every page can be read from the file
 * again. A mapping that the loader wrote into before it made it read-only holds such pages.
 */
export function cleanMappings(smaps: string, path: string): readonly Mapping[] {
  const found: Mapping[] = [];
  let candidate: Mapping | undefined;
  for (const line of smaps.split('\n')) {
    const [, from, to, mode, file] = MAPPING.exec(line) ?? [];
    if (from !== undefined && to !== undefined) {
      const readOnly = file === path && mode?.[1] === '-';
      candidate = readOnly ? { from: parseInt(from, 16), to: parseInt(to, 16) } : undefined;
    } else if (/^[0-9a-f]+-/.test(line)) candidate = undefined;
    else if (candidate !== undefined && COPIED.exec(line)?.[1] === '0') found.push(candidate);
  }
  return found;
}

/**
 * Takes the program's code and constants out of the resident memory (decision 13). What is used again comes back
 * from the page cache by itself; what only the start needed does not. Costs about a millisecond. Does nothing
 * outside Linux, or where the system refuses.
 */
export function releaseProgramPages(): void {
  const system = libc(SYMBOLS);
  if (system === undefined) return;
  let smaps: string;
  try {
    smaps = readFileSync('/proc/self/smaps', 'latin1');
  } catch {
    return;
  }
  for (const { from, to } of cleanMappings(smaps, process.execPath)) {
    system.madvise(from as Pointer, to - from, MADV_DONTNEED);
  }
}
