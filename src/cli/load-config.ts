/** The configuration for a command, or its problems told in words. */

import type { Config } from '../config/config.ts';
import { describeProblem, type Problem } from '../config/file/problem.ts';
import { type LoadOptions, type LoadResult, loadConfig, readConfigFile } from '../config/load.ts';
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

const MOST_SHOWN = 200;
const SECRET = /key|token|secret|passw|authorization/i;

function rowsOf(file: string): readonly string[] {
  const text = readConfigFile(file);
  return typeof text === 'string' ? text.split('\n') : [];
}

/**
 * Problems and warnings on stderr, one a line, as editors and compilers write them; on a terminal with the
 * line of the file that each speaks of.
 */
export function tell({ err }: Pick<Invocation, 'err'>, result: LoadResult): void {
  const file = fileOf(result);
  const onScreen = err.columns !== undefined;
  let rows: readonly string[] | undefined;
  const say = (problem: Problem, word: string) => {
    err.line(`${describeProblem(problem, file)}${word}`);
    if (!onScreen || file === undefined || problem.line < 1) return;
    rows ??= rowsOf(file);
    const row = rows[problem.line - 1]?.replaceAll('\t', ' ');
    // What may hold a credential is not shown.
    if (row === undefined || row.length > MOST_SHOWN || SECRET.test(row)) return;
    const number = String(problem.line);
    err.line(err.paint('dim', `  ${number} | `) + row);
    const caret = ' '.repeat(number.length + 5 + problem.column - 1);
    err.line(caret + err.paint(word === '' ? 'red' : 'yellow', '^'));
  };
  if (!result.ok) for (const problem of result.problems) say(problem, '');
  for (const warning of result.warnings) say(warning, err.paint('dim', ' [warning]'));
}
