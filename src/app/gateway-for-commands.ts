/** The whole gateway, for the commands that need it: the server, a gateway without a port, repairs, checks and moves. */

import { createApp } from '../app.ts';
import type { CommandServices } from '../cli/command.ts';
import { version } from '../cli/commands/version.ts';
import type { Environment } from '../config/environment.ts';
import { repairHistory } from '../features/tool-pairing/index.ts';
import { fitTurnOrder } from '../features/vendor-fit/index.ts';
import { serve } from '../server/process/run.ts';
import { sampleServices } from './in-process.ts';
import { LINT } from './linters.ts';
import { mendBody } from './responses/mend-body.ts';

export interface ProgramStart {
  readonly environment: Environment;
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** The program with its arguments, to start it again. */
  readonly command: readonly string[];
}

export function commandServices({
  environment,
  variables,
  command,
}: ProgramStart): CommandServices {
  return {
    ...sampleServices(createApp, environment, version.version),
    pairing: { mend: mendBody, repair: repairHistory, fitTurns: fitTurnOrder },
    lint: LINT,
    async stateMoves(options) {
      const { stateMoves } = await import('./operations/state-moves.ts');
      return stateMoves(options);
    },
    async checkTools(...given) {
      const { checkTools } = await import('./operations/check-tools.ts');
      return checkTools(...given);
    },
    serve: (options) =>
      serve({
        ...options,
        createApp,
        variables,
        isWorker: variables.HOPGATE_WORKER === '1',
        command,
      }),
  };
}
