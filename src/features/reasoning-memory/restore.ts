/** Puts reasoning and seals back where they stood, in answers that the target itself made. */

import { editNode, mapUnchanged, withParts } from '../../conversation/edit.ts';
import type { Notes } from '../../conversation/notes.ts';
import type { Target } from '../../conversation/target.ts';
import { isClientCall } from '../../conversation/tools/client-blocks.ts';
import type {
  Block,
  Conversation,
  ReasoningBlock,
  Sealed,
  ToolCallBlock,
  Turn,
} from '../../conversation/types.ts';
import { callKey, type KeyScope, textBefore, textKeys, textOf } from './keys.ts';
import { isGenuine, isReplayed, type ReplayRules, replayRules, sameMaker } from './replay-rules.ts';
import type { LedgerEntry, SessionLedger } from './session-ledger.ts';

export interface RestoreContext {
  readonly ledger: SessionLedger;
  readonly scope: KeyScope;
  readonly target: Target;
  readonly notes: Notes;
}

interface RestoreState extends RestoreContext {
  readonly wanted: ReplayRules;
  /** The client's message has one place for all reasoning of an answer: what stood where is lost. */
  readonly unordered: boolean;
  /** Pieces that have their place: an answer's calls may stand in several runs of items. */
  readonly placed: Set<string>;
  /** Pieces of entries that may still be looked at: a history could name one long answer in every turn. */
  left: number;
}

/** Pieces that are looked at beyond as many as the history has turns. */
const SPARE_PIECES = 100_000;

/**
 * The history with what its clients left out; itself where nothing is known or wanted. The same
 * answer is completed in the same way in every request, so that one turn's messages begin the next's.
 */
export function restore(conversation: Conversation, context: RestoreContext): Conversation {
  const { turns, origin } = conversation;
  const chat = origin?.protocol === 'openai-chat';
  const work: RestoreState = {
    ...context,
    wanted: replayRules(context.target),
    unordered: chat && context.target.protocol !== 'openai-chat',
    placed: new Set(),
    left: SPARE_PIECES + turns.length,
  };
  // Responses spreads an answer over items, each a turn of its own.
  const items = origin?.protocol === 'openai-responses';
  const out: Turn[] = [];
  let count = 0;
  for (let at = 0; at < turns.length; ) {
    let end = at + 1;
    const isAnswer = turns[at]!.role === 'assistant';
    while (items && isAnswer && turns[end]?.role === 'assistant') end++;
    const run = turns.slice(at, end);
    // What nothing follows is a prefill, which no vendor lets begin with reasoning.
    const whole = isAnswer && end < turns.length ? restoreAnswer(run, turns, at, items, work) : run;
    if (whole !== run) count++;
    for (const turn of whole) out.push(turn);
    at = end;
  }
  if (count === 0) return conversation;
  context.notes.add('reasoning_restored', '/messages', `${count} answers`);
  return withParts(conversation, { turns: out });
}

/** One answer with what its entry knows; the same list where that is nothing. */
function restoreAnswer(
  run: readonly Turn[],
  turns: readonly Turn[],
  at: number,
  items: boolean,
  work: RestoreState,
): readonly Turn[] {
  const blocks = run.flatMap((turn) => turn.blocks);
  const calls = blocks.filter(isClientCall);
  const entry = findEntry(run, calls, turns, at, work);
  if (entry === undefined || !sameMaker(entry.model, work.target.model)) return run;
  if (entry.protocol !== work.target.protocol) return run;
  work.left -= entry.pieces.length;
  if (work.left < 0) return run;
  const seals = callSeals(entry);
  const signed = mapUnchanged(run, (turn) => withCallSeals(turn, seals, work.target));
  const reasoning = entry.pieces.flatMap((piece) =>
    piece.type === 'reasoning' &&
    isReplayed(piece.block, work.target, work.wanted, calls.length > 0)
      ? [piece.block]
      : [],
  );
  if (reasoning.length === 0) return signed;
  if (needsReasoning(blocks, reasoning, work.target)) {
    const bare = mapUnchanged(signed, withoutReasoning);
    return items
      ? insertItems(bare, entry, reasoning, work)
      : bare.map((turn) => insertBlocks(turn, entry, reasoning, work));
  }
  if (!work.unordered) return signed;
  return mapUnchanged(signed, (turn) => reorder(turn, entry, reasoning, work));
}

/**
 * A turn whose reasoning the client gave back, with each piece where it stood. The turn itself where
 * they stand so already, are not all of this answer, or one has nothing before which to stand.
 */
function reorder(
  turn: Turn,
  entry: LedgerEntry,
  reasoning: readonly ReasoningBlock[],
  work: RestoreState,
): Turn {
  const held = turn.blocks.filter((block) => block.type === 'reasoning');
  const own = reasoningKeys(reasoning);
  const bare = withoutReasoning(turn);
  if (
    held.length === 0 ||
    bare === undefined ||
    !held.every((block) => own.has(reasoningKey(block)))
  ) {
    return turn;
  }
  const whole = insertBlocks(bare, entry, reasoning, work);
  const there = reasoningKeys(whole.blocks);
  const kept = held.every((block) => there.has(reasoningKey(block)));
  return kept && !sameOrder(whole.blocks, turn.blocks) ? whole : turn;
}

/** By what a client's block is known as a piece of an answer: its seal, or its words without one. */
const reasoningKey = ({ sealed, text }: ReasoningBlock): string =>
  sealed === undefined ? `text ${text.trim()}` : `${sealed.protocol} ${sealed.value}`;

