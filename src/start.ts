/** The command line, given what only the entry knows: how the program was started and with what environment. */

import { CODECS } from './app/codecs.ts';
import { workbenchTools } from './app/in-process.ts';
import { LINT } from './app/linters.ts';
import { createApp, PAIRING } from './app.ts';
import { processIo, run, version } from './cli/index.ts';
import { processEnvironment } from './config/environment.ts';
import { serve } from './server/process/run.ts';

/** Runs one command; the exit code. */
export function start(
  program: readonly string[],
  args: readonly string[],
  variables: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const environment = processEnvironment();
  return run(args, processIo(environment), {
    ...workbenchTools(createApp, CODECS, environment, version.version),
    pairing: PAIRING,
    program,
    lint: LINT,
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
