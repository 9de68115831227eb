/** Runs the server: one process or several, until it is told to stop. */

import { banner, type ServeOptions, version } from '../../cli/index.ts';
import type { Config } from '../../config/config.ts';
import type { Environment } from '../../config/environment.ts';
import { describeProblem, type Problem } from '../../config/file/problem.ts';
import { liveConfig, type ReloadResult } from '../../config/reload.ts';
import { secretsIn } from '../../config/secret.ts';
import { refusalToServe } from '../../config/servable.ts';
import { createLog, event, type Log } from '../../telemetry/log.ts';
import { type Descriptors, watchDescriptors } from '../descriptors.ts';
import { type App, type RunningServer, startServer } from '../server.ts';
import { liftLimit, limitedProviders } from './fetch-limit.ts';
import { releaseProgramPages } from './release-memory.ts';
import { SUCCESSOR, type Succession, startSuccessor, takeOver } from './restart.ts';
import { systemdNotifier } from './systemd.ts';
import { metricsOfWorkers, startWorkers, type Workers, whenOrphaned } from './workers.ts';

const OPEN_STATE_MS = 50;
// Late enough for the first requests of whoever waited for the start.
const STARTED_MS = 300;

/** What an app is made of. */
export interface AppOptions {
  readonly config: Config;
  readonly environment: Environment;
  readonly log: Log;
  readonly version: string;
  /** False: no feature sees what the client said or what is answered. */
  readonly repair?: boolean;
  /** Adds the metrics of other processes on the same port to this one's. */
  readonly metricsOfAll?: (own: string) => Promise<string> | undefined;
  /** False: nothing that is said becomes a memory, as for exchanges that only try something. */
  readonly remembers?: boolean;
}

/** The whole gateway, ready to be served. */
export interface HopgateApp {
  readonly app: App;
  /** Puts another configuration in force; open exchanges keep theirs. */
  reload(config: Config): void;
  /** The metrics of this process alone, as text. */
  metrics(): string;
  /** Opens the state on disk, which would else be opened when it is first needed; tells of trouble with it. */
  openStores(): void;
  /** From now on `/readyz` says that this process is leaving. */
  drain(): void;
  /** Writes down what is still in memory. */
  close(): Promise<void>;
}

export type CreateApp = (options: AppOptions) => HopgateApp;

export interface ServeHow extends ServeOptions {
  /** This process is one of several that another one started; it says nothing on stdout. */
  readonly isWorker: boolean;
  /** The process environment, for further processes. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly createApp: CreateApp;
  /** How to start this very program again with these arguments. */
  readonly command: readonly string[];
}

