/** Looks through a large body without holding up the event loop. */

import { othersTurn } from '../loop/steps.ts';
import { MemberScan, type Members } from './json.ts';

/** Bytes that are looked through between two turns of the event loop; a millisecond at most. */
const SLICE = 256 * 1024;
/** White space in one place that no program writes. */
const MAX_BLANK = 1024 * 1024;

/**
 * As `topLevel` of `json.ts`, in slices.
 * @returns 'blank' for more than a megabyte of white space in one place outside of strings
 */
export async function topLevelInSlices(bytes: Uint8Array): Promise<Members | 'blank' | undefined> {
  const scan = new MemberScan(bytes);
  let blank = 0;
  for (;;) {
    const { at, inString } = scan;
    const over = scan.run(at + SLICE);
    blank = !inString && isBlank(bytes, at, scan.at) ? blank + scan.at - at : 0;
    if (blank > MAX_BLANK) return 'blank';
    if (over) return scan.sound ? scan.members : undefined;
    await othersTurn();
  }
}

function isBlank(bytes: Uint8Array, from: number, to: number): boolean {
  for (let i = from; i < to; i++) {
    const byte = bytes[i];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return false;
  }
  return true;
}
