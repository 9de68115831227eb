/** Converts the tools and results of MCP servers: names, schemas, content. Pure. */

import { sourceOfUrl } from '../../../../conversation/media-source.ts';
import type { MediaBlock } from '../../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../../lib/json/json.ts';
import { text as textOf } from '../../../../lib/json/typed-reads.ts';
import { anyExactGlob } from '../../../../lib/text/glob.ts';
import { sha256Hex } from '../../../../lib/text/sha256.ts';
import type { ToolOutcome } from '../../tool.ts';
import { imageType } from '../configured-tool.ts';

/** A tool as its server declares it. */
export interface McpTool {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly inputSchema: JsonObject;
  /** The server says that a repeated call changes nothing further. */
  readonly repeatable?: boolean;
}

/** OpenAI's limit; the others allow more. */
const NAME_LENGTH = 64;
/** Characters of one result that the model gets. */
const MAX_TEXT = 200_000;
/** Characters of a tool's declaration: every request of the model pays for it. */
const MAX_TOOL = 64_000;
/** The same of all tools of a server. */
export const MAX_TOOLS = 1_000_000;
const AUDIO = /^audio\/[\w.+-]+$/;

/**
 * `mcp__<server>__<tool>`. Where that is too long or not legal, it is shortened and gets a hash of the
 * full name, so that a tool always has the same name.
 */
export function mcpToolName(server: string, tool: string): string {
  const plain = `mcp__${server}__${tool}`;
  const legal = plain.replace(/[^a-zA-Z0-9_-]/g, '_');
  if (legal === plain && plain.length <= NAME_LENGTH) return plain;
  const hash = sha256Hex(`${server}\n${tool}`).slice(0, 8);
  return `${legal.slice(0, NAME_LENGTH - 9)}_${hash}`;
}

/** The schema for the model: an object with properties, without its `$schema`. */
export function mcpSchema({ inputSchema }: McpTool): JsonObject {
  const { $schema: _dialect, ...schema } = inputSchema;
  return { ...schema, type: 'object', properties: schema.properties ?? {} };
}

/** Characters of a declaration. */
export const sizeOf = ({ name, title = '', description = '', inputSchema }: McpTool): number =>
  name.length + title.length + description.length + JSON.stringify(inputSchema).length;

/**
 * The tools of a `tools/list` result. Entries that break the schema or are too large are reported and left out; the
 * others can be used.
 */
export function readTools(
  list: Json | undefined,
  skipped: (tool: string, why: string) => void,
): readonly McpTool[] {
  if (!Array.isArray(list)) return [];
  const names = new Set<string>();
  return (list as readonly Json[]).flatMap((entry, at): readonly McpTool[] => {
    const skip = (tool: string, why: string) => {
      skipped(tool.slice(0, 200), why);
      return [];
    };
    const place = `tool ${at + 1} of the list`;
    if (!isObject(entry)) return skip(place, 'it is not an object');
    const { name, title, description, inputSchema, annotations } = entry;
    if (typeof name !== 'string' || name === '') return skip(place, 'it has no name');
    if (!isObject(inputSchema)) return skip(name, 'it has no inputSchema');
    if (inputSchema.type !== 'object') return skip(name, 'its inputSchema lacks "type": "object"');
    if (names.has(name)) return skip(name, 'another tool of the list has its name');
    names.add(name);
    const texts = { title: textOf(title), description: textOf(description) };
    const hints = isObject(annotations) ? annotations : {};
    // https://modelcontextprotocol.io/specification/2025-06-18/schema#toolannotations
    const repeatable = hints.readOnlyHint === true || hints.idempotentHint === true;
    const tool = { name, ...texts, inputSchema, ...(repeatable ? { repeatable } : {}) };
    if (sizeOf(tool) > MAX_TOOL) {
      return skip(name, `its description and schema have more than ${MAX_TOOL} characters`);
    }
    return [tool];
  });
}

/** Does the name match one of the globs, where there are any? Case matters. */
export const isAllowed = (name: string, globs: readonly string[] | undefined): boolean =>
  globs === undefined || anyExactGlob(globs)(name);

