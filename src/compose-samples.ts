/** What commands about samples work with: the folder of samples, the bisection, a gateway without a port. */

import type { SampleDeps } from './cli/sample-deps.ts';
import { version } from './cli/version.ts';
import { compose } from './compose.ts';
import { bisect, openSampleBook } from './features/recorder/index.ts';
import { SILENT } from './telemetry/log.ts';

export const SAMPLES: SampleDeps = {
  samples: openSampleBook,
  bisect,
  gateway: ({ config, environment, repair }) => {
    const composed = compose({
      config,
      environment,
      log: SILENT,
      version: version.version,
      repair,
    });
    return {
      handle: (request) => Promise.resolve(composed.app.handle(request)),
      close: () => composed.close(),
    };
  },
};
