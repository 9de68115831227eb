/** The systemd units: systemd's own checks, and further checks that it lacks. */

import { afterAll, describe, expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DRAIN_SECONDS, systemdUnit } from '../../src/cli/commands/service/systemd-unit.ts';
import { ran, removeScratch, scratchFolder, tool, without } from './release-once.ts';

afterAll(removeScratch);

// An existing program, since verify looks for it.
const common = { program: ['/bin/true'], drain: DRAIN_SECONDS };
const UNITS = {
  'of the machine': systemdUnit({ ...common, scope: 'system' }),
  'of the Debian package': systemdUnit({ ...common, scope: 'system', account: 'static' }),
  'of a user': systemdUnit({ ...common, scope: 'user', config: '/home/a user/$x 100%.yaml' }),
} as const;

function written(text: string): string {
  const path = join(scratchFolder('unit'), 'hopgate.service');
  writeFileSync(path, text);
  return path;
}

const analyze = tool('systemd-analyze');
describe.skipIf(analyze === undefined)(`systemd-analyze${without('systemd-analyze')}`, () => {
  for (const [name, text] of Object.entries(UNITS)) {
    test(`verify is clean: the unit ${name}`, async () => {
      const scope = name === 'of a user' ? ['--user'] : [];
      const runtime = scratchFolder('run');
      mkdirSync(join(runtime, 'systemd'));
      // The manual page is not installed here.
      const { code, out, err } = await ran(
        [analyze!, ...scope, 'verify', '--man=no', written(text)],
        {
          env: { PATH: process.env.PATH!, HOME: runtime, XDG_RUNTIME_DIR: runtime },
        },
      );
      expect([code, out, err]).toEqual([0, '', '']);
    });

    // A user's manager cannot provide most of the counted settings.
    if (name === 'of a user') continue;
    test(`exposure is at most 2.0: the unit ${name}`, async () => {
      const { out } = await ran([
        analyze!,
        'security',
        '--offline=true',
        '--no-pager',
        written(text),
      ]);
      const level = /Overall exposure level for .*: ([\d.]+)/.exec(out)?.[1];
      expect(Number(level)).toBeGreaterThan(0);
      expect(Number(level)).toBeLessThanOrEqual(2);
    });
  }
});

describe('every unit', () => {
  for (const [name, text] of Object.entries(UNITS)) {
    const value = (key: string) => new RegExp(`^${key}=(.*)$`, 'm').exec(text)?.[1];
    test(`${name}: the stop timeout is longer than the server's drain`, () => {
      const drain = Number(/ --drain (\d+)/.exec(value('ExecStart')!)![1]);
      expect(drain).toBeGreaterThanOrEqual(900);
      expect(Number(value('TimeoutStopSec'))).toBeGreaterThan(drain);
    });

    test(`${name}: the JavaScript compiler is allowed to work`, () => {
      expect(text).not.toMatch(/^MemoryDenyWriteExecute/m);
    });

    test(`${name}: readiness by notification, a watchdog, and reload by SIGHUP`, () => {
      expect(value('Type')).toBe('notify');
      expect(value('NotifyAccess')).toBe('main');
      expect(Number(value('WatchdogSec'))).toBeGreaterThan(0);
      expect(value('ExecReload')).toBe('/bin/kill -HUP $MAINPID');
    });
  }

  test('arguments with blanks, dollars and percents reach the program unchanged', () => {
    expect(UNITS['of a user']).toContain(' --config "/home/a user/$$x 100%%.yaml"\n');
  });
});

const TRACE = ['strace', 'systemd-analyze'];
describe.skipIf(TRACE.some((name) => tool(name) === undefined))(
  `system calls${without(...TRACE)}`,
  () => {
    test('the filter allows every system call of a serving process', async () => {
      const { binary } = await import('../support/binary.ts');
      const home = scratchFolder('traced');
      const log = join(home, 'calls');
      const child = Bun.spawn(
        [tool('strace')!, '-f', '-qq', '-o', log, await binary(), 'serve', '--port', '0'],
        { env: { HOME: home, PATH: process.env.PATH! }, stdout: 'pipe', stderr: 'ignore' },
      );
      let url: string | undefined;
      for await (const chunk of child.stdout) {
        url = /listening on (\S+)/.exec(new TextDecoder().decode(chunk))?.[1];
        if (url !== undefined) break;
      }
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({
          model: 'demo',
          stream: true,
          messages: [{ role: 'user', content: 'hi' }],
        }),
      });
      expect(await response.text()).toContain('[DONE]');
      child.kill('SIGTERM');
      // strace does not forward the signal, so the child gets it directly.
      const { out: children } = await ran(['pgrep', '-P', String(child.pid)]);
      for (const pid of children.split('\n')) if (pid !== '') process.kill(Number(pid), 'SIGTERM');
      await child.exited;

      const group = async (name: string): Promise<string[]> => {
        const { out } = await ran([tool('systemd-analyze')!, 'syscall-filter', name]);
        const names = out
          .split('\n')
          .slice(1)
          .map((line) => line.trim());
        const found = names.filter((one) => one !== '' && !one.startsWith('#'));
        return (
          await Promise.all(found.map((one) => (one.startsWith('@') ? group(one) : [one])))
        ).flat();
      };
      const denied = new Set([...(await group('@privileged')), ...(await group('@resources'))]);
      const allowed = new Set((await group('@system-service')).filter((one) => !denied.has(one)));
      expect(allowed.size).toBeGreaterThan(200);
      const requestedCalls = new Set(
        [...(await Bun.file(log).text()).matchAll(/^\d+ +([a-z_0-9]+)\(/gm)].map(
          ([, name]) => name!,
        ),
      );
      expect(requestedCalls.has('epoll_ctl') || requestedCalls.has('epoll_pwait2')).toBe(true);
      // SQLite changes a file's owner only when root, and ignores a refusal.
      requestedCalls.delete('fchown');
      expect([...requestedCalls].filter((name) => !allowed.has(name))).toEqual([]);
    }, 60_000);
  },
);
