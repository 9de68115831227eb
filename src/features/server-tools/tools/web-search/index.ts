/** The server tool `web_search`: tries engines in order until one finds something. */

import { isObject, type JsonObject } from '../../../../lib/json/json.ts';
import { withoutTrailing } from '../../../../lib/text/trim-end.ts';
import { renderHits } from '../../citations/sources.ts';
import {
  failedOutcome,
  type InjectMode,
  type ServerTool,
  type ToolContext,
  ToolError,
  type ToolOutcome,
} from '../../tool.ts';
import type { Recency, SearchHit, SearchQuery, SearchResults } from './engine.ts';
import { type Engine, type EngineConfig, type EngineServices, makeEngine } from './run-engine.ts';
import { wantsSearch } from './wants-search.ts';

export interface WebSearchOptions {
  readonly inject: InjectMode;
  /** In fallback order; the first is the default. */
  readonly engines: readonly EngineConfig[];
  /** Results that the model gets. */
  readonly maxResults: number;
  /** Milliseconds for one search, all engines together. */
  readonly timeoutMs: number;
}

const RECENCIES: readonly Recency[] = ['day', 'week', 'month', 'year'];
const QUERY_CHARACTERS = 1000;
/** Results of one search at most. */
const MAX_RESULTS = 20;

/** @throws Error when an engine's configuration cannot work */
export function webSearch(options: WebSearchOptions, services: EngineServices): ServerTool {
  const engines = options.engines.map((config) => makeEngine(config, services));
  const names = engines.map(({ name }) => name);
  return {
    name: 'web_search',
    aliases: ['google_search', 'internet_search'],
    hosted: 'web_search',
    description:
      'Searches the web. Use it for current events and for facts that may have changed. Returns numbered results with title, URL and snippet.',
    schema: {
      type: 'object',
      properties: {
        query: { type: 'string', description: 'What to search for.' },
        recency: { type: 'string', enum: RECENCIES, description: 'Only results of the last …' },
        count: { type: 'integer', minimum: 1, maximum: MAX_RESULTS },
        ...(names.length > 1 ? { engine: { type: 'string', enum: names } } : {}),
      },
      required: ['query'],
    },
    limits: { timeoutMs: options.timeoutMs },
    inject: options.inject,
    wanted: wantsSearch,
    async run(args, context) {
      const query = readQuery(args, context, options.maxResults);
      const requested = typeof args.engine === 'string' ? args.engine : undefined;
      return search(query, fallbackOrder(engines, requested), context);
    },
  };
}

/** The requested engine, then the others in their configured order. */
const fallbackOrder = (
  engines: readonly Engine[],
  requested: string | undefined,
): readonly Engine[] => [
  ...engines.filter(({ name }) => name === requested),
  ...engines.filter(({ name }) => name !== requested),
];

/** @throws ToolError with an error code of the Messages protocol */
function readQuery(args: JsonObject, { options }: ToolContext, most: number): SearchQuery {
  const first = Array.isArray(args.queries) ? args.queries[0] : undefined;
  const candidate = [args.query, args.q, first].find((value) => typeof value === 'string');
  const query = typeof candidate === 'string' ? candidate.trim() : '';
  if (query === '') {
    throw new ToolError('`query` is missing.', { code: 'invalid_tool_input', retryable: true });
  }
  if (query.length > QUERY_CHARACTERS) {
    throw new ToolError('`query` is too long.', { code: 'query_too_long', retryable: true });
  }
  const recency = RECENCIES.find((one) => one === args.recency);
  const count = typeof args.count === 'number' && args.count >= 1 ? Math.floor(args.count) : most;
  const allowed =
    domains(options.allowed_domains) ?? domains(inFilters(options, 'allowed_domains'));
  const blocked =
    domains(options.blocked_domains) ?? domains(inFilters(options, 'blocked_domains'));
  const country = countryOf(options);
  return {
    query,
    count: Math.min(count, most, MAX_RESULTS),
    ...(recency ? { recency } : {}),
    ...(allowed ? { allowedDomains: allowed } : {}),
    ...(blocked ? { blockedDomains: blocked } : {}),
    ...(country ? { country } : {}),
    now: new Date().toISOString(),
  };
}

const inFilters = ({ filters }: JsonObject, key: string) =>
  isObject(filters) ? filters[key] : undefined;

function domains(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const rules = value.filter((rule): rule is string => typeof rule === 'string' && rule !== '');
  return rules.length === 0 ? undefined : rules.map((rule) => rule.trim());
}

/** The country of `user_location`, which Chat nests in `approximate`. */
function countryOf({ user_location: place }: JsonObject): string | undefined {
  if (!isObject(place)) return undefined;
  const { country } = isObject(place.approximate) ? place.approximate : place;
  return typeof country === 'string' && /^[a-z]{2}$/i.test(country)
    ? country.toLowerCase()
    : undefined;
}

