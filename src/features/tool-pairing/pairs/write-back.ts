/** Second pass of pairing: writes the turns with new ids, moved results, split turns and placeholders. */

import { editNode } from '../../../conversation/edit.ts';
import type { Notes } from '../../../conversation/notes.ts';
import type { Block, ToolResultBlock, Turn } from '../../../conversation/types.ts';
import type { Steps } from '../../../lib/loop/steps.ts';
import { comparableContent, missingResult, strayAsText } from '../replacements.ts';
import type { PairingRules } from '../rules.ts';
import type { CallTable, IndexedCall, IndexedResult } from './index-calls.ts';
import { isAside, RUNS_A_STEP, type TurnRun } from './runs.ts';
import { newTurn } from './split-roles.ts';

export interface WriteBackPlan {
  readonly turns: readonly Turn[];
  readonly runs: readonly TurnRun[];
  readonly table: CallTable;
  readonly ids: ReadonlyMap<IndexedCall, string>;
  readonly rules: PairingRules;
  readonly notes: Notes;
}

/** The turns to send. Unchanged turns keep their reference, and so does the list if all are unchanged. */
export function* writeBack(plan: WriteBackPlan): Steps<readonly Turn[]> {
  const { turns, runs } = plan;
  const writer = new HistoryWriter(plan);
  for (const run of runs) {
    if (run.index % RUNS_A_STEP === RUNS_A_STEP - 1) yield;
    if (run.side === 'input') writer.input(run);
    else {
      writer.assistant(run);
      if (runs[run.index + 1]?.side !== 'input') writer.answer();
    }
  }
  const { out } = writer;
  return out.length === turns.length && out.every((turn, i) => turn === turns[i]) ? turns : out;
}

class HistoryWriter {
  readonly out: Turn[] = [];
  /** Calls of the last assistant turn, whose results the next input holds. */
  #open: IndexedCall[] = [];
  /** Stray results found inside the assistant turn, as user text. */
  #strays: Block[] = [];

  constructor(private readonly plan: WriteBackPlan) {}

