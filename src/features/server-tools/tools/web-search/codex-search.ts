/** Codex's search endpoint: several queries in one request, one text as the answer. */

import { isObject, type Json, type JsonObject } from '../../../../lib/json/json.ts';
import type { ServerTool, ToolContext } from '../../tool.ts';

/** Queries of one request that are run at most. */
const MAX_QUERIES = 8;

/** A request to `POST /v1/alpha/search`. */
export interface CodexSearch {
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
