/** What a search engine is: a request to build and an answer to read, without I/O of its own. */

import type { Json, JsonObject } from '../../../../lib/json/json.ts';
import { ToolError } from '../../tool.ts';

export type Recency = 'day' | 'week' | 'month' | 'year';

export interface SearchQuery {
  readonly query: string;
  readonly count: number;
  readonly recency?: Recency;
  /** Host names without scheme; results elsewhere are dropped whatever the engine does. */
  readonly allowedDomains?: readonly string[];
  readonly blockedDomains?: readonly string[];
  /** ISO 3166-1 alpha-2, lower case. */
  readonly country?: string;
  /** ISO 8601 of this moment, for engines that want a date. */
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
  /** An answer of the engine's own. */
  readonly summary?: string;
}

export interface EngineRequest {
  readonly url: string;
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What the configuration says of one engine. */
export interface EngineSettings {
  /** Without a trailing slash. */
  readonly baseUrl: string;
  /** '' where none is needed. */
  readonly key: string;
  /** Further parameters of the engine's API, sent as they are. */
  readonly options: JsonObject;
}

/** An engine behind HTTP, as data and two pure functions. */
export interface HttpEngine {
  readonly type: string;
  /** Left out: the configuration must name one. */
  readonly baseUrl?: string;
  readonly needsKey: boolean;
  request(query: SearchQuery, settings: EngineSettings): EngineRequest;
  /**
   * @param body JSON, or text for an engine that answers with a page
   * @throws ToolError where the answer says in its body that the search failed
   */
  read(body: Json, query: SearchQuery): SearchResults;
  /** The answer is a page, not JSON. */
  readonly html?: boolean;
  /** Statuses that look like success and are none (DuckDuckGo: 202). */
  readonly refusals?: readonly number[];
}

export const JSON_HEADERS = {
  accept: 'application/json',
  'content-type': 'application/json',
} as const;

/** A POST with a JSON body; `options` of the configuration win over what is built here. */
export function post(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: Readonly<Record<string, Json | undefined>>,
  options: JsonObject,
): EngineRequest {
  return {
    url,
    method: 'POST',
    headers: { ...JSON_HEADERS, ...headers },
    body: JSON.stringify({ ...body, ...options }),
  };
}

/** A GET with a query string; undefined members are left out, `options` win. */
export function get(
  url: string,
  headers: Readonly<Record<string, string>>,
  params: Readonly<Record<string, string | number | undefined>>,
  options: JsonObject,
): EngineRequest {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries({ ...params, ...options })) {
    if (value !== undefined && value !== null) search.set(key, String(value));
  }
  return {
    url: `${url}?${search}`,
    method: 'GET',
    headers: { accept: 'application/json', ...headers },
  };
}

/** The day that lies a recency before `now`, `YYYY-MM-DD`. */
export function since(recency: Recency, now: string): string {
  const days = { day: 1, week: 7, month: 31, year: 366 }[recency];
  return new Date(Date.parse(now) - days * 86_400_000).toISOString().slice(0, 10);
}

/** `query (site:a OR site:b) -site:c`, for engines whose only filter is their syntax. */
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

/** Why an engine said no, by its status. */
export function refusalError(engine: string, status: number): ToolError {
  if (status === 429 || status === 432 || status === 202) {
    return new ToolError(`${engine}: too many requests.`, {
      code: 'too_many_requests',
      retryable: true,
    });
  }
  const words = status === 401 || status === 403 ? 'the key was refused' : `HTTP ${status}`;
  return new ToolError(`${engine}: ${words}.`, { retryable: status >= 500 });
}
