/** Where the bundled program lies in the file of a compiled executable: the section `.bun` (ELF, 64 bits). */

import { closeSync, openSync, readSync } from 'node:fs';

/** Bytes of the file; `to` is exclusive. */
export interface FileRange {
  readonly from: number;
  readonly to: number;
}

const HEADER_BYTES = 64;
const SECTION_BYTES = 64;
/** Executables have some 40. */
const MAX_SECTIONS = 200;
const MAX_NAMES = 64 * 1024;

/** Undefined where there is none, and for a file of another kind. Layout: elf(5). */
export function bundleIn(path: string): FileRange | undefined {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    return section(file, '.bun');
  } catch {
    return undefined;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function section(file: number, wanted: string): FileRange | undefined {
  const header = read(file, 0, HEADER_BYTES);
  const isElf = header.subarray(0, 6).equals(Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1]));
  const count = header.readUInt16LE(60);
  if (!isElf || header.readUInt16LE(58) !== SECTION_BYTES || count > MAX_SECTIONS) return undefined;
  const table = read(file, Number(header.readBigUInt64LE(40)), count * SECTION_BYTES);
  const rangeOf = (index: number): FileRange => {
    const at = index * SECTION_BYTES;
    const from = Number(table.readBigUInt64LE(at + 24));
    return { from, to: from + Number(table.readBigUInt64LE(at + 32)) };
  };
  const { from, to } = rangeOf(header.readUInt16LE(62));
  const names = read(file, from, Math.min(to - from, MAX_NAMES)).toString('latin1');
  for (let index = 0; index < count; index++) {
    const at = table.readUInt32LE(index * SECTION_BYTES);
    if (names.slice(at, at + wanted.length + 1) === `${wanted}\0`) return rangeOf(index);
  }
  return undefined;
}

/** @throws RangeError when the file is shorter */
function read(file: number, from: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  if (readSync(file, bytes, 0, length, from) < length) throw new RangeError('The file ends.');
  return bytes;
}
