/** The command line with its services: how the program was started, and with what environment. */

import { createApp } from '../app.ts';
import { processIo, run, version } from '../cli/index.ts';
import { processEnvironment } from '../config/environment.ts';
import { repairHistory } from '../features/tool-pairing/index.ts';
import { fitTurnOrder } from '../features/vendor-fit/index.ts';
import { serve } from '../server/process/run.ts';
import { sampleServices } from './in-process.ts';
import { LINT } from './linters.ts';
import { checkTools } from './operations/check-tools.ts';
import { stateMoves } from './operations/state-moves.ts';
import { mendBody } from './responses/mend-body.ts';

/** Runs one command; the exit code. */
export function start(
  program: readonly string[],
  args: readonly string[],
  variables: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const environment = processEnvironment();
  return run(args, processIo(environment), {
    ...sampleServices(createApp, environment, version.version),
    pairing: { mend: mendBody, repair: repairHistory, fitTurns: fitTurnOrder },
    program,
    lint: LINT,
    stateMoves,
    checkTools,
    serve: (options) =>
      serve({
        ...options,
        createApp,
        variables,
        isWorker: variables.HOPGATE_WORKER === '1',
        command: [...program, ...args],
      }),
  });
}