/**
 * The outcome of a `tools/call` result.
 * @see https://modelcontextprotocol.io/specification/2025-06-18/server/tools#tool-result
 */
export function mcpOutcome(tool: string, result: JsonObject): ToolOutcome {
  const parts: string[] = [];
  const media: MediaBlock[] = [];
  for (const block of oneOrMore(result.content)) {
    const found =
      typeof block === 'string' ? { text: block } : isObject(block) ? readBlock(block) : {};
    if (found.text !== undefined && found.text !== '') parts.push(found.text);
    if (found.media !== undefined) media.push(found.media);
  }
  // Until version 2024-10-07 of the protocol a result was `toolResult`.
  const data = result.structuredContent ?? result.toolResult ?? undefined;
  // Servers should repeat the structured content as text; some send no text at all.
  if (parts.length === 0 && data !== undefined) parts.push(JSON.stringify(data));
  const text = cut(parts.join('\n\n'));
  if (result.isError === true) {
    const message = text || 'The tool failed without saying why.';
    return { ok: false, payload: { ok: false, tool, message, retryable: false }, text: message };
  }
  const payload: Json = isObject(data) ? data : text;
  return {
    ok: true,
    payload,
    text: text || (media.length > 0 ? '' : '(no content)'),
    ...(media.length > 0 ? { media } : {}),
  };
}

/** Servers without an SDK write the one text, or the one block, that they have. */
const oneOrMore = (content: Json | undefined): readonly Json[] =>
  Array.isArray(content) ? content : content == null ? [] : [content];

interface ContentPart {
  readonly text?: string;
  readonly media?: MediaBlock;
}

function readBlock(block: JsonObject): ContentPart {
  switch (block.type) {
    case 'text':
      return { text: textOf(block.text) };
    case 'image':
    case 'audio':
      return binary(textOf(block.data), textOf(block.mimeType) ?? '', `this ${block.type}`);
    case 'resource':
      return isObject(block.resource) ? readResource(block.resource) : {};
    case 'resource_link': {
      const uri = textOf(block.uri) ?? '';
      const labels = [textOf(block.title) ?? textOf(block.name) ?? uri, textOf(block.description)];
      return { text: `[${labels.filter((label) => label).join(': ')}](${uri})` };
    }
    default:
      return { text: JSON.stringify(block) };
  }
}

function readResource(resource: JsonObject): ContentPart {
  const uri = textOf(resource.uri) ?? 'a resource';
  const text = textOf(resource.text);
  if (text !== undefined) return { text: `Resource ${uri}:\n${text}` };
  const found = binary(textOf(resource.blob), textOf(resource.mimeType) ?? '', uri);
  return found.media === undefined ? found : { ...found, text: `Resource ${uri}:` };
}

/**
 * Images and audio as media; other bytes as a description, since a model cannot read them. Some servers write a data URL,
 * and base64 in lines (Python's `encodebytes`), which vendors refuse.
 */
function binary(written: string | undefined, declared: string, name: string): ContentPart {
  if (written === undefined) return { text: `(${name} has no data)` };
  const url = sourceOfUrl(written);
  const of = url.type === 'base64' ? url : { mediaType: declared, data: written };
  const data = /\s/.test(of.data) ? of.data.replace(/\s+/g, '') : of.data;
  const image = imageType(of.mediaType);
  const media = image !== undefined ? 'image' : AUDIO.test(of.mediaType) ? 'audio' : undefined;
  if (media === undefined) {
    const size = Math.floor((data.length * 3) / 4);
    return { text: `(${name} is ${of.mediaType || 'binary data'}, ${size} bytes)` };
  }
  const mediaType = image ?? of.mediaType;
  return { media: { type: 'media', media, source: { type: 'base64', mediaType, data } } };
}

function cut(text: string): string {
  // Half a pair of surrogates is no text to vendors.
  if (text.length <= MAX_TEXT) return text.toWellFormed();
  return `${text.slice(0, MAX_TEXT).toWellFormed()}\n[cut off after ${MAX_TEXT} characters]`;
}
