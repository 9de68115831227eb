/** The command that starts this very program again, as a helper of itself. */

import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';

const compiled = Bun.main.startsWith('/$bunfs/') || Bun.main.startsWith('B:\\~BUN');

/** First arguments that make this program a helper of itself. They are no commands for users. */
export const GUARD = '__guard';
export const PDF_READER = '__read-pdf';

/** The binary, or the sources with their runtime; `role` is the first argument. */
export const ownProgram = (role: string): readonly string[] => [
  process.execPath,
  ...(compiled ? [] : [join(import.meta.dir, '../../main.ts')]),
  role,
];

/** Files that a thread may open while it begins, and some more. */
const FILES_OF_THREAD = 32;

/**
 * Starts a thread of this program.
 * @param path of its file, from the folder `src`; `build.ts` lists it as an entry point
 * @throws the system's error where too few files can be opened: without them the runtime ends the whole process
 */
export function startThread(path: string, name: string): Worker {
  const opened: number[] = [];
  try {
    while (opened.length < FILES_OF_THREAD) opened.push(openSync('/dev/null', 'r'));
  } finally {
    for (const one of opened) closeSync(one);
  }
  const file = compiled
    ? `/$bunfs/root/src/${path.replace(/\.ts$/, '.js')}`
    : join(import.meta.dir, '../..', path);
  return new Worker(file, { name });
}
