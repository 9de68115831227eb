/** What work on samples needs and only compose can bring along. */

import type { Codec } from '../../codecs/codec.ts';
import type { Config } from '../../config/config.ts';
import type { Environment } from '../../config/environment.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import type { BisectOptions, BisectReport } from '../bisect/types.ts';
import type { SampleStore } from '../sample.ts';

/** A gateway without a port. */
export interface InProcessGateway {
  /** Answers as the server would; never rejects. */
  handle(request: Request): Promise<Response>;
  /** Writes down what is still in memory. */
  close(): Promise<void>;
}

export interface InProcessOptions {
  readonly config: Config;
  readonly environment: Environment;
  /** False: what the client said reaches the vendor unrepaired, and no answer is looked into. */
  readonly repair: boolean;
  /** What is said may become a memory; left out: it may not. */
  readonly remembers?: boolean;
}

export interface SampleServices {
  readonly environment: Environment;
  /** The three protocols, by name. */
  readonly protocols: Readonly<Record<ProtocolName, Codec>>;
  /** The samples of a folder; `kept`: a recorder of this process keeps its index in line already. */
  samples(root: string, kept?: boolean): SampleStore;
  /** The search for the smallest failing request. */
  bisect(options: BisectOptions): Promise<BisectReport>;
  gateway(options: InProcessOptions): InProcessGateway;
}
