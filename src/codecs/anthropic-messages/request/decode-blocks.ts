/** Decodes Messages content blocks, in requests and replies. */

import { editNode } from '../../../conversation/edit.ts';
import { invalid } from '../../../conversation/errors.ts';
import { openSeal } from '../../../conversation/seal.ts';
import { unwrapCallId } from '../../../conversation/tools/call-ids.ts';
import { type ToolName, unwrapFreeform } from '../../../conversation/tools/tool-names.ts';
import type { Block, MediaBlock, MediaSource, Sealed } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import {
  decodeCitation,
  decodeHostedContent,
  isHostedError,
  isHostedResult,
} from '../hosted-tools.ts';
import { BILLING_HEADER, decodeCache, objects, PROTOCOL, text, wireOf } from '../wire.ts';

/** How to decode blocks: tool names, the maker of seals, and what to do with broken blocks. */
export interface BlockReader {
  /** The declared tool behind a name on the wire. */
  readonly toolName: (flat: string) => ToolName;
  /** Is this name of a hosted call really one of the client's functions? */
  readonly isClientTool: (flat: string) => boolean;
  /** The provider that made the signatures, if it is known. */
  readonly provider?: string;
  /** Broken blocks are skipped or repaired instead of refused. */
  readonly lenient: boolean;
}

/** For requests: names stay as they are, and the provider of the blocks is unknown. */
export const STRICT_READER: BlockReader = {
  toolName: (name) => ({ name, kind: 'function' }),
  isClientTool: () => false,
  lenient: false,
};

/** Throws an error in Anthropic's form, with the path of the field: `messages.3.content: Field required`. */
export function refuse(path: string, message: string): never {
  throw invalid(`${path}: ${message}`, path);
}

/** Decodes the `content` of a message, or `system`: a string or a list of blocks. */
export function decodeContent(
  content: Json | undefined,
  path: string,
  reader: BlockReader,
): readonly Block[] {
  if (typeof content === 'string') {
    return content === '' ? [] : [{ type: 'text', text: content, wire: wireOf(content) }];
  }
  if (!Array.isArray(content)) {
    if (reader.lenient) return [];
    refuse(path, content === undefined ? 'Field required' : 'Input should be a valid list');
  }
  const blocks: Block[] = [];
  for (let i = 0; i < content.length; i++) {
    const block = decodeBlock(content[i]!, `${path}.${i}`, reader);
    if (block !== undefined) blocks.push(block);
  }
  return blocks;
}

/**
 * Decodes one block; undefined for a block that a lenient reader skips.
 * @throws GatewayError invalid_request, `param` naming the field
 */
export function decodeBlock(value: Json, path: string, reader: BlockReader): Block | undefined {
  if (!isObject(value)) {
    if (reader.lenient) return undefined;
    refuse(path, 'Input should be a valid dictionary or object to extract fields from');
  }
  const type = value.type;
  if (typeof type !== 'string') {
    if (reader.lenient) return undefined;
    refuse(`${path}.type`, problem(type));
  }
  switch (type) {
    case 'text':
      return decodeText(value, path, reader);
    case 'thinking':
      return sealedBlock(value, text(value.thinking) ?? '', 'signature', value.signature, reader);
    case 'redacted_thinking':
      return sealedBlock(value, '', 'redacted', value.data, reader);
    case 'tool_use':
    case 'server_tool_use':
    case 'mcp_tool_use':
      return decodeCall(type, value, path, reader);
    case 'tool_result':
      return decodeResult(value, path, reader);
    case 'image':
    case 'document':
      return decodeMedia(type, value) ?? opaque(type, value);
    default:
      return isHostedResult(type) ? decodeHostedResult(value) : opaque(type, value);
  }
}

function decodeText(value: JsonObject, path: string, reader: BlockReader): Block | undefined {
  const words = text(value.text);
  if (words === undefined) {
    if (reader.lenient) return undefined;
    refuse(`${path}.text`, problem(value.text));
  }
  const citations = objects(value.citations);
  return {
    type: 'text',
    text: words,
    citations: citations.length > 0 ? citations.map(decodeCitation) : undefined,
    cache: decodeCache(value.cache_control),
    wire: wireOf(value),
  };
}

