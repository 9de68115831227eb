import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { loadConfig } from '../../../config/load.ts';
import { sha256Hex } from '../../../lib/text/sha256.ts';
import { messageOf } from '../../../lib/text/thrown.ts';
import { type CommandSpec, type Invocation, UsageError } from '../../command.ts';
import { runProgram } from '../../run-program.ts';
import {
  type Installation,
  installationFor,
  type Machine,
  type Scope,
  thisMachine,
} from './installation.ts';
import { launchdPlist } from './launchd-plist.ts';
import { DRAIN_SECONDS, systemdUnit } from './systemd-unit.ts';

export const ACTIONS = ['install', 'uninstall', 'status', 'logs'] as const;

export const SERVICE: CommandSpec = {
  name: 'service',
  others: ['install', 'daemon'],
  group: 'admin',
  summary: 'run the gateway in the background, started at login or at boot',
  description: [
    'Uses systemd on Linux and launchd on macOS. install writes one file, enables it and starts the service; running it again updates the file if needed. uninstall undoes exactly that. A file that hopgate did not write, or that you have edited, is left alone.',
    'As root it manages the system service, otherwise the service of the current user.',
  ],
  arguments: [{ name: 'action', summary: 'what to do', required: true, choices: ACTIONS }],
  options: {
    user: { summary: 'a service for this user, started at login' },
    system: { summary: 'a system service, started at boot, under an account of its own' },
    'dry-run': { short: 'n', summary: 'only show what would be written and run' },
    'no-start': { summary: 'install: enable it, but do not start it now' },
    force: { summary: 'overwrite the file even if you have edited it' },
    root: {
      value: 'DIR',
      summary:
        'install, uninstall: use this folder as the root and start nothing; for building images',
    },
    lines: {
      value: 'N',
      summary: 'logs: how many lines to show from the end',
      default: '50',
      range: [1, 1_000_000],
    },
    follow: { short: 'f', summary: 'logs: keep printing new lines' },
  },
  examples: {
    'hopgate service install --dry-run': 'Shows what would be done.',
    'hopgate service install': 'Installs and starts the service.',
    'hopgate service logs --follow': 'Follows its log.',
  },
  exits: {
    0: 'done, or nothing to do',
    1: 'not done; the message says why',
    3: 'status: it is not running',
  },
  run: runService,
};

async function runService(invocation: Invocation): Promise<number> {
  const { flag, text, err, io } = invocation;
  const root = text('root') === undefined ? undefined : resolve(io.cwd, text('root')!);
  const machine: Machine = { ...thisMachine(invocation), root };
  if (flag('user') && flag('system')) throw new UsageError('Either --user or --system, not both.');
  const scope: Scope =
    flag('system') || machine.root !== undefined || (machine.uid === 0 && !flag('user'))
      ? 'system'
      : 'user';
  if (machine.root !== undefined && flag('user')) {
    throw new UsageError('--root is for the system service.');
  }
  const installation = installationFor(scope, machine);
  if (installation === undefined) {
    err.line('hopgate: services are known on Linux (systemd) and macOS (launchd) only.');
    return 1;
  }
  switch (invocation.arguments[0] as (typeof ACTIONS)[number]) {
    case 'install':
      return install(invocation, scope, machine, installation);
    case 'uninstall':
      return uninstall(invocation, installation);
    case 'status':
      return (await runProgram(invocation, installation.commands.status, true)).code;
    case 'logs': {
      const command = installation.commands.logs(invocation.number('lines') ?? 50, flag('follow'));
      return (await runProgram(invocation, command, true)).code;
    }
  }
}

