/** The command line with its services: how the program was started, and with what environment. */

import { processIo, run } from '../cli/index.ts';
import { processEnvironment } from '../config/environment.ts';

/** Runs one command; the exit code. */
export function start(
  program: readonly string[],
  args: readonly string[],
  variables: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const environment = processEnvironment();
  return run(args, processIo(environment, program), async () => {
    const { commandServices } = await import('./gateway-for-commands.ts');
    return commandServices({ environment, variables, command: [...program, ...args] });
  });
}