/**
 * Thinking. A signature that is an envelope holds another protocol's seal. Such a block has no `wire`, because
 * no Messages upstream may get the envelope.
 */
function sealedBlock(
  value: JsonObject,
  words: string,
  kind: Sealed['kind'],
  seal: Json | undefined,
  reader: BlockReader,
): Block {
  const carried = typeof seal === 'string' ? openSeal(seal) : undefined;
  if (carried !== undefined) {
    return { type: 'reasoning', text: words, sealed: carried, residue: wireOf(value) };
  }
  const sealed: Sealed = {
    protocol: PROTOCOL,
    provider: reader.provider,
    kind,
    value: text(seal) ?? '',
  };
  return { type: 'reasoning', text: words, sealed, wire: wireOf(value) };
}

function decodeCall(type: string, value: JsonObject, path: string, reader: BlockReader): Block {
  const flat = text(value.name);
  const id = text(value.id);
  if (!reader.lenient) {
    if (id === undefined) refuse(`${path}.id`, problem(value.id));
    if (flat === undefined) refuse(`${path}.name`, problem(value.name));
  }
  const { name, namespace, kind } = reader.toolName(flat ?? '');
  const said = reader.lenient ? text(value.input) : undefined;
  const input = said ?? (value.input === undefined ? '' : JSON.stringify(value.input));
  // GLM sends `server_tool_use` for functions of the client.
  const isClients =
    type === 'tool_use' || (type === 'server_tool_use' && reader.isClientTool(name));
  const whole = id !== undefined && flat !== undefined;
  return {
    type: 'tool-call',
    // An upstream's ids are never unwrapped, whatever they begin with.
    id:
      (reader.lenient ? id : unwrapCallId(id!)) ??
      (typeof value.id === 'number' ? String(value.id) : ''),
    name,
    namespace,
    kind,
    input: kind === 'custom' ? unwrapFreeform(input) : input,
    by: isClients ? 'client' : 'provider',
    cache: decodeCache(value.cache_control),
    ...(whole ? { wire: wireOf(value) } : { residue: wireOf(value) }),
  };
}

const problem = (value: Json | undefined) =>
  value === undefined ? 'Field required' : 'Input should be a valid string';

function decodeResult(value: JsonObject, path: string, reader: BlockReader): Block {
  const callId = text(value.tool_use_id);
  if (callId === undefined && !reader.lenient) {
    refuse(`${path}.tool_use_id`, problem(value.tool_use_id));
  }
  const content = value.content ?? [];
  return {
    type: 'tool-result',
    callId:
      (reader.lenient ? callId : unwrapCallId(callId!)) ??
      (typeof value.tool_use_id === 'number' ? String(value.tool_use_id) : ''),
    kind: 'function',
    content: decodeContent(content, `${path}.content`, reader),
    isError: value.is_error === true,
    by: 'client',
    cache: decodeCache(value.cache_control),
    ...(callId === undefined ? { residue: wireOf(value) } : { wire: wireOf(value) }),
  };
}

function decodeHostedResult(value: JsonObject): Block {
  return {
    type: 'tool-result',
    callId: text(value.tool_use_id) ?? '',
    kind: 'function',
    content: decodeHostedContent(value.content),
    isError: value.is_error === true || isHostedError(value.content),
    by: 'provider',
    wire: wireOf(value),
  };
}

function opaque(type: string, value: JsonObject): Block {
  const parts = heldParts(type, value);
  return {
    type: 'opaque',
    name: type,
    text: opaqueText(type, value),
    ...(parts && { parts }),
    wire: wireOf(value),
  };
}

