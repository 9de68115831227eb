/** Runs the server: one process or several, until it is stopped. */

import { banner } from '../../cli/banner.ts';
import type { ServeOptions } from '../../cli/command.ts';
import { version } from '../../cli/commands/version.ts';
import type { Config } from '../../config/config.ts';
import { describeProblem, type Problem } from '../../config/file/problem.ts';
import { type LiveConfig, liveConfig, type ReloadResult } from '../../config/reload.ts';
import { secretsIn } from '../../config/secret.ts';
import { refusalToServe } from '../../config/servable.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import { createLog, event, type Log } from '../../telemetry/log.ts';
import type { CreateApp, HopgateApp } from '../hopgate-app.ts';
import { Listener } from './listener.ts';
import { releaseProgramPages } from './release-memory.ts';
import { type Restart, SUCCESSOR, startSuccessor, takeOver } from './restart.ts';
import { type SystemdNotifier, systemdNotifier } from './systemd.ts';
import {
  limitsOfFirstProcess,
  metricsOfWorkers,
  startWorkers,
  type Workers,
  whenOrphaned,
} from './workers.ts';

export interface ServerProcessOptions extends ServeOptions {
  /** This process is one of several that another one started; it prints nothing on stdout. */
  readonly isWorker: boolean;
  /** The process environment, for further processes. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly createApp: CreateApp;
  /** How to start this very program again with these arguments. */
  readonly command: readonly string[];
}

/** Exit code 0 after an orderly stop, 1 when the server cannot start. */
export async function serve(options: ServerProcessOptions): Promise<number> {
  const refusal = refusalToServe(options.config);
  if (refusal !== undefined) return failedStart(refusal);
  return new ServerProcess(options).run();
}

function failedStart(why: string): number {
  process.stderr.write(`hopgate: ${why}\n`);
  return 1;
}

// After the first requests of a client that waited for the start: opening takes a quarter as long as the start.
const OPEN_STORES_MS = 50;
const STARTED_MS = 300;

/** One process that serves: its app, its listening socket, its workers, and its answers to signals. */
class ServerProcess {
  readonly #options: ServerProcessOptions;
  readonly #log: Log;
  readonly #app: HopgateApp;
  readonly #live: LiveConfig;
  readonly #systemd: SystemdNotifier;
  /** Another process of this program may listen on the port too. */
  readonly #sharesPort: boolean;
  /** A running server started this process to take over from it. */
  readonly #isSuccessor: boolean;
  /** Secrets of the configuration in force; the log masks them. */
  #secrets: ReturnType<typeof secretsIn>;
  #server!: Listener;
  #workers: Workers | undefined;
  #draining = false;
  #restart: Restart | undefined;
  /** A successor is the main process by now. */
  #handedOver = false;

