/** Encodes blocks as content blocks of a Messages request. */

import { resultWords } from '../../../conversation/edit.ts';
import type { Notes } from '../../../conversation/notes.ts';
import type { KnownNodes } from '../../../conversation/session/known-nodes.ts';
import type { Target } from '../../../conversation/target.ts';
import type { ToolNames } from '../../../conversation/tools/tool-names.ts';
import type {
  Block,
  ReasoningBlock,
  TextBlock,
  ToolCallBlock,
  ToolResultBlock,
} from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject, parseExact } from '../../../lib/json/json.ts';
import { encodeCache, ownResidue, ownWire, PROTOCOL, rebuilt } from '../wire.ts';
import { encodeMedia } from './encode-media.ts';

export interface BlockWriter {
  readonly target: Target;
  readonly notes: Notes;
  readonly names: ToolNames;
  /** The id of a call in a form that the API accepts. */
  readonly callId: (id: string) => string;
  /** An id has the same form in every history. */
  readonly fixedIds: boolean;
  readonly known: KnownNodes;
}

/** The content of one message. Blocks that Messages cannot express are left out with a note. */
export function encodeBlocks(
  blocks: readonly Block[],
  where: string,
  writer: BlockWriter,
): readonly JsonObject[] {
  const out: JsonObject[] = [];
  for (let i = 0; i < blocks.length; i++) {
    const encoded = encodeBlock(blocks[i]!, `${where}/${i}`, writer);
    if (encoded !== undefined) out.push(encoded);
  }
  return out;
}

/** The blocks that may stand in instructions: text, and blocks that came there in this protocol. */
export function instructionBlocks(
  blocks: readonly Block[],
  where: string,
  notes: Notes,
): readonly Block[] {
  return blocks.filter((block, i) => {
    const fits =
      ownWire(block) !== undefined ||
      block.type === 'text' ||
      block.type === 'refusal' ||
      (block.type === 'opaque' && block.text !== undefined);
    if (!fits) notes.add('content_dropped', `${where}/${i}`, `${block.type} in instructions`);
    return fits;
  });
}

function encodeBlock(block: Block, where: string, writer: BlockWriter): JsonObject | undefined {
  const own = ownWire(block);
  if (isObject(own)) return own;
  if (typeof own === 'string') return textBlock(own);
  switch (block.type) {
    case 'text':
      return encodeText(block);
    case 'refusal':
      return textBlock(block.text);
    case 'reasoning':
      return encodeReasoning(block, where, writer);
    case 'tool-call':
      return encodeCall(block, where, writer);
    case 'tool-result':
      return encodeResult(block, where, writer);
    case 'media':
      return encodeMedia(block, where, writer.target.profile, writer.notes);
    case 'opaque':
      return encodeOpaque(block.name, block.text, where, writer.notes);
  }
}

/** A text block; undefined for blank text, which the upstream refuses. */
export function textBlock(text: string): JsonObject | undefined {
  return text.trim() === '' ? undefined : { type: 'text', text };
}

function encodeText(block: TextBlock): JsonObject | undefined {
  if (block.text.trim() === '') return undefined;
  const residue = ownResidue(block);
  return rebuilt(residue, {
    type: 'text',
    text: block.text,
    // Only genuine citations go back: the upstream checks their encrypted_index.
    citations: genuineCitations(block),
    cache_control: encodeCache(block.cache),
  });
}

function genuineCitations(block: TextBlock): readonly Json[] | undefined {
  const genuine = (block.citations ?? []).map(ownWire).filter((own) => own !== undefined);
  return genuine.length > 0 ? genuine : undefined;
}

/**
 * Thinking is sent only with a seal of this protocol and provider; a signature is never invented. An empty
 * signature goes back only to the provider that is known to have sent it.
 */