/** Texts and images of a document or search result that holds more than text, below its heading. */
function heldParts(type: string, value: JsonObject): readonly Block[] | undefined {
  const isDocument = type === 'document';
  if (!isDocument && type !== 'search_result') return undefined;
  const { content } = isDocument && isObject(value.source) ? value.source : value;
  const inner = objects(content).filter((part) => part.type === 'text' || part.type === 'image');
  const parts = decodeContent(inner, type, { ...STRICT_READER, lenient: true });
  if (!parts.some((part) => part.type === 'media')) return undefined;
  const lines = [value.title, isDocument ? value.context : value.source];
  const heading = lines.filter((line) => typeof line === 'string' && line !== '').join('\n');
  const blocks: Block[] = heading === '' ? [...parts] : [{ type: 'text', text: heading }, ...parts];
  const cache = decodeCache(value.cache_control);
  if (cache !== undefined) blocks.push(editNode(blocks.pop() as MediaBlock, { cache }));
  return blocks;
}

function opaqueText(type: string, value: JsonObject): string | undefined {
  switch (type) {
    case 'search_result':
      return [value.title, value.source, ...objects(value.content).map((part) => part.text)]
        .filter((part) => typeof part === 'string' && part !== '')
        .join('\n');
    case 'tool_reference':
      return loaded(value);
    case 'tool_addition':
      return isObject(value.tool) ? loaded(value.tool) : undefined;
    case 'compaction':
      return text(value.content);
    case 'document':
      return isObject(value.source)
        ? objects(value.source.content)
            .map((part) => text(part.text) ?? '')
            .filter((part) => part !== '')
            .join('\n')
        : undefined;
    default:
      return undefined;
  }
}

function loaded(reference: JsonObject): string | undefined {
  const name = text(reference.tool_name) ?? text(reference.name);
  return name === undefined ? undefined : `Tool ${name} is now available.`;
}

/** Decodes `system` like content, but keeps the billing header opaque: other vendors must not get it. */
export function decodeSystem(
  system: Json | undefined,
  path: string,
  reader: BlockReader,
): readonly Block[] {
  if (system === undefined || system === null) return [];
  return decodeContent(system, path, reader).map((block) =>
    block.type === 'text' && block.wire !== undefined && block.text.startsWith(BILLING_HEADER)
      ? { type: 'opaque', name: 'billing_header', wire: block.wire }
      : block,
  );
}

/** An image or document; undefined for a source that only Messages can express. */
function decodeMedia(type: 'image' | 'document', value: JsonObject): MediaBlock | undefined {
  const source = isObject(value.source) ? decodeSource(value.source) : undefined;
  if (source === undefined) return undefined;
  return {
    type: 'media',
    media: type,
    source,
    title: text(value.title),
    context: text(value.context),
    cache: decodeCache(value.cache_control),
    wire: wireOf(value),
  };
}

function decodeSource(source: JsonObject): MediaSource | undefined {
  const data = text(source.data);
  switch (source.type) {
    case 'base64':
      return data === undefined
        ? undefined
        : {
            type: 'base64',
            mediaType: text(source.media_type) ?? 'application/octet-stream',
            data,
          };
    case 'url':
      return typeof source.url === 'string' ? { type: 'url', url: source.url } : undefined;
    case 'file':
      return typeof source.file_id === 'string'
        ? { type: 'file-id', id: source.file_id }
        : undefined;
    case 'text':
      return data === undefined
        ? undefined
        : { type: 'text', mediaType: text(source.media_type) ?? 'text/plain', text: data };
    case 'content':
      return contentSource(source.content);
    default:
      return undefined;
  }
}

/** The source of a document made of blocks; undefined if it holds anything but text. */
function contentSource(content: Json | undefined): MediaSource | undefined {
  if (typeof content === 'string') return { type: 'text', mediaType: 'text/plain', text: content };
  const parts = objects(content);
  if (parts.length === 0 || parts.some((part) => part.type !== 'text')) return undefined;
  const lines = parts.map((part) => text(part.text) ?? '');
  return { type: 'text', mediaType: 'text/plain', text: lines.join('\n') };
}
