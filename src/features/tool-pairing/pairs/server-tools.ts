/** Separates genuine server tools, which the vendor runs, from client tools that came as server tools. */

import { editNode, mapBlocks, mapUnchanged } from '../../../conversation/edit.ts';
import type { Notes } from '../../../conversation/notes.ts';
import type {
  Block,
  Tool,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
} from '../../../conversation/types.ts';
import { isObject } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import { blockText, strayAsText } from '../replacements.ts';

/** Anthropic's server tools, and the type of each one's result block. */
const RESULT_TYPES: Readonly<Record<string, string>> = {
  web_search: 'web_search_tool_result',
  web_fetch: 'web_fetch_tool_result',
  code_execution: 'code_execution_tool_result',
  bash_code_execution: 'bash_code_execution_tool_result',
  text_editor_code_execution: 'text_editor_code_execution_tool_result',
  tool_search_tool_regex: 'tool_search_tool_result',
  tool_search_tool_bm25: 'tool_search_tool_result',
  advisor: 'advisor_tool_result',
};

// server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'
const SERVER_ID = /^srvtoolu_[a-zA-Z0-9_]+$/;

interface PositionedBlock<T extends Block> {
  readonly block: T;
  readonly turn: number;
  readonly position: number;
}

/** The turns after server tools were checked. */
export interface SettledServerTools {
  readonly turns: readonly Turn[];
  /** Calls that turned out to be of client tools. */
  readonly renamed: ReadonlySet<unknown>;
}

/**
 * GLM streams `server_tool_use` with `srvtoolu_` ids for client tools. A server call is genuine if its id is
 * valid, its name is known or matches the type of its result, and its result stands in the same turn (or is
 * still expected at the end of the history). Any other becomes a client call. A server result without a
 * genuine call becomes that call's result, or text.
 */
export function settleServerTools(
  turns: readonly Turn[],
  tools: readonly Tool[],
  notes: Notes,
): SettledServerTools {
  const calls: PositionedBlock<ToolCallBlock>[] = [];
  const results: PositionedBlock<ToolResultBlock>[] = [];
  const clientResults = new Set<string>();
  const taken = new Set<string>();
  let position = 0;
  turns.forEach((turn, at) => {
    for (const block of turn.blocks) {
      position++;
      if (block.type === 'tool-call' && isServerBlock(block))
        calls.push({ block, turn: at, position });
      else if (block.type === 'tool-call') taken.add(block.id);
      else if (block.type !== 'tool-result') continue;
      else if (isServerBlock(block)) results.push({ block, turn: at, position });
      else clientResults.add(block.callId);
    }
  });
  if (calls.length === 0 && results.length === 0) return { turns, renamed: new Set() };
  const declared = new Set(tools.filter((tool) => tool.type !== 'hosted').map((tool) => tool.name));
  const edges = runStarts(turns);
  const waiting = new ServerResults(turns, edges, results);
  const isLast = inFlightTurns(turns, edges);
  const answers = new Map<Block, ToolResultBlock>();
  const spent = new Set<Block>();
  const genuine = new Set<Block>();
  for (const call of calls) {
    const { id } = call.block;
    const sound = !taken.has(id) && hasServerId(call.block);
    const answer = waiting.find(call);
    const servers =
      !clientResults.has(id) &&
      !declared.has(call.block.name) &&
      (Object.hasOwn(RESULT_TYPES, call.block.name) || wireTypeOf(call.block) === 'mcp_tool_use') &&
      !waiting.has(id);
    const awaited = servers && isLast(call.turn);
    if (!sound || (answer === undefined && !awaited)) {
      // It may have been sent as a server call while its turn was the last.
      if (sound && servers) notes.add('sent_prefix_changed', `/messages/${call.turn}`, id);
      continue;
    }
    taken.add(id);
    genuine.add(call.block);
    if (answer === undefined) continue;
    waiting.take(call, answer);
    spent.add(answer.block);
    if (answer.position < call.position) {
      answers.set(call.block, answer.block);
    }
  }
  return rewrite(turns, calls, genuine, spent, answers, notes);
}

function rewrite(
  turns: readonly Turn[],
  calls: readonly PositionedBlock<ToolCallBlock>[],
  genuine: ReadonlySet<Block>,
  spent: ReadonlySet<Block>,
  answers: ReadonlyMap<Block, ToolResultBlock>,
  notes: Notes,
): SettledServerTools {
  const moved = new Set<Block>(answers.values());
  const clients = new Map<string, number>();
  for (const { block } of calls) {
    if (!genuine.has(block)) clients.set(block.id, (clients.get(block.id) ?? 0) + 1);
  }
  const renamed = new Set<unknown>();
  const change = (block: Block, at: number): Block | readonly Block[] | undefined => {
    if (block.type === 'tool-call' && isServerBlock(block)) {
      const answer = answers.get(block);
      if (answer !== undefined) {
        notes.add('misplaced_tool_result_relocated', `/messages/${at}`, answer.callId);
        return [block, answer];
      }
      if (genuine.has(block)) return block;
      const client = editNode(block, { by: 'client' });
      renamed.add(client);
      return client;
    }
    if (block.type !== 'tool-result' || !isServerBlock(block)) return block;
    if (moved.has(block)) return undefined;
    if (spent.has(block)) return block;
    if (clients.has(block.callId)) return asClientResult(block);
    notes.add('stray_tool_result_as_text', `/messages/${at}`, block.callId);
    return strayAsText(block);
  };
  const out = mapUnchanged(turns, (turn, at) => mapBlocks(turn, (block) => change(block, at)));
  return { turns: out, renamed };
}

