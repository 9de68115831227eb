/** Loads the configuration: finds the file, parses and checks it, fills it in, and returns problems as values. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readNamedFile, type UnreadableFile } from '../lib/text/named-file.ts';
import { type Config, type ConfigSource, resolveConfig } from './config.ts';
import { type Environment, expandHome } from './environment.ts';
import { check } from './file/check.ts';
import { readYaml, type YamlDocument } from './file/document.ts';
import type { ConfigMigration, Form } from './file/migrations.ts';
import { type Issue, MAX_PROBLEMS, type Path, type Problem, pathText } from './file/problem.ts';
import { type Referenced, resolveReferences } from './file/references.ts';
import type { FileForm } from './file/schema.ts';
import { MAX_TEXT, TOO_LARGE } from './file/yaml-bounds.ts';
import { followModels } from './models/model-facts.ts';
import { fileSchema } from './sections/index.ts';
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
  /** Finds local servers when no provider is configured; left out: none are searched for. */
  readonly fetch?: Fetch;
  /** The migrations from older versions of the file; left out: all of them. */
  readonly migrations?: readonly ConfigMigration[];
}

/** The file of a machine-wide installation. */
export const SYSTEM_CONFIG = '/etc/hopgate/hopgate.yaml';

/**
 * The file that would be loaded: `--config`, `$HOPGATE_CONFIG`, `~/.config/hopgate/hopgate.yaml` (or
 * under `$XDG_CONFIG_HOME`), `/etc/hopgate/hopgate.yaml`. The first two count whether or not they
 * exist. A file in the working directory is ignored: the gateway may be started in any project.
 */
export function findConfigFile(
  path: string | undefined,
  environment: Environment,
): string | undefined {
  const named = path ?? environment.configPath;
  if (named !== undefined) return expandHome(named, environment.userHome);
  return [userConfig(environment), SYSTEM_CONFIG].find((candidate) => existsSync(candidate));
}

/** The path of a user's own file. */
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
    followModels(environment.home);
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
    return loaderFailed(thrown, file);
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
    return loaderFailed(thrown, path);
  }
}

/**
 * The result for an error that the loader does not expect; a running gateway keeps its old
 * configuration. Gives only the error's kind: its message may quote the file, keys included.
 */
function loaderFailed(thrown: unknown, file: string | undefined): LoadResult {
  const kind = thrown instanceof Error ? thrown.name : typeof thrown;
  const message = `cannot be read: the loader failed (${kind})`;
  const place = file === undefined ? { line: 0, column: 0 } : { line: 1, column: 1 };
  const problems = [{ path: '', ...place, message }];
  return { ok: false, problems, warnings: [], file };
}

/** The text of a file, or why there is none. Never throws. */
export function readConfigFile(file: string): string | Problem {
  const problem = (message: string): Problem => ({ path: '', line: 0, column: 0, message });
  try {
    // A character of UTF-8 has up to four bytes.
    const text = readNamedFile(file, 4 * MAX_TEXT);
    return text.includes('\0') ? problem('is not UTF-8: save it in that encoding') : text;
  } catch (thrown) {
    const { code, message } = thrown as UnreadableFile;
    if (code === 'EFBIG') return problem(TOO_LARGE);
    return problem(code === 'ENOENT' ? 'there is no such file' : message);
  }
}