  constructor(options: ServerProcessOptions) {
    const { config, load, variables, isWorker } = options;
    const { environment } = load;
    this.#options = options;
    this.#secrets = secretsIn(config);
    this.#log = createLog({
      secrets: () => this.#secrets,
      level: config.log.level,
      format: config.log.format,
      isTTY: process.stderr.isTTY,
      colour: environment.color && process.stderr.isTTY,
    });
    let askFirstProcess: ReturnType<typeof metricsOfWorkers> | undefined;
    this.#app = options.createApp({
      config,
      environment,
      log: this.#log,
      version: version.version,
      metricsOfAll: (own) => this.#workers?.metrics(own) ?? askFirstProcess?.(own),
      ...(isWorker && { limitsChannel: limitsOfFirstProcess() }),
    });
    if (isWorker) askFirstProcess = metricsOfWorkers(this.#app.metrics);
    this.#isSuccessor = variables[SUCCESSOR] !== undefined && !isWorker;
    // Under systemd a successor must be able to share the port; elsewhere a second start is a mistake.
    this.#sharesPort = config.workers > 1 || isWorker || variables.NOTIFY_SOCKET !== undefined;
    this.#systemd = systemdNotifier(isWorker ? {} : variables, this.#log);
    const refusal = (next: Config) => refusalToServe(this.#servable(next));
    this.#live = liveConfig(config, load, refusal, options.withFlags);
    this.#live.subscribe((next) => this.#apply(next));
  }

  /** The exit code. */
  async run(): Promise<number> {
    const { config, isWorker } = this.#options;
    // Before anything listens: by default this signal ends a process.
    process.on('SIGHUP', () => this.#reload());
    try {
      this.#server = await this.#listen();
    } catch (thrown) {
      const code = failedStart(messageOf(thrown));
      await this.#app.close();
      return code;
    }
    if (config.workers > 1 && !isWorker) this.#startWorkers();
    // Before the first line of output: the reader of that line may send a signal.
    const stopped = whenStopped(this.#log, isWorker, () => this.#stop());
    process.on('SIGUSR2', () => this.#startRestart());
    await this.#workers?.ready;
    if (isWorker) process.send?.('ready');
    else if (!this.#draining) this.#announce();
    this.#scheduleRest();
    if (this.#isSuccessor && !this.#draining && !takeOver(this.#server.port)) stopThisProcess();
    await stopped;
    await this.#close();
    return 0;
  }

  #listen(): Promise<Listener> {
    const { config, isWorker } = this.#options;
    return Listener.start({
      app: this.#app.app,
      log: this.#log,
      listen: config.listen,
      limits: config.limits,
      reusePort: this.#sharesPort,
      joins: isWorker || this.#isSuccessor,
      isFirst: !isWorker,
    });
  }

  #startWorkers(): void {
    const { config, command, variables } = this.#options;
    this.#workers = startWorkers({
      count: config.workers - 1,
      command,
      variables,
      host: config.listen.host,
      port: this.#server.port,
      log: this.#log,
      metrics: this.#app.metrics,
      limits: () => this.#app.workerLimits(),
    });
  }

  /** A configuration as this process serves it: with its flags, and on the address of the start. */
  #servable(next: Config): Config {
    const { config, withFlags } = this.#options;
    const { trustedProxies, cors } = next.listen;
    return { ...withFlags(next), listen: { ...config.listen, trustedProxies, cors } };
  }

  #apply(next: Config): void {
    this.#secrets = secretsIn(next);
    this.#app.reload(this.#servable(next));
    this.#server.configure(next.listen);
  }

  #reload(): void {
    this.#systemd.reloading();
    this.#server.look();
    void this.#live.reload().then((result) => {
      logReload(this.#log, result);
      this.#systemd.reloaded();
    });
    this.#workers?.signal('SIGHUP');
  }

  /** Follows the file, and looks for providers while none is configured. */
  #followConfig(): void {
    this.#live.watch((result) => logReload(this.#log, result));
    this.#live.seek((result) => {
      logReload(this.#log, result);
      if (!result.ok) return;
      event(this.#log, 'providers.found', { providers: Object.keys(result.config.providers) });
    });
  }

  /** Lets open streams finish; resolves when the last has. */
  async #stop(): Promise<void> {
    this.#draining = true;
    this.#restart?.cancel();
    this.#systemd.stopping();
    this.#app.drain();
    this.#workers?.signal('SIGTERM');
    // After a restart a balancer need not notice anything: the successor takes the connections.
    if (!this.#handedOver) await Bun.sleep(this.#options.config.limits.drainDelayMs);
    return this.#server.stop();
  }

  /** Starts this program again as it is on disk now; it takes over the port, then this process stops. */
  #startRestart(): void {
    const { config, command, variables, isWorker } = this.#options;
    if (this.#restart !== undefined || this.#draining) return;
    if (isWorker) {
      this.#server.sendAway();
      return;
    }
    if (!this.#sharesPort) {
      event(
        this.#log,
        'server.succession.refused',
        { why: 'the port is not shared: that needs a systemd service, or workers above 1' },
        'warn',
      );
      return;
    }
    this.#restart = startSuccessor({
      command,
      variables,
      port: this.#server.port,
      sockets: config.workers,
      log: this.#log,
      onReady: (pid) => {
        this.#handedOver = true;
        this.#app.handOver();
        this.#systemd.handOver(pid);
        this.#server.sendAway();
        this.#workers?.signal('SIGUSR2');
      },
      // A second signal would end the open streams at once.
      onHandedOver: () => this.#draining || stopThisProcess(),
    });
    void this.#restart.succeeded.then((succeeded) => {
      if (!succeeded) this.#restart = undefined;
    });
  }

  /** Says on stderr, on stdout and to systemd that the server can answer. */
  #announce(): void {
    const { config, load, variables } = this.#options;
    const { url } = this.#server;
    event(this.#log, 'server.started', {
      version: version.version,
      address: url,
      pid: process.pid,
      workers: config.workers,
    });
    const colour = load.environment.color && process.stderr.isTTY;
    const name = `hopgate ${version.version}`;
    // A run from source has no command of that name.
    const program = variables.npm_lifecycle_event === 'start' ? 'npm start --' : 'hopgate';
    // Where the log is JSON, its readers read nothing else: the event above says it all.
    if (config.log.format !== 'json') {
      process.stderr.write(`${colour ? `\u001b[1m${name}\u001b[22m` : name}\n\n`);
      for (const line of banner(config, url, program)) process.stderr.write(`${line}\n`);
    }
    if (config.log.format !== 'json' || !isOneStream()) {
      process.stdout.write(`hopgate listening on ${url}\n`);
    }
    this.#systemd.ready(url);
  }

  /** What need not delay the start. */
  #scheduleRest(): void {
    setTimeout(() => {
      this.#app.openStores();
      this.#followConfig();
    }, OPEN_STORES_MS);
    setTimeout(() => {
      if (this.#draining) return;
      this.#server.watchDescriptors();
      // Last: what the start still did after it would bring the pages back.
      releaseProgramPages();
    }, STARTED_MS);
  }

  async #close(): Promise<void> {
    this.#server.close();
    this.#live.close();
    await this.#workers?.exited;
    await this.#app.close();
    this.#systemd.close();
    if (this.#options.isWorker) return;
    event(this.#log, 'server.stopped', { version: version.version, pid: process.pid });
  }
}

const stopThisProcess = () => process.kill(process.pid, 'SIGTERM');

/** A Ctrl-C that comes so soon is the first one, passed on by npm or a shell. */
const isEcho = (signal: string, since: number) =>
  signal === 'SIGINT' && performance.now() - since <= 100;

/**
 * Resolves when the stop that the first SIGTERM or SIGINT starts is complete; a second signal ends the process at
 * once. A worker ignores further signals, because Ctrl-C reaches it twice: from the terminal and through the first
 * process. It ends at once when the first process is gone.
 */
export function whenStopped(log: Log, isWorker: boolean, stop: () => Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    let stopping = false;
    let since = 0;
    const drain = (signal: string) => {
      stopping = true;
      since = performance.now();
      event(log, 'server.draining', { signal });
      stop().then(resolve, resolve);
    };
    const kill = (signal: string) => {
      event(log, 'server.killed', { signal }, 'warn');
      process.exit(130);
    };
    const onSignal = (signal: string) => {
      if (!stopping) drain(signal);
      else if (!isWorker && !isEcho(signal, since)) kill(signal);
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
    if (isWorker) whenOrphaned(() => (stopping ? kill : drain)('the first process is gone'));
  });
}

/** A problem with the file as a whole has no place in it. */
const withPosition = (problem: Problem) =>
  problem.line === 0
    ? withoutPosition(problem)
    : `${problem.line}:${problem.column} ${withoutPosition(problem)}`;

/** A problem as `check` words it, without its line and column. */
const withoutPosition = (problem: Problem) => describeProblem({ ...problem, line: 0, column: 0 });

function logReload(log: Log, result: ReloadResult): void {
  if (result.ok) {
    event(log, 'config.reloaded', {
      warnings: result.warnings.map(withoutPosition),
      needs_restart: result.restart,
    });
    return;
  }
  event(
    log,
    'config.rejected',
    {
      file: result.file,
      problems: result.problems.map(withPosition),
      kept: 'the configuration that was in force stays in force',
    },
    'error',
  );
}

/** Do both outputs go to one place: the journal, or a file with `2>&1`? */
function isOneStream(): boolean {
  const { fstatSync } = process.getBuiltinModule('node:fs');
  try {
    const [out, err] = [fstatSync(1), fstatSync(2)];
    return out.dev === err.dev && out.ino === err.ino;
  } catch {
    return false;
  }
}