async function install(
  invocation: Invocation,
  scope: Scope,
  machine: Machine,
  installation: Installation,
): Promise<number> {
  const { out, err, flag, text, io } = invocation;
  const refuse = (message: string) => {
    err.line(`hopgate: ${message}`);
    return 1;
  };
  const owner = ownership(installation.file);
  const obstacle = whyNot(invocation, scope, installation, owner);
  if (obstacle !== undefined) return refuse(obstacle);
  const config = text('config') === undefined ? undefined : resolve(io.cwd, text('config')!);
  const loaded = await loadConfig({ environment: io.environment, path: config });
  if (!loaded.ok && machine.root === undefined) {
    return refuse('the configuration cannot be used; "hopgate check" says why. Nothing was done.');
  }
  const configuredMs = loaded.ok ? loaded.config.limits.drainMs : 0;
  const drain = Math.max(DRAIN_SECONDS, Math.ceil(configuredMs / 1000));
  const written = fileText(installation, {
    scope,
    program: programOf(invocation),
    config,
    drain,
  });
  const same = owner === 'ours' && readFileSync(installation.file, 'utf8') === written;
  const steps = installSteps(installation, same ? undefined : written);
  if (!flag('no-start') && !same) steps.push(...runSteps(installation.commands.start));
  if (same) out.line(`${installation.file} is there already, unchanged.`);
  if (flag('dry-run')) {
    printSteps(invocation, steps);
    return 0;
  }
  if (!(await carryOutSteps(invocation, steps))) return 1;
  if (installation.environmentFile !== undefined) {
    out.line(
      `Keys that your shell exports are not seen by a service: write them, one NAME=value a line, to`,
    );
    out.line(`    ${installation.environmentFile}`);
  }
  if (scope === 'user' && installation.manager === 'systemd') {
    out.line('It runs while you are logged in; "loginctl enable-linger" keeps it beyond that.');
  }
  return 0;
}

const programOf = ({ io }: Invocation): readonly string[] => io.program ?? [process.execPath];

