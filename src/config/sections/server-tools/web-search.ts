/** The `web_search` of `server_tools`: search engines in fallback order. */

import { type Static, Type } from '@sinclair/typebox';
import { withoutTrailing } from '../../../lib/text/trim-end.ts';
import type { Environment } from '../../environment.ts';
import type { Findings, Path } from '../../file/problem.ts';
import {
  byDefault,
  choice,
  closed,
  count,
  credential,
  listOf,
  ms,
  named,
  oneOrMore,
  optional,
  seconds,
  text,
} from '../../file/schema-types.ts';
import { Secret } from '../../secret.ts';
import { keyFromEnvironment } from '../environment-keys.ts';
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

const engine = closed(
  {
    type: choice(SEARCH_ENGINES, 'What kind of engine; docs = this manual.'),
    name: optional(text('A name for logs.'), 'its type'),
    base_url: optional(
      Type.String({ pattern: '^https?://.+$', description: 'Its address.' }),
      "the vendor's address; searxng needs one",
    ),
    keys: optional(
      oneOrMore(credential('A key.'), 'Keys, used in turn.'),
      'the usual environment variable of the engine',
    ),
    target: optional(
      text('For the type model: the provider/model that searches with its own hosted tool.'),
      'none',
    ),
    options: byDefault(
      named(
        Type.Union([Type.String(), Type.Number(), Type.Boolean()]),
        "Further parameters of the engine's API.",
      ),
      {},
    ),
  },
  'A search engine.',
);

export const webSearch = closed(
  {
    inject: byDefault(
      choice(
        ['force', 'selective', 'declared'],
        'When the tool is offered: always, if the request seems to need it, or if the client declared it.',
      ),
      'declared',
    ),
    engines: byDefault(Type.Array(engine, { description: 'Engines in fallback order.' }), []),
    max_results: byDefault(count('Results handed to the model.', 1), 8),
    timeout: byDefault(seconds('Seconds for one search.'), 15),
  },
  'Web search for models that have none.',
);

export interface SearchEngine {
  readonly name: string;
  readonly type: SearchEngineType;
  readonly baseUrl?: string;
  readonly keys: readonly Secret[];
  /** `type: model`: the provider/model that searches with its own hosted tool. */
  readonly target?: string;
  /** Engine-specific parameters, sent as they are. */
  readonly options: Readonly<Record<string, string | number | boolean>>;
}

export interface WebSearchConfig {
  /** force: always offered; selective: when the request looks like it needs one; declared: when the client declared it. */
  readonly inject: 'force' | 'selective' | 'declared';
  /** In fallback order. */
  readonly engines: readonly SearchEngine[];
  readonly maxResults: number;
  readonly timeoutMs: number;
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
export function resolveWebSearch(
  own: Static<typeof webSearch>,
  path: Path,
  providers: ProviderNames,
  environment: Environment,
  findings: Findings,
): WebSearchConfig {
  return {
    inject: own.inject,
    engines: own.engines.map((one, index) =>
      resolveEngine(one, [...path, 'engines', index], providers, environment, findings),
    ),
    maxResults: own.max_results,
    timeoutMs: ms(own.timeout),
  };
}

function resolveEngine(
  own: Static<typeof engine>,
  path: Path,
  providers: ProviderNames,
  environment: Environment,
  findings: Findings,
): SearchEngine {
  const { type, target } = own;
  if (type === 'searxng' && own.base_url === undefined) {
    findings.problems.push({ path, message: 'searxng needs the key "base_url"' });
  }
  if (type === 'model' && target === undefined) {
    findings.problems.push({ path, message: 'type model needs the key "target"' });
  } else if (type === 'model' && target !== undefined) {
    checkTarget(target, [...path, 'target'], providers, findings);
  }
  const written = listOf(own.keys)?.map((key) => new Secret(key));
  const variables = ENGINE_VARIABLES[type] ?? [];
  const usual =
    written === undefined ? keyFromEnvironment(variables, environment, path, findings) : undefined;
  const keys = written ?? (usual === undefined ? [] : [usual]);
  if (keys.length === 0 && NEEDS_KEY.has(type)) {
    findings.warnings.push({ path, message: `${type} has no key` });
  }
  return {
    name: own.name ?? type,
    type,
    baseUrl: own.base_url && withoutTrailing(own.base_url, '/'),
    keys,
    target,
    options: own.options,
  };
}
