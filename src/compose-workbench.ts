/** What commands and the page work on samples with: protocols, folders of samples, gateways without a port. */

import type { Environment } from './config/environment.ts';
import { bisect, openSampleBook } from './features/recorder/index.ts';
import { type App, dispatch } from './http/server.ts';
import type { Protocol } from './protocols/protocol.ts';
import { type Log, SILENT } from './telemetry/log.ts';
import type { InProcessOptions, Tools } from './workbench/tools.ts';

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
  protocols: Readonly<Record<Protocol['name'], Protocol>>,
  environment: Environment,
  version: string,
): Tools {
  return {
    environment,
    protocols,
    samples: openSampleBook,
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
