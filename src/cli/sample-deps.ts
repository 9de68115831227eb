/** What commands about samples need and only the entry can bring along. */

import type { Config } from '../config/config.ts';
import type { Environment } from '../config/environment.ts';
import type { BisectOptions, BisectReport } from '../conversation/bisection.ts';
import type { SampleBook } from '../conversation/sample.ts';

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
}

export interface SampleDeps {
  /** The samples of a folder. */
  samples(root: string): SampleBook;
  /** The search for the smallest failing request. */
  bisect(options: BisectOptions): Promise<BisectReport>;
  gateway(options: InProcessOptions): InProcessGateway;
}
