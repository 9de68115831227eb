/** Turns hosted calls that a client sends back into ordinary calls and results, or into text. */

import { mapUnchanged } from '../../conversation/edit.ts';
import type { Notes } from '../../conversation/notes.ts';
import type { Target } from '../../conversation/target.ts';
import type {
  Block,
  Citation,
  TextBlock,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
} from '../../conversation/types.ts';
import { isObject, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { renderHits } from './citations/render-hits.ts';
import { isMinted, type NumberedSource, readSource, type Sources } from './citations/sources.ts';
import { type Declared, isNative } from './offer.ts';
import type { ToolRegistry } from './registry.ts';
import { isShownId } from './shown-calls.ts';
import type { ServerTool } from './tool.ts';

export interface ExpandContext {
  readonly registry: ToolRegistry;
  readonly target: Target;
  readonly declared: Declared;
  /** Gets the sources of earlier searches, so that numbering continues and old sources can be cited. */
  readonly sources: Sources;
  readonly notes: Notes;
}

interface CallPair {
  readonly call: ToolCallBlock;
  readonly result: ToolResultBlock | undefined;
  readonly tool: ServerTool;
  /** The target runs the tool itself: its own calls stay, those run here become text. */
  readonly native: boolean;
}

/**
 * The turn with its hosted calls and results as turns of their own. For a target that runs the tool
 * itself, and would refuse results from elsewhere, they become text. A call without a result (Responses
 * sends none back) is left out: the answer contains what it found.
 */
export function expandShownCalls(
  turn: Turn,
  context: ExpandContext,
): Turn | readonly Turn[] | undefined {
  const pairs = pairsOf(turn, context);
  if (pairs.size === 0) return turn;
  context.notes.add('server_tool_history_restored', '/messages');
  const out: Turn[] = [];
  let blocks: Block[] = [];
  let results: ToolResultBlock[] = [];
  const close = () => {
    if (blocks.length > 0) out.push({ role: 'assistant', blocks });
    if (results.length > 0) out.push({ role: 'user', blocks: results });
    blocks = [];
    results = [];
  };
  for (const block of turn.blocks) {
    const pair = pairs.get(block);
    if (pair === undefined) {
      if (results.length > 0) close();
      blocks.push(block);
      continue;
    }
    if (block !== pair.call || pair.result === undefined) continue;
    const text = resultText(pair.call, pair.result, context.sources);
    if (pair.native) {
      blocks.push({ type: 'text', text: `[${pair.tool.name} ${pair.call.input}]\n${text}` });
      continue;
    }
    // Some upstreams take this prefix for a server tool; here it is an ordinary call.
    const id = pair.call.id.replace(/^srvtoolu_/, 'toolu_');
    const { type, kind, input } = pair.call;
    blocks.push({ type, id, name: pair.tool.name, kind, input, by: 'client' });
    results.push({
      type: 'tool-result',
      callId: id,
      kind: 'function',
      content: [{ type: 'text', text }],
      isError: pair.result.isError,
      by: 'client',
    });
  }
  close();
  return out.length === 0 ? undefined : out;
}

/** The hosted calls to convert and their results; each block maps to its pair. */
function pairsOf(
  turn: Turn,
  { registry, target, declared }: ExpandContext,
): ReadonlyMap<Block, CallPair> {
  const pairs = new Map<Block, CallPair>();
  let results: Map<string, ToolResultBlock> | undefined;
  for (const call of turn.blocks) {
    if (call.type !== 'tool-call' || call.by !== 'provider') continue;
    const tool = registry.standIn(call.name);
    if (tool === undefined) continue;
    results ??= resultsOf(turn);
    const result = results.get(call.id);
    const native = isNative(call.name, target, declared);
    const isMadeHere = isShownId(call.id) || (result !== undefined && hasMintedSource(result));
    if (native && !isMadeHere) continue;
    // On Messages a call without a result may still be running.
    if (result === undefined && call.wire?.protocol === 'anthropic-messages') continue;
    const pair: CallPair = { call, result, tool, native };
    pairs.set(call, pair);
    if (result !== undefined) pairs.set(result, pair);
  }
  return pairs;
}

/** The first result of each call. */
function resultsOf({ blocks }: Turn): Map<string, ToolResultBlock> {
  const results = new Map<string, ToolResultBlock>();
  for (const block of blocks) {
    if (block.type !== 'tool-result' || block.by !== 'provider') continue;
    if (!results.has(block.callId)) results.set(block.callId, block);
  }
  return results;
}

const wires = (result: ToolResultBlock): readonly JsonObject[] =>
  result.content.flatMap((block) => (isObject(block.wire?.value) ? [block.wire.value] : []));

const hasMintedSource = (result: ToolResultBlock) =>
  wires(result).some((value) => isMinted(value.encrypted_content));

function resultText(call: ToolCallBlock, result: ToolResultBlock, sources: Sources): string {
  const found: NumberedSource[] = [];
  for (const value of wires(result)) {
    if (value.type !== 'web_search_result') continue;
    const source = readSource(value, sources.next + found.length);
    if (source !== undefined) found.push(source);
  }
  if (found.length === 0 || result.isError) return plainText(result);
  sources.restore(found);
  const input = tryParse(call.input);
  const query = isObject(input) && typeof input.query === 'string' ? input.query : '';
  return renderHits({ query, sources: found });
}

function plainText(result: ToolResultBlock): string {
  const texts = result.content.map((block) => ('text' in block ? (block.text ?? '') : ''));
  return texts.filter((text) => text !== '').join('\n') || 'No results.';
}

/**
 * The turn without the citations that were minted here, whose index no vendor accepts. The text stays,
 * but without its `wire`, which contains them.
 */
export function withoutMintedCitations(turn: Turn): Turn {
  const blocks = mapUnchanged(turn.blocks, (block): Block => {
    if (block.type !== 'text' || !block.citations?.some(isMintedCitation)) return block;
    const citations = block.citations.filter((citation) => !isMintedCitation(citation));
    const { type, text, cache } = block;
    const plain: TextBlock = { type, text, ...(cache ? { cache } : {}) };
    return citations.length > 0 ? { ...plain, citations } : plain;
  });
  if (blocks === turn.blocks) return turn;
  return { role: turn.role, blocks };
}

function isMintedCitation({ wire }: Citation): boolean {
  return isObject(wire?.value) && isMinted(wire.value.encrypted_index);
}
