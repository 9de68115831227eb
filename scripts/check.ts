/** The static checks, each as a test: types, lint and format, dead code. `bun scripts/check.ts` runs just these. */

import { join } from 'node:path';

const ROOT = join(import.meta.dir, '..');

export interface Check {
  readonly name: string;
  readonly command: readonly string[];
}

/** In the order of what a failure explains: a type error is behind many a lint error. */
export const CHECKS: readonly Check[] = [
  { name: 'types', command: ['tsc', '--noEmit'] },
  { name: 'types of the page', command: ['tsc', '--noEmit', '-p', 'src/ui/page'] },
  { name: 'lint and format', command: ['biome', 'check', '--error-on-warnings', '.'] },
  { name: 'dead code', command: ['knip', '--no-progress'] },
];

/** Runs a check with the tool that the project pins; resolves with what it said. */
async function run(check: Check): Promise<{ ok: boolean; output: string }> {
  const [tool, ...args] = check.command;
  const child = Bun.spawn([join(ROOT, 'node_modules/.bin', tool!), ...args], {
    cwd: ROOT,
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { ok: code === 0, output: `${out}${err}`.trim() };
}

/** Runs every check and prints what fails; resolves with the counts. */
export async function runChecks(): Promise<{ passed: number; failed: number }> {
  let failed = 0;
  for (const check of CHECKS) {
    const { ok, output } = await run(check);
    console.log(`${ok ? 'ok  ' : 'FAIL'} ${check.name}`);
    if (ok) continue;
    failed++;
    console.log(output.replace(/^/gm, '     '));
  }
  return { passed: CHECKS.length - failed, failed };
}

if (import.meta.main) {
  const { passed, failed } = await runChecks();
  console.log(`${passed} passed, ${failed} failed, 0 skipped`);
  process.exit(failed === 0 ? 0 : 1);
}
