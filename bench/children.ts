/** Child processes of a benchmark run: started, waited for, and always stopped again by their own id. */

import { closeSync, openSync } from 'node:fs';
import type { Subprocess } from 'bun';
import { sleep } from './clock.ts';

export interface Child {
  readonly pid: number;
  readonly process: Subprocess;
  stop(): Promise<void>;
}

export interface ChildOptions {
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
  const child = Bun.spawn(command, {
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
      const left = sleep(Math.max(0, deadline - Date.now())).then(() => undefined);
      const got = await Promise.race([reader.read(), left]);
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
