/** Codecs, folders of samples and gateways without a port, for commands and pages that work on samples. */

import type { Environment } from '../config/environment.ts';
import type { SampleServices } from '../samples/in-process-gateway.ts';
import type { CreateApp } from '../server/hopgate-app.ts';
import { dispatch } from '../server/server.ts';
import { SILENT } from '../telemetry/log.ts';
import { CODECS } from './codecs.ts';

/** @param createApp handed in: the app itself needs these services for its page */
export function sampleServices(
  createApp: CreateApp,
  environment: Environment,
  version: string,
): SampleServices {
  return {
    environment,
    protocols: CODECS,
    gateway: (options) => {
      const { app, close } = createApp({
        ...options,
        log: SILENT,
        version,
        remembers: options.remembers ?? false,
      });
      return { handle: (request) => dispatch(app, request), close };
    },
  };
}
