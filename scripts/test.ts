/** The test command: static checks, then every test; ends with one line `N passed, N failed, N skipped`. */

import { readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { binary } from '../test/support/gateway-process.ts';
import { runChecks } from './check.ts';
import { type Outcome, readJunit, withRunErrors, withSecondRun } from './junit.ts';
import { openScratch } from './scratch.ts';

const ROOT = join(import.meta.dir, '..');

/** Passes a stream on as it comes, and gives its text in the end. */
async function passOn(stream: ReadableStream<Uint8Array>, to: NodeJS.WriteStream): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of stream) {
    to.write(chunk);
    text += decoder.decode(chunk, { stream: true });
  }
  return text;
}

/**
 * Files that run at the same time: one more than there are processors, since many wait for servers and clocks. More than
 * a few would disturb each other's measurements of growth.
 */
const WORKERS = Math.min(4, availableParallelism() + 1);

/** More failing files than these are no accident of a busy machine. */
const MAX_FILES_AGAIN = 20;

/** Runs `bun test` over what is named (all of test/ when nothing is), so many files at the same time. */
async function runTests(which: readonly string[], workers: number): Promise<Outcome> {
  const report = join(scratch, `junit-${workers}.xml`);
  const child = Bun.spawn(
    // On a busy machine a test takes many times as long: only one that hangs is to fail by the clock.
    [
      process.execPath,
      'test',
      '--timeout=60000',
      `--parallel=${workers}`,
      '--reporter=junit',
      `--reporter-outfile=${report}`,
      ...which,
    ],
    {
      cwd: ROOT,
      stdout: 'pipe',
      stderr: 'pipe',
      env: { ...process.env, NO_COLOR: '1', TMPDIR: scratch },
    },
  );
  const [, words, code] = await Promise.all([
    passOn(child.stdout, process.stdout),
    passOn(child.stderr, process.stderr),
    child.exited,
  ]);
  const xml = await Bun.file(report)
    .text()
    .catch(() => '');
  await rm(report, { force: true });
  return withRunErrors(readJunit(xml), words, code);
}

const scratch = await openScratch();
const which = process.argv.slice(2);
// Built once beside the checks: files that start at the same time would each build it. A failure fails their tests.
const building = which.length === 0 ? binary().catch(() => {}) : undefined;
const checks = await runChecks();
await building;
const first = await runTests(which, WORKERS);
// A file that fails beside others on a busy machine runs once more on its own; what fails again has failed.
const files = [...new Set(first.failures.map(({ file }) => file).filter((file) => file !== ''))];
const again = files.length > 0 && files.length <= MAX_FILES_AGAIN;
const tests = again ? withSecondRun(first, await runTests(files, 1)) : first;

if (tests.skips.length > 0) {
  console.log(`\nSkipped:\n${tests.skips.map((name) => `  ${name}`).join('\n')}`);
}
if (tests.failures.length > 0) {
  console.log('\nFailed:');
  for (const { name, file, words } of tests.failures) {
    console.log(`  ${name}${file === '' ? '' : `  (${file})`}`);
    if (words !== '') console.log(words.replace(/^/gm, '      '));
  }
}
if (tests.unsteady.length > 0) {
  console.log('\nFailed beside others, passed on their own:');
  for (const { name, file } of tests.unsteady) console.log(`  ${name}  (${file})`);
}
const left = readdirSync(scratch);
if (left.length > 0) console.log(`\nLeft behind:\n${left.map((name) => `  ${name}`).join('\n')}`);
const passed = checks.passed + tests.passed;
const failed = checks.failed + tests.failed;
console.log(`\n${passed} passed, ${failed} failed, ${tests.skipped} skipped`);
process.exit(failed === 0 ? 0 : 1);
