/** `hopgate service`: what it writes and runs, what it leaves alone, and that doing it twice is doing it once. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ownership, withMark } from '../../../../src/cli/commands/service/index.ts';
import { installationFor } from '../../../../src/cli/commands/service/installation.ts';
import { launchdPlist } from '../../../../src/cli/commands/service/launchd-plist.ts';
import { createWorld, type World } from '../../world.ts';

let world: World;
let bin: string;
const unit = () => join(world.home, '.config/systemd/user/hopgate.service');
const called = () => {
  const log = join(bin, 'called');
  return existsSync(log) ? readFileSync(log, 'utf8').trimEnd().split('\n') : [];
};

/** A manager that writes down what it is asked, and ends with a code. */
function manager(name: string, code = 0, words = ''): void {
  const path = join(bin, name);
  writeFileSync(
    path,
    `#!/bin/sh\necho "${name} $*" >>${bin}/called\necho "${words}"\nexit ${code}\n`,
  );
  chmodSync(path, 0o755);
}

beforeEach(() => {
  world = createWorld();
  bin = join(world.home, 'bin');
  mkdirSync(bin);
  world.variables.PATH = bin;
  world.platform = 'linux';
  world.program = ['/opt/hopgate/bin/hopgate'];
  for (const name of ['systemctl', 'journalctl', 'launchctl', 'tail']) manager(name);
});
afterEach(() => world.remove());

const install = (...more: string[]) => world.run(['service', 'install', '--user', ...more]);

describe('install', () => {
  test('--dry-run shows the file and the commands, and does nothing', async () => {
    const { code, out } = await install('--dry-run');
    expect(code).toBe(0);
    expect(out).toContain(`would write   ${unit()}`);
    expect(out).toContain('    ExecStart=/opt/hopgate/bin/hopgate serve --drain 1800');
    expect(out).toContain('would run     systemctl --user enable hopgate.service');
    expect(existsSync(unit())).toBe(false);
    expect(called()).toEqual([]);
  });

  test('writes the unit, enables and starts it, and says where keys go', async () => {
    const { code, out, err } = await install();
    expect([code, err]).toEqual([0, '']);
    expect(ownership(unit())).toBe('ours');
    expect(called()).toEqual([
      'systemctl --user daemon-reload',
      'systemctl --user enable hopgate.service',
      'systemctl --user restart hopgate.service',
    ]);
    expect(out).toContain(join(world.home, '.config/hopgate/hopgate.env'));
  });

  test('done again it neither writes nor restarts', async () => {
    await install();
    const before = lstatSync(unit());
    writeFileSync(join(bin, 'called'), '');
    const { code, out } = await install();
    expect(code).toBe(0);
    expect(out).toContain('is there already, unchanged');
    expect(lstatSync(unit()).ino).toBe(before.ino);
    expect(called().join()).not.toContain('restart');
  });

  test('a program that moved brings the unit up to date', async () => {
    await install();
    world.program = ['/usr/local/bin/hopgate'];
    expect((await install()).code).toBe(0);
    expect(readFileSync(unit(), 'utf8')).toContain('ExecStart=/usr/local/bin/hopgate serve');
    expect(ownership(unit())).toBe('ours');
  });

  test('the named configuration is named in the unit, by its full path', async () => {
    world.write('other.yaml', 'limits: { drain: 4000 }\n');
    expect((await install('--config', 'other.yaml')).code).toBe(0);
    const text = readFileSync(unit(), 'utf8');
    expect(text).toContain(`serve --drain 4000 --config ${world.home}/other.yaml\n`);
    expect(text).toContain('TimeoutStopSec=4030\n');
  });

  test('a configuration that cannot be used is reported before anything is done', async () => {
    world.write('bad.yaml', 'lisen: 1\n');
    const { code, err } = await install('--config', 'bad.yaml');
    expect([code, err]).toEqual([1, expect.stringContaining('hopgate check')]);
    expect(existsSync(unit())).toBe(false);
  });

  test('--no-start enables without starting', async () => {
    await install('--no-start');
    expect(called()).toEqual([
      'systemctl --user daemon-reload',
      'systemctl --user enable hopgate.service',
    ]);
  });

  test('a manager that fails is quoted, with code 1', async () => {
    manager('systemctl', 1, 'Failed to connect to bus');
    const { code, err } = await install();
    expect([code, err]).toEqual([1, expect.stringContaining('Failed to connect to bus')]);
  });

  test('a machine without systemd gets a message that says so', async () => {
    world.variables.PATH = join(world.home, 'nowhere');
    const { code, err } = await install();
    expect([code, err]).toEqual([1, expect.stringContaining('systemctl is not on this machine')]);
  });

  test('a system other than Linux and macOS is refused', async () => {
    world.platform = 'freebsd';
    const { code, err } = await install();
    expect([code, err]).toEqual([1, expect.stringContaining('on Linux (systemd) and macOS')]);
  });
});

