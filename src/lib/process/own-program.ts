/** The command that starts this very program again, as a helper of itself. */

import { join } from 'node:path';

const compiled = Bun.main.startsWith('/$bunfs/') || Bun.main.startsWith('B:\\~BUN');

/** The binary, or the sources with their runtime; `role` is the first argument. */
export const ownProgram = (role: string): readonly string[] => [
  process.execPath,
  ...(compiled ? [] : [join(import.meta.dir, '../../main.ts')]),
  role,
];

/**
 * The file with which a thread begins; `build.ts` lists it as an entry point.
 * @param path from the folder `src`
 */
export const threadFile = (path: string): string =>
  compiled
    ? `/$bunfs/root/src/${path.replace(/\.ts$/, '.js')}`
    : join(import.meta.dir, '../..', path);
