/** Runs other programs for commands: systemctl, journalctl, the opener of web pages. */

import type { Invocation } from './command.ts';

/** The path of a program of `$PATH`; undefined when it is not on this machine. */
export const programPath = ({ io }: Pick<Invocation, 'io'>, name: string): string | undefined =>
  Bun.which(name, { PATH: io.environment.variable('PATH') ?? '' }) ?? undefined;

/** Runs a program of `$PATH`, with code 127 when it is not there; `inherit`: it reads and writes the terminal itself. */
export async function runProgram(
  invocation: Pick<Invocation, 'io'>,
  [name, ...args]: readonly string[],
  inherit = false,
): Promise<{ readonly code: number; readonly output: string }> {
  const program = programPath(invocation, name!);
  if (program === undefined) return { code: 127, output: `${name} is not on this machine` };
  if (inherit) {
    const child = Bun.spawn([program, ...args], { stdio: ['inherit', 'inherit', 'inherit'] });
    return { code: await child.exited, output: '' };
  }
  const child = Bun.spawn([program, ...args], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, output: `${out}${err}`.trim() };
}
