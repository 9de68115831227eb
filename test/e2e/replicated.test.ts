/** Suites of turns with tools, run again: every request goes to another of three replicas. */

import { expect, test } from 'bun:test';
import { binary } from '../support/binary.ts';
import { HAS_CACHE } from '../support/engines/cache-servers.ts';

/** Stored responses are on each machine. */
const ON_ONE_MACHINE = 'a stored response';
const SUITES = ['server-tools', 'server-tools-hops', 'server-tools-turns', 'pairs'];

test.skipIf(!HAS_CACHE).each(SUITES)(
  '%s passes behind a load balancer over three replicas',
  async (suite) => {
    await binary();
    const file = Bun.fileURLToPath(new URL(`${suite}.test.ts`, import.meta.url));
    const command = [
      process.execPath,
      'test',
      '--timeout',
      '60000',
      '-t',
      `^(?!${ON_ONE_MACHINE})`,
      file,
    ];
    const child = Bun.spawn(command, {
      env: { ...process.env, HOPGATE_TEST_REPLICAS: '3' },
      stdout: 'pipe',
      stderr: 'pipe',
    });
    const output = `${await new Response(child.stdout).text()}${await new Response(child.stderr).text()}`;
    const failed = output.split('\n').filter((line) => line.startsWith('(fail)'));
    expect(failed).toEqual([]);
    expect(await child.exited).toBe(0);
    expect(Number(/^ *(\d+) pass$/m.exec(output)?.[1])).toBeGreaterThan(50);
  },
  600_000,
);
