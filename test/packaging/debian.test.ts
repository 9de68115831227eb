/** The Debian package in a scratch root: install, run, upgrade, remove, purge; and lintian. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { debianPackage } from '../../scripts/release/deb.ts';
import { BINARY, binary } from '../support/binary.ts';
import { type Ran, ran, removeScratch, scratchFolder, tool, without } from './release-once.ts';

afterAll(removeScratch);

const arch = process.arch === 'arm64' ? 'arm64' : 'amd64';
const NEEDED = ['dpkg', 'dpkg-deb', 'systemd-sysusers', 'userdel', 'groupdel'];
const isRoot = process.getuid?.() === 0;
const missing = NEEDED.some((name) => tool(name) === undefined);
const why = isRoot ? without(...NEEDED) : ' [SKIPPED: making accounts needs root]';

const packages = scratchFolder('deb');

function build(version: string, program: Uint8Array): string {
  const path = join(packages, `hopgate_${version}_${arch}.deb`);
  const notices = 'none\n';
  writeFileSync(
    path,
    debianPackage({
      version,
      arch,
      binary: program,
      notices,
      seconds: 1_700_000_000,
      level: 1,
    }),
  );
  return path;
}

/** With the program itself; made once. */
let real: Promise<string> | undefined;
const realPackage = (): Promise<string> => {
  real ??= binary().then(() => build('0.1.0', readFileSync(BINARY)));
  return real;
};

const small = (message: string) => new TextEncoder().encode(`#!/bin/sh\necho ${message}\n`);

test('the description of the package names all protocols', () => {
  const control = readFileSync(join(import.meta.dir, '../../packaging/deb/control'), 'utf8');
  const description = control.slice(control.indexOf('Description:')).replace(/\s+/g, ' ');
  for (const protocol of [
    'OpenAI Chat Completions',
    'OpenAI Responses',
    'Anthropic Messages',
    'Google Gemini',
  ]) {
    expect(description).toContain(protocol);
  }
});

describe.skipIf(missing || !isRoot)(`the Debian package${why}`, () => {
  let root: string;
  // Maintainer scripts run outside of the root; DPKG_ROOT names it.
  const dpkg = (...args: string[]): Promise<Ran> =>
    ran(
      [
        tool('dpkg')!,
        `--root=${root}`,
        '--force-depends',
        '--force-script-chrootless',
        '--log=/dev/null',
        ...args,
      ],
      { env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', DEBIAN_FRONTEND: 'noninteractive' } },
    );
  const at = (path: string) => join(root, path);

  beforeAll(() => {
    root = scratchFolder('root');
    for (const folder of ['var/lib/dpkg/info', 'var/lib/dpkg/updates', 'etc', 'run']) {
      mkdirSync(at(folder), { recursive: true });
    }
    for (const file of ['var/lib/dpkg/status', 'etc/passwd', 'etc/group'])
      writeFileSync(at(file), '');
  });

  test('the package installs the program, creates account and state folder, and the program runs', async () => {
    const { code, err } = await dpkg('--install', await realPackage());
    expect([code, err]).toEqual([0, expect.any(String)]);
    const account =
      /^hopgate:[^:]*:(\d+):\d+:[^:]*:\/var\/lib\/hopgate:\/usr\/sbin\/nologin$/m.exec(
        readFileSync(at('etc/passwd'), 'utf8'),
      );
    expect(account).not.toBeNull();
    const state = statSync(at('var/lib/hopgate'));
    expect([state.uid, state.mode & 0o777]).toEqual([Number(account![1]), 0o700]);
    const { out } = await ran([at('usr/bin/hopgate'), 'version']);
    expect(out).toStartWith('hopgate ');
    const check = await ran(
      [at('usr/bin/hopgate'), 'check', '--config', at('etc/hopgate/hopgate.yaml')],
      {
        env: { HOME: packages, PATH: '' },
      },
    );
    expect([check.code, check.err]).toEqual([0, '']);
  }, 60_000);

  test('the package brings an example of the key file, and no key file', () => {
    const example = readFileSync(at('usr/share/doc/hopgate/examples/hopgate.env'), 'utf8');
    expect(example).toBe(
      readFileSync(join(import.meta.dir, '../../packaging/hopgate.env'), 'utf8'),
    );
    expect(existsSync(at('etc/hopgate/hopgate.env'))).toBe(false);
    // The example sets nothing.
    expect(example.split('\n').filter((line) => line !== '' && !line.startsWith('#'))).toEqual([]);
  });

  test('the package enables no service by itself', () => {
    expect(existsSync(at('usr/lib/systemd/system/hopgate.service'))).toBe(true);
    expect(existsSync(at('etc/systemd'))).toBe(false);
  });

  test('its service runs its program as the account it created', () => {
    const unit = readFileSync(at('usr/lib/systemd/system/hopgate.service'), 'utf8');
    expect(unit).toContain('\nExecStart=/usr/bin/hopgate serve ');
    expect(unit).toContain('\nUser=hopgate\nGroup=hopgate\n');
    expect(unit).not.toContain('DynamicUser');
  });

  test('an upgrade keeps configuration and state', async () => {
    writeFileSync(at('etc/hopgate/hopgate.yaml'), 'listen: 127.0.0.1:7777\n');
    writeFileSync(at('var/lib/hopgate/ledger'), 'state');
    const { code } = await dpkg('--install', build('0.2.0', small('two')));
    expect(code).toBe(0);
    expect((await ran([at('usr/bin/hopgate')])).out).toBe('two\n');
    expect(readFileSync(at('etc/hopgate/hopgate.yaml'), 'utf8')).toBe('listen: 127.0.0.1:7777\n');
    expect(readFileSync(at('var/lib/hopgate/ledger'), 'utf8')).toBe('state');
  });

  test('a removal deletes the program and leaves configuration, state and account', async () => {
    expect((await dpkg('--remove', 'hopgate')).code).toBe(0);
    expect(existsSync(at('usr/bin/hopgate'))).toBe(false);
    expect(existsSync(at('etc/hopgate/hopgate.yaml'))).toBe(true);
    expect(existsSync(at('var/lib/hopgate/ledger'))).toBe(true);
    expect(readFileSync(at('etc/passwd'), 'utf8')).toContain('hopgate:');
  });

  test('a purge leaves nothing', async () => {
    writeFileSync(at('etc/hopgate/hopgate.env'), 'KEY=value\n');
    expect((await dpkg('--purge', 'hopgate')).code).toBe(0);
    const { out } = await ran(['find', root, '-mindepth', '1', '-iname', '*hopgate*']);
    expect(out).toBe('');
    for (const file of ['passwd', 'group']) {
      expect(readFileSync(at(`etc/${file}`), 'utf8')).not.toContain('hopgate');
    }
  });
});

const LINT = ['lintian', 'dpkg-deb'];
describe.skipIf(LINT.some((name) => tool(name) === undefined))(`lintian${without(...LINT)}`, () => {
  test('lintian has neither errors nor warnings', async () => {
    const path = await realPackage();
    const lintian = [tool('lintian')!, '--fail-on', 'none', '--allow-root', '--display-info'];
    const { out, err } = await ran([...lintian, path]);
    expect(out.split('\n').filter((line) => /^[EWI]:/.test(line))).toEqual([]);
    expect(err.split('\n').filter((line) => /error/i.test(line))).toEqual([]);
  }, 120_000);
});
