/** One process of the compiled binary, as users start it: built once, its own home, a free port, stopped with the tests. */

import { existsSync, readdirSync, statSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = Bun.fileURLToPath(new URL('../..', import.meta.url));

/** The host's binary. */
export const BINARY = join(ROOT, 'dist/hopgate');

function newestSource(): number {
  const files = [
    ...new Bun.Glob('src/**/*').scanSync({ cwd: ROOT }),
    // The manual is part of the program.
    ...new Bun.Glob('docs/**/*').scanSync({ cwd: ROOT }),
    'README.zh-CN.md',
    'build.ts',
    'package.json',
    'bun.lock',
    'package-lock.json',
  ];
  return Math.max(
    ...files
      .map((file) => join(ROOT, file))
      .map((file) => (existsSync(file) ? statSync(file).mtimeMs : 0)),
  );
}

let built: Promise<string> | undefined;

async function build(): Promise<string> {
  // Tests another binary: a release's, or a cross-built one on its own machine.
  if (process.env.HOPGATE_TEST_BINARY) return process.env.HOPGATE_TEST_BINARY;
  if (existsSync(BINARY) && statSync(BINARY).mtimeMs >= newestSource()) return BINARY;
  const run = Bun.spawn([process.execPath, 'build.ts'], {
    cwd: ROOT,
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const output = `${await new Response(run.stdout).text()}${await new Response(run.stderr).text()}`;
  if ((await run.exited) !== 0) throw new Error(`build.ts failed:\n${output}`);
  return BINARY;
}

/** The path of an up-to-date binary; builds it on first use, when sources are newer. */
export function binary(): Promise<string> {
  built ??= build();
  return built;
}

export interface Gateway {
  /** `http://127.0.0.1:PORT`, or `https://…` */
  readonly url: string;
  readonly pid: number;
  /** `$HOME`; the state is in `home/state` (`$HOPGATE_HOME`). */
  readonly home: string;
  readonly configPath: string;
  stdout(): string;
  stderr(): string;
  /** The log lines of stderr that are JSON. */
  logs(): Record<string, unknown>[];
  signal(name: NodeJS.Signals): void;
  /** Resolves with the exit code. */
  readonly exited: Promise<number>;
  /** SIGTERM, then SIGKILL after twenty seconds; removes the home. */
  stop(): Promise<number>;
}

export interface GatewayOptions {
  env?: Record<string, string>;
  cwd?: string;
  args?: string[];
  /** Milliseconds to wait for the line with the address. */
  patience?: number;
  /** The limit of file descriptors; the system's default when absent. */
  descriptors?: number;
  /** Another program than that of these sources: of an older version. */
  program?: string;
}

const running = new Set<Bun.Subprocess>();
// A test run that dies must not leave gateways running.
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** An environment without keys, proxies or settings of the developer. */
export function cleanEnv(home: string, more: Record<string, string> = {}): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    HOME: home,
    HOPGATE_HOME: join(home, 'state'),
    TMPDIR: tmpdir(),
    ...more,
  };
}

/** Runs one command of the binary to its end. */
export async function runBinary(
  args: string[],
  options: { input?: string; env?: Record<string, string>; cwd?: string } = {},
): Promise<{ code: number; stdout: string; stderr: string }> {
  const home = await mkdtemp(join(tmpdir(), 'hopgate-run-'));
  const child = Bun.spawn([await binary(), ...args], {
    cwd: options.cwd ?? home,
    env: cleanEnv(home, options.env),
    stdin: options.input === undefined ? 'ignore' : new Blob([options.input]),
    stdout: 'pipe',
    stderr: 'pipe',
  });
  running.add(child);
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  running.delete(child);
  await rm(home, { recursive: true, force: true });
  return { code, stdout, stderr };
}

/**
 * Ends what outlives the first process of a gateway: successors, and workers of one that was killed. They would make
 * their files anew in a folder that is removed.
 */
async function endOthersOf(home: string): Promise<void> {
  for (const name of existsSync('/proc/self/environ') ? readdirSync('/proc') : []) {
    const environment = () => readFile(`/proc/${name}/environ`, 'latin1').catch(() => '');
    const isOther = async () => (await environment()).split('\0').includes(`HOME=${home}`);
    if (!/^\d+$/.test(name) || !(await isOther())) continue;
    try {
      process.kill(Number(name), 'SIGKILL');
    } catch {
      // It has ended.
    }
    while (await isOther()) await Bun.sleep(5);
  }
}

function collect(stream: ReadableStream<Uint8Array>): {
  text: () => string;
  changed: () => Promise<void>;
} {
  let text = '';
  let wake = Promise.withResolvers<void>();
  void (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      text += decoder.decode(chunk, { stream: true });
      wake.resolve();
      wake = Promise.withResolvers<void>();
    }
    // Waits once: a closed stream changes no more, and polling it would block the loop.
    wake.resolve();
    wake = Promise.withResolvers<void>();
  })();
  return { text: () => text, changed: () => wake.promise };
}

