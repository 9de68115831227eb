/** Makes a configured search engine ready to use: HTTP, a model, or local pages. */

import type { Payer } from '../../../../conversation/account/payer.ts';
import { readUpTo } from '../../../../lib/http/read-up-to.ts';
import { type Json, type JsonObject, parseJson } from '../../../../lib/json/json.ts';
import { searchWords } from '../../../../lib/text/full-text.ts';
import { withoutTrailing } from '../../../../lib/text/trim-end.ts';
import { ToolError } from '../../tool.ts';
import { fetchWithin } from '../configured-tool.ts';
import {
  type HttpEngine,
  refusalError,
  requestOf,
  type SearchQuery,
  type SearchResults,
} from './engine.ts';
import { brave } from './engines/brave.ts';
import { duckduckgo } from './engines/duckduckgo.ts';
import { exa } from './engines/exa.ts';
import { jina } from './engines/jina.ts';
import { searxng } from './engines/searxng.ts';
import { serper } from './engines/serper.ts';
import { tavily } from './engines/tavily.ts';
import { zhipu } from './engines/zhipu.ts';
import { type AskSearchModel, modelResults, searchPrompt } from './model-search.ts';

export interface Engine {
  readonly name: string;
  /** Rejects with a ToolError (or the signal's reason). */
  search(query: SearchQuery, signal: AbortSignal, payer?: Payer): Promise<SearchResults>;
}

/** The configuration of an engine, with secrets in the clear. */
export interface EngineConfig {
  readonly name: string;
  readonly type: string;
  readonly baseUrl?: string;
  /** For `type: model`: the `provider/model` that searches. */
  readonly target?: string;
  /** Used one after another. */
  readonly keys: readonly string[];
  readonly options: JsonObject;
}

export interface EngineServices {
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** For `type: model`: a function that asks the engine's target. */
  readonly askModel?: (engine: EngineConfig) => AskSearchModel | undefined;
  /** For `type: docs`. */
  readonly docs?: DocsIndex;
}

/** No engine's answer is larger. */
const MAX_RESPONSE_BYTES = 8 * 1024 * 1024;

/** @throws Error when the configuration lacks what the engine needs */
export function makeEngine(config: EngineConfig, services: EngineServices): Engine {
  const { name, type } = config;
  if (type === 'model') {
    const askModel = services.askModel?.(config);
    if (askModel === undefined) throw new Error(`Search engine '${name}' has no model to ask.`);
    return {
      name,
      search: async (query, signal, payer) =>
        modelResults(await askModel(searchPrompt(query), signal, payer)),
    };
  }
  if (type === 'docs') {
    const { docs } = services;
    if (docs === undefined) throw new Error(`Search engine '${name}' has no pages to search.`);
    return { name, search: async (query) => searchDocs(docs, query) };
  }
  const engine = HTTP_ENGINES.find((one) => one.type === type);
  if (engine === undefined)
    throw new Error(`Search engine '${name}' is of unknown type '${type}'.`);
  const address = config.baseUrl ?? engine.baseUrl;
  const baseUrl = address && withoutTrailing(address, '/');
  if (baseUrl === undefined) throw new Error(`Search engine '${name}' needs a base_url.`);
  if (engine.needsKey && config.keys.length === 0) {
    throw new Error(`Search engine '${name}' needs a key.`);
  }
  let turn = 0;
  return {
    name,
    search: (query, signal) => {
      const key = config.keys[turn++ % Math.max(1, config.keys.length)] ?? '';
      return searchHttp(engine, query, { baseUrl, key, options: config.options }, services, signal);
    },
  };
}

async function searchHttp(
  engine: HttpEngine,
  query: SearchQuery,
  settings: { baseUrl: string; key: string; options: JsonObject },
  services: EngineServices,
  signal: AbortSignal,
): Promise<SearchResults> {
  const { url, ...init } = requestOf(engine, query, settings);
  let response: Response;
  let text: string;
  try {
    const asked = { ...init, signal };
    response = await fetchWithin(engine.type, new URL(url), asked, services.fetch);
    text = await boundedText(response);
  } catch (thrown) {
    if (signal.aborted) throw signal.reason;
    if (thrown instanceof ToolError) throw thrown;
    // The error's message may contain the address with the key.
    throw new ToolError(`${engine.type}: cannot be reached.`, { retryable: true, cause: thrown });
  }
  if (!response.ok || engine.refusals?.includes(response.status)) {
    throw refusalError(engine, response.status, settings.key !== '');
  }
  if (engine.html === true) return engine.read(text, query);
  let body: Json;
  try {
    body = parseJson(text);
  } catch {
    throw new ToolError(`${engine.type}: the answer is not JSON.`);
  }
  return engine.read(body, query);
}

async function boundedText({ body }: Response): Promise<string> {
  const { bytes, truncated } = await readUpTo(body, MAX_RESPONSE_BYTES);
  if (truncated) throw new ToolError('The answer of the search engine is too large.');
  return Buffer.from(bytes).toString();
}

export const HTTP_ENGINES: readonly HttpEngine[] = [
  searxng,
  tavily,
  brave,
  exa,
  serper,
  jina,
  zhipu,
  duckduckgo,
];

export interface DocsPage {
  readonly url: string;
  readonly title: string;
  readonly text: string;
}

/** Anything that finds pages: the manual, an index in memory, or a database. */
export interface DocsIndex {
  search(query: string, count: number): readonly DocsPage[] | Promise<readonly DocsPage[]>;
}

export async function searchDocs(
  index: DocsIndex,
  { query, count }: SearchQuery,
): Promise<SearchResults> {
  const words = searchWords(query);
  const found = await index.search(query, count);
  const hits = found.map(({ url, title, text }) => ({
    url,
    title,
    snippet: passage(text, words),
  }));
  return { hits };
}

const PASSAGE = 600;

/** The part of the text around the first word of the query that it contains. */
function passage(text: string, words: readonly string[]): string {
  const lower = text.toLowerCase();
  const places = words.map((word) => lower.indexOf(word)).filter((at) => at >= 0);
  const start = places.length === 0 ? 0 : Math.max(0, Math.min(...places) - 80);
  const piece = text.slice(start, start + PASSAGE).trim();
  return `${start > 0 ? '…' : ''}${piece}${start + PASSAGE < text.length ? '…' : ''}`;
}
