/** `hopgate completions`: what a shell needs to complete command lines, made from the command table. */

import type { CommandSpec, Invocation } from '../../command.ts';
import { bashCompletion } from './bash.ts';
import { fishCompletion } from './fish.ts';
import { zshCompletion } from './zsh.ts';

/** By the shell's name: the script for a command table. */
export const COMPLETIONS: Readonly<Record<string, (commands: readonly CommandSpec[]) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};

export const SHELLS = Object.keys(COMPLETIONS);

/** Prints the script of the shell that was named. */
export async function runCompletions(
  { arguments: [shell = ''], io }: Invocation,
  commands: readonly CommandSpec[],
): Promise<number> {
  io.stdout.write(COMPLETIONS[shell]!(commands));
  return 0;
}
