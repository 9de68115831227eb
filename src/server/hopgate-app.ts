/** The whole gateway as the process sees it: what it is created from, and what the process can ask it to do. */

import type { Config } from '../config/config.ts';
import type { Environment } from '../config/environment.ts';
import type { Principal } from '../keys/principal.ts';
import type { Limits } from '../limits/limits.ts';
import type { LimitsChannel, WorkerLimits } from '../limits/worker-channel.ts';
import type { Log } from '../telemetry/log.ts';
import type { App } from './server.ts';

/** What an app is created from. */
export interface AppOptions {
  readonly config: Config;
  readonly environment: Environment;
  readonly log: Log;
  readonly version: string;
  /** False: no feature sees the request or the answer. */
  readonly repair?: boolean;
  /** Adds the metrics of other processes on the same port to this one's. */
  readonly metricsOfAll?: (own: string) => Promise<string> | undefined;
  /** In a gateway that runs inside another one: the limits of that one. */
  readonly limits?: Limits;
  /** In a worker: the first process, which holds the limits. */
  readonly limitsChannel?: LimitsChannel;
  /** False: no exchange becomes a memory, as for exchanges that only try something. */
  readonly remembers?: boolean;
  /** The principal of all requests, whatever key they carry; left out: their key decides. */
  readonly as?: Principal | undefined;
}

/** The whole gateway, ready to be served. */
export interface HopgateApp {
  readonly app: App;
  /** Puts another configuration in force; open exchanges keep theirs. */
  reload(config: Config): void;
  /** The metrics of this process alone, as text. */
  metrics(): Promise<string>;
  /** For one more worker: the limits of this process. */
  workerLimits(): WorkerLimits;
  /** Another process takes over: it learns from the files on disk what is still used here. */
  handOver(): void;
  /** Opens the state on disk now, not at its first use, and logs trouble with it. */
  openStores(): void;
  /** From now on `/readyz` says that this process is stopping. */
  drain(): void;
  /** Writes down what is still in memory. */
  close(): Promise<void>;
}

export type CreateApp = (options: AppOptions) => HopgateApp;