const LISTENING = /^hopgate listening on (https?):\/\/(?:127\.0\.0\.1|0\.0\.0\.0):(\d+)$/m;

/** The address in the output; undefined before the server listens. */
function urlIn(text: string): string | undefined {
  const [, scheme, port] = LISTENING.exec(text) ?? [];
  return port === undefined ? undefined : `${scheme}://127.0.0.1:${port}`;
}

/**
 * Starts `hopgate serve` with this configuration (a value, written as JSON, which is valid YAML; or text). @throws
 * Error with the process's output when it exits or stays silent
 */
export async function startOneGateway(
  config: unknown,
  options: GatewayOptions = {},
): Promise<Gateway> {
  const home = await mkdtemp(join(tmpdir(), 'hopgate-home-'));
  const configPath = join(home, 'hopgate.yaml');
  await Bun.write(
    configPath,
    typeof config === 'string' ? config : JSON.stringify(config, null, 2),
  );
  const args = ['serve', '--config', configPath, '--port', '0', ...(options.args ?? [])];
  const { descriptors } = options;
  const limited =
    descriptors === undefined ? [] : ['sh', '-c', `ulimit -n ${descriptors}; exec "$@"`, 'sh'];
  const child = Bun.spawn([...limited, options.program ?? (await binary()), ...args], {
    cwd: options.cwd ?? home,
    env: cleanEnv(home, options.env),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  running.add(child);
  void child.exited.then(() => running.delete(child));
  const out = collect(child.stdout);
  const err = collect(child.stderr);
  const stop = async () => {
    child.kill('SIGTERM');
    const late = setTimeout(() => child.kill('SIGKILL'), 20_000);
    const code = await child.exited;
    clearTimeout(late);
    await endOthersOf(home);
    await rm(home, { recursive: true, force: true });
    return code;
  };
  const gaveUp = Bun.sleep(options.patience ?? 60_000).then(() => 'late' as const);
  let url: string | undefined;
  while (url === undefined) {
    url = urlIn(out.text());
    if (url !== undefined) break;
    const what = await Promise.race([
      out.changed().then(() => 'more' as const),
      child.exited.then(() => 'gone' as const),
      gaveUp,
    ]);
    // Output from just before the exit may still arrive.
    if (what === 'gone') await Bun.sleep(20);
    url = urlIn(out.text());
    if (url !== undefined || what === 'more') continue;
    const text = `${out.text()}${err.text()}`;
    await stop();
    throw new Error(`hopgate did not start (${what}):\n${text}`);
  }
  return {
    url,
    pid: child.pid,
    home,
    configPath,
    stdout: out.text,
    stderr: err.text,
    logs: () =>
      err
        .text()
        .split('\n')
        .flatMap((line) => {
          try {
            return [JSON.parse(line) as Record<string, unknown>];
          } catch {
            return [];
          }
        }),
    signal: (name) => child.kill(name),
    exited: child.exited,
    stop,
  };
}
