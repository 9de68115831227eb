/** install.sh against a local file server: under several shells, with download faults. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { hostTarget } from '../../build.ts';
import { archiveContents } from '../../scripts/release/contents.ts';
import { gzip, tar, withFolders } from '../../scripts/release/tar.ts';
import { type Ran, ran, removeScratch, scratchFolder, tool, without } from './release-once.ts';

afterAll(removeScratch);

const SCRIPT = join(import.meta.dir, '../../packaging/install.sh');
const target = hostTarget();

// A small program stands for the real one, since only the installation is tested.
const program = (version: string) =>
  new TextEncoder().encode(`#!/bin/sh\necho "hopgate ${version}, small"\n`);

let served: string;
let server: Bun.Server<undefined>;
/** What the server does to a file's bytes during the download. */
let damage: (name: string, bytes: Uint8Array) => Uint8Array = (_name, bytes) => bytes;

function publish(version: string, targets: readonly string[] = [target]): void {
  const lines = targets.map((one) => {
    const entries = archiveContents({
      target: one as typeof target as never,
      version,
      binary: program(version),
      notices: 'none\n',
    });
    const archive = gzip(tar(withFolders(entries), 1_700_000_000));
    const name = `hopgate-${version}-${one}.tar.gz`;
    writeFileSync(join(served, name), archive);
    return `${createHash('sha256').update(archive).digest('hex')}  ${name}\n`;
  });
  writeFileSync(join(served, 'SHA256SUMS'), lines.join(''));
}

beforeAll(() => {
  served = scratchFolder('served');
  server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const name = new URL(request.url).pathname.slice(1);
      const path = join(served, name);
      if (!existsSync(path)) return new Response('no such file', { status: 404 });
      const bytes = damage(name, readFileSync(path));
      return new Response(bytes as Uint8Array<ArrayBuffer>);
    },
  });
});
afterAll(() => server.stop(true));

interface InstallHome {
  readonly home: string;
  run(...args: string[]): Promise<Ran>;
}

/** A separate home; `shell` runs the script. */
function place(shell: readonly string[], path = process.env.PATH ?? ''): InstallHome {
  const home = scratchFolder('home');
  return {
    home,
    run: (...args) =>
      ran([...shell, SCRIPT, ...args], { cwd: home, env: { HOME: home, PATH: path } }),
  };
}

const url = () => `http://127.0.0.1:${server.port}`;

/** A PATH with only busybox. */
function busyboxPath(): string {
  const folder = scratchFolder('busybox');
  const applets =
    'basename cat chmod cp cut dirname grep gzip mkdir mktemp mv rm rmdir sed sh sha256sum tar tr uname wc wget';
  for (const name of applets.split(' ')) symlinkSync(tool('busybox')!, join(folder, name));
  return folder;
}

const SHELLS: readonly (readonly [name: string, needs: string, shell: () => InstallHome])[] = [
  ['dash', 'dash', () => place([tool('dash')!])],
  ['bash as sh', 'bash', () => place([tool('bash')!, '--posix'])],
  [
    'busybox alone (its own wget, tar, sha256sum)',
    'busybox',
    () => place([tool('busybox')!, 'sh'], busyboxPath()),
  ],
];

