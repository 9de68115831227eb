import { withoutTrailing } from '../../../lib/text/trim-end.ts';
import type { Environment } from '../../environment.ts';
import type { Findings, Path } from '../../file/problem.ts';
import {
  choice,
  closed,
  count,
  credential,
  either,
  flag,
  keyFromEnvironment,
  list,
  named,
  number,
  oneOrMore,
  type ProgramForm,
  seconds,
  string,
  text,
} from '../../file/schema.ts';
import type { Secret } from '../../secret.ts';
import { checkTarget, type ProviderNames } from '../targets.ts';

export const SEARCH_ENGINES = [
  'searxng',
  'tavily',
  'brave',
  'exa',
  'serper',
  'jina',
  'zhipu',
  'duckduckgo',
  'model',
  // The manual inside the program.
  'docs',
] as const;
export type SearchEngineType = (typeof SEARCH_ENGINES)[number];

const engine = closed('A search engine.', {
  type: choice(SEARCH_ENGINES, 'The kind of engine; docs = this manual.'),
  name: text('A name for logs.').optional('its type'),
  base_url: string('Its address.', { pattern: '^https?://.+$' })
    .reads((url) => withoutTrailing(url, '/'))
    .optional("the vendor's address; searxng needs one"),
  keys: oneOrMore(credential('A key.'), 'Keys, used in turn.').optional(
    'the usual environment variable of the engine',
  ),
  target: text(
    'For the type model: the provider/model that searches with its own hosted tool.',
  ).optional('none'),
  options: named(
    either([string(), number(), flag()]),
    "Further parameters of the engine's API.",
  ).byDefault({}),
});

export const webSearch = closed('Web search for models that have none.', {
  inject: choice(
    ['force', 'selective', 'declared'],
    'When the tool is offered: always, if the request seems to need it, or if the client declared it.',
  ).byDefault('declared'),
  engines: list(engine, 'Engines in fallback order.').byDefault([]),
  max_results: count('Results handed to the model.', 1).byDefault(8),
  timeout: seconds('Seconds for one search.').byDefault(15),
});

type OwnEngine = ProgramForm<typeof engine>;

export interface SearchEngine extends OwnEngine {
  readonly name: string;
  readonly keys: readonly Secret[];
}

export interface WebSearchConfig extends Omit<ProgramForm<typeof webSearch>, 'engines'> {
  /** In fallback order. */
  readonly engines: readonly SearchEngine[];
}

/** Where the engines' keys usually stand. */
const ENGINE_VARIABLES: Readonly<Partial<Record<SearchEngineType, readonly string[]>>> = {
  tavily: ['TAVILY_API_KEY'],
  brave: ['BRAVE_API_KEY', 'BRAVE_SEARCH_API_KEY'],
  exa: ['EXA_API_KEY'],
  serper: ['SERPER_API_KEY'],
  jina: ['JINA_API_KEY'],
  zhipu: ['ZHIPU_API_KEY', 'ZHIPUAI_API_KEY', 'ZAI_API_KEY'],
};
const NEEDS_KEY = new Set<SearchEngineType>(['tavily', 'brave', 'exa', 'serper', 'zhipu']);

/** @param path of `web_search` in the file */
export const resolveWebSearch = (
  own: ProgramForm<typeof webSearch>,
  path: Path,
  providers: ProviderNames,
  environment: Environment,
  findings: Findings,
): WebSearchConfig => ({
  ...own,
  engines: own.engines.map((one, index) =>
    resolveEngine(one, [...path, 'engines', index], providers, environment, findings),
  ),
});

function resolveEngine(
  own: OwnEngine,
  path: Path,
  providers: ProviderNames,
  environment: Environment,
  findings: Findings,
): SearchEngine {
  const { type, target } = own;
  if (type === 'searxng' && own.baseUrl === undefined) {
    findings.problems.push({ path, message: 'searxng needs the key "base_url"' });
  }
  if (type === 'model' && target === undefined) {
    findings.problems.push({ path, message: 'type model needs the key "target"' });
  } else if (type === 'model' && target !== undefined) {
    checkTarget(target, [...path, 'target'], providers, findings);
  }
  const variables = own.keys === undefined ? (ENGINE_VARIABLES[type] ?? []) : [];
  const usual = keyFromEnvironment(variables, { path, environment, findings });
  const keys = own.keys ?? (usual === undefined ? [] : [usual]);
  if (keys.length === 0 && NEEDS_KEY.has(type)) {
    findings.warnings.push({ path, message: `${type} has no key` });
  }
  return { ...own, name: own.name ?? type, keys };
}
