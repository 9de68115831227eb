/** `hopgate migrate`: an older file becomes today's, nothing is lost, and nothing is written unasked. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  chmodSync,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Invocation } from '../../../src/cli/command.ts';
import { runMigrate } from '../../../src/cli/commands/migrate.ts';
import { createTerminal } from '../../../src/cli/terminal.ts';
import { environmentFrom } from '../../../src/config/environment.ts';
import { CONFIG_VERSION } from '../../../src/config/file/migrations.ts';
import { STEPS } from '../../config/older-forms.ts';
import { createWorld, type World } from '../world.ts';

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world.remove());

const OLD = `# mine

address: 127.0.0.1:5521 # not the usual port
keep_alive: 3000
auth: { keys: [my-own-words-0123456789] }
`;
const TODAY = `# mine

version: 3
listen: 127.0.0.1:5521 # not the usual port
keep_alive: 3
auth: { keys: [ my-own-words-0123456789 ] }
`;

/** The command as it is, with the steps of a possible future. */
async function migrate(file: string, ...flags: string[]) {
  let out = '';
  let err = '';
  const invocation = {
    arguments: [],
    text: (name: string) => (name === 'config' ? file : undefined),
    flag: (name: string) => flags.includes(name),
    io: { environment: environmentFrom(world.variables, world.home) },
    out: createTerminal(
      (text) => {
        out += text;
      },
      { colour: false },
    ),
    err: createTerminal(
      (text) => {
        err += text;
      },
      { colour: false },
    ),
  } as unknown as Invocation;
  return { code: await runMigrate(invocation, STEPS), out, err };
}
const text = (file: string) => readFileSync(file, 'utf8');

describe('an older file', () => {
  test('becomes the newest form, and stands beside as it was', async () => {
    const file = world.write('hopgate.yaml', OLD);
    chmodSync(file, 0o640);
    const { code, out, err } = await migrate(file);
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain('version 1 → 3\n  - "address" is called "listen"\n  - keep_alive is');
    expect(text(file)).toBe(TODAY);
    expect(text(`${file}.v1.bak`)).toBe(OLD);
    expect(statSync(file).mode & 0o777).toBe(0o640);
    // It may hold keys.
    expect(statSync(`${file}.v1.bak`).mode & 0o077).toBe(0);
    const again = await migrate(file);
    expect(again).toEqual({ code: 0, out: `${file} is up to date (version 3).\n`, err: '' });
  });

  test('is only shown by --dry-run, without what is secret in it', async () => {
    const file = world.write('hopgate.yaml', OLD);
    const { code, out } = await migrate(file, 'dry-run');
    expect(code).toBe(0);
    expect(out).toContain('  - address: 127.0.0.1:5521 # not the usual port\n');
    expect(out).toContain('  + listen: 127.0.0.1:5521 # not the usual port\n');
    expect(out).not.toContain('my-own-words');
    expect(text(file)).toBe(OLD);
    expect(readdirSync(world.home)).toEqual(['hopgate.yaml']);
  });

  test('never takes the place of another backup', async () => {
    const file = world.write('hopgate.yaml', OLD);
    world.write('hopgate.yaml.v1.bak', 'from another time\n');
    const { out } = await migrate(file);
    expect(text(`${file}.v1.bak`)).toBe('from another time\n');
    expect(text(`${file}.v1.bak.2`)).toBe(OLD);
    expect(out).toContain(`${file}.v1.bak.2`);
  });

  test('behind a link: the link stays one', async () => {
    const file = world.write('dotfiles/hopgate.yaml', OLD);
    const link = join(world.home, 'hopgate.yaml');
    symlinkSync(file, link);
    expect((await migrate(link)).code).toBe(0);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(text(file)).toBe(TODAY);
  });

  test('with problems of its own is written, and they are listed', async () => {
    const file = world.write('hopgate.yaml', `${OLD}lanes: 1\n`);
    const { code, err } = await migrate(file);
    expect(code).toBe(1);
    expect(err).toContain(`${file}:7:1: lanes: unknown key`);
    expect(text(file)).toStartWith(TODAY);
  });

  test('that is no YAML is left alone', async () => {
    const file = world.write('hopgate.yaml', 'address: [\n');
    const { code, err } = await migrate(file);
    expect(code).toBe(1);
    expect(err).toContain(`${file}:`);
    expect(err).toContain('Nothing was written.');
    expect(readdirSync(world.home)).toEqual(['hopgate.yaml']);
  });
});

describe('the command line', () => {
  test('a file of today: nothing to do, not even a backup', async () => {
    const file = world.write('hopgate.yaml', 'listen: 127.0.0.1:5521\n');
    const { code, out } = await world.run(['migrate', '--config', file]);
    expect([code, out]).toEqual([0, `${file} is up to date (version ${CONFIG_VERSION}).\n`]);
    expect(readdirSync(world.home)).toEqual(['hopgate.yaml']);
  });

  test('a newer file is refused by every command that would use it, with its place', async () => {
    const file = world.write('hopgate.yaml', `# new\nversion: ${CONFIG_VERSION + 1}\n`);
    const words = `${file}:2:10: version: this file is written for a newer hopgate`;
    for (const command of ['migrate', 'check', 'models', 'serve']) {
      const { code, err } = await world.run([command, '--config', file]);
      expect([command, code]).toEqual([command, 1]);
      expect(err).toContain(words);
    }
    expect(world.served).toEqual([]);
    expect(readdirSync(world.home)).toEqual(['hopgate.yaml']);
  });

  test('a folder in the place of the file is reported', async () => {
    const { code, err } = await world.run(['migrate', '--config', world.home]);
    expect(code).toBe(1);
    expect(err).toContain(`${world.home} was left as it is: EISDIR`);
  });

  test('no file at all is no fault, a missing one is', async () => {
    expect((await world.run(['migrate'])).code).toBe(
      existsSync('/etc/hopgate/hopgate.yaml') ? 1 : 0,
    );
    const { code, err } = await world.run(['migrate', '--config', join(world.home, 'no.yaml')]);
    expect([code, err]).toEqual([1, expect.stringContaining('there is no such file')]);
  });
});