  /** Writes an assistant run as one turn, or as several with the inline results between them. */
  assistant(run: TurnRun): void {
    const { turns, table, rules } = this.plan;
    let pieces: TurnPiece[] = [];
    let calls = new Set<IndexedCall>();
    /** The model has read a result, so what follows belongs to its next turn. */
    let read = false;
    /** Calls whose result comes before them, and whether an open call is one of them. */
    const early = new Set<IndexedCall>();
    let ahead = false;
    for (let i = run.from; i < run.to; i++) {
      const turn = turns[i]!;
      if (isAside(turn, rules)) {
        pieces.push({ host: turn, role: turn.role, blocks: [...turn.blocks] });
        continue;
      }
      let piece: TurnPiece = { host: turn, role: 'assistant', blocks: [] };
      pieces.push(piece);
      for (const block of turn.blocks) {
        const result = table.resultOf.get(block);
        if (result !== undefined) {
          const { call } = result;
          if (call === undefined) this.#strays.push(...this.#strayBlocks(result));
          else if (call.run === run.index) {
            if (calls.has(call)) read = true;
            else early.add(call);
          }
          continue;
        }
        const call = table.callOf.get(block);
        const continues = read || (call === undefined && ahead);
        if (continues) {
          this.#close(pieces, calls);
          this.answer();
          pieces = [];
          calls = new Set();
          read = false;
          ahead = false;
          piece = { host: turn, role: 'assistant', blocks: [], rest: true };
          pieces.push(piece);
        }
        if (call !== undefined) {
          calls.add(call);
          ahead ||= early.has(call);
        }
        piece.blocks.push(call === undefined ? block : this.#callAsSent(call));
      }
    }
    this.#close(pieces, calls);
  }

  /** Writes an input run: the results of the preceding calls first, then the rest. */
  input(run: TurnRun): void {
    const { rules } = this.plan;
    const pieces = this.#inputPieces(run);
    const wanted = this.#open.filter(
      (call) => rules.results === 'lead' || !this.#staysInPlace(call),
    );
    const leads = rules.results === 'lead' ? this.#resultsLead(pieces) : wanted.length === 0;
    if (leads && this.#strays.length === 0) {
      this.#open = [];
      this.#emitAll(
        rules.resultsShareTurns && rules.sameProtocol ? this.#joinPieces(pieces) : pieces,
      );
      return;
    }
    const placed = new Set(
      rules.results === 'lead' ? this.#alreadyPlaced(this.#callsAnsweredFirst(pieces)) : [],
    );
    const results = leads ? [] : this.#results(wanted, run, placed);
    const moved = new Set<Block>(leads ? [] : wanted.flatMap((c) => c.result?.block ?? []));
    for (const piece of pieces) {
      piece.blocks = piece.blocks.filter((block) => !moved.has(sourceOf(this.#originals, block)));
    }
    const strays = this.#strays;
    this.#open = [];
    this.#strays = [];
    if (rules.resultsShareTurns) this.#insertResults(pieces, results, strays);
    else {
      for (const turn of this.#resultTurns(results)) this.out.push(turn);
      if (strays.length > 0) this.out.push({ role: 'user', blocks: strays });
      this.#emitAll(pieces.filter((piece) => piece.blocks.length > 0 || cameEmpty(piece)));
    }
  }

  /** Writes results where no input follows. */
  answer(): void {
    const { rules } = this.plan;
    const wanted = this.#open.filter(
      (call) => rules.results === 'lead' || !this.#staysInPlace(call),
    );
    const strays = this.#strays;
    this.#open = [];
    this.#strays = [];
    if (wanted.length === 0 && strays.length === 0) return;
    const results = this.#results(wanted, undefined, new Set());
    if (rules.resultsShareTurns) {
      const blocks = [...results.map(({ block }) => block), ...strays];
      this.out.push(newTurn(this.#wireSample(), 'user', blocks));
      return;
    }
    for (const turn of this.#resultTurns(results)) this.out.push(turn);
    if (strays.length > 0) this.out.push({ role: 'user', blocks: strays });
  }

  readonly #originals = new Map<Block, Block>();

  /** A turn that came from this history's wire, used to mark new turns. */
  #wireSample(): Turn | undefined {
    return this.plan.rules.sameProtocol ? this.plan.turns[0] : undefined;
  }

  #close(pieces: TurnPiece[], calls: ReadonlySet<IndexedCall>): void {
    this.#open = [...calls];
    if (!this.plan.rules.callsLast) {
      this.#emitAll(pieces);
      return;
    }
    const own = pieces.filter((piece) => piece.role === 'assistant');
    const all = own.flatMap((piece) => piece.blocks);
    const ordered = callsLast(all, (block) => this.#isCall(block));
    const changed = ordered !== all || own.some((piece) => piece.rest || !isUnchanged(piece));
    // Changed turns are joined, because older deployments require roles to alternate.
    if (changed && own.length > 1) {
      const [first, ...others] = own;
      first!.blocks = [...ordered];
      for (const piece of others) piece.blocks = [];
      this.#emitAll(pieces.filter((piece) => piece === first || piece.role !== 'assistant'));
      return;
    }
    if (own.length === 1) own[0]!.blocks = [...ordered];
    this.#emitAll(pieces);
  }

  #isCall(block: Block): boolean {
    return this.plan.table.callOf.has(sourceOf(this.#originals, block));
  }

  /** The call with its new id. */
  #callAsSent(call: IndexedCall): Block {
    const id = this.plan.ids.get(call);
    if (id === undefined) return call.block;
    const block = editNode(call.block, { id });
    this.#originals.set(block, call.block);
    return block;
  }

  /** The result with the id and kind of its call. */
  #resultAsSent(result: IndexedResult): ToolResultBlock {
    const call = result.call!;
    const callId = this.plan.ids.get(call) ?? call.block.id;
    const { block } = result;
    const kind = this.plan.rules.protocol === 'openai-responses' ? call.block.kind : block.kind;
    if (block.callId === callId && block.kind === kind) return block;
    const fitted = editNode(block, { callId, kind });
    this.#originals.set(fitted, block);
    return fitted;
  }

  /** Responses: the result already comes after its call. */
  #staysInPlace(call: IndexedCall): boolean {
    const { result } = call;
    return result !== undefined && !result.inline && result.position > call.position;
  }

  /** The run's turns without results of other turns' calls, and with stray results as text. */
  #inputPieces(run: TurnRun): TurnPiece[] {
    const { turns, table, rules } = this.plan;
    const open = new Set(this.#open);
    const pieces: TurnPiece[] = [];
    for (let i = run.from; i < run.to; i++) {
      const turn = turns[i]!;
      const blocks: Block[] = [];
      let became = false;
      for (const block of turn.blocks) {
        const result = table.resultOf.get(block);
        if (result === undefined) blocks.push(block);
        else if (result.call === undefined) {
          blocks.push(...this.#strayBlocks(result));
          became = true;
        } else if (
          rules.results === 'lead' ? open.has(result.call) : this.#staysInPlace(result.call)
        ) {
          blocks.push(this.#resultAsSent(result));
        }
      }
      // A tool message without a result becomes an ordinary user message.
      const host = became && isLoneResult(turn) && !rules.resultsShareTurns ? undefined : turn;
      pieces.push({ host, role: turn.role, blocks });
    }
    return pieces;
  }

  /** Do exactly the results of the open calls come first? */
  #resultsLead(pieces: readonly TurnPiece[]): boolean {
    const { rules } = this.plan;
    const { resultOf } = this.plan.table;
    const due = new Set(this.#open);
    // Chat templates that ignore ids pair by order.
    const ordered = rules.protocol === 'openai-chat';
    let before = due.size;
    for (const piece of pieces) {
      if (piece.host !== undefined && isAside(piece.host, rules)) continue;
      // An empty message counts as a message.
      if (!rules.resultsShareTurns && cameEmpty(piece) && before > 0) return false;
      for (const block of piece.blocks) {
        const call = resultOf.get(sourceOf(this.#originals, block))?.call;
        if (call === undefined) {
          if (before > 0) return false;
        } else if (due.has(call)) {
          if (ordered && call !== this.#open[this.#open.length - before]) return false;
          due.delete(call);
          before--;
        }
      }
    }
    return before === 0;
  }

  /** Joins neighbours if any of them changed, because older deployments require roles to alternate. */
  #joinPieces(pieces: TurnPiece[]): TurnPiece[] {
    const isOwn = ({ host }: TurnPiece) => host === undefined || !isAside(host, this.plan.rules);
    const own = pieces.filter(isOwn);
    const [first] = own;
    if (first === undefined || own.length < 2 || own.every(isUnchanged)) return pieces;
    first.blocks = own.flatMap((piece) => piece.blocks);
    return pieces.filter((piece) => piece === first || !isOwn(piece));
  }

  /** Calls whose results already come first in the input. */
  #callsAnsweredFirst(pieces: readonly TurnPiece[]): readonly IndexedCall[] {
    const blocks = pieces
      .filter(({ host }) => host === undefined || !isAside(host, this.plan.rules))
      .flatMap((piece) => piece.blocks);
    const { resultOf } = this.plan.table;
    return blocks
      .slice(0, countLeadingResults(blocks))
      .flatMap((block) => resultOf.get(sourceOf(this.#originals, block))?.call ?? []);
  }

  /** Those of these calls whose results are already in their final position. Chat also requires the order of the calls. */
  #alreadyPlaced(ahead: readonly IndexedCall[]): readonly IndexedCall[] {
    return this.plan.rules.protocol === 'openai-chat'
      ? ahead.filter((call, at) => call === this.#open[at])
      : ahead;
  }

  /** The results of these calls in order, with notes for those that were moved. */
  #results(
    calls: readonly IndexedCall[],
    run: TurnRun | undefined,
    placed: ReadonlySet<IndexedCall>,
  ): { block: Block; alone?: Turn }[] {
    const { notes, ids } = this.plan;
    const at = `${this.plan.rules.where}/${this.out.length}`;
    return calls.map((call) => {
      const { result } = call;
      if (result === undefined) {
        notes.add('orphaned_tool_use_repaired', at, call.block.id);
        return { block: missingResult(call.block, ids.get(call) ?? call.block.id) };
      }
      if (!placed.has(call)) notes.add('misplaced_tool_result_relocated', at, call.block.id);
      // Earlier requests were sent without it, so the upstream's cache is lost from here on.
      if (result.run !== run?.index && !result.inline) {
        notes.add('sent_prefix_changed', at, `the result of ${call.block.id} stood elsewhere`);
      }
      return { block: this.#resultAsSent(result), alone: result.alone };
    });
  }

  #strayBlocks(result: IndexedResult): readonly Block[] {
    const { notes } = this.plan;
    const { block } = result;
    const twin = this.#twins().get(block.callId);
    const at = `${this.plan.rules.where}/${this.out.length}`;
    // A later result is no twin: this one was already sent as text by then.
    if (twin !== undefined && twin.run <= result.run + 1 && this.#sameContent(twin.block, block)) {
      notes.add('duplicate_tool_result_removed', at, block.callId);
      return [];
    }
    notes.add('stray_tool_result_as_text', at, block.callId);
    return strayAsText(block);
  }

  #twinOf: Map<string, IndexedResult> | undefined;
  readonly #contents = new Map<ToolResultBlock, readonly unknown[]>();

  /** The first paired result of each id. */
  #twins(): ReadonlyMap<string, IndexedResult> {
    if (this.#twinOf === undefined) {
      this.#twinOf = new Map();
      for (const result of this.plan.table.results) {
        const { callId } = result.block;
        if (result.call !== undefined && !this.#twinOf.has(callId))
          this.#twinOf.set(callId, result);
      }
    }
    return this.#twinOf;
  }

  /** Have two results the same content? The twin's content is cached, since many may be compared with it. */
  #sameContent(twin: ToolResultBlock, block: ToolResultBlock): boolean {
    if (twin.isError !== block.isError || twin.content.length !== block.content.length)
      return false;
    let content = this.#contents.get(twin);
    if (content === undefined) {
      content = comparableContent(twin);
      this.#contents.set(twin, content);
    }
    return Bun.deepEquals(content, comparableContent(block));
  }

  /** Each result as a separate turn. */
  *#resultTurns(results: readonly { block: Block; alone?: Turn }[]): Generator<Turn> {
    for (const { block, alone } of results) {
      if (alone === undefined) yield newTurn(undefined, 'user', [block]);
      else yield alone.blocks[0] === block ? alone : editNode(alone, { blocks: [block] });
    }
  }

  /** Puts results into the first turn of the run, or before it if that is no user turn. */
  #insertResults(
    pieces: readonly TurnPiece[],
    results: readonly { block: Block }[],
    strays: readonly Block[],
  ): void {
    const { rules } = this.plan;
    const lead = results.map(({ block }) => block);
    const others = pieces.filter((p) => p.host === undefined || !isAside(p.host, rules));
    const first = others[0];
    if (first === undefined || first.role !== 'user') {
      const blocks = [...lead, ...strays];
      if (blocks.length > 0) this.out.push(newTurn(this.#wireSample(), 'user', blocks));
      this.#emitAll(pieces);
      return;
    }
    const rest = rules.sameProtocol ? others.flatMap((piece) => piece.blocks) : first.blocks;
    const held = lead.length === 0 ? countLeadingResults(rest) : 0;
    first.blocks = [...lead, ...rest.slice(0, held), ...strays, ...rest.slice(held)];
    const gone = new Set(rules.sameProtocol ? others.slice(1) : []);
    this.#emitAll(pieces.filter((piece) => !gone.has(piece)));
  }

  #emitAll(pieces: readonly TurnPiece[]): void {
    for (const piece of pieces) {
      const { host, role, blocks } = piece;
      if (host !== undefined && !piece.rest && isUnchanged(piece)) this.out.push(host);
      else if (blocks.length === 0) {
        // The turn keeps its place, empty; `fillEmpty` puts text into a Messages turn that stands alone.
        const stays =
          this.plan.rules.sameProtocol && this.plan.rules.resultsShareTurns && !piece.rest;
        if (stays && host !== undefined) this.out.push(editNode(host, { blocks }));
      } else if (host === undefined) this.out.push({ role, blocks });
      else if (piece.rest) this.out.push(newTurn(host, 'assistant', blocks));
      else this.out.push(editNode(host, { blocks }));
    }
  }
}

/** Blocks of one turn. `host` is the turn they came from, if any. */
interface TurnPiece {
  readonly host: Turn | undefined;
  readonly role: Turn['role'];
  blocks: Block[];
  /** A later part of a turn that was split. */
  readonly rest?: boolean;
}

/** The number of results before any other block. */
function countLeadingResults(blocks: readonly Block[]): number {
  const end = blocks.findIndex((block) => block.type !== 'tool-result');
  return end < 0 ? blocks.length : end;
}

const sourceOf = (origin: ReadonlyMap<Block, Block>, block: Block): Block =>
  origin.get(block) ?? block;

/** Does the piece hold exactly the blocks of its turn? */
const isUnchanged = ({ host, blocks }: TurnPiece): boolean =>
  host !== undefined &&
  host.blocks.length === blocks.length &&
  host.blocks.every((block, i) => block === blocks[i]);

const cameEmpty = ({ host }: TurnPiece): boolean => host !== undefined && host.blocks.length === 0;

/** A turn that holds exactly one result, as on Chat and Responses. */
const isLoneResult = (turn: Turn): boolean =>
  turn.blocks.length === 1 && turn.blocks[0]!.type === 'tool-result';

/**
 * Moves text that follows the last call to before the calls; returns the same list if there is none. Blocks
 * of the vendor's own tools may stay after the calls.
 */
function callsLast(blocks: Block[], isCall: (block: Block) => boolean): Block[] {
  const last = blocks.findLastIndex(isCall);
  if (last < 0) return blocks;
  const behind = blocks.slice(last + 1);
  if (!behind.some(isSpoken)) return blocks;
  let first = last;
  while (first > 0 && isCall(blocks[first - 1]!)) first--;
  return [...blocks.slice(0, first), ...behind, ...blocks.slice(first, last + 1)];
}

const isSpoken = (block: Block): boolean =>
  block.type !== 'reasoning' && block.type !== 'tool-call' && block.type !== 'tool-result';