function encodeReasoning(
  block: ReasoningBlock,
  where: string,
  { target, notes }: BlockWriter,
): JsonObject | undefined {
  const sealed = block.sealed;
  const ownSeal = sealed?.provider === undefined || sealed.provider === target.provider;
  if (
    sealed?.protocol !== PROTOCOL ||
    !ownSeal ||
    (sealed.value === '' && sealed.provider === undefined)
  ) {
    notes.add(
      'reasoning_dropped',
      where,
      sealed === undefined ? 'no signature' : `sealed by ${sealed.provider ?? sealed.protocol}`,
    );
    return undefined;
  }
  if (sealed.kind === 'redacted') return { type: 'redacted_thinking', data: sealed.value };
  return { type: 'thinking', thinking: block.text, signature: sealed.value };
}

function encodeCall(
  block: ToolCallBlock,
  where: string,
  { notes, names, callId }: BlockWriter,
): JsonObject | undefined {
  const residue = ownResidue(block);
  if (block.by === 'provider' && residue === undefined) {
    notes.add('content_dropped', where, `hosted call ${block.name}`);
    return undefined;
  }
  const type = isObject(residue) && block.by === 'provider' ? residue.type : 'tool_use';
  return rebuilt(residue, {
    type,
    id: callId(block.id),
    name: names.flat(block.name, block.namespace),
    input: callInput(block, where, notes),
    cache_control: encodeCache(block.cache),
  });
}

/**
 * The input as an object, as the API requires. Empty input becomes `{}`. Freeform text, other JSON values and
 * text that is not JSON are wrapped as `{"input": …}`.
 */
export function callInput(block: ToolCallBlock, where: string, notes: Notes): JsonObject {
  if (block.kind === 'custom') return { input: block.input };
  if (block.input.trim() === '') return {};
  let value: Json;
  try {
    value = parseExact(block.input);
  } catch {
    notes.add('tool_input_wrapped', where, 'the arguments are not JSON');
    return { input: block.input };
  }
  if (isObject(value)) return value;
  notes.add('tool_input_wrapped', where, 'the arguments are not an object');
  return { input: value };
}

function encodeResult(
  block: ToolResultBlock,
  where: string,
  writer: BlockWriter,
): JsonObject | undefined {
  const residue = ownResidue(block);
  if (block.by === 'provider') {
    return encodeOpaque('result of a hosted tool', resultWords(block), where, writer.notes);
  }
  return rebuilt(residue, {
    type: 'tool_result',
    tool_use_id: writer.callId(block.callId),
    content: resultContent(block, where, writer),
    is_error: block.isError
      ? true
      : isObject(residue) && residue.is_error === false
        ? false
        : undefined,
    cache_control: encodeCache(block.cache),
  });
}

/** Block types that the API accepts inside a tool result. */
const NESTED = new Set(['text', 'image', 'document', 'search_result', 'tool_reference']);

function resultContent(block: ToolResultBlock, where: string, writer: BlockWriter): Json {
  const parts = block.content;
  const only = parts.length === 1 ? parts[0]! : undefined;
  const { profile } = writer.target;
  const inner: BlockWriter =
    profile.imagesInResults === false
      ? { ...writer, target: { ...writer.target, profile: { ...profile, images: false } } }
      : writer;
  const list = encodeBlocks(parts, `${where}/content`, inner).filter((part) => {
    const fits = typeof part.type === 'string' && NESTED.has(part.type);
    if (!fits) writer.notes.add('content_dropped', where, `${part.type} in a tool result`);
    return fits;
  });
  if (list.length === 0) {
    const blank = parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
    // The API refuses an error without content.
    return block.isError ? 'Error' : blank;
  }
  const plain = only?.type === 'text' && ownWire(only) === undefined && only.cache === undefined;
  return plain || typeof (only && ownWire(only)) === 'string'
    ? ((list[0] as { text?: Json }).text ?? '')
    : list;
}

function encodeOpaque(
  name: string,
  text: string | undefined,
  where: string,
  notes: Notes,
): JsonObject | undefined {
  const block = text === undefined ? undefined : textBlock(text);
  notes.add(block === undefined ? 'content_dropped' : 'content_bridged', where, name);
  return block;
}