describe('a file that hopgate did not write', () => {
  const foreign = () => {
    mkdirSync(dirname(unit()), { recursive: true });
    writeFileSync(unit(), '[Service]\nExecStart=/mine\n');
  };

  test('is neither written over nor removed, not even with --force', async () => {
    foreign();
    for (const words of [
      ['install'],
      ['uninstall'],
      ['install', '--force'],
      ['uninstall', '--force'],
    ]) {
      const { code, err } = await world.run(['service', '--user', ...words]);
      expect([code, err]).toEqual([1, expect.stringContaining('was not written by hopgate')]);
    }
    expect(readFileSync(unit(), 'utf8')).toBe('[Service]\nExecStart=/mine\n');
    expect(called()).toEqual([]);
  });

  test('or changed stays, until --force', async () => {
    await install();
    writeFileSync(unit(), `${readFileSync(unit(), 'utf8')}Environment=A=b\n`);
    writeFileSync(join(bin, 'called'), '');
    for (const action of ['install', 'uninstall']) {
      const { code, err } = await world.run(['service', action, '--user']);
      expect([code, err]).toEqual([1, expect.stringContaining('was changed since it was written')]);
    }
    expect(called()).toEqual(['']);
    expect((await install('--force')).code).toBe(0);
    expect(readFileSync(unit(), 'utf8')).not.toContain('A=b');
  });

  test('a unit that a package brought is left to the package', async () => {
    const root = join(world.home, 'image');
    world.write('image/usr/lib/systemd/system/hopgate.service', '[Service]\n');
    const { code, err } = await world.run(['service', 'install', '--root', root]);
    expect([code, err]).toEqual([1, expect.stringContaining('systemctl enable --now hopgate')]);
    expect(existsSync(join(root, 'etc'))).toBe(false);
  });
});

describe('uninstall', () => {
  test('stops, disables and removes exactly the file, and does nothing the second time', async () => {
    await install();
    writeFileSync(join(bin, 'called'), '');
    const { code, out } = await world.run(['service', 'uninstall', '--user']);
    expect(code).toBe(0);
    expect(out).toContain(`removed  ${unit()}`);
    expect(existsSync(unit())).toBe(false);
    expect(called().slice(1)).toEqual(
      [
        'systemctl --user stop hopgate.service',
        'systemctl --user disable hopgate.service',
        'systemctl --user daemon-reload',
      ].slice(called()[0] === '' ? 0 : 1),
    );
    const again = await world.run(['service', 'uninstall', '--user']);
    expect([again.code, again.out]).toEqual([0, expect.stringContaining('nothing to do')]);
  });
});

describe('status and logs', () => {
  test('end as the manager does', async () => {
    manager('systemctl', 3);
    expect((await world.run(['service', 'status', '--user'])).code).toBe(3);
    expect(called()).toEqual(['systemctl --user status --no-pager hopgate.service']);
  });

  test('ask the journal for as many lines as wanted', async () => {
    await world.run(['service', 'logs', '--user', '--lines', '7', '--follow']);
    expect(called()).toEqual(['journalctl --user --unit hopgate.service --lines 7 --follow']);
  });
});

