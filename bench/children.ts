/** Child processes of a benchmark run: started, waited for, and always stopped again by their own id. */

import { closeSync, openSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { Subprocess } from 'bun';
import { sleep } from './clock.ts';

export interface Child {
  readonly pid: number;
  readonly process: Subprocess;
  stop(): Promise<void>;
}

/** Processes that can have cores of their own. */
const ROLES = ['gateway', 'load', 'mock'] as const;
export type Role = (typeof ROLES)[number];

const cores = new Map<Role, string>();

/** From here on children run on these cores: `gateway=0-1,load=4,mock=5`. @throws on what it does not understand */
export function pinTo(text: string): void {
  for (const part of text.split(/,(?=[a-z])/)) {
    const [, name, list] = /^([a-z]+)=(\d+(?:[-,]\d+)*)$/.exec(part) ?? [];
    const role = ROLES.find((one) => one === name);
    if (role === undefined || list === undefined) throw new Error(`--cores: ${part}`);
    cores.set(role, list);
  }
}

/** How many cores a role may use. */
export function coresOf(role: Role): number {
  const ranges = cores.get(role)?.split(',') ?? [];
  if (ranges.length === 0) return availableParallelism();
  return ranges.reduce((sum, range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return sum + last - first + 1;
  }, 0);
}

/** The cores of each process, for people. */
export const placesText = () =>
  cores.size === 0
    ? 'mock, load generator and gateway share the cores'
    : ROLES.map((role) => `${role} on ${cores.get(role) ?? 'any core'}`).join(', ');

export interface ChildOptions {
  /** `gateway` if left out. */
  readonly role?: Role;
  readonly env?: Readonly<Record<string, string>>;
  /** Where stderr (and stdout, unless it is read) goes. */
  readonly logFile: string;
  readonly stdout?: 'pipe';
  readonly stdin?: 'pipe';
  readonly cwd?: string;
}

const running = new Set<Child>();

/** Starts a program; its output goes to a log file. */
export function startChild(command: string[], options: ChildOptions): Child {
  const log = openSync(options.logFile, 'a');
  const own = cores.get(options.role ?? 'gateway');
  const child = Bun.spawn(own === undefined ? command : ['taskset', '-c', own, ...command], {
    stdin: options.stdin ?? 'ignore',
    stdout: options.stdout ?? log,
    stderr: log,
    env: { ...process.env, ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  closeSync(log);
  const handle: Child = {
    pid: child.pid,
    process: child,
    async stop() {
      running.delete(handle);
      child.kill('SIGTERM');
      await Promise.race([child.exited, sleep(1500)]);
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
      await child.exited;
    },
  };
  running.add(handle);
  return handle;
}

/** Stops whatever still runs. */
export async function stopChildren(): Promise<void> {
  await Promise.all([...running].map((child) => child.stop()));
}

/** A signal stops the children first. */
export function stopOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      void stopChildren().finally(() => process.exit(130));
    });
  }
}

/** The lines that a child prints, one at a time. @throws when it ends first, or after `limitMs` */
export function lineReader(child: Child): (limitMs: number) => Promise<string> {
  const stream = child.process.stdout as ReadableStream<Uint8Array>;
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let text = '';
  return async (limitMs) => {
    const deadline = Date.now() + limitMs;
    for (;;) {
      const at = text.indexOf('\n');
      if (at >= 0) {
        const line = text.slice(0, at);
        text = text.slice(at + 1);
        return line;
      }
      // A timer that stays behind would keep the program running.
      const over = Promise.withResolvers<undefined>();
      const timer = setTimeout(() => over.resolve(undefined), Math.max(0, deadline - Date.now()));
      const got = await Promise.race([reader.read(), over.promise]);
      clearTimeout(timer);
      if (got === undefined) throw new Error(`no line within ${limitMs} ms`);
      if (got.done) throw new Error('the process ended without the expected line');
      text += decoder.decode(got.value, { stream: true });
    }
  };
}

/** The port in a line `… listening on http://127.0.0.1:PORT`. */
export async function announcedPort(child: Child, limitMs = 15_000): Promise<number> {
  const line = await lineReader(child)(limitMs);
  const port = /http:\/\/[^:]+:(\d+)/.exec(line)?.[1];
  if (port === undefined) throw new Error(`no port in: ${line}`);
  return Number(port);
}

/** A port that was free a moment ago. */
export function freePort(): number {
  const probe = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
  const port = probe.port;
  probe.stop(true);
  return port;
}

/** Waits until something answers HTTP on the port. @throws after `limitMs` */
export async function waitForHttp(port: number, limitMs: number): Promise<void> {
  const deadline = Date.now() + limitMs;
  for (;;) {
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/`);
      await answer.arrayBuffer();
      return;
    } catch {
      if (Date.now() > deadline) throw new Error(`nothing answers on port ${port}`);
      await sleep(20);
    }
  }
}
