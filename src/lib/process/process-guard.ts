/** A guard process: starts a program, and ends it with all its descendants when the owner of the guard ends. */

import { spawn } from 'node:child_process';
import { createReadStream, readdirSync, readFileSync, writeSync } from 'node:fs';
import { isObject, tryParse } from '../json/json.ts';
import { libc } from './libc.ts';

/** One line of JSON on file 3 of the guard. Not arguments, because other users can read those. */
export interface GuardedProgram {
  readonly command: string;
  readonly args: readonly string[];
  /** All of its environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** File 3, which closes when the owner ends. */
const CONTROL = 3;
/** Milliseconds for a program to end after its stdin closes, and then after SIGTERM. */
const GRACE_MS = 300;
const TERM_MS = 700;
/** Killing repeats for this long, for processes that start others meanwhile. */
const KILL_MS = 3000;
const LOOK_MS = 20;
const PR_SET_CHILD_SUBREAPER = 36;
const WNOHANG = 1;

/**
 * Runs as the process between an owner and a program. The program has this process's stdin, stdout and
 * stderr. File 3 stays open as long as the owner lives: when it closes, however that happens, the program is ended.
 * Its descendants end with it; on Linux also those with a session of their own, because this process adopts orphans.
 * @returns the program's exit code
 */
export async function guard(): Promise<number> {
  // Signals of a terminal or a service manager are for the owner, which closes file 3.
  for (const name of ['SIGINT', 'SIGHUP', 'SIGQUIT'] as const) process.on(name, () => {});
  const system = libc({
    prctl: { args: ['i32', 'u64', 'u64', 'u64', 'u64'], returns: 'i32' },
    waitpid: { args: ['i32', 'ptr', 'i32'], returns: 'i32' },
  });
  system?.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  const { program, gone } = await control();
  if (program === undefined) return 1;
  const child = spawn(program.command, [...program.args], {
    cwd: program.cwd,
    env: { ...program.env },
    stdio: 'inherit',
    // A process group of its own, which can be ended as a whole on every system.
    detached: true,
  });
  const exited = new Promise<number>((resolve) => {
    child.on('error', ({ message }) => {
      report({ error: message });
      resolve(127);
    });
    child.on('exit', (code) => resolve(code ?? 1));
  });
  if (child.pid !== undefined) report({ pid: child.pid });
  const own = child.pid;
  process.on('SIGCHLD', () => {
    // Adopted processes must be reaped here.
    for (const pid of processes().dead) if (pid !== own) system?.waitpid(pid, null, WNOHANG);
  });
  const terminated = new Promise<void>((resolve) => process.on('SIGTERM', () => resolve()));
  const why = await Promise.race([exited, gone, terminated]);
  if (typeof why !== 'number') await none(GRACE_MS, own);
  await endAll(own);
  return typeof why === 'number' ? why : 0;
}

function report(what: { readonly pid: number } | { readonly error: string }): void {
  try {
    writeSync(CONTROL, `${JSON.stringify(what)}\n`);
  } catch {
    // The owner has ended; the read end reports that too.
  }
}

/** Reads what to run, and then waits for the end of the owner. */
function control() {
  const gone = Promise.withResolvers<void>();
  const received = Promise.withResolvers<GuardedProgram | undefined>();
  let text = '';
  const stream = createReadStream('', { fd: CONTROL, encoding: 'utf8' });
  stream.on('data', (chunk) => {
    text += chunk;
    if (!text.endsWith('\n')) return;
    const value = tryParse(text);
    received.resolve(isObject(value) ? (value as unknown as GuardedProgram) : undefined);
  });
  for (const end of ['end', 'error', 'close']) {
    stream.on(end, () => {
      received.resolve(undefined);
      gone.resolve();
    });
  }
  return received.promise.then((program) => ({ program, gone: gone.promise }));
}

/** True when no process is left within this time. */
async function none(ms: number, group: number | undefined): Promise<boolean> {
  for (const until = performance.now() + ms; ; ) {
    if (processes(group).alive.length === 0) return true;
    if (performance.now() >= until) return false;
    await Bun.sleep(LOOK_MS);
  }
}

async function endAll(group: number | undefined): Promise<void> {
  const send = (name: NodeJS.Signals) => {
    for (const pid of processes(group).alive) {
      try {
        process.kill(pid, name);
      } catch {
        // It ended by itself.
      }
    }
  };
  send('SIGTERM');
  if (await none(TERM_MS, group)) return;
  const until = performance.now() + KILL_MS;
  do send('SIGKILL');
  while (!(await none(LOOK_MS, group)) && performance.now() < until);
}

/** The descendants of this process, and the processes of the group; dead ones only among its own children. */
function processes(group?: number): {
  readonly alive: readonly number[];
  readonly dead: readonly number[];
} {
  const children = new Map<number, { readonly pid: number; readonly dead: boolean }[]>();
  const found = new Set<number>();
  for (const { pid, parent, of, dead } of processTable()) {
    const among = children.get(parent);
    if (among === undefined) children.set(parent, [{ pid, dead }]);
    else among.push({ pid, dead });
    if (of === group && !dead && pid !== process.pid) found.add(pid);
  }
  const waiting = [process.pid];
  for (let at = 0; at < waiting.length; at++) {
    for (const { pid, dead } of children.get(waiting[at]!) ?? []) {
      if (!dead) found.add(pid);
      waiting.push(pid);
    }
  }
  const own = children.get(process.pid) ?? [];
  return { alive: [...found], dead: own.filter(({ dead }) => dead).map(({ pid }) => pid) };
}

interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  /** Its process group. */
  readonly of: number;
  readonly dead: boolean;
}

function processTable(): readonly ProcessEntry[] {
  return process.platform === 'linux' ? fromProc() : fromPs();
}

function fromProc(): readonly ProcessEntry[] {
  return readdirSync('/proc').flatMap((name): readonly ProcessEntry[] => {
    if (!/^\d+$/.test(name)) return [];
    let stat: string;
    try {
      stat = readFileSync(`/proc/${name}/stat`, 'latin1');
    } catch {
      return [];
    }
    // `pid (name) state parent group …`; the name may hold anything.
    const [state, parent, of] = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 3);
    const dead = state === 'Z' || state === 'X';
    return [{ pid: Number(name), parent: Number(parent), of: Number(of), dead }];
  });
}

function fromPs(): readonly ProcessEntry[] {
  const { stdout } = Bun.spawnSync(['/bin/ps', '-axo', 'pid=,ppid=,pgid=,stat=']);
  return stdout
    .toString()
    .split('\n')
    .flatMap((line): readonly ProcessEntry[] => {
      const [pid, parent, of, state = ''] = line.trim().split(/\s+/);
      // `ps` itself is a child too, and has ended.
      if (pid === undefined || of === undefined || Number(of) === process.pid) return [];
      const dead = state.startsWith('Z');
      return [{ pid: Number(pid), parent: Number(parent), of: Number(of), dead }];
    });
}