function asClientResult(block: ToolResultBlock): ToolResultBlock {
  const text = block.content.map(blockText).filter((one) => one !== '');
  return {
    type: 'tool-result',
    callId: block.callId,
    kind: 'function',
    content: text.length > 0 ? [{ type: 'text', text: text.join('\n') }] : [],
    isError: block.isError,
    by: 'client',
  };
}

/** A block of a server tool in the Messages protocol. Responses' hosted calls are complete items. */
function isServerBlock(block: ToolCallBlock | ToolResultBlock): boolean {
  return (
    block.by === 'provider' && (block.wire ?? block.residue)?.protocol === 'anthropic-messages'
  );
}

function wireTypeOf(block: Block): string {
  const value = (block.wire ?? block.residue)?.value;
  return isObject(value) && typeof value.type === 'string' ? value.type : '';
}

function hasServerId(call: ToolCallBlock): boolean {
  return wireTypeOf(call) === 'mcp_tool_use' ? call.id !== '' : SERVER_ID.test(call.id);
}

function resultTypesOf(call: ToolCallBlock): readonly string[] {
  if (wireTypeOf(call) === 'mcp_tool_use') return ['mcp_tool_result'];
  const own = `${call.name}_tool_result`;
  const known = memberOf(RESULT_TYPES, call.name);
  return known === undefined || known === own ? [own] : [known, own];
}

/** Finds the results of server tools that are not paired yet. */
class ServerResults {
  readonly #ids = new Set<string>();
  /** By run, id and type, in order. */
  readonly #lists = new Map<
    string,
    { at: number; readonly items: PositionedBlock<ToolResultBlock>[] }
  >();
  /** For each turn, the first turn after its run that holds more than results. */
  readonly #stops: readonly number[];

  constructor(
    turns: readonly Turn[],
    private readonly edges: readonly number[],
    results: readonly PositionedBlock<ToolResultBlock>[],
  ) {
    const stops = new Array<number>(turns.length + 1).fill(turns.length);
    for (let i = turns.length - 1; i >= 0; i--) {
      const { role, blocks } = turns[i]!;
      const passes = role !== 'assistant' && blocks.every(({ type }) => type === 'tool-result');
      stops[i] = passes ? stops[i + 1]! : i;
    }
    // A run's own turns are skipped: only turns after the run count.
    const ends = stops.slice();
    for (let i = turns.length - 1; i >= 0; i--) {
      ends[i] = edges[i + 1] === edges[i] ? ends[i + 1]! : stops[i + 1]!;
    }
    this.#stops = ends;
    for (const result of results) {
      const { callId } = result.block;
      this.#ids.add(callId);
      const key = listKey(edges[result.turn]!, callId, wireTypeOf(result.block));
      const list = this.#lists.get(key);
      if (list === undefined) this.#lists.set(key, { at: 0, items: [result] });
      else list.items.push(result);
    }
  }

  /** Is there any result of this id? */
  has(id: string): boolean {
    return this.#ids.has(id);
  }

  /**
   * The first result of a call, in its turn or at the start of the turn after it. A search that ran beside
   * client tools continues once their results are there.
   */
  find(call: PositionedBlock<ToolCallBlock>): PositionedBlock<ToolResultBlock> | undefined {
    const edge = this.edges[call.turn]!;
    return this.#first(edge, call.block) ?? this.#first(this.#stops[call.turn]!, call.block);
  }

  /** Marks a result as used: the next call of its id gets the next one. */
  take(call: PositionedBlock<ToolCallBlock>, answer: PositionedBlock<ToolResultBlock>): void {
    const key = listKey(this.edges[answer.turn]!, call.block.id, wireTypeOf(answer.block));
    this.#lists.get(key)!.at++;
  }

  #first(edge: number, call: ToolCallBlock): PositionedBlock<ToolResultBlock> | undefined {
    let found: PositionedBlock<ToolResultBlock> | undefined;
    for (const type of resultTypesOf(call)) {
      const list = this.#lists.get(listKey(edge, call.id, type));
      const next = list?.items[list.at];
      if (next !== undefined && (found === undefined || next.position < found.position)) {
        found = next;
      }
    }
    return found;
  }
}

const listKey = (edge: number, id: string, type: string) => `${edge}\0${type}\0${id}`;

/** For each turn, the first turn of its run: the vendor reads neighbours of one role as one turn. */
function runStarts(turns: readonly Turn[]): readonly number[] {
  const edges: number[] = [];
  let first = 0;
  turns.forEach((turn, i) => {
    if (i > 0 && turn.role !== turns[i - 1]!.role && turn.role !== 'system') first = i;
    edges.push(first);
  });
  return edges;
}

/**
 * Is the assistant turn at `at` still in flight? It is if nothing follows, or only results of its calls. A
 * result that will become text or that splits the turn ends it; so does an empty turn, which will be filled.
 */
function isInFlight(turns: readonly Turn[], edges: readonly number[], at: number): boolean {
  const due = new Set<string>();
  for (let i = edges[at]!; i < turns.length; i++) {
    const { role, blocks } = turns[i]!;
    const same = edges[i] === edges[at];
    if (!same && (role === 'assistant' || blocks.length === 0)) return false;
    for (const block of blocks) {
      if (!same) {
        if (block.type !== 'tool-result' || !due.delete(block.callId)) return false;
      } else if (block.type === 'tool-call') due.add(block.id);
      else if (block.type === 'tool-result' && block.by === 'client') return false;
    }
  }
  return true;
}

/** {@link isInFlight}, computed once per run. */
function inFlightTurns(turns: readonly Turn[], edges: readonly number[]): (at: number) => boolean {
  const known = new Map<number, boolean>();
  return (at) => {
    const edge = edges[at]!;
    const found = known.get(edge) ?? isInFlight(turns, edges, at);
    known.set(edge, found);
    return found;
  };
}
