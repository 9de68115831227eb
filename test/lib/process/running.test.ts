/** A process that is gone does not seem to run because another one has its number. */

import { afterEach, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import type { Subprocess } from 'bun';
import { isRunning, startOf } from '../../../src/lib/process/running.ts';
import { runName, runs } from '../../../src/samples/store/read-meta.ts';
import { until } from '../../support/until.ts';

const children: Subprocess[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill('SIGKILL');
    await child.exited;
  }
});

function sleeper() {
  const child = Bun.spawn(['sleep', '60']);
  children.push(child);
  return child;
}

/** The system tells when a process began. */
const tells = process.platform === 'linux';

test('a process runs until it ends', async () => {
  const child = sleeper();
  const start = startOf(child.pid);
  expect(start !== undefined).toBe(tells);
  expect(isRunning(child.pid)).toBe(true);
  expect(isRunning(child.pid, start)).toBe(true);
  expect(isRunning(process.pid, startOf(process.pid))).toBe(true);
  child.kill('SIGKILL');
  await child.exited;
  expect(isRunning(child.pid)).toBe(false);
  expect(isRunning(child.pid, start)).toBe(false);
  expect(startOf(child.pid)).toBeUndefined();
});

test('what is no number of a process does not run', () => {
  for (const pid of [0, -1, 1.5, Number.NaN, 2 ** 40]) expect(isRunning(pid)).toBe(false);
});

describe.if(tells)('where the system tells starts', () => {
  test('another process under the number is not the one that had it', () => {
    const { pid } = sleeper();
    expect(isRunning(pid, startOf(process.pid))).toBe(false);
    expect(isRunning(pid, `${startOf(pid)}0`)).toBe(false);
    // Nothing was written down: the number has to do.
    expect(isRunning(pid, null)).toBe(true);
  });

  test('a process that has ended does not run, even while its parent has not asked how', async () => {
    const parent = Bun.spawn(['sh', '-c', 'sleep 60 & echo $!; exec sleep 60'], { stdout: 'pipe' });
    children.push(parent);
    const { value } = await parent.stdout.getReader().read();
    const pid = Number(new TextDecoder().decode(value));
    expect(pid).toBeGreaterThan(0);
    // A shell would ask.
    const nameOf = (of: number) => readFileSync(`/proc/${of}/comm`, 'utf8').trim();
    await until(() => nameOf(parent.pid) === 'sleep');
    process.kill(pid, 'SIGKILL');
    await until(() => !isRunning(pid));
    // The number is still taken.
    process.kill(pid, 0);
  });

  test('the name of a recorder that had the number of another process is that of an ended one', () => {
    const { pid } = sleeper();
    const name = runName();
    expect(runs(name)).toBe(true);
    expect(runs(name, name)).toBe(true);
    expect(runs(name.replace(/^\d+/, String(pid)))).toBe(false);
    expect(runs(`${process.pid}-other-1.2`)).toBe(false);
    expect(runs(`${pid}-other-${startOf(pid)}`, name)).toBe(true);
  });
});

test('a name without a start, as older versions wrote it, is judged by its number', () => {
  const { pid } = sleeper();
  expect(runs(`${pid}-abc`)).toBe(true);
  expect(runs(`${process.pid}-abc`)).toBe(true);
  expect(runs(`${process.pid}-abc`, runName())).toBe(false);
  expect(runs('')).toBe(false);
});
