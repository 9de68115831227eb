/** From a file (or from nothing) to a Config: finds, parses, checks, fills, and reports problems as values. */

import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, type ConfigSource, resolveConfig } from './config.ts';
import { type Environment, expandHome } from './environment.ts';
import { check, type Schema } from './file/check.ts';
import { readYaml, type YamlDocument } from './file/document.ts';
import type { ConfigMigration, Form } from './file/migrations.ts';
import { type Issue, MAX_PROBLEMS, type Path, type Problem, pathText } from './file/problem.ts';
import { type Referenced, resolveReferences } from './file/references.ts';
import { MOST_TEXT, TOO_LARGE } from './file/yaml-bounds.ts';
import { type FileConfig, fileSchema } from './sections/index.ts';
import { type Discovery, discover, discoverKeys, type Fetch } from './vendors/discover.ts';

export type { Fetch } from './vendors/discover.ts';

export type LoadResult =
  | { readonly ok: true; readonly config: Config; readonly warnings: readonly Problem[] }
  | {
      readonly ok: false;
      readonly problems: readonly Problem[];
      readonly warnings: readonly Problem[];
      /** The file at fault, where there is one. */
      readonly file?: string;
    };

export interface LoadOptions {
  /** `--config FILE`. */
  readonly path?: string;
  readonly environment: Environment;
  /** For finding local servers when no provider is configured; left out: none are looked for. */
  readonly fetch?: Fetch;
  /** The steps from older forms of the file; left out: all there are. */
  readonly migrations?: readonly ConfigMigration[];
}

/** The file of a machine-wide installation. */
export const SYSTEM_CONFIG = '/etc/hopgate/hopgate.yaml';

/**
 * The file that would be loaded: `--config`, `$HOPGATE_CONFIG`, `~/.config/hopgate/hopgate.yaml` (or
 * under `$XDG_CONFIG_HOME`), `/etc/hopgate/hopgate.yaml`. The first two count whether or not they
 * exist. The working directory is not looked at: a gateway must not obey whatever project it is
 * started in.
 */
export function findConfigFile(
  path: string | undefined,
  environment: Environment,
): string | undefined {
  const named = path ?? environment.configPath;
  if (named !== undefined) return expandHome(named, environment.userHome);
  return [userConfig(environment), SYSTEM_CONFIG].find((candidate) => existsSync(candidate));
}

/** Where a user's own file belongs. */
export const userConfig = (environment: Environment): string =>
  join(environment.configHome, 'hopgate', 'hopgate.yaml');

/**
 * The configuration to run with. A file that is named must exist; with no file, or one without
 * providers, providers are discovered (keys in the environment, local servers, else `demo`). Never
 * throws.
 */
export async function loadConfig(options: LoadOptions): Promise<LoadResult> {
  const { environment } = options;
  const file = findConfigFile(options.path, environment);
  try {
    let text = '';
    if (file !== undefined) {
      const read = readConfigFile(file);
      if (typeof read !== 'string') return { ok: false, problems: [read], warnings: [], file };
      text = read;
    }
    const draft = readDraft(text, file, environment, options.migrations);
    return draft.empty
      ? finish(draft, await discover(environment, options.fetch))
      : finish(draft, undefined);
  } catch (thrown) {
    return defeated(thrown, file);
  }
}

/**
 * The text of a file as a Config; without providers in it, those of the environment and no local
 * servers. `path` is where the text stands, for messages and relative `${file:…}` references. Never
 * throws.
 */
export function parseConfig(
  text: string,
  path: string,
  environment: Environment,
  migrations?: readonly ConfigMigration[],
): LoadResult {
  try {
    const draft = readDraft(text, path, environment, migrations);
    return finish(draft, draft.empty ? discoverKeys(environment) : undefined);
  } catch (thrown) {
    return defeated(thrown, path);
  }
}

/**
 * What this program did not foresee in a file. A gateway that is at work keeps its old configuration.
 * Only the error's kind is told: its words may quote the file, keys included.
 */
function defeated(thrown: unknown, file: string | undefined): LoadResult {
  const kind = thrown instanceof Error ? thrown.name : typeof thrown;
  const message = `cannot be made sense of: the loader failed over it (${kind})`;
  const place = file === undefined ? { line: 0, column: 0 } : { line: 1, column: 1 };
  const problems = [{ path: '', ...place, message }];
  return { ok: false, problems, warnings: [], ...(file === undefined ? {} : { file }) };
}

/** The text of a file, or why there is none. Never throws. */
export function readConfigFile(file: string): string | Problem {
  try {
    // A character of UTF-8 has up to four bytes. What is no file (a pipe) has no size.
    if (statSync(file).size > 4 * MOST_TEXT) {
      return { path: '', line: 0, column: 0, message: TOO_LARGE };
    }
    return readFileSync(file, 'utf8');
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code;
    const message =
      code === 'ENOENT' ? 'there is no such file' : `cannot be read (${code ?? 'unknown'})`;
    return { path: '', line: 0, column: 0, message };
  }
}

interface Draft {
  readonly file: string | undefined;
  readonly document: YamlDocument;
  readonly referenced: Referenced;
  readonly environment: Environment;
  /** A sound file in which no provider is named. */
  readonly empty: boolean;
}

