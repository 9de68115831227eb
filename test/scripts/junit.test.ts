/** The test command counts every result of a run: no failure gets lost. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Outcome, readJunit, withRunErrors, withSecondRun } from '../../scripts/junit.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hopgate-junit-test-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The outcome of a real `bun test` over these files. */
async function outcomeOf(name: string, files: Record<string, string>): Promise<Outcome> {
  const root = join(folder, name);
  for (const [file, text] of Object.entries(files)) await Bun.write(join(root, file), text);
  const report = join(root, 'junit.xml');
  const child = Bun.spawn(
    [process.execPath, 'test', '--reporter=junit', `--reporter-outfile=${report}`],
    { cwd: root, stdout: 'ignore', stderr: 'pipe', env: { ...process.env, NO_COLOR: '1' } },
  );
  const message = await new Response(child.stderr).text();
  const code = await child.exited;
  const xml = await Bun.file(report)
    .text()
    .catch(() => '');
  return withRunErrors(readJunit(xml), message, code);
}

const MIXED = `import { describe, expect, test } from 'bun:test';
describe('a "group" <of> things & more', () => {
  test('passes', () => {});
  test('fails', () => expect(1).toBe(2));
  test.skip('is skipped', () => {});
  test.todo('is to do');
  test('is slow', () => Bun.sleep(999), 20);
});`;

describe('counting', () => {
  test('passes, failures, time-outs and skips are counted separately, in groups too', async () => {
    const outcome = await outcomeOf('mixed', { 'a.test.ts': MIXED });
    expect(outcome).toMatchObject({ passed: 1, failed: 2, skipped: 2 });
    expect(outcome.failures.map((one) => one.name)).toEqual([
      'a "group" <of> things & more > fails',
      'a "group" <of> things & more > is slow',
    ]);
    expect(outcome.failures[0]?.words).toContain('Expected: 2\nReceived: 1');
    expect(outcome.skips).toContain('a "group" <of> things & more > is skipped');
  });

  test('a file that does not load is a failure, alone and beside others', async () => {
    const broken = "import './nowhere.ts';\nimport { test } from 'bun:test';\ntest('x', () => {});";
    expect(await outcomeOf('broken', { 'b.test.ts': broken })).toMatchObject({ failed: 1 });
    const both = await outcomeOf('both', { 'a.test.ts': MIXED, 'b.test.ts': broken });
    expect(both).toMatchObject({ passed: 1, failed: 3 });
    expect(both.failures.at(-1)?.words).toContain('nowhere.ts');
  });

  test('a run that dies silently is a failure', () => {
    expect(withRunErrors(readJunit(''), '', 137)).toMatchObject({ passed: 0, failed: 1 });
    expect(withRunErrors(readJunit(''), '', 0)).toMatchObject({ passed: 0, failed: 0 });
  });
});

describe('a second run of the files with failures', () => {
  const outcome = (passed: number, ...failures: readonly [name: string, file: string][]) => ({
    passed,
    failed: failures.length,
    skipped: 1,
    failures: failures.map(([name, file]) => ({ name, file, words: '' })),
    skips: ['s'],
    unsteady: [],
  });
  const first = outcome(7, ['x', 'a.test.ts'], ['y', 'a.test.ts'], ['z', 'b.test.ts']);

  test('what fails again has failed, what passes is named', () => {
    const both = withSecondRun(first, outcome(3, ['y', 'a.test.ts']));
    expect(both).toMatchObject({ passed: 9, failed: 1, skipped: 1 });
    expect(both.failures.map(({ name }) => name)).toEqual(['y']);
    expect(both.unsteady.map(({ name }) => name)).toEqual(['x', 'z']);
  });

  test('a test of the same name in another file, and one that fails only now, are failures', () => {
    const both = withSecondRun(first, outcome(3, ['x', 'b.test.ts']));
    expect(both).toMatchObject({ passed: 9, failed: 1 });
    expect(both.unsteady).toHaveLength(3);
  });

  test('a failure outside of any test is never made good', () => {
    const outside = outcome(7, ['outside of any test', ''], ['x', 'a.test.ts']);
    expect(withSecondRun(outside, outcome(4))).toMatchObject({ passed: 8, failed: 1 });
    const dead = withSecondRun(first, outcome(0, ['outside of any test', '']));
    expect(dead).toMatchObject({ failed: 1, unsteady: [] });
  });
});
