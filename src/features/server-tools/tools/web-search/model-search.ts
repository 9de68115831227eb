/** A model with its own search tool as a search engine: the pages that it cites are the hits. */

import type { Payer } from '../../../../conversation/account/payer.ts';
import type { Reply } from '../../../../conversation/events.ts';
import type { Conversation } from '../../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../../lib/json/json.ts';
import type { ServerTool, ToolContext } from '../../tool.ts';
import type { SearchHit, SearchQuery, SearchResults } from './engine.ts';

/** The model's answer and the pages that it cites. */
export interface ModelAnswer {
  readonly text: string;
  readonly citations: readonly {
    readonly url?: string;
    readonly title?: string;
    readonly citedText?: string;
  }[];
}

/** Sends the prompt to a model with its own search tool declared; rejects with a readable error. */
export type AskSearchModel = (
  prompt: string,
  signal: AbortSignal,
  payer: Payer | undefined,
) => Promise<ModelAnswer>;

export function searchPrompt(search: SearchQuery): string {
  const { query, recency, count, allowedDomains, blockedDomains } = search;
  const rules = [
    recency === undefined ? '' : `Only what was published within the last ${recency}.`,
    allowedDomains?.length ? `Only pages of: ${allowedDomains.join(', ')}.` : '',
    blockedDomains?.length ? `No pages of: ${blockedDomains.join(', ')}.` : '',
  ].filter((rule) => rule !== '');
  return [
    `Search the web for: ${query}`,
    `Report what you find in a few sentences, from at most ${count} sources, and cite each of them.`,
    ...rules,
  ].join('\n');
}

/** The request to the model: the prompt, with the hosted search tool declared. */
export function searchConversation(prompt: string, model: string): Conversation {
  return {
    model,
    system: [],
    turns: [{ role: 'user', blocks: [{ type: 'text', text: prompt }] }],
    tools: [{ type: 'hosted', name: 'web_search', kind: 'web_search', options: {} }],
    settings: { stream: false },
  };
}

/** The text and citations of a reply, followed by the search results that it did not cite. */
export function modelAnswer(reply: Reply): ModelAnswer {
  const text: string[] = [];
  const citations: ModelAnswer['citations'][number][] = [];
  const found: ModelAnswer['citations'][number][] = [];
  for (const block of reply.blocks) {
    if (block.type === 'text') {
      text.push(block.text);
      citations.push(...(block.citations ?? []));
    } else if (block.type === 'tool-result') {
      for (const part of block.content) found.push(...citedPage(part.wire?.value));
    }
  }
  return { text: text.join(''), citations: [...citations, ...found] };
}

function citedPage(value: Json | undefined) {
  if (!isObject(value) || typeof value.url !== 'string') return [];
  return [{ url: value.url, ...(typeof value.title === 'string' ? { title: value.title } : {}) }];
}

/** Links in the text, for models that cite in Markdown. */
const LINK = /\[([^\]]{1,200})\]\((https?:\/\/[^\s)[]{1,2000})\)/g;

/** The citations as hits, one per page; without citations, the links of the text. */
export function modelResults({ text, citations }: ModelAnswer): SearchResults {
  const hits = new Map<string, SearchHit>();
  for (const { url, title, citedText } of citations) {
    if (url === undefined) continue;
    const before = hits.get(url);
    const snippet = [before?.snippet, citedText].filter(Boolean).join(' … ');
    hits.set(url, { title: before?.title ?? title ?? url, url, snippet });
  }
  if (hits.size === 0) {
    for (const [, title, url] of text.matchAll(LINK)) {
      if (url !== undefined && !hits.has(url))
        hits.set(url, { title: title ?? url, url, snippet: '' });
    }
  }
  return { hits: [...hits.values()], summary: text.trim() };
}

/** Queries of one request that are run at most. */
const MAX_QUERIES = 8;

/** A request to `POST /v1/alpha/search`. */
interface CodexSearch {
  readonly queries: readonly string[];
  /** Characters of the answer. */
  readonly limit: number;
}

/**
 * Reads `{id, model, input, commands: {search_query: [{q}]}, settings, max_output_tokens}`; undefined
 * where it contains no query.
 */
export function readCodexSearch(body: Json): CodexSearch | undefined {
  const commands = isObject(body) && isObject(body.commands) ? body.commands : {};
  const entries = Array.isArray(commands.search_query) ? commands.search_query : [];
  const queries = entries.flatMap((entry: Json) => {
    const q = isObject(entry) ? entry.q : entry;
    return typeof q === 'string' && q.trim() !== '' ? [q.trim()] : [];
  });
  if (queries.length === 0) return undefined;
  const tokens = isObject(body) ? body.max_output_tokens : undefined;
  // A token is about four characters long.
  const limit = typeof tokens === 'number' && tokens > 0 ? Math.max(1000, tokens * 4) : 40_000;
  return { queries: queries.slice(0, MAX_QUERIES), limit };
}

/** Runs the queries and answers `{"output": text}`; a search that fails says so in the text. */
export async function answerCodexSearch(
  { queries, limit }: CodexSearch,
  tool: ServerTool,
  context: Omit<ToolContext, 'callId' | 'options'>,
): Promise<JsonObject> {
  let first = 1;
  const outcomes = await Promise.all(
    queries.map(async (query, at) => {
      try {
        return await tool.run({ query }, { ...context, callId: `search_${at}`, options: {} });
      } catch (thrown) {
        const message = thrown instanceof Error ? thrown.message : 'failed';
        return { ok: false, text: `Search failed: ${message}`, sources: undefined };
      }
    }),
  );
  const parts = outcomes.map(({ text, sources }) => {
    const rendered = typeof text === 'string' ? text : text(first);
    first += sources?.length ?? 0;
    return rendered;
  });
  return { output: parts.join('\n\n').slice(0, limit) };
}
