/** The folder in which tests write is gone when the test command is, however it ends. */

import { expect, test } from 'bun:test';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const SCRIPT = join(import.meta.dir, '../../scripts/scratch.ts');

/** @param then what the process does with its folder */
async function opened(then: string) {
  const program = `console.log(await (await import(${JSON.stringify(SCRIPT)})).openScratch()); ${then}`;
  const child = Bun.spawn([process.execPath, '-e', program], { stdout: 'pipe', stdin: 'pipe' });
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  return { child, folder: new TextDecoder().decode(value).trim() };
}

test.each(['SIGINT', 'SIGTERM', undefined] as const)(
  'what tests left is removed with it after %s',
  async (signal) => {
    const { child, folder } = await opened('await Bun.stdin.text();');
    writeFileSync(join(folder, 'left'), 'behind');
    // Databases run as another user.
    expect(statSync(folder).mode & 0o7777).toBe(0o1777);
    if (signal === undefined) child.stdin.end();
    else child.kill(signal);
    expect(await child.exited).toBe(signal === undefined ? 0 : 1);
    expect(existsSync(folder)).toBe(false);
  },
);
