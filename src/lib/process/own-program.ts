/** The command that starts this very program again, as a helper of itself. */

import { join } from 'node:path';

const compiled = Bun.main.startsWith('/$bunfs/') || Bun.main.startsWith('B:\\~BUN');

/** The binary, or the sources with their runtime; `role` is the first argument. */
export const ownProgram = (role: string): readonly string[] => [
  process.execPath,
  ...(compiled ? [] : [join(import.meta.dir, '../../main.ts')]),
  role,
];
