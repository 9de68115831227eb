/** A mark by which two processes of one machine know whether they use the same folder. */

import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';

/** Sixteen hex digits that say nothing of the path; undefined while there is no such folder. */
export function homeMark(folder: string): string | undefined {
  try {
    const { dev, ino } = statSync(folder);
    return createHash('sha256').update(`${dev}:${ino}`).digest('hex').slice(0, 16);
  } catch {
    return undefined;
  }
}
