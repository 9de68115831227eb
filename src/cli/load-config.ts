/** The configuration for a command, or its problems told in words. */

import type { Config } from '../config/config.ts';
import { type LoadOptions, type LoadResult, loadConfig } from '../config/load.ts';
import { describeProblem, type Problem } from '../config/problem.ts';
import type { Invocation } from './command.ts';

/** What `--config` and the environment say about where to look. */
export const loadOptions = ({ io, text }: Pick<Invocation, 'io' | 'text'>): LoadOptions => ({
  path: text('config'),
  environment: io.environment,
  fetch: (url, init) => io.fetch(url, init),
});

/** Loads what `--config` (or the usual places) says. Never throws. */
export const load = (invocation: Pick<Invocation, 'io' | 'text'>): Promise<LoadResult> =>
  loadConfig(loadOptions(invocation));

/** Loads; problems go to stderr and undefined comes back. Warnings are told either way. */
export async function loadOrTell(invocation: Invocation): Promise<Config | undefined> {
  const result = await load(invocation);
  tell(invocation, result);
  return result.ok ? result.config : undefined;
}

/** The file that a result speaks of, if any. */
export const fileOf = (result: LoadResult): string | undefined =>
  result.ok ? result.config.source.path : result.file;

/** Problems and warnings on stderr, one a line, as editors and compilers write them. */
export function tell({ err }: Pick<Invocation, 'err'>, result: LoadResult): void {
  const file = fileOf(result);
  const say = (problem: Problem, word: string) =>
    err.line(`${describeProblem(problem, file)}${word}`);
  if (!result.ok) for (const problem of result.problems) say(problem, '');
  for (const warning of result.warnings) say(warning, err.paint('dim', ' [warning]'));
}