for (const [name, needs, make] of SHELLS) {
  describe.skipIf(tool(needs) === undefined)(`install.sh under ${name}${without(needs)}`, () => {
    test('the script installs into ~/.local, runs, upgrades, and uninstalls exactly its own files', async () => {
      damage = (_name, bytes) => bytes;
      publish('1.0.0');
      const { home, run } = make();
      const first = await run('--base-url', url());
      expect([first.code, first.err]).toEqual([0, '']);
      expect(first.out).toContain('Installed hopgate 1.0.0, small');
      expect(first.out).toContain(`${home}/.local/bin is not in your PATH`);
      const local = join(home, '.local');
      expect((await ran([join(local, 'bin/hopgate')])).out).toBe('hopgate 1.0.0, small\n');
      expect(readFileSync(join(local, 'share/man/man1/hopgate.1'), 'utf8')).toContain(
        '.TH HOPGATE',
      );

      writeFileSync(join(local, 'bin/mine'), 'not yours\n');
      publish('1.1.0');
      expect((await run('--base-url', url())).out).toContain('Installed hopgate 1.1.0');
      expect((await ran([join(local, 'bin/hopgate')])).out).toBe('hopgate 1.1.0, small\n');

      const gone = await run('--uninstall');
      expect([gone.code, gone.err]).toEqual([0, '']);
      expect(readdirSync(local, { recursive: true }).sort()).toEqual(['bin', 'bin/mine']);
      const again = await run('--uninstall');
      expect(again.code).toBe(1);
      expect(again.err).toContain('nothing that install.sh put there');
    });

    const broken: readonly (readonly [what: string, damage: typeof damage, says: string])[] = [
      [
        'truncated',
        (file, bytes) => (file.endsWith('.gz') ? bytes.subarray(0, bytes.length >> 1) : bytes),
        'does not match SHA256SUMS: it is truncated or was changed',
      ],
      [
        'changed by one bit',
        (file, bytes) => {
          if (!file.endsWith('.gz')) return bytes;
          const copy = bytes.slice();
          copy[copy.length >> 1]! ^= 1;
          return copy;
        },
        'does not match SHA256SUMS: it is truncated or was changed',
      ],
      [
        'without sums',
        (file, bytes) => (file === 'SHA256SUMS' ? bytes.slice(0, 0) : bytes),
        'has no archive for',
      ],
      [
        'with a cut line of sums',
        (file, bytes) => (file === 'SHA256SUMS' ? bytes.subarray(0, 40) : bytes),
        'has no archive for',
      ],
    ];
    for (const [what, how, says] of broken) {
      test(`a download that is ${what} is refused, and no file is installed`, async () => {
        publish('1.0.0');
        damage = how;
        const { home, run } = make();
        const { code, err } = await run('--base-url', url());
        damage = (_name, bytes) => bytes;
        expect(code).toBe(1);
        expect(err).toContain(says);
        expect(readdirSync(home)).toEqual([]);
      });
    }
  });
}

