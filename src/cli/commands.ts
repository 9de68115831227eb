/** The command table: parsing, help, completions and the manual page are made from it. The first entry is the default. */

import type { CommandSpec } from './command.ts';
import { AUDIT } from './commands/audit.ts';
import { BISECT } from './commands/bisect/index.ts';
import { CHECK } from './commands/check.ts';
import { COMPLETIONS } from './commands/completions/index.ts';
import { DEMO } from './commands/demo/index.ts';
import { DOCTOR } from './commands/doctor/index.ts';
import { INIT } from './commands/init/index.ts';
import { KEYS } from './commands/keys/index.ts';
import { LINT } from './commands/lint.ts';
import { LOGS } from './commands/logs.ts';
import { MAN } from './commands/man.ts';
import { MIGRATE } from './commands/migrate.ts';
import { MODELS } from './commands/models.ts';
import { REPAIR } from './commands/repair.ts';
import { REPLAY } from './commands/replay/index.ts';
import { SAMPLES } from './commands/samples/index.ts';
import { SERVE } from './commands/serve.ts';
import { SERVICE } from './commands/service/index.ts';
import { SETUP } from './commands/setup/index.ts';
import { STATE } from './commands/state/index.ts';
import { STATUS } from './commands/status.ts';
import { DOCS, UI } from './commands/ui.ts';
import { USAGE } from './commands/usage.ts';
import { VERSION } from './commands/version.ts';

export const COMMANDS: readonly CommandSpec[] = [
  SERVE,
  INIT,
  SETUP,
  CHECK,
  DOCTOR,
  MODELS,
  STATUS,
  LOGS,
  KEYS,
  USAGE,
  SAMPLES,
  REPLAY,
  BISECT,
  REPAIR,
  LINT,
  UI,
  DEMO,
  SERVICE,
  AUDIT,
  STATE,
  MIGRATE,
  COMPLETIONS,
  MAN,
  DOCS,
  VERSION,
];