function readDraft(
  text: string,
  file: string | undefined,
  environment: Environment,
  migrations?: readonly ConfigMigration[],
): Draft {
  const document = readYaml(text, migrations);
  const referenced = resolveReferences(document.value, environment, file ?? '');
  const root = referenced.value;
  const mapping = typeof root === 'object' && root !== null && !Array.isArray(root);
  const providers = mapping ? (root as Record<string, unknown>).providers : undefined;
  const empty =
    document.problems.length === 0 &&
    mapping &&
    (providers === undefined ||
      providers === null ||
      (typeof providers === 'object' && Object.keys(providers).length === 0));
  return { file, document, referenced, environment, empty };
}

function finish(draft: Draft, discovered: Discovery | undefined): LoadResult {
  const { document, referenced, file, environment } = draft;
  const place = (issue: Issue): Problem => ({
    path: pathText(issue.path),
    ...(file === undefined ? { line: 0, column: 0 } : document.locate(issue.path, issue.key)),
    message: issue.message,
    ...(issue.suggestion === undefined ? {} : { suggestion: issue.suggestion }),
  });
  const fail = (problems: readonly Problem[], warnings: readonly Issue[]): LoadResult => ({
    ok: false,
    problems,
    warnings: warnings.map(place),
    ...(file === undefined ? {} : { file }),
  });
  if (document.problems.length > 0) return fail(document.problems, []);
  const { form } = document;
  if (form.kind === 'newer') return fail([place(newerForm(form))], []);
  const dated = form.kind === 'older' ? [olderForm(form)] : [];
  const value = discovered === undefined ? referenced.value : merge(referenced.value, discovered);
  const checked = check(fileSchema as Schema, value, referenced.from);
  const found = [...referenced.problems, ...checked.problems];
  const warnings = [...dated, ...referenced.warnings];
  const findings = { problems: [] as Issue[], warnings, origins: referenced.origins };
  const source: ConfigSource = {
    kind: discovered?.kind ?? 'file',
    path: file,
  } as ConfigSource;
  if (found.length > 0) {
    const more = furtherProblems(checked.value as FileConfig, source, environment, found);
    return fail(inOrder([...found, ...more].slice(0, MAX_PROBLEMS).map(place)), warnings);
  }
  const config = resolveConfig(checked.value as FileConfig, source, environment, findings);
  return findings.problems.length > 0
    ? fail(inOrder(findings.problems.slice(0, MAX_PROBLEMS).map(place)), findings.warnings)
    : { ok: true, config, warnings: inOrder(findings.warnings.map(place)) };
}

/**
 * What is wrong beside what does not fit the schema, so that a file is mended in one round. Where too
 * little of it is left to tell, that is left out, as is everything about a part that has a problem already.
 */
function furtherProblems(
  value: FileConfig,
  source: ConfigSource,
  environment: Environment,
  found: readonly Issue[],
): readonly Issue[] {
  if (found.length >= MAX_PROBLEMS) return [];
  // Without their providers all routes would be to blame.
  const unnamed = ({ path, suggestion }: Issue) =>
    path.length === 1 && (path[0] === 'providers' || suggestion === 'providers');
  if (found.some(unnamed)) return [];
  const findings = { problems: [] as Issue[], warnings: [] as Issue[] };
  try {
    resolveConfig(value, source, environment, findings);
  } catch {
    // A part that did not fit is missing in the value.
  }
  const told = found.map(({ path }) => path);
  return findings.problems.filter(({ path }) => !told.some((other) => areRelated(path, other)));
}

/** One path leads to the other, or to its neighbour. */
function areRelated(a: Path, b: Path): boolean {
  const shared = Math.min(a.length, Math.max(1, b.length - 1));
  return a.slice(0, shared).every((step, i) => step === b[i]);
}

/** A file that a newer program wrote: its other keys may mean anything, so nothing else is said of it. */
const newerForm = ({ version, known }: Form & { kind: 'newer' }): Issue => ({
  path: ['version'],
  message: `this file is written for a newer hopgate (version ${version}, this one reads ${known}): use that one, or bring the file back`,
});

const olderForm = ({ from, to, words }: Form & { kind: 'older' }): Issue => ({
  path: ['version'],
  message: `this file has the form of version ${from} and is read as version ${to} (${words.join('; ')}): "hopgate migrate" brings it up to date and keeps a copy`,
});

/**
 * What was found takes the place of `providers`, and of `routes` where the file has none. With nothing
 * set up, a web search that a client declares is answered from the manual: no key, no network.
 */
function merge(value: unknown, discovered: Discovery): unknown {
  const own = value as Record<string, unknown>;
  const routed = Array.isArray(own.routes) && own.routes.length > 0;
  return {
    ...own,
    providers: discovered.providers,
    ...(routed ? {} : { routes: discovered.routes }),
    server_tools: withSearch(own.server_tools),
  };
}

const MANUAL = { engines: [{ type: 'docs' }] } as const;

/** The file's server tools, with a web search where it names none; what is no mapping is left to the check. */
function withSearch(tools: unknown): unknown {
  if (tools === undefined || tools === null) return { web_search: MANUAL };
  if (typeof tools !== 'object' || Array.isArray(tools) || 'web_search' in tools) return tools;
  return { ...tools, web_search: MANUAL };
}

/** In the order of the file, each once. */
function inOrder(problems: readonly Problem[]): readonly Problem[] {
  const unique = new Map(
    problems.map((problem) => [`${problem.path}\0${problem.message}`, problem]),
  );
  return [...unique.values()].toSorted((a, b) => a.line - b.line || a.column - b.column);
}