describe('the system service', () => {
  const systemctl = Bun.which('systemctl');
  test.skipIf(systemctl === null)(
    `below a root, enabled by the real systemctl${systemctl === null ? ' [SKIPPED: no systemctl]' : ''}`,
    async () => {
      world.variables.PATH = process.env.PATH;
      const root = join(world.home, 'image');
      mkdirSync(root);
      const first = await world.run(['service', 'install', '--root', root]);
      expect([first.code, first.err]).toEqual([0, '']);
      const file = join(root, 'etc/systemd/system/hopgate.service');
      const link = join(root, 'etc/systemd/system/multi-user.target.wants/hopgate.service');
      expect(ownership(file)).toBe('ours');
      expect(readFileSync(file, 'utf8')).toContain('\nDynamicUser=yes\n');
      expect(lstatSync(link).isSymbolicLink()).toBe(true);
      expect((await world.run(['service', 'install', '--root', root])).code).toBe(0);
      expect((await world.run(['service', 'uninstall', '--root', root])).code).toBe(0);
      expect(existsSync(file)).toBe(false);
      expect(lstatSync(link, { throwIfNoEntry: false })).toBeUndefined();
    },
  );

  test.each(['/tmp/hopgate', '/var/tmp/h/hopgate'])(
    'does not run %s, which it would not see',
    async (path) => {
      world.program = [path];
      world.platform = 'linux';
      const { code, err } = await world.run(['service', 'install', '--root', world.home]);
      expect([code, err]).toEqual([1, expect.stringContaining('hidden from a system service')]);
    },
  );

  test('does not run a program out of the home of a user', async () => {
    world.program = ['/home/ann/.local/bin/hopgate'];
    const { code, err } = await world.run(['service', 'install', '--root', world.home]);
    expect([code, err]).toEqual([1, expect.stringContaining('belongs to one user')]);
  });

  test('--user and --system exclude each other', async () => {
    expect((await world.run(['service', 'status', '--user', '--system'])).code).toBe(2);
  });
});

describe('launchd', () => {
  test('an agent is written, loaded, and taken back', async () => {
    world.platform = 'darwin';
    const plist = join(world.home, 'Library/LaunchAgents/hopgate.plist');
    const first = await install();
    expect([first.code, first.err]).toEqual([0, '']);
    expect(ownership(plist)).toBe('ours');
    const domain = `gui/${process.getuid!()}`;
    expect(called()).toEqual([
      `launchctl bootout ${domain}/hopgate`,
      `launchctl enable ${domain}/hopgate`,
      `launchctl bootstrap ${domain} ${plist}`,
    ]);
    await world.run(['service', 'logs', '--user']);
    expect(called().at(-1)).toBe(`tail -n 50 ${world.home}/Library/Logs/hopgate.log`);
    expect((await world.run(['service', 'uninstall', '--user'])).code).toBe(0);
    expect(existsSync(plist)).toBe(false);
  });

  test('the daemon of the machine has its state outside of any home', () => {
    const place = installationFor('system', {
      platform: 'darwin',
      uid: 0,
      userHome: '/var/root',
      configHome: '',
    })!;
    expect(place.file).toBe('/Library/LaunchDaemons/hopgate.plist');
    expect(place.commands.start).toEqual([['launchctl', 'bootstrap', 'system', place.file]]);
  });

  const python = Bun.which('python3');
  test.skipIf(python === null)(
    `the list says what was meant, read by a parser of property lists${python === null ? ' [SKIPPED: no python3]' : ''}`,
    () => {
      const text = withMark(
        launchdPlist({
          scope: 'user',
          program: ['/a & b/<hopgate>'],
          config: '/c.yaml',
          drain: 60,
          log: '/l',
          home: '/h',
        }),
      );
      const code =
        'import plistlib,json,sys; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))';
      const { stdout } = Bun.spawnSync([python!, '-c', code], {
        stdin: new TextEncoder().encode(text),
      });
      expect(JSON.parse(stdout.toString())).toEqual({
        Label: 'hopgate',
        ProgramArguments: ['/a & b/<hopgate>', 'serve', '--drain', '60', '--config', '/c.yaml'],
        EnvironmentVariables: { HOPGATE_HOME: '/h' },
        RunAtLoad: true,
        KeepAlive: { SuccessfulExit: false },
        ThrottleInterval: 5,
        ExitTimeOut: 90,
        SoftResourceLimits: { NumberOfFiles: 65536 },
        Umask: 0o077,
        StandardErrorPath: '/l',
      });
    },
  );
});
