/** Decodes and encodes calls and results of hosted tools, and citations, for Messages. */

import type { Notes } from '../../conversation/notes.ts';
import type { Block, Citation, ToolResultBlock } from '../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { objects, ownWire, text, wireOf } from './wire.ts';

/** `web_search_tool_result`, `mcp_tool_result`, …, but not `tool_result`. */
export const isHostedResult = (type: string): boolean => type.endsWith('_tool_result');

/**
 * The content of a hosted tool's result. Text stays text; other content, such as search hits, becomes opaque
 * blocks with a readable text.
 */
export function decodeHostedContent(content: Json | undefined): readonly Block[] {
  if (typeof content === 'string') return [{ type: 'text', text: content, wire: wireOf(content) }];
  if (isObject(content)) return [readable(content)];
  return objects(content).map(readable);
}

/** Does a hosted result report that the tool failed? */
export function isHostedError(content: Json | undefined): boolean {
  return isObject(content) && text(content.type)?.endsWith('_error') === true;
}

function readable(value: JsonObject): Block {
  const type = text(value.type) ?? 'unknown';
  if (type === 'text' && typeof value.text === 'string') {
    return { type: 'text', text: value.text, wire: wireOf(value) };
  }
  return {
    type: 'opaque',
    name: type,
    text: textOf(type, value) || undefined,
    wire: wireOf(value),
  };
}

function textOf(type: string, value: JsonObject): string | undefined {
  const code = text(value.error_code);
  if (code !== undefined) return `Error: ${code}`;
  switch (type) {
    case 'web_search_result':
      return lines(value.title, value.url, value.page_age);
    case 'web_fetch_result':
      return lines(value.url, isObject(value.content) ? documentText(value.content) : undefined);
    case 'advisor_result':
      return text(value.text);
    case 'tool_search_tool_search_result':
      return lines(
        ...objects(value.tool_references).map(({ tool_name: name }) => `Found the tool ${name}.`),
      );
    default:
      // code_execution_result, bash_code_execution_result, text_editor_code_execution_*_result
      return lines(
        value.stdout,
        value.stderr,
        Array.isArray(value.lines) ? value.lines.join('\n') : undefined,
        value.content,
      );
  }
}

function documentText(document: JsonObject): string | undefined {
  const source = isObject(document.source) ? document.source : {};
  return lines(document.title, source.type === 'text' ? source.data : undefined);
}

const lines = (...parts: readonly (Json | undefined)[]): string =>
  parts.filter((part) => typeof part === 'string' && part !== '').join('\n');

/** Hosted tools whose calls, run by another protocol's vendor or by the gateway, are encoded for Messages clients. */
const ENCODED_HOSTED_TOOLS = ['web_search', 'web_fetch'] as const;
export type EncodedHostedTool = (typeof ENCODED_HOSTED_TOOLS)[number];

export const encodedHostedTool = (name: string): EncodedHostedTool | undefined =>
  ENCODED_HOSTED_TOOLS.find((tool) => tool === name);

/** The `content` of a result block: the results, or an error. */
export function encodeHostedResult(
  tool: EncodedHostedTool,
  result: ToolResultBlock | undefined,
): Json {
  const own = (result?.content ?? []).map(ownWire).filter(isObject);
  if (result?.isError === true) {
    const error = own.find((value) => value.type === `${tool}_tool_result_error`);
    return error ?? { type: `${tool}_tool_result_error`, error_code: 'unavailable' };
  }
  if (tool === 'web_search') return searchResults(result?.content ?? []);
  // A fetch returns one page; without a page it failed.
  const page = own.find((value) => value.type === `${tool}_result`);
  return page ?? { type: `${tool}_tool_result_error`, error_code: 'unavailable' };
}

export function encodeHostedInput(tool: EncodedHostedTool, input: Json | undefined): JsonObject {
  return tool === 'web_search' ? searchInput(input) : isObject(input) ? input : {};
}

/**
 * The results of a web search that another protocol's vendor or the gateway ran, as `web_search_result` blocks:
 * everything in the result's blocks with a URL. `encrypted_content` must be a string, and only Anthropic can make it.
 */
function searchResults(content: readonly Block[]): readonly JsonObject[] {
  const results: JsonObject[] = [];
  for (const block of content) {
    const own = ownWire(block);
    if (isObject(own) && own.type === 'web_search_result') results.push(own);
    else if (block.wire !== undefined) collect(block.wire.value, results);
  }
  return results;
}

function collect(value: Json, into: JsonObject[]): void {
  if (Array.isArray(value)) {
    for (const item of value) collect(item, into);
    return;
  }
  if (!isObject(value)) return;
  const url = text(value.url) ?? text(value.link);
  if (url === undefined) {
    for (const key of ['action', 'sources', 'results']) {
      if (value[key] !== undefined) collect(value[key], into);
    }
    return;
  }
  into.push({
    type: 'web_search_result',
    title: text(value.title) ?? url,
    url,
    encrypted_content: text(value.encrypted_content) ?? '',
    page_age: text(value.page_age) ?? null,
  });
}

/** Decodes a citation without its offsets, which in Messages count within the source, not the answer. */
export function decodeCitation(value: JsonObject): Citation {
  return {
    url: text(value.url) ?? text(value.source),
    title: text(value.title) ?? text(value.document_title),
    citedText: text(value.cited_text),
    wire: wireOf(value),
  };
}

/**
 * Encodes a citation. Undefined, with a note, for another protocol's source without a URL (a file at the
 * vendor), which Messages cannot express.
 * @param text the cited block's text, if it is known
 */
export function encodeCitation(
  citation: Citation,
  notes: Notes,
  text?: string,
): JsonObject | undefined {
  const own = ownWire(citation);
  if (isObject(own)) return own;
  const { start, end, url } = citation;
  if (url === undefined || url === '') {
    notes.add('citation_dropped', 'content', citation.title);
    return undefined;
  }
  const span =
    text !== undefined && start !== undefined && end !== undefined ? text.slice(start, end) : '';
  return {
    type: 'web_search_result_location',
    cited_text: citation.citedText ?? span,
    url,
    // Its clients want a text (@ai-sdk/anthropic refuses the whole answer else).
    title: citation.title ?? url,
    encrypted_index: '',
  };
}

/** A `srvtoolu_…` id for a hosted call. */
export function hostedCallId(id: string): string {
  return /^srvtoolu_[a-zA-Z0-9_]+$/.test(id) ? id : `srvtoolu_${id.replace(/[^a-zA-Z0-9_]/g, '_')}`;
}

/** The input of a web search in the form of Messages: `{"query": …}`. */
function searchInput(input: Json | undefined): JsonObject {
  if (!isObject(input)) return { query: text(input) ?? '' };
  if (typeof input.query === 'string') return { query: input.query };
  if (isObject(input.action)) return searchInput(input.action);
  const first = Array.isArray(input.queries) ? input.queries[0] : undefined;
  return { query: text(first) ?? text(input.url) ?? '' };
}
