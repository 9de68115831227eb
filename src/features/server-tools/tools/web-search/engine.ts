/** The interface of a search engine behind HTTP: builds requests and reads answers, without I/O. */

import { readEntities } from '../../../../lib/http/html-entities.ts';
import { isObject, type Json, type JsonObject } from '../../../../lib/json/json.ts';
import { ToolError } from '../../tool.ts';

export type Recency = 'day' | 'week' | 'month' | 'year';

export interface SearchQuery {
  readonly query: string;
  readonly count: number;
  readonly recency?: Recency;
  /** Host names without scheme. Results from other hosts are dropped, whatever the engine does. */
  readonly allowedDomains?: readonly string[];
  readonly blockedDomains?: readonly string[];
  /** ISO 3166-1 alpha-2, lower case. */
  readonly country?: string;
  /** The current time in ISO 8601, for engines that take a date. */
  readonly now: string;
}

export interface SearchHit {
  readonly title: string;
  readonly url: string;
  readonly snippet: string;
  readonly published?: string;
}

export interface SearchResults {
  readonly hits: readonly SearchHit[];
  /** The engine's own answer. */
  readonly summary?: string;
}

export interface EngineRequest {
  readonly url: string;
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The configuration of one engine. */
export interface EngineSettings {
  /** Without a trailing slash. */
  readonly baseUrl: string;
  /** '' where none is needed. */
  readonly key: string;
  /** Further parameters of the engine's API, sent as they are. */
  readonly options: JsonObject;
}

/** An engine behind HTTP: data and two pure functions. */
export interface HttpEngine {
  readonly type: string;
  /** Left out: the configuration must name one. */
  readonly baseUrl?: string;
  readonly needsKey: boolean;
  readonly method: 'GET' | 'POST';
  /** Behind the base URL. */
  readonly path: string;
  headers(key: string): Readonly<Record<string, string>>;
  /** The members of the body, of a GET the query string; undefined ones are left out. */
  parameters(query: SearchQuery, baseUrl: string): Readonly<Record<string, unknown>>;
  /**
   * @param body JSON, or text for an engine that answers with a page
   * @throws ToolError where the body reports that the search failed
   */
  read(body: Json, query: SearchQuery): SearchResults;
  /** The answer is an HTML page, not JSON. */
  readonly html?: boolean;
  /** What a status means at this engine, where its usual meaning misleads. */
  readonly refusalHints?: Readonly<Record<number, string>>;
  /** Success statuses that mean a refusal (DuckDuckGo: 202). */
  readonly refusals?: readonly number[];
}

/** The request of a search; `options` of the configuration replace parameters. */
export function requestOf(
  { method, path, headers, parameters }: HttpEngine,
  query: SearchQuery,
  { baseUrl, key, options }: EngineSettings,
): EngineRequest {
  const url = baseUrl + path;
  const accept = { accept: 'application/json' };
  const all = { ...parameters(query, baseUrl), ...options };
  if (method === 'POST') {
    const type = { 'content-type': 'application/json' };
    return {
      url,
      method,
      headers: { ...accept, ...type, ...headers(key) },
      body: JSON.stringify(all),
    };
  }
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(all)) {
    if (value !== undefined && value !== null) search.set(name, String(value));
  }
  return { url: `${url}?${search}`, method, headers: { ...accept, ...headers(key) } };
}

/** The first day of the period before `now`, as `YYYY-MM-DD`. */
export function since(recency: Recency, now: string): string {
  const days = { day: 1, week: 7, month: 31, year: 366 }[recency];
  return new Date(Date.parse(now) - days * 86_400_000).toISOString().slice(0, 10);
}

/** `query (site:a OR site:b) -site:c`, for engines that filter by query syntax only. */
export function withSites({
  query,
  allowedDomains = [],
  blockedDomains = [],
}: SearchQuery): string {
  const wanted = allowedDomains.map((domain) => `site:${domain}`).join(' OR ');
  const group = allowedDomains.length > 1 ? `(${wanted})` : wanted;
  const refused = blockedDomains.map((domain) => `-site:${domain}`);
  return [query, group, ...refused].filter((part) => part !== '').join(' ');
}

export function refusalError(engine: HttpEngine, status: number, hasKey: boolean): ToolError {
  const { type } = engine;
  if (status === 429 || status === 432 || status === 202) {
    return new ToolError(`${type}: too many requests.`, {
      code: 'too_many_requests',
      retryable: true,
    });
  }
  const known = engine.refusalHints?.[status];
  const refused = status === 401 || status === 403;
  const reason = known ?? (refused && hasKey ? 'the key was refused' : `HTTP ${status}`);
  return new ToolError(`${type}: ${reason}.`, { retryable: status >= 500 });
}

export const objectOf = (value: Json | undefined): JsonObject => (isObject(value) ? value : {});

/** The first value that is a string and not blank, trimmed; '' without one. */
export function firstText(...values: readonly (Json | undefined)[]): string {
  for (const value of values) {
    if (typeof value === 'string' && value.trim() !== '') return value.trim();
  }
  return '';
}

/** The strings of a list. */
export const textsOf = (value: Json | undefined): readonly string[] =>
  Array.isArray(value) ? value.filter((text): text is string => typeof text === 'string') : [];

/** Text without markup: tags removed, entities resolved, white space collapsed. */
export function plainText(markup: string): string {
  return readEntities(withoutTags(markup)).replace(/\s+/g, ' ').trim();
}

/** Removes tags; an angle bracket without its counterpart stays. */
function withoutTags(markup: string): string {
  const parts: string[] = [];
  let from = 0;
  for (let at = markup.indexOf('<'); at >= 0; at = markup.indexOf('<', from)) {
    const end = markup.indexOf('>', at);
    if (end < 0) break;
    parts.push(markup.slice(from, at));
    from = end + 1;
  }
  return from === 0 ? markup : parts.join('') + markup.slice(from);
}

/** A list of one hit; empty without a web address. */
export function searchHit(
  url: Json | undefined,
  title: string,
  snippet: string,
  published = '',
): readonly SearchHit[] {
  const address = firstText(url);
  if (!/^https?:\/\//i.test(address)) return [];
  const found = { title: title === '' ? address : title, url: address, snippet };
  return [published === '' ? found : { ...found, published }];
}