function whyNot(
  invocation: Invocation,
  scope: Scope,
  { file, manager, packaged }: Installation,
  owner: ReturnType<typeof ownership>,
): string | undefined {
  const inHome = programOf(invocation).find((word) => /^\/(home|root|Users)\//.test(word));
  if (scope === 'system' && inHome !== undefined) {
    return `${inHome} belongs to one user; a system service must not run it. Install hopgate elsewhere (install.sh --prefix /usr/local), or use --user.`;
  }
  const inTmp = programOf(invocation).find((word) => /^\/(?:var\/)?tmp\//.test(word));
  if (scope === 'system' && manager === 'systemd' && inTmp !== undefined) {
    return `${inTmp} is hidden from a system service, which has a /tmp of its own. Install hopgate elsewhere (install.sh --prefix /usr/local).`;
  }
  const other = packaged.find((path) => existsSync(path));
  if (other !== undefined) {
    return `a package brought ${other}; nothing was written. "systemctl enable --now hopgate" starts it.`;
  }
  if (owner === 'foreign') return `${file} was not written by hopgate; it stays as it is.`;
  if (owner === 'edited' && !invocation.flag('force')) {
    return `${file} was changed since it was written; it stays as it is. --force writes over it${manager === 'systemd' ? '; "systemctl edit" keeps changes apart' : ''}.`;
  }
  return undefined;
}

function fileText(
  { manager, log }: Installation,
  service: Parameters<typeof systemdUnit>[0],
): string {
  if (manager === 'systemd') return withMark(systemdUnit(service));
  const home = service.scope === 'system' ? '/var/lib/hopgate' : undefined;
  return withMark(launchdPlist({ ...service, log: log!, home }));
}

/** @param written undefined: the file is there and stays */
function installSteps(
  { file, manager, commands }: Installation,
  written: string | undefined,
): Step[] {
  if (written === undefined) return [...runSteps(commands.enable)];
  return [
    // launchd reads a changed file only when the old job is gone.
    ...(manager === 'launchd' ? runSteps(commands.disable, true) : []),
    { kind: 'write', path: file, text: written },
    ...runSteps(commands.enable),
  ];
}

async function uninstall(invocation: Invocation, installation: Installation): Promise<number> {
  const { out, err, flag } = invocation;
  const owner = ownership(installation.file);
  if (owner === 'absent') {
    out.line(`There is no ${installation.file}; nothing to do.`);
    return 0;
  }
  if (owner === 'foreign' || (owner === 'edited' && !flag('force'))) {
    err.line(
      owner === 'foreign'
        ? `hopgate: ${installation.file} was not written by hopgate; it stays as it is.`
        : `hopgate: ${installation.file} was changed since it was written; it stays as it is. --force removes it.`,
    );
    return 1;
  }
  const { disable, forget } = installation.commands;
  const steps: Step[] = [
    ...runSteps(disable, true),
    { kind: 'remove', path: installation.file },
    ...runSteps(forget, true),
  ];
  if (flag('dry-run')) {
    printSteps(invocation, steps);
    return 0;
  }
  if (!(await carryOutSteps(invocation, steps))) return 1;
  out.line('Configuration and state were left where they are.');
  return 0;
}

const MARK =
  'Written by "hopgate service install", removed by "hopgate service uninstall". sha256:';

/** The text with the mark: a `#` line at the beginning, or in XML a comment after the declaration. */
export function withMark(text: string): string {
  if (!text.startsWith('<?xml')) return `# ${MARK}${sha256Hex(text)}\n${text}`;
  const [declaration, ...rest] = text.split('\n');
  return [declaration, `<!-- ${MARK}${sha256Hex(text)} -->`, ...rest].join('\n');
}

type Ownership =
  | 'absent'
  /** Exactly as hopgate wrote it. */
  | 'ours'
  /** Written by hopgate, changed since. */
  | 'edited'
  /** Not written by hopgate. */
  | 'foreign';

/** Whose file is it? */
export function ownership(path: string): Ownership {
  if (!existsSync(path)) return 'absent';
  const lines = readFileSync(path, 'utf8').split('\n');
  const at = lines.findIndex((line) => line.includes(MARK));
  if (at < 0 || at > 1) return 'foreign';
  const sealed = /sha256:([0-9a-f]{64})/.exec(lines[at]!)?.[1];
  return sealed === sha256Hex(lines.toSpliced(at, 1).join('\n')) ? 'ours' : 'edited';
}

export type Step =
  | { readonly kind: 'write'; readonly path: string; readonly text: string }
  | { readonly kind: 'remove'; readonly path: string }
  | {
      readonly kind: 'run';
      readonly command: readonly string[];
      /** A failure of this command is ignored. */
      readonly mayFail?: boolean;
    };

const runSteps = (commands: readonly (readonly string[])[], mayFail = false): readonly Step[] =>
  commands.map((command) => ({ kind: 'run', command, mayFail }));

function printSteps({ out }: Invocation, steps: readonly Step[]): void {
  for (const step of steps) {
    if (step.kind === 'run') out.line(`would run     ${step.command.join(' ')}`);
    else if (step.kind === 'remove') out.line(`would remove  ${step.path}`);
    else {
      out.line(`would write   ${step.path}`);
      for (const line of step.text.trimEnd().split('\n')) out.line(`    ${line}`.trimEnd());
    }
  }
}

/** Carries the steps out and prints each; false after the first that fails, whose reason goes to stderr. */
async function carryOutSteps(invocation: Invocation, steps: readonly Step[]): Promise<boolean> {
  const { out, err } = invocation;
  for (const step of steps) {
    try {
      if (step.kind === 'write') {
        mkdirSync(dirname(step.path), { recursive: true });
        const temporary = `${step.path}.hopgate-new`;
        writeFileSync(temporary, step.text);
        chmodSync(temporary, 0o644);
        renameSync(temporary, step.path);
        out.line(`wrote    ${step.path}`);
      } else if (step.kind === 'remove') {
        rmSync(step.path, { force: true });
        out.line(`removed  ${step.path}`);
      } else {
        const { code, output } = await runProgram(invocation, step.command);
        if (code !== 0 && step.mayFail !== true) {
          err.line(
            `hopgate: "${step.command.join(' ')}" failed (${code}): ${output || 'no output'}`,
          );
          return false;
        }
        if (code === 0) out.line(`ran      ${step.command.join(' ')}`);
      }
    } catch (thrown) {
      const why = messageOf(thrown);
      err.line(`hopgate: ${step.kind === 'run' ? step.command.join(' ') : step.path}: ${why}`);
      return false;
    }
  }
  return true;
}
