/** Restores the history for the upstream: hidden hops come back, shown calls become calls and results. */

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
import {
  isMinted,
  type NumberedSource,
  readSource,
  renderHits,
  type Sources,
} from './citations/sources.ts';
import { answerKeys, type HopEntry, type HopLedger, textOf } from './hop-ledger.ts';
import { type Declared, isNative } from './offer.ts';
import type { ToolRegistry } from './registry.ts';
import { isShownId } from './shown-calls.ts';
import type { ServerTool } from './tool.ts';

export interface HistoryContext extends ExpandContext {
  readonly ledger: HopLedger;
  readonly owner: string;
}

/** Turns that came from the ledger: they are complete and need no further look. */
const restored = new WeakSet<Turn>();

/**
 * The history with every call that this gateway ran, in the order in which the upstream saw them. The
 * same list where there are none. An answer that no ledger entry matches stays as the client sent it,
 * which is always a valid conversation.
 */
export function restoreHistory(turns: readonly Turn[], context: HistoryContext): readonly Turn[] {
  let out: Turn[] | undefined;
  let at = 0;
  while (at < turns.length) {
    const turn = turns[at]!;
    if (turn.role !== 'assistant' || restored.has(turn)) {
      out?.push(turn);
      at++;
      continue;
    }
    let end = at + 1;
    while (turns[end]?.role === 'assistant' && !restored.has(turns[end]!)) end++;
    const run = turns.slice(at, end);
    const restoredRun = restoreRun(run, turns[at - 1], context);
    if (out === undefined && restoredRun !== run) out = turns.slice(0, at);
    out?.push(...restoredRun);
    at = end;
  }
  return out ?? turns;
}

/** Restores one answer: a run of assistant turns, since Responses spreads an answer over many items. */
function restoreRun(
  run: readonly Turn[],
  before: Turn | undefined,
  context: HistoryContext,
): readonly Turn[] {
  const entry = context.ledger.empty ? undefined : findEntry(run, before, context);
  if (entry !== undefined) {
    context.notes.add('server_tool_history_restored', '/messages');
    context.sources.restore(entry.sources);
    const turns = fitReasoning(entry.turns, run);
    for (const turn of turns) restored.add(turn);
    return turns;
  }
  const own = mapUnchanged(run, (turn) => expandShownCalls(turn, context));
  return mapUnchanged(own, withoutMintedCitations);
}

/** The keys by which {@link restoreHistory} looks the answers of a history up. */
export function historyKeys(turns: readonly Turn[], owner: string): readonly string[] {
  const keys: string[] = [];
  let run: Turn[] = [];
  let before: Turn | undefined;
  for (const [at, turn] of turns.entries()) {
    if (turn.role !== 'assistant') continue;
    if (run.length === 0) before = turns[at - 1];
    run.push(turn);
    if (turns[at + 1]?.role === 'assistant') continue;
    keys.push(...keysOf(run, before, owner).keys);
    run = [];
  }
  return keys;
}

interface AnswerKeys {
  /** In the order in which they are looked up. */
  readonly keys: readonly string[];
  /** The ids of the client's own calls. */
  readonly clientIds: readonly string[];
}

/** The keys of one answer, a run of assistant turns. */
function keysOf(run: readonly Turn[], before: Turn | undefined, owner: string): AnswerKeys {
  const clientIds: string[] = [];
  const shownIds: string[] = [];
  let text = '';
  for (const turn of run) {
    text += textOf({ ...turn, blocks: turn.blocks.filter(isVisibleText) });
    for (const block of turn.blocks) {
      if (block.type === 'tool-call') (block.by === 'client' ? clientIds : shownIds).push(block.id);
    }
  }
  return { keys: answerKeys(owner, { clientIds, shownIds, text }, before), clientIds };
}

function findEntry(
  run: readonly Turn[],
  before: Turn | undefined,
  { ledger, owner, registry, target, declared }: HistoryContext,
): HopEntry | undefined {
  const { keys, clientIds } = keysOf(run, before, owner);
  const entry = keys.length === 0 ? undefined : ledger.find(keys);
  if (entry === undefined) return undefined;
  // The client's calls must be those of the entry: none unknown, and not all of them gone.
  const calls = new Set(entry.clientCalls);
  if (clientIds.some((id) => !calls.has(id)) || (calls.size > 0 && clientIds.length === 0))
    return undefined;
  // A vendor that searches by itself would take a function call of that name for its own.
  const native = entry.turns.some((turn) =>
    turn.blocks.some((block) => {
      const hosted = block.type === 'tool-call' ? registry.named(block.name)?.hosted : undefined;
      return hosted !== undefined && isNative(hosted, target, declared);
    }),
  );
  return native ? undefined : entry;
}

const isVisibleText = (block: Block) => block.type === 'text' || block.type === 'refusal';
const isCall = (block: Block): block is ToolCallBlock => block.type === 'tool-call';

/**
 * The reasoning of the last turn is the client's to send back: where it sends none, none is added.
 * Reasoning before server calls stays: the upstream saw it within the exchange.
 */
function fitReasoning(turns: readonly Turn[], run: readonly Turn[]): readonly Turn[] {
  const last = turns.at(-1);
  if (last?.role !== 'assistant' || last.blocks.some(isCall)) return turns;
  if (run.some((turn) => turn.blocks.some((block) => block.type === 'reasoning'))) return turns;
  const blocks = last.blocks.filter((block) => block.type !== 'reasoning');
  if (blocks.length === last.blocks.length) return turns;
  return [...turns.slice(0, -1), { ...last, blocks }];
}

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