async function search(
  query: SearchQuery,
  engines: readonly Engine[],
  context: ToolContext,
): Promise<ToolOutcome> {
  const tried: JsonObject[] = [];
  let failure: ToolError | undefined;
  let answered: string | undefined;
  // Engines filter by host; paths are checked here.
  const hosts = (rules?: readonly string[]) => rules?.map((rule) => readDomain(rule).host);
  const narrowed = {
    ...query,
    allowedDomains: hosts(query.allowedDomains),
    // A rule with a path must not block its whole host.
    blockedDomains: hosts(query.blockedDomains?.filter((rule) => readDomain(rule).path === '')),
  };
  for (const engine of engines) {
    const started = performance.now();
    let found: SearchResults | undefined;
    let thrown: ToolError | undefined;
    try {
      found = await engine.search(narrowed, context.signal, context.payer);
    } catch (error) {
      if (context.signal.aborted) throw context.signal.reason;
      thrown = error instanceof ToolError ? error : new ToolError(`${engine.name}: failed.`);
      failure = thrown;
    }
    const hits = found === undefined ? [] : filterHits(found.hits, query);
    tried.push({
      engine: engine.name,
      ms: Math.round(performance.now() - started),
      hits: hits.length,
      ...(thrown ? { error: thrown.message } : {}),
    });
    if (found === undefined) continue;
    if (hits.length === 0 && !isAnswer(found, query)) {
      answered ??= engine.name;
      continue;
    }
    return outcome(query, engine.name, hits, found.summary, tried, context);
  }
  // Finding nothing is an answer; the search fails only where no engine answered.
  if (answered !== undefined) return outcome(query, answered, [], undefined, tried, context);
  const message = failure?.message ?? 'No search engine is configured.';
  return failedOutcome('web_search', message, {
    retryable: failure?.retryable ?? false,
    code: failure?.code ?? 'unavailable',
    log: { query: query.query, engines: tried },
  });
}

/** A summary without hits is an answer, unless only certain domains are allowed. */
const isAnswer = ({ summary }: SearchResults, { allowedDomains }: SearchQuery): boolean =>
  summary !== undefined && summary !== '' && allowedDomains === undefined;

function outcome(
  { query }: SearchQuery,
  engine: string,
  hits: readonly SearchHit[],
  summary: string | undefined,
  tried: readonly JsonObject[],
  { wantsCitations }: ToolContext,
): ToolOutcome {
  const sources = hits.map(({ title, url, snippet, published }) => ({
    title,
    url,
    text: snippet || undefined,
    published,
  }));
  return {
    ok: true,
    payload: { query, engine, summary: summary ?? '', hits: hits.map((hit) => ({ ...hit })) },
    text: (first) =>
      renderHits({
        query,
        ...(summary ? { summary } : {}),
        sources: sources.map((source, at) => ({ ...source, n: first + at })),
        cite: wantsCitations === true && sources.length > 0,
      }),
    sources,
    log: { query, engine, hits: hits.length, engines: tried },
  };
}

/** Reads a domain rule as clients write it: `example.com`, `https://docs.example.com/api`. */
function readDomain(rule: string): { readonly host: string; readonly path: string } {
  const bare = rule
    .trim()
    .toLowerCase()
    .replace(/^[a-z]+:\/\//, '')
    .replace(/^\*\./, '');
  const slash = bare.indexOf('/');
  return slash < 0
    ? { host: bare, path: '' }
    : { host: bare.slice(0, slash), path: withoutTrailing(bare.slice(slash), '/') };
}

/** Is the page under the rule's domain (or a subdomain) and path? */
export function liesUnder(url: string, rule: string): boolean {
  if (!URL.canParse(url)) return false;
  const { hostname, pathname } = new URL(url);
  const { host, path } = readDomain(rule);
  if (host === '') return false;
  const under = hostname === host || hostname.endsWith(`.${host}`);
  return under && (path === '' || pathname === path || pathname.startsWith(`${path}/`));
}

export function filterHits(hits: readonly SearchHit[], query: SearchQuery): readonly SearchHit[] {
  const { allowedDomains = [], blockedDomains = [], count } = query;
  const seen = new Set<string>();
  return hits
    .filter(({ url }) => {
      if (allowedDomains.length > 0 && !allowedDomains.some((rule) => liesUnder(url, rule))) {
        return false;
      }
      if (blockedDomains.some((rule) => liesUnder(url, rule))) return false;
      const same = url.split('#', 1)[0]!.replace(/\/$/, '');
      if (seen.has(same)) return false;
      seen.add(same);
      return true;
    })
    .slice(0, count);
}