/** A file that is parsed and has its references replaced, but is not checked. */
interface Draft {
  readonly file: string | undefined;
  readonly document: YamlDocument;
  readonly referenced: Referenced;
  readonly environment: Environment;
  /** A valid file that names no provider. */
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
  const value = discovered === undefined ? referenced.value : merge(referenced.value, discovered);
  const located = (issue: Issue): Problem => {
    const path = asWritten(issue.path, value);
    return {
      path: pathText(path),
      ...(file === undefined ? { line: 0, column: 0 } : document.locate(path, issue.key)),
      message: issue.message,
      suggestion: issue.suggestion,
      environment: issue.environment,
    };
  };
  const fail = (problems: readonly Problem[], warnings: readonly Issue[]): LoadResult => ({
    ok: false,
    problems,
    warnings: warnings.map(located),
    file,
  });
  if (document.problems.length > 0) return fail(document.problems, []);
  const { form } = document;
  if (form.kind === 'newer') return fail([located(newerForm(form))], []);
  const outdated = form.kind === 'older' ? [olderForm(form)] : [];
  const checked = check(fileSchema, value, referenced.from);
  const found = [...referenced.problems, ...checked.problems];
  const warnings = [...outdated, ...referenced.warnings];
  const findings = { problems: [] as Issue[], warnings, origins: referenced.origins };
  const source = { kind: discovered?.kind ?? 'file', path: file } as ConfigSource;
  const written = checked.value as FileForm<typeof fileSchema>;
  if (found.length > 0) {
    const more = furtherProblems(written, source, environment, found);
    return fail(inOrder([...found, ...more].slice(0, MAX_PROBLEMS).map(located)), warnings);
  }
  const config = resolveConfig(written, source, environment, findings);
  return findings.problems.length > 0
    ? fail(inOrder(findings.problems.slice(0, MAX_PROBLEMS).map(located)), findings.warnings)
    : { ok: true, config, warnings: inOrder(findings.warnings.map(located)) };
}

/**
 * Problems that the sections find in a file that does not fit the schema, so that a user can correct
 * everything at once. Without those of a part that has a problem already.
 */
function furtherProblems(
  value: FileForm<typeof fileSchema>,
  source: ConfigSource,
  environment: Environment,
  found: readonly Issue[],
): readonly Issue[] {
  if (found.length >= MAX_PROBLEMS) return [];
  // Without the providers, every route would name an unknown one.
  const unnamed = ({ path, suggestion }: Issue) =>
    path.length === 1 && (path[0] === 'providers' || suggestion === 'providers');
  if (found.some(unnamed)) return [];
  const findings = { problems: [] as Issue[], warnings: [] as Issue[] };
  try {
    resolveConfig(value, source, environment, findings);
  } catch {
    // A part that does not fit is missing in the value.
  }
  const known = found.map(({ path }) => path);
  return findings.problems.filter(({ path }) => !known.some((other) => areRelated(path, other)));
}

/** The path in the file: where a list may also be written as its only item, there is no position in it. */
function asWritten(path: Path, root: unknown): Path {
  let value = root;
  return path.filter((step) => {
    if (typeof step === 'number' && !Array.isArray(value)) return false;
    value = (value as Readonly<Record<string, unknown>> | undefined)?.[step];
    return true;
  });
}

/** Whether one path is a parent of the other or of its neighbour. */
function areRelated(a: Path, b: Path): boolean {
  const shared = Math.min(a.length, Math.max(1, b.length - 1));
  return a.slice(0, shared).every((step, i) => step === b[i]);
}

/** The only problem reported for a file of a newer version: its other keys may mean anything. */
const newerForm = ({ version, known }: Form & { kind: 'newer' }): Issue => ({
  path: ['version'],
  message: `this file is written for a newer hopgate (version ${version}, this one reads ${known}): use that one, or bring the file back`,
});

const olderForm = ({ from, to, changes }: Form & { kind: 'older' }): Issue => ({
  path: ['version'],
  message: `this file has the form of version ${from} and is read as version ${to} (${changes.join('; ')}): "hopgate migrate" brings it up to date and keeps a copy`,
});

/**
 * The file with the discovered providers, and with the discovered routes where it has none. A web search
 * that a client declares then searches the manual, which needs no key and no network.
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

/** The file's server tools, with a web search where it names none. A value of a wrong type is left to the check. */
function withSearch(tools: unknown): unknown {
  if (tools === undefined || tools === null) return { web_search: MANUAL };
  if (typeof tools !== 'object' || Array.isArray(tools) || 'web_search' in tools) return tools;
  return { ...tools, web_search: MANUAL };
}

/** The problems in the order of the file, each once. */
function inOrder(problems: readonly Problem[]): readonly Problem[] {
  const unique = new Map(
    problems.map((problem) => [`${problem.path}\0${problem.message}`, problem]),
  );
  return [...unique.values()].toSorted((a, b) => a.line - b.line || a.column - b.column);
}