describe.skipIf(tool('sh') === undefined)(`install.sh${without('sh')}`, () => {
  const sh = () => place([tool('sh')!]);

  test('the script takes a local folder and a prefix with a space, and leaves an older running copy', async () => {
    publish('1.0.0');
    const { home, run } = sh();
    const { code, err } = await run(`--base-url=${served}`, '--prefix=my tools');
    expect([code, err]).toEqual([0, '']);
    expect(existsSync(join(home, 'my tools/bin/hopgate'))).toBe(true);
    expect((await run('--uninstall', '--prefix', 'my tools')).code).toBe(0);
    expect(readdirSync(join(home, 'my tools'))).toEqual([]);
  });

  test('the script picks its own machine among similar ones', async () => {
    const all = [
      'linux-x64',
      'linux-arm64',
      'linux-x64-musl',
      'linux-arm64-musl',
      'darwin-x64',
      'darwin-arm64',
    ];
    publish('2.0.0-rc.1', all);
    const { run } = sh();
    const { out, code } = await run('--base-url', url());
    expect([code, out.split('\n')[0]]).toEqual([0, `Fetching hopgate-2.0.0-rc.1-${target}.tar.gz`]);
    publish(
      '2.0.0',
      all.filter((one) => one !== target),
    );
    const other = await sh().run('--base-url', url());
    expect([other.code, other.err]).toEqual([
      1,
      expect.stringContaining(`no archive for ${target}`),
    ]);
  });

  const machines: readonly (readonly [
    system: string,
    hardware: string,
    ldd: string,
    is: string,
  ])[] = [
    ['Linux', 'x86_64', 'ldd (GNU libc) 2.36', 'linux-x64'],
    ['Linux', 'aarch64', 'ldd (Debian GLIBC 2.36-9) 2.36', 'linux-arm64'],
    ['Linux', 'x86_64', 'musl libc (x86_64)', 'linux-x64-musl'],
    ['Linux', 'aarch64', 'musl libc (aarch64)', 'linux-arm64-musl'],
    ['Darwin', 'arm64', '', 'darwin-arm64'],
    ['Darwin', 'x86_64', '', 'darwin-x64'],
  ];
  for (const [system, hardware, ldd, is] of machines) {
    test(`${system} on ${hardware}${ldd && ` with "${ldd}"`} installs ${is}`, async () => {
      publish('1.0.0', [is]);
      const folder = scratchFolder('machine');
      const fake = (name: string, body: string) => {
        writeFileSync(join(folder, name), `#!/bin/sh\n${body}\n`);
        chmodSync(join(folder, name), 0o755);
      };
      fake('uname', `[ "$1" = -s ] && echo ${system} || echo ${hardware}`);
      fake('ldd', `echo "${ldd}" >&2; exit 1`);
      // Reports a wrong signature, and records its arguments.
      fake('codesign', `echo "$@" >>${folder}/signed; [ "$1" != --verify ]`);
      const { run } = place([tool('sh')!], `${folder}:${process.env.PATH}`);
      const { code, out, err } = await run('--base-url', url());
      expect([code, err, out.split('\n')[0]]).toEqual([
        0,
        '',
        `Fetching hopgate-1.0.0-${is}.tar.gz`,
      ]);
      const signed = existsSync(join(folder, 'signed'))
        ? readFileSync(join(folder, 'signed'), 'utf8')
        : '';
      if (system === 'Darwin') expect(signed).toContain('--force --sign - ');
      else expect(signed).toBe('');
    });
  }

  test('an error names its cause, with code 1', async () => {
    const { run } = sh();
    expect((await run()).err).toContain('where from? --base-url URL');
    expect((await run('--prefix')).err).toContain('--prefix needs a value');
    expect((await run('--frob')).err).toContain('unknown: --frob');
    const { code, err } = await run('--base-url', `${url()}/nowhere`);
    expect([code, err]).toEqual([1, expect.stringContaining('cannot get')]);
  });

  test('a changed list of files installs nothing else', async () => {
    publish('1.0.0');
    const { home, run } = sh();
    await run('--base-url', url());
    writeFileSync(join(home, 'precious'), 'kept\n');
    mkdirSync(join(home, '.local/etc'));
    writeFileSync(join(home, '.local/etc/precious'), 'kept\n');
    const list = join(home, '.local/share/hopgate/installed');
    writeFileSync(
      list,
      `${readFileSync(list, 'utf8')}share/../../precious\netc/precious\n/etc/hostname\n`,
    );
    expect((await run('--uninstall')).code).toBe(0);
    expect(existsSync(join(home, 'precious'))).toBe(true);
    expect(existsSync(join(home, '.local/etc/precious'))).toBe(true);
  });

  test('a script that was cut during the download does nothing', async () => {
    const text = readFileSync(SCRIPT, 'utf8');
    for (const part of [0.3, 0.6, 0.9, 0.99]) {
      const { home } = sh();
      const cut = join(scratchFolder('cut'), 'install.sh');
      writeFileSync(cut, text.slice(0, text.length * part));
      await ran([tool('sh')!, cut, '--base-url', url()], {
        cwd: home,
        env: { HOME: home, PATH: process.env.PATH! },
      });
      expect(readdirSync(home)).toEqual([]);
    }
  });

  test.skipIf(tool('shellcheck') === undefined)(
    `shellcheck finds nothing${without('shellcheck')}`,
    async () => {
      const scripts = ['postinst', 'prerm', 'postrm'].map((name) => join(SCRIPT, '../deb', name));
      const { code, out } = await ran([tool('shellcheck')!, '-s', 'sh', SCRIPT, ...scripts]);
      expect([code, out]).toEqual([0, '']);
    },
  );
});
