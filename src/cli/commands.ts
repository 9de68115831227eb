/** The command table: parsing, help and whatever is generated later all read it. The first entry is the default. */

import type { CommandSpec } from './command.ts';
import { LINT, REPAIR } from './commands/body-commands.ts';
import { runCompletions, SHELLS } from './commands/completions/index.ts';
import { DEMO } from './commands/demo-command.ts';
import { CHECK, DOCTOR, MODELS, VERSION } from './commands/look-commands.ts';
import { runMan } from './commands/man.ts';
import { MIGRATE } from './commands/migrate.ts';
import { SERVE, SERVICE } from './commands/run-commands.ts';
import { SAMPLE_COMMANDS } from './commands/sample-commands.ts';
import { INIT, SETUP } from './commands/setup-commands.ts';

// These two are made of the table itself.
const COMPLETIONS: CommandSpec = {
  name: 'completions',
  group: 'Set up',
  summary: 'print what a shell needs to complete hopgate command lines',
  description: ['Made from the same table as this help, so it knows every command and option.'],
  arguments: [{ name: 'shell', summary: 'which one', required: true, choices: SHELLS }],
  examples: [
    {
      line: 'hopgate completions bash > ~/.local/share/bash-completion/completions/hopgate',
      summary: 'For every bash from now on; "source" takes it for one.',
    },
    {
      line: 'hopgate completions fish > ~/.config/fish/completions/hopgate.fish',
      summary: 'For every fish from now on.',
    },
  ],
  exits: [[0, 'printed']],
  run: (invocation) => runCompletions(invocation, COMMANDS),
};

const MAN: CommandSpec = {
  name: 'man',
  group: 'Look',
  summary: 'print the manual page',
  description: ['In the form that man reads: everything --help tells of every command, in one.'],
  examples: [{ line: 'hopgate man > hopgate.1', summary: 'A file; "man ./hopgate.1" shows it.' }],
  exits: [[0, 'printed']],
  run: (invocation) => runMan(invocation, COMMANDS),
};

export const COMMANDS: readonly CommandSpec[] = [
  SERVE,
  SERVICE,
  DEMO,
  INIT,
  MIGRATE,
  SETUP,
  CHECK,
  DOCTOR,
  MODELS,
  REPAIR,
  LINT,
  COMPLETIONS,
  MAN,
  ...SAMPLE_COMMANDS,
  VERSION,
];
