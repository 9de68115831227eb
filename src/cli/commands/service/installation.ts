/** Where systemd or launchd expects the service's files, and the commands of theirs that run it. */

import { join } from 'node:path';
import type { Invocation } from '../../command.ts';
import { LABEL } from './launchd-plist.ts';

export type Scope = 'user' | 'system';

export interface Machine {
  /** `process.platform` */
  readonly platform: string;
  readonly uid: number;
  readonly userHome: string;
  /** `$XDG_CONFIG_HOME` or its default. */
  readonly configHome: string;
  /** Installs below this folder and starts nothing: for images. */
  readonly root?: string;
}

/** The machine that a command runs on. */
export const thisMachine = ({ io }: Pick<Invocation, 'io'>): Machine => ({
  platform: io.platform ?? process.platform,
  uid: process.getuid?.() ?? 0,
  userHome: io.environment.userHome,
  configHome: io.environment.configHome,
});

export interface ManagerCommands {
  /** After the file was written, before `start`. */
  readonly enable: readonly (readonly string[])[];
  readonly start: readonly (readonly string[])[];
  /** Before the file is removed. They may fail: the service may not be loaded. */
  readonly disable: readonly (readonly string[])[];
  /** After the file was removed. */
  readonly forget: readonly (readonly string[])[];
  readonly status: readonly string[];
  readonly logs: (lines: number, follow: boolean) => readonly string[];
  /** The same, but only what the program wrote, without the manager's own prefix. */
  readonly plainLogs: (lines: number, follow: boolean) => readonly string[];
}

export interface Installation {
  readonly manager: 'systemd' | 'launchd';
  /** The unit or property list. */
  readonly file: string;
  /** Where a package may have installed a file of its own. */
  readonly packaged: readonly string[];
  /** The file with environment variables for the service, if the manager has one. */
  readonly environmentFile?: string;
  /** The log file, where the manager keeps no log. */
  readonly log?: string;
  readonly commands: ManagerCommands;
}

const UNIT = 'hopgate.service';

function systemd(scope: Scope, machine: Machine): Installation {
  const root = machine.root ?? '/';
  const system = scope === 'system';
  const systemctl = system ? ['systemctl'] : ['systemctl', '--user'];
  const inRoot = machine.root === undefined ? [] : [`--root=${machine.root}`];
  const running = machine.root === undefined;
  const journal = (lines: number, follow: boolean) => [
    'journalctl',
    ...(system ? [] : ['--user']),
    '--unit',
    UNIT,
    '--lines',
    String(lines),
    ...(follow ? ['--follow'] : ['--no-pager']),
  ];
  return {
    manager: 'systemd',
    file: system
      ? join(root, 'etc/systemd/system', UNIT)
      : join(machine.configHome, 'systemd/user', UNIT),
    packaged: system
      ? ['usr/lib/systemd/system', 'lib/systemd/system'].map((folder) => join(root, folder, UNIT))
      : [],
    environmentFile: system
      ? join(root, 'etc/hopgate/hopgate.env')
      : join(machine.configHome, 'hopgate/hopgate.env'),
    commands: {
      enable: [
        ...(running ? [[...systemctl, 'daemon-reload']] : []),
        [...systemctl, ...inRoot, 'enable', UNIT],
      ],
      start: running ? [[...systemctl, 'restart', UNIT]] : [],
      disable: [
        ...(running ? [[...systemctl, 'stop', UNIT]] : []),
        [...systemctl, ...inRoot, 'disable', UNIT],
      ],
      forget: running ? [[...systemctl, 'daemon-reload']] : [],
      status: [...systemctl, 'status', '--no-pager', UNIT],
      logs: journal,
      plainLogs: (lines, follow) => [...journal(lines, follow), '--output', 'cat'],
    },
  };
}

function launchd(scope: Scope, machine: Machine): Installation {
  const system = scope === 'system';
  const domain = system ? 'system' : `gui/${machine.uid}`;
  const file = system
    ? `/Library/LaunchDaemons/${LABEL}.plist`
    : join(machine.userHome, `Library/LaunchAgents/${LABEL}.plist`);
  const log = system
    ? `/var/log/${LABEL}.log`
    : join(machine.userHome, `Library/Logs/${LABEL}.log`);
  const tail = (lines: number, follow: boolean) => [
    'tail',
    '-n',
    String(lines),
    ...(follow ? ['-F'] : []),
    log,
  ];
  return {
    manager: 'launchd',
    file,
    packaged: [],
    log,
    commands: {
      enable: [['launchctl', 'enable', `${domain}/${LABEL}`]],
      start: [['launchctl', 'bootstrap', domain, file]],
      disable: [['launchctl', 'bootout', `${domain}/${LABEL}`]],
      forget: [],
      status: ['launchctl', 'print', `${domain}/${LABEL}`],
      logs: tail,
      plainLogs: tail,
    },
  };
}

/** The installation for a scope; undefined on systems without systemd or launchd. */
export function installationFor(scope: Scope, machine: Machine): Installation | undefined {
  if (machine.platform === 'linux') return systemd(scope, machine);
  return machine.platform === 'darwin' ? launchd(scope, machine) : undefined;
}