/** The keys under which a client may hold these pieces. */
function reasoningKeys(blocks: readonly Block[]): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const block of blocks) {
    if (block.type !== 'reasoning') continue;
    keys.add(`text ${block.text.trim()}`);
    if (block.sealed !== undefined) keys.add(reasoningKey(block));
  }
  return keys;
}

const sameOrder = (a: readonly Block[], b: readonly Block[]): boolean =>
  a.length === b.length && a.every((block, i) => block === b[i] || sameReasoning(block, b[i]!));

const sameReasoning = (a: Block, b: Block): boolean =>
  a.type === 'reasoning' &&
  b.type === 'reasoning' &&
  a.text === b.text &&
  a.sealed?.value === b.sealed?.value;

function findEntry(
  run: readonly Turn[],
  calls: readonly ToolCallBlock[],
  turns: readonly Turn[],
  at: number,
  { ledger, scope, wanted }: RestoreState,
): LedgerEntry | undefined {
  let words: string | undefined;
  const before = () => {
    words ??= textBefore(turns, at);
    return words;
  };
  if (calls.length > 0) return ledger.find(calls.map(({ id }) => callKey(scope, id, before)));
  if (!wanted.sealed && wanted.text !== 'all') return undefined;
  return ledger.find(textKeys(scope, run.map((turn) => textOf(turn)).join(''), before));
}

/**
 * Is there reasoning to be put back? Not where the client gave it back itself; but where it kept only
 * the words of what was sealed, the whole takes their place.
 */
function needsReasoning(
  blocks: readonly Block[],
  reasoning: readonly ReasoningBlock[],
  { protocol, profile }: Target,
): boolean {
  const held = blocks.filter((block) => block.type === 'reasoning');
  if (held.some(({ sealed }) => sealed !== undefined && sealed.value !== '')) return false;
  if (held.every(({ text }) => text.trim() === '')) return true;
  return reasoning.some(
    ({ sealed }) => isGenuine(sealed, protocol, profile) && sealed.value !== '',
  );
}

/** The seals of an answer's calls, by their ids. */
function callSeals({ pieces }: LedgerEntry): ReadonlyMap<string, Sealed> {
  const seals = new Map<string, Sealed>();
  const seen = new Set<string>();
  for (const piece of pieces) {
    if (piece.type !== 'call' || seen.has(piece.id)) continue;
    seen.add(piece.id);
    if (piece.sealed !== undefined) seals.set(piece.id, piece.sealed);
  }
  return seals;
}

function withCallSeals(turn: Turn, seals: ReadonlyMap<string, Sealed>, { protocol }: Target): Turn {
  if (seals.size === 0) return turn;
  const blocks = mapUnchanged(turn.blocks, (block): Block => {
    if (!isClientCall(block) || block.sealed !== undefined) return block;
    const sealed = seals.get(block.id);
    return sealed?.protocol === protocol ? editNode(block, { sealed }) : block;
  });
  return blocks === turn.blocks ? turn : editNode(turn, { blocks });
}

function withoutReasoning(turn: Turn): Turn | undefined {
  const blocks = turn.blocks.filter((block) => block.type !== 'reasoning');
  if (blocks.length === turn.blocks.length) return turn;
  return blocks.length === 0 ? undefined : editNode(turn, { blocks });
}

/** The blocks of the run in front of which each piece of reasoning stood. */
function placements(
  blocks: readonly Block[],
  entry: LedgerEntry,
  reasoning: readonly ReasoningBlock[],
  { placed, target }: RestoreState,
): ReadonlyMap<Block, readonly ReasoningBlock[]> {
  const text = blocks.find((block) => block.type === 'text');
  const calls = new Map<string, Block>();
  for (const block of blocks) {
    if (isClientCall(block) && !calls.has(block.id)) calls.set(block.id, block);
  }
  const wanted = new Set<Block>(reasoning);
  const out = new Map<Block, ReasoningBlock[]>();
  // From the end: the nearest block behind a piece that the client still has is where it stood.
  let behind: Block | undefined;
  for (let i = entry.pieces.length - 1; i >= 0; i--) {
    const piece = entry.pieces[i]!;
    if (piece.type === 'text') behind = text ?? behind;
    else if (piece.type === 'call') behind = calls.get(piece.id) ?? behind;
    else if (wanted.has(piece.block)) {
      const name = `${entry.id}#${i}`;
      // On Chat reasoning is a field of its message, wherever it was said.
      const anchor = behind ?? (target.protocol === 'openai-chat' ? blocks[0] : undefined);
      if (anchor === undefined || placed.has(name)) continue;
      placed.add(name);
      const before = out.get(anchor);
      if (before === undefined) out.set(anchor, [piece.block]);
      else before.push(piece.block);
    }
  }
  for (const pieces of out.values()) pieces.reverse();
  return out;
}

function insertBlocks(
  turn: Turn,
  entry: LedgerEntry,
  reasoning: readonly ReasoningBlock[],
  work: RestoreState,
): Turn {
  const found = placements(turn.blocks, entry, reasoning, work);
  if (found.size === 0) return turn;
  const blocks = turn.blocks.flatMap((block) => [...(found.get(block) ?? []), block]);
  return editNode(turn, { blocks });
}

function insertItems(
  run: readonly Turn[],
  entry: LedgerEntry,
  reasoning: readonly ReasoningBlock[],
  work: RestoreState,
): readonly Turn[] {
  const blocks = run.flatMap((turn) => turn.blocks);
  const found = placements(blocks, entry, reasoning, work);
  return run.flatMap((turn) => {
    const lead = turn.blocks.flatMap((block) => found.get(block) ?? []);
    return [...lead.map((block): Turn => ({ role: 'assistant', blocks: [block] })), turn];
  });
}
