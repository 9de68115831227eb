/** What is done to a machine, as data: shown by --dry-run, or carried out. */

import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Invocation } from '../../command.ts';

export type Step =
  | { readonly kind: 'write'; readonly path: string; readonly text: string }
  | { readonly kind: 'remove'; readonly path: string }
  | {
      readonly kind: 'run';
      readonly command: readonly string[];
      /** Its failing is no failure. */
      readonly mayFail?: boolean;
    };

export const runs = (commands: readonly (readonly string[])[], mayFail = false): readonly Step[] =>
  commands.map((command) => ({ kind: 'run', command, mayFail }));

/** Starts a program of `$PATH`; `inherit`: it speaks to the terminal itself. */
export async function start(
  { io }: Invocation,
  [name, ...args]: readonly string[],
  inherit = false,
): Promise<{ readonly code: number; readonly said: string }> {
  const program = Bun.which(name!, { PATH: io.environment.variable('PATH') ?? '' });
  if (program === null) return { code: 127, said: `${name} is not on this machine` };
  if (inherit) {
    const child = Bun.spawn([program, ...args], { stdio: ['inherit', 'inherit', 'inherit'] });
    return { code: await child.exited, said: '' };
  }
  const child = Bun.spawn([program, ...args], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, said: `${out}${err}`.trim() };
}

/** What would be done. */
export function show({ out }: Invocation, steps: readonly Step[]): void {
  for (const step of steps) {
    if (step.kind === 'run') out.line(`would run     ${step.command.join(' ')}`);
    else if (step.kind === 'remove') out.line(`would remove  ${step.path}`);
    else {
      out.line(`would write   ${step.path}`);
      for (const line of step.text.trimEnd().split('\n')) out.line(`    ${line}`.trimEnd());
    }
  }
}

/** Carries the steps out, telling each; false at the first that fails, with the reason told. */
export async function carryOut(invocation: Invocation, steps: readonly Step[]): Promise<boolean> {
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
        const { code, said } = await start(invocation, step.command);
        if (code !== 0 && step.mayFail !== true) {
          err.line(`hopgate: "${step.command.join(' ')}" failed (${code}): ${said || 'no words'}`);
          return false;
        }
        if (code === 0) out.line(`ran      ${step.command.join(' ')}`);
      }
    } catch (thrown) {
      const why = thrown instanceof Error ? thrown.message : String(thrown);
      err.line(`hopgate: ${step.kind === 'run' ? step.command.join(' ') : step.path}: ${why}`);
      return false;
    }
  }
  return true;
}
