/** Real servers for tests: found on this machine, started on free ports in scratch folders, frozen and killed whole. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, chown, mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Nobody of Debian: Postgres refuses to run as root. */
const NOBODY = 65534;
export const isRoot = process.getuid?.() === 0;

const PLACES = [
  '/usr/sbin',
  '/usr/local/sbin',
  ...(existsSync('/usr/lib/postgresql')
    ? readdirSync('/usr/lib/postgresql')
        .toSorted((a, b) => Number(b) - Number(a))
        .map((version) => `/usr/lib/postgresql/${version}/bin`)
    : []),
];

/** The first of these programs that this machine has. */
export function program(...names: readonly string[]): string | undefined {
  for (const name of names) {
    const found =
      Bun.which(name) ?? PLACES.map((place) => join(place, name)).find((path) => existsSync(path));
    if (found !== undefined && found !== null) return found;
  }
  return undefined;
}

/** Whether the programs are here; says so once for each that is not. */
export function have(what: string, ...programs: readonly (string | undefined)[]): boolean {
  if (!programs.includes(undefined)) return true;
  console.warn(`SKIPPED: tests with ${what}: it is not installed on this machine`);
  return false;
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A server in a scratch folder of its own. */
export interface Server {
  readonly port: number;
  readonly folder: string;
  /** SIGSTOP to it and to all that it has started: connections stay open, and nothing is answered. */
  freeze(): void;
  thaw(): void;
  /** SIGKILL, without a word to clients. The folder stays. */
  kill(): Promise<void>;
  /** The same server again, on the same port and folder. */
  restart(): Promise<void>;
  /** Kills it and removes its folder. */
  stop(): Promise<void>;
}

export interface ServerOptions {
  readonly port: number;
  readonly folder: string;
  readonly command: readonly string[];
  readonly asNobody?: boolean;
  readonly env?: Record<string, string>;
}

const running = new Set<number>();
process.on('exit', () => {
  for (const pid of running) signal(pid, 'SIGKILL');
});

/** A scratch folder; with `shared`, one that the user nobody may write to. */
export async function scratchFolder(shared = false): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hopgate-engine-'));
  if (shared && isRoot) {
    await chown(folder, NOBODY, NOBODY);
    await chmod(folder, 0o700);
  }
  return folder;
}

/** The test certificate `localhost` (also of 127.0.0.1) or `elsewhere`, and the authority of both. */
export function certificateFiles(name: string) {
  const file = (ending: string) => join(import.meta.dir, '../certificates', ending);
  return {
    cert: file(`${name}.pem`),
    key: file(`${name}.key.pem`),
    authority: file('authority.pem'),
  };
}

/** Copies of them that the user nobody may read, and no other: Postgres refuses a key that others can read. */
export async function ownCertificate(name: string, folder: string) {
  const files = certificateFiles(name);
  const copies = { cert: join(folder, 'server.pem'), key: join(folder, 'server.key') };
  for (const part of ['cert', 'key'] as const) {
    await Bun.write(copies[part], Bun.file(files[part]));
    await chmod(copies[part], 0o600);
    if (isRoot) await chown(copies[part], NOBODY, NOBODY);
  }
  return copies;
}

export const asNobody = (command: readonly string[]): string[] =>
  isRoot
    ? ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', ...command]
    : [...command];

/** Starts it and waits until its port takes connections. */
export async function startServer(options: ServerOptions): Promise<Server> {
  const { port, folder } = options;
  let child = spawn(options);
  await listening(port, child);
  const kill = async () => {
    const all = [child.pid, ...descendants(child.pid)];
    // What is stopped takes no other signal but this one.
    signal(child.pid, 'SIGKILL');
    await child.exited;
    // A new server may refuse to start beside what is left of the old one.
    while (all.some(isRunning)) await Bun.sleep(5);
    running.delete(child.pid);
  };
  return {
    port,
    folder,
    freeze: () => signal(child.pid, 'SIGSTOP'),
    thaw: () => signal(child.pid, 'SIGCONT'),
    kill,
    async restart() {
      await kill();
      child = spawn(options);
      await listening(port, child);
    },
    async stop() {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function spawn({ command, folder, asNobody: drops = false, env }: ServerOptions) {
  const child = Bun.spawn(drops ? asNobody(command) : [...command], {
    cwd: folder,
    stdin: 'ignore',
    stdout: Bun.file(join(folder, 'out.log')),
    stderr: Bun.file(join(folder, 'err.log')),
    ...(env !== undefined && { env: { ...process.env, ...env } }),
  });
  running.add(child.pid);
  return child;
}

async function listening(port: number, child: Bun.Subprocess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null || child.signalCode !== null) {
      throw new Error(`a server ended at its start with ${child.exitCode ?? child.signalCode}`);
    }
    if (await takesConnections(port)) return;
    await Bun.sleep(20);
  }
}

export function takesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** To a process and to all of its descendants, which may have process groups of their own. */
function signal(pid: number, name: NodeJS.Signals): void {
  for (const one of [pid, ...descendants(pid)]) {
    try {
      process.kill(one, name);
    } catch {
      // It has ended.
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat[stat.lastIndexOf(')') + 2] !== 'Z';
  } catch {
    return false;
  }
}

function descendants(of: number): readonly number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    try {
      // The name of the program, in brackets, may contain anything.
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
      children.set(parent, [...(children.get(parent) ?? []), pid]);
    } catch {
      // It has ended.
    }
  }
  const found: number[] = [];
  const next = [of];
  for (let pid = next.pop(); pid !== undefined; pid = next.pop()) {
    const own = children.get(pid) ?? [];
    found.push(...own);
    next.push(...own);
  }
  return found;
}
