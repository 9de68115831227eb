/** What a person at a terminal sees of a problem: the line of the file, and a caret; scripts and pipes get one line each. */

import { afterEach, beforeEach, expect, test } from 'bun:test';
import { createWorld, type World } from './world.ts';

let world: World;
beforeEach(() => {
  world = createWorld();
  world.variables.NO_COLOR = '1';
});
afterEach(() => world.remove());

const TEXT =
  'wrokers: 2\nproviders:\n  p: { protocol: openai-chat, base_url: "ftp://x", keys: ["sk-very-secret-key"] }\n';

test('on a terminal the line is shown, but for one that may hold a credential', async () => {
  const config = world.write('hopgate.yaml', TEXT);
  world.tty = true;
  const { code, err } = await world.run(['check', '--config', config]);
  expect(code).toBe(1);
  expect(err).toContain(
    `${config}:1:1: wrokers: unknown key (did you mean "workers"?)\n  1 | wrokers: 2\n      ^\n`,
  );
  expect(err).toContain('must begin with https://');
  expect(err).not.toContain('sk-very-secret');
});

test('in a pipe a problem is one line', async () => {
  const config = world.write('hopgate.yaml', TEXT);
  const { err } = await world.run(['check', '--config', config]);
  expect(err.trim().split('\n')).toHaveLength(3);
});

test('-v is the version, and a misspelled --version gets a did-you-mean', async () => {
  expect((await world.run(['-v'])).out).toBe((await world.run(['--version'])).out);
  const { code, err } = await world.run(['--verison']);
  expect([code, err]).toEqual([2, expect.stringContaining('Did you mean "--version"?')]);
});

test('the manual page has examples and what else to look at', async () => {
  const { out } = await world.run(['man']);
  expect(out).toContain('.SH EXAMPLES');
  expect(out).toContain('.SH SEE ALSO');
});

test.each([
  ['beside the file of the service', 'hopgate.env', true],
  ['without one', 'other.env', false],
])('a variable that this shell lacks, %s: says who has it', async (_what, name, told) => {
  world.write(`etc/${name}`, 'ADMIN_OF_A_TEST=hk-admin-0123456789\n');
  const config = world.write('etc/hopgate.yaml', `auth: { admin_keys: ["\${ADMIN_OF_A_TEST}"] }\n`);
  const { code, err } = await world.run(['check', '--config', config]);
  expect(code).toBe(1);
  expect(err).toContain('ADMIN_OF_A_TEST is not set');
  expect(err.includes('hopgate.env has the variables of the service')).toBe(told);
});
