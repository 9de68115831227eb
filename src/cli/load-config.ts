import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Config, ConfigSource } from '../config/config.ts';
import { describeProblem, type Problem } from '../config/file/problem.ts';
import { type LoadOptions, type LoadResult, loadConfig, readConfigFile } from '../config/load.ts';
import type { Invocation } from './command.ts';

/** Where to look for the configuration: `--config` and the environment. */
export const loadOptions = ({ io, text }: Pick<Invocation, 'io' | 'text'>): LoadOptions => ({
  path: text('config'),
  environment: io.environment,
  fetch: (url, init) => io.fetch(url, init),
});

/** Loads the file of `--config`, else of the usual places. Never throws. */
export const loadForCommand = (invocation: Pick<Invocation, 'io' | 'text'>): Promise<LoadResult> =>
  loadConfig(loadOptions(invocation));

/** Loads the configuration; undefined when it has problems. Problems and warnings go to stderr. */
export async function loadOrReport(invocation: Invocation): Promise<Config | undefined> {
  const result = await loadForCommand(invocation);
  reportProblems(invocation, result);
  return result.ok ? result.config : undefined;
}

/**
 * The same for a command that needs no vendor's key itself. That this shell lacks a key is not said then: the gateway
 * may have it.
 */
export async function loadToLook(invocation: Invocation): Promise<Config | undefined> {
  const result = await loadForCommand(invocation);
  const warnings = result.warnings.filter(({ environment }) => environment !== true);
  reportProblems(invocation, { ...result, warnings });
  return result.ok ? result.config : undefined;
}

const NOT_SET = /the environment variable (\w+) is not set/;
const isUnset = ({ message }: Problem) => NOT_SET.test(message);

/**
 * The same for a command that needs no key at all: variables that this shell lacks are not reported. One that stands
 * for a number or an address is needed nevertheless.
 */
export async function loadWithoutKeys(invocation: Invocation): Promise<Config | undefined> {
  const result = await resultWithoutKeys(invocation);
  reportProblems(invocation, result);
  return result.ok ? result.config : undefined;
}

/** The same, reporting nothing. */
export async function resultWithoutKeys(invocation: Invocation): Promise<LoadResult> {
  const options = loadOptions(invocation);
  const first = await loadConfig(options);
  const problems = first.ok ? first.warnings : [...first.problems, ...first.warnings];
  const unset = new Set(problems.flatMap(({ message }) => NOT_SET.exec(message)?.[1] ?? []));
  const { environment } = options;
  const variable = (name: string) =>
    environment.variable(name) ?? (unset.has(name) ? 'not-set-and-not-needed' : undefined);
  const second =
    unset.size === 0
      ? first
      : await loadConfig({ ...options, environment: { ...environment, variable } });
  return second.ok ? second : first;
}

/** The file of a result, if any. */
export const fileOf = (result: LoadResult): string | undefined =>
  result.ok ? result.config.source.path : result.file;

const MAX_SHOWN = 200;
const SECRET = /key|token|secret|passw|authorization/i;

function rowsOf(file: string): readonly string[] {
  const text = readConfigFile(file);
  return typeof text === 'string' ? text.split('\n') : [];
}

/**
 * Prints problems and warnings to stderr, one a line, in the form of compilers; on a terminal with the line of the
 * file.
 */
export function reportProblems({ err }: Pick<Invocation, 'err'>, result: LoadResult): void {
  const file = fileOf(result);
  const onScreen = err.columns !== undefined;
  let rows: readonly string[] | undefined;
  const print = (problem: Problem, label: string) => {
    err.line(`${describeProblem(problem, file)}${label}`);
    if (!onScreen || file === undefined || problem.line < 1) return;
    rows ??= rowsOf(file);
    const row = rows[problem.line - 1]?.replaceAll('\t', ' ');
    // A line that may hold a credential is not shown.
    if (row === undefined || row.length > MAX_SHOWN || SECRET.test(row)) return;
    const number = String(problem.line);
    err.line(err.paint('dim', `  ${number} | `) + row);
    const caret = ' '.repeat(number.length + 5 + problem.column - 1);
    err.line(caret + err.paint(label === '' ? 'red' : 'yellow', '^'));
  };
  if (!result.ok) for (const problem of result.problems) print(problem, '');
  const variables = join(dirname(file ?? ''), 'hopgate.env');
  if (!result.ok && existsSync(variables) && result.problems.some(isUnset)) {
    err.line(
      `hopgate: ${variables} has the variables of the service; a command in a shell does not read it (see "Commands on a machine with the service" in the manual).`,
    );
  }
  for (const warning of result.warnings) print(warning, err.paint('dim', ' [warning]'));
}

/** Half a sentence that says where a configuration came from. */
export function describeSource(source: ConfigSource): string {
  if (source.kind === 'file') return source.path;
  const file = source.path === undefined ? 'no file' : source.path;
  return source.kind === 'discovered'
    ? `${file} names ${source.path === undefined ? 'a' : 'no'} provider: what the environment and this machine offer`
    : `${file} names ${source.path === undefined ? 'a' : 'no'} provider, and no API key or model server was found: the built-in demo model answers`;
}
