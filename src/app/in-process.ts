/** What commands and the page work on samples with: protocols, folders of samples, gateways without a port. */

import type { Codec } from '../codecs/codec.ts';
import type { Environment } from '../config/environment.ts';
import type { InProcessOptions, SampleServices } from '../samples/in-process-gateway.ts';
import { bisect, openSampleStore } from '../samples/index.ts';
import { type App, dispatch } from '../server/server.ts';
import { type Log, SILENT } from '../telemetry/log.ts';

/** What this file needs of `compose`. */
type Compose = (
  options: InProcessOptions & {
    readonly log: Log;
    readonly version: string;
    readonly remembers: boolean;
  },
) => {
  readonly app: App;
  close(): Promise<void>;
};

/** @param compose handed in, since it needs this itself for the page */
export function workbenchTools(
  compose: Compose,
  protocols: Readonly<Record<Codec['name'], Codec>>,
  environment: Environment,
  version: string,
): SampleServices {
  return {
    environment,
    protocols,
    samples: openSampleStore,
    bisect,
    gateway: (how) => {
      const { app, close } = compose({
        ...how,
        log: SILENT,
        version,
        remembers: how.remembers ?? false,
      });
      return { handle: (request) => dispatch(app, request), close };
    },
  };
}
