/** The command line, given what only the entry knows: how the program was started and with what environment. */

import { processIo, run } from './cli/index.ts';
import { PAIRING, PROTOCOLS } from './compose.ts';
import { LINT } from './compose-lint.ts';
import { SAMPLES } from './compose-samples.ts';
import { processEnvironment } from './config/environment.ts';
import { serve } from './serve.ts';

/** Runs one command; the exit code. */
export function start(
  program: readonly string[],
  args: readonly string[],
  variables: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  return run(args, processIo(processEnvironment()), {
    protocols: PROTOCOLS,
    pairing: PAIRING,
    program,
    lint: LINT,
    ...SAMPLES,
    serve: (options) =>
      serve({
        ...options,
        variables,
        isWorker: variables.HOPGATE_WORKER === '1',
        command: [...program, ...args],
      }),
  });
}
