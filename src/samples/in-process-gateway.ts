/** Gateways without a port, and the other services that replay and bisection get from the app. */

import type { Codec } from '../codecs/codec.ts';
import type { Config } from '../config/config.ts';
import type { Environment } from '../config/environment.ts';
import type { ProtocolName } from '../conversation/types.ts';
import type { Principal } from '../keys/principal.ts';

export interface InProcessGateway {
  /** Answers like the server; never rejects. */
  handle(request: Request): Promise<Response>;
  /** Writes what is still in memory. */
  close(): Promise<void>;
}

export interface InProcessOptions {
  readonly config: Config;
  readonly environment: Environment;
  /** False: requests reach the vendor unrepaired, and answers are not inspected. */
  readonly repair: boolean;
  /** Conversations may be captured into the memory; left out: they may not. */
  readonly remembers?: boolean;
  /** The principal of all requests; left out: none. */
  readonly as?: Principal | undefined;
}

export interface SampleServices {
  readonly environment: Environment;
  /** The three protocols, by name. */
  readonly protocols: Readonly<Record<ProtocolName, Codec>>;
  gateway(options: InProcessOptions): InProcessGateway;
}
