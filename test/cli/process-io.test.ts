/** Output that cannot be written: the exit code says so. */

import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { binary } from '../support/binary.ts';
import { createWorld, type World } from './world.ts';

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world.remove());

/** Runs a command whose output goes there. */
async function into(path: string, ...args: string[]) {
  const shell = ['sh', '-c', 'exec "$@" > "$0"', path];
  const ran = Bun.spawn([...shell, await binary(), ...args], {
    stderr: 'pipe',
    env: { HOME: world.home },
  });
  const err = await new Response(ran.stderr).text();
  return { code: await ran.exited, err };
}

for (const command of [['version'], ['completions', 'bash'], ['check', '--schema']]) {
  const name = `${command.join(' ')} onto a full disk fails in one line`;
  test.skipIf(!existsSync('/dev/full'))(name, async () => {
    const { code, err } = await into('/dev/full', ...command);
    expect(err.trim()).toBe('hopgate: the output cannot be written (ENOSPC).');
    expect(code).toBe(1);
  });
}

test('elsewhere nothing is said', async () => {
  expect(await into('/dev/null', 'version')).toEqual({ code: 0, err: '' });
});
