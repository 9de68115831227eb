import type { CommandSpec, Invocation } from '../../command.ts';
import { bashCompletion } from './bash.ts';
import { fishCompletion } from './fish.ts';
import { zshCompletion } from './zsh.ts';

/** By the shell's name: the script for a command table. */
export const SCRIPTS: Readonly<Record<string, (commands: readonly CommandSpec[]) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};

export const COMPLETIONS: CommandSpec = {
  name: 'completions',
  group: 'admin',
  summary: 'print a completion script for your shell',
  description: ['The script completes every command and option.'],
  arguments: [
    { name: 'shell', summary: 'which one', required: true, choices: Object.keys(SCRIPTS) },
  ],
  examples: {
    'hopgate completions bash > ~/.local/share/bash-completion/completions/hopgate':
      'Installs completions for bash; "source" loads them into the current shell.',
    'hopgate completions fish > ~/.config/fish/completions/hopgate.fish':
      'Installs completions for fish.',
  },
  exits: { 0: 'printed' },
  run: runCompletions,
};

async function runCompletions({
  arguments: [shell = ''],
  io,
  commands,
}: Invocation): Promise<number> {
  io.stdout.write(SCRIPTS[shell]!(commands));
  return 0;
}
