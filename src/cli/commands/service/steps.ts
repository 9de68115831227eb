/** The steps of an installation as data, printed by --dry-run or carried out. */

import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { errorMessage, type Invocation } from '../../command.ts';
import { runProgram } from '../../run-program.ts';

export type Step =
  | { readonly kind: 'write'; readonly path: string; readonly text: string }
  | { readonly kind: 'remove'; readonly path: string }
  | {
      readonly kind: 'run';
      readonly command: readonly string[];
      /** A failure of this command is ignored. */
      readonly mayFail?: boolean;
    };

export const runSteps = (
  commands: readonly (readonly string[])[],
  mayFail = false,
): readonly Step[] => commands.map((command) => ({ kind: 'run', command, mayFail }));

/** Prints what would be done. */
export function printSteps({ out }: Invocation, steps: readonly Step[]): void {
  for (const step of steps) {
    if (step.kind === 'run') out.line(`would run     ${step.command.join(' ')}`);
    else if (step.kind === 'remove') out.line(`would remove  ${step.path}`);
    else {
      out.line(`would write   ${step.path}`);
      for (const line of step.text.trimEnd().split('\n')) out.line(`    ${line}`.trimEnd());
    }
  }
}

/** Carries the steps out and prints each; false after the first that fails, whose reason goes to stderr. */
export async function carryOutSteps(
  invocation: Invocation,
  steps: readonly Step[],
): Promise<boolean> {
  const { out, err } = invocation;
  for (const step of steps) {
    try {
      if (step.kind === 'write') {
        mkdirSync(dirname(step.path), { recursive: true });
        const temporary = `${step.path}.hopgate-new`;
        writeFileSync(temporary, step.text);
        chmodSync(temporary, 0o644);
        renameSync(temporary, step.path);
        out.line(`wrote    ${step.path}`);
      } else if (step.kind === 'remove') {
        rmSync(step.path, { force: true });
        out.line(`removed  ${step.path}`);
      } else {
        const { code, output } = await runProgram(invocation, step.command);
        if (code !== 0 && step.mayFail !== true) {
          err.line(
            `hopgate: "${step.command.join(' ')}" failed (${code}): ${output || 'no output'}`,
          );
          return false;
        }
        if (code === 0) out.line(`ran      ${step.command.join(' ')}`);
      }
    } catch (thrown) {
      const why = errorMessage(thrown);
      err.line(`hopgate: ${step.kind === 'run' ? step.command.join(' ') : step.path}: ${why}`);
      return false;
    }
  }
  return true;
}
