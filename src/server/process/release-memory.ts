/** Releases memory pages of the program's own file that only the start needed. */

import { FFIType, type Pointer } from 'bun:ffi';
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { libc } from '../../lib/process/libc.ts';
import { bundleIn, type FileRange } from './embedded-program.ts';

const SYMBOLS = {
  madvise: { args: [FFIType.ptr, FFIType.u64, FFIType.i32], returns: FFIType.i32 },
} as const;
const MADV_DONTNEED = 4;

// `00200000-01a39000 r--p 00000000 fe:00 10108956   /usr/bin/hopgate` (proc_pid_maps(5))
const MAPPING = /^([0-9a-f]+)-([0-9a-f]+) (r..p) ([0-9a-f]+) \S+ \S+\s+(\/.*)$/;
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
    const [, from, to, mode, , file] = MAPPING.exec(line) ?? [];
    if (from !== undefined && to !== undefined) {
      const readOnly = file === path && mode?.[1] === '-';
      candidate = readOnly ? { from: parseInt(from, 16), to: parseInt(to, 16) } : undefined;
    } else if (/^[0-9a-f]+-/.test(line)) candidate = undefined;
    else if (candidate !== undefined && COPIED.exec(line)?.[1] === '0') found.push(candidate);
  }
  return found;
}

/**
 * Where these bytes of a file are mapped, in whole pages; undefined: nowhere in one piece.
 * @param pageBytes a power of two
 */
export function mappedAt(
  smaps: string,
  path: string,
  { from, to }: FileRange,
  pageBytes: number,
): Mapping | undefined {
  for (const line of smaps.split('\n')) {
    const [, start, end, , offset, file] = MAPPING.exec(line) ?? [];
    if (file !== path || start === undefined || end === undefined || offset === undefined) continue;
    const [first, last, behind] = [start, end, offset].map((hex) => parseInt(hex, 16)) as [
      number,
      number,
      number,
    ];
    if (from < behind || to > behind + last - first) continue;
    const move = first - behind;
    return {
      from: Math.ceil((from + move) / pageBytes) * pageBytes,
      to: Math.floor((to + move) / pageBytes) * pageBytes,
    };
  }
  return undefined;
}

/** Bits of an entry of `/proc/self/pagemap` (proc_pid_pagemap(5)): the page is there; it is one of a file. */
const PRESENT = 0x80;
const OF_FILE = 0x20;
const ENTRY_BYTES = 8;

/** Does every page of this range come from the file, as it is there? */
function isUnwritten({ from, to }: Mapping, pageBytes: number): boolean {
  const entries = Buffer.alloc(((to - from) / pageBytes) * ENTRY_BYTES);
  const pagemap = openSync('/proc/self/pagemap', 'r');
  try {
    const at = (from / pageBytes) * ENTRY_BYTES;
    if (readSync(pagemap, entries, 0, entries.length, at) < entries.length) return false;
  } finally {
    closeSync(pagemap);
  }
  for (let i = ENTRY_BYTES - 1; i < entries.length; i += ENTRY_BYTES) {
    const flags = entries[i]!;
    // A page that was written to, or swapped out.
    if ((flags & PRESENT) !== 0 ? (flags & OF_FILE) === 0 : (flags & 0x40) !== 0) return false;
  }
  return true;
}

/** The bundled program: writable memory that nobody writes to. */
function bundleMapping(smaps: string, path: string): Mapping | undefined {
  const bundle = bundleIn(path);
  const pageBytes = Number(/^KernelPageSize:\s+(\d+) kB$/m.exec(smaps)?.[1]) * 1024;
  const range = bundle && mappedAt(smaps, path, bundle, pageBytes);
  if (range === undefined || !(range.to > range.from)) return undefined;
  try {
    return isUnwritten(range, pageBytes) ? range : undefined;
  } catch {
    // A system that shows no pagemap.
    return undefined;
  }
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
  const bundle = bundleMapping(smaps, process.execPath);
  const ranges = cleanMappings(smaps, process.execPath);
  for (const { from, to } of bundle === undefined ? ranges : [...ranges, bundle]) {
    system.madvise(from as Pointer, to - from, MADV_DONTNEED);
  }
}