/** Exit code 0 after an orderly stop, 1 when the server cannot start. */
export async function serve(how: ServeHow): Promise<number> {
  const { config } = how;
  const { environment } = how.load;
  let secrets = secretsIn(config);
  const log = createLog({
    secrets: () => secrets,
    level: config.log.level,
    format: config.log.format,
    isTTY: process.stderr.isTTY,
    colour: environment.color && process.stderr.isTTY,
  });
  const refusal = refusalToServe(config);
  if (refusal !== undefined) {
    process.stderr.write(`hopgate: ${refusal}\n`);
    return 1;
  }
  liftLimit(config, environment, how.variables, how.command);
  const composed = how.createApp({
    config,
    environment,
    log,
    version: version.version,
    metricsOfAll: (own) => (workers === undefined ? asWorker?.(own) : workers.metrics(own)),
  });
  const asWorker = how.isWorker ? metricsOfWorkers(composed.metrics) : undefined;
  const several = config.workers > 1;
  const isHeir = how.variables[SUCCESSOR] !== undefined && !how.isWorker;
  // Under systemd a successor must be able to share the port; elsewhere a second start is a mistake.
  const shared = several || how.isWorker || how.variables.NOTIFY_SOCKET !== undefined;
  let workers: Workers | undefined;

  const supervisor = systemdNotifier(how.isWorker ? {} : how.variables, log);
  // The socket is that of the start, and what may be served there does not change with the file.
  const here = (next: Config): Config => ({ ...how.withFlags(next), listen: config.listen });
  const live = liveConfig(config, how.load, (next) => refusalToServe(here(next)));
  live.subscribe((next) => {
    secrets = secretsIn(next);
    const limited = limitedProviders(next, environment, how.variables);
    if (limited.length > 0) {
      event(log, 'upstream.limited', { providers: limited, streams: 256 }, 'warn');
    }
    composed.reload(here(next));
  });
  // Obeyed from before anything is served on: by default this signal ends a process.
  process.on('SIGHUP', () => {
    supervisor.reloading();
    void live.reload().then((result) => {
      tellReload(log, result);
      supervisor.reloaded();
    });
    workers?.signal('SIGHUP');
  });

  let server: RunningServer;
  try {
    server = await startServer({
      app: composed.app,
      host: config.listen.host,
      port: config.listen.port,
      reusePort: shared,
      joins: how.isWorker || isHeir,
      idleMs: config.limits.idleConnectionMs,
      drainMs: config.limits.drainMs,
    });
  } catch (thrown) {
    process.stderr.write(`hopgate: ${thrown instanceof Error ? thrown.message : thrown}\n`);
    await composed.close();
    return 1;
  }
  live.watch((result) => tellReload(log, result));
  live.seek((result) => {
    tellReload(log, result);
    if (result.ok) {
      event(log, 'providers.found', { providers: Object.keys(result.config.providers) });
    }
  });
  if (several && !how.isWorker) {
    workers = startWorkers({
      count: config.workers - 1,
      command: how.command,
      variables: how.variables,
      host: config.listen.host,
      port: server.port,
      log,
      metrics: composed.metrics,
    });
  }

  // Signals are obeyed from before the first word on, so that whoever reads it may send one.
  let draining = false;
  let succession: Succession | undefined;
  let succeeded = false;
  const stopping = stopped(log, how.isWorker, async () => {
    draining = true;
    succession?.giveUp();
    supervisor.stopping();
    composed.drain();
    workers?.signal('SIGTERM');
    // Nobody has to be told of one whose place is taken.
    if (!succeeded) await Bun.sleep(config.limits.drainDelayMs);
    return server.stop();
  });
  process.on('SIGUSR2', () => {
    if (succession !== undefined || draining) return;
    if (how.isWorker) {
      server.sendAway();
      return;
    }
    if (!shared) {
      event(log, 'server.succession.refused', { why: 'the port is not shared' }, 'warn');
      return;
    }
    succession = startSuccessor({
      command: how.command,
      variables: how.variables,
      port: server.port,
      sockets: config.workers,
      log,
      handOver: (pid) => {
        succeeded = true;
        supervisor.handOver(pid);
        server.sendAway();
        workers?.signal('SIGUSR2');
      },
      // One who was told to stop meanwhile is not told twice: that would end its open streams.
      leave: () => draining || process.kill(process.pid, 'SIGTERM'),
    });
    void succession.took.then((took) => {
      if (!took) succession = undefined;
    });
  });
  await workers?.ready;
  if (how.isWorker) process.send?.('ready');
  else if (!draining) {
    // From the sources there is no command of the name.
    const called = how.variables.npm_lifecycle_event === 'start' ? 'npm start --' : 'hopgate';
    event(log, 'server.started', {
      version: version.version,
      address: server.url,
      pid: process.pid,
      workers: config.workers,
    });
    const colour = environment.color && process.stderr.isTTY;
    const name = `hopgate ${version.version}`;
    process.stderr.write(`${colour ? `\u001b[1m${name}\u001b[22m` : name}\n\n`);
    for (const line of banner(config, server.url, called)) process.stderr.write(`${line}\n`);
    process.stdout.write(`hopgate listening on ${server.url}\n`);
    supervisor.ready(server.url);
  }
  // Behind the start, since it takes as long as a quarter of it; trouble with the disk is told all the same.
  setTimeout(composed.openStores, OPEN_STATE_MS);
  let descriptors: Descriptors | undefined;
  setTimeout(() => {
    if (draining) return;
    descriptors = watchDescriptors({ log, onCrowded: (is) => server.crowded(is) });
    // Last of all: a start that went on behind it would bring the pages back.
    releaseProgramPages();
  }, STARTED_MS);
  if (isHeir && !draining && !takeOver(server.port)) process.kill(process.pid, 'SIGTERM');
  await stopping;
  descriptors?.close();
  live.close();
  await workers?.exited;
  await composed.close();
  supervisor.close();
  if (!how.isWorker) event(log, 'server.stopped', { version: version.version, pid: process.pid });
  return 0;
}

/**
 * Resolves when the first SIGTERM or SIGINT has been obeyed; a second one ends the process at once. A worker
 * takes a signal as often as it comes (Ctrl-C reaches it too, and then its first process passes it on): for
 * it the second one is that its first process is gone.
 */
function stopped(log: Log, isWorker: boolean, stop: () => Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    let asked = false;
    const drain = (signal: string) => {
      asked = true;
      event(log, 'server.draining', { signal });
      stop().then(resolve, resolve);
    };
    const kill = (signal: string) => {
      event(log, 'server.killed', { signal }, 'warn');
      process.exit(130);
    };
    const onSignal = (signal: string) => {
      if (!asked) drain(signal);
      else if (!isWorker) kill(signal);
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
    if (isWorker) whenOrphaned(() => (asked ? kill : drain)('the first process is gone'));
  });
}

/** The key, what is wrong with it and what was meant, as `check` has them behind the place. */
const told = (problem: Problem) => describeProblem({ ...problem, line: 0, column: 0 });

function tellReload(log: Log, result: ReloadResult): void {
  if (result.ok) {
    event(log, 'config.reloaded', {
      warnings: result.warnings.map(told),
      needs_restart: result.restart,
    });
    return;
  }
  event(
    log,
    'config.rejected',
    {
      file: result.file,
      problems: result.problems.map((one) => `${one.line}:${one.column} ${told(one)}`),
      kept: 'the configuration that was in force stays in force',
    },
    'error',
  );
}
