/** Restores reasoning and seals at their original positions, in answers that the target made. */

import {
  editNode,
  isClientCall,
  mapBlocks,
  mapUnchanged,
  withParts,
} from '../../conversation/edit.ts';
import type { Notes } from '../../conversation/notes.ts';
import { callKey, textKeys, withoutSpace } from '../../conversation/session/answer-keys.ts';
import type { Target } from '../../conversation/target.ts';
import type {
  Block,
  Conversation,
  ReasoningBlock,
  Sealed,
  ToolCallBlock,
  Turn,
} from '../../conversation/types.ts';
import { isGenuine, isReplayed, type ReplayRules, replayRules, sameMaker } from './replay-rules.ts';
import type { LedgerEntry, SessionLedger } from './session-ledger.ts';
import { withTextSeals } from './text-seals.ts';

export interface RestoreContext {
  readonly ledger: SessionLedger;
  /** Of {@link scopeOf}. */
  readonly scope: string;
  readonly target: Target;
  readonly notes: Notes;
}

interface RestoreState extends RestoreContext {
  readonly rules: ReplayRules;
  /** The client's protocol merges all reasoning of an answer, so its positions are lost. */
  readonly unordered: boolean;
  /** Pieces that have been inserted, since the calls of one answer may be spread over several runs of items. */
  readonly placed: Set<string>;
  /** How many more pieces may be read: a history could name one long answer in every turn. */
  left: number;
}

/** Pieces that may be read in addition to one per turn of the history. */
const SPARE_PIECES = 100_000;

/**
 * Adds the reasoning that the client left out. Returns the same conversation if there is none to add. An
 * answer is completed the same way in every request, so that each request extends the one before.
 */
export function restore(conversation: Conversation, context: RestoreContext): Conversation {
  const { turns, origin } = conversation;
  const chat = origin?.protocol === 'openai-chat';
  const state: RestoreState = {
    ...context,
    rules: replayRules(context.target),
    unordered: chat && context.target.protocol !== 'openai-chat',
    placed: new Set(),
    left: SPARE_PIECES + turns.length,
  };
  const items = splitsAnswers(conversation);
  const out: Turn[] = [];
  let count = 0;
  for (const { run, at, isAnswer } of runsOf(turns, items)) {
    const whole = isAnswer ? restoreAnswer(run, turns, at, items, state) : run;
    if (whole !== run) count++;
    for (const turn of whole) out.push(turn);
  }
  if (count === 0) return conversation;
  context.notes.add('reasoning_restored', '/messages', `${count} answers`);
  return withParts(conversation, { turns: out });
}

/** The keys by which {@link restore} looks the answers of a history up. */
export function historyKeys(
  turns: readonly Turn[],
  conversation: Conversation,
  { scope, target }: Pick<RestoreContext, 'scope' | 'target'>,
): readonly string[] {
  const rules = replayRules(target);
  return [...runsOf(turns, splitsAnswers(conversation))].flatMap(({ run, at, isAnswer }) => {
    if (!isAnswer) return [];
    const calls = run.flatMap((turn) => turn.blocks.filter(isClientCall));
    return keysOf(run, calls, turns, at, { scope, rules }) ?? [];
  });
}

/** Responses splits an answer into items, and each item is a turn. */
const splitsAnswers = ({ origin }: Conversation): boolean =>
  origin?.protocol === 'openai-responses';

interface Run {
  readonly run: readonly Turn[];
  readonly at: number;
  /** It can be completed: a last assistant turn is a prefill, which must not begin with reasoning. */
  readonly isAnswer: boolean;
}

function* runsOf(turns: readonly Turn[], items: boolean): Generator<Run> {
  for (let at = 0; at < turns.length; ) {
    let end = at + 1;
    const isAnswer = turns[at]!.role === 'assistant';
    while (items && isAnswer && turns[end]?.role === 'assistant') end++;
    yield { run: turns.slice(at, end), at, isAnswer: isAnswer && end < turns.length };
    at = end;
  }
}

/** Completes one answer from its ledger entry. Returns the same list if there is nothing to add. */
function restoreAnswer(
  run: readonly Turn[],
  turns: readonly Turn[],
  at: number,
  items: boolean,
  state: RestoreState,
): readonly Turn[] {
  const blocks = run.flatMap((turn) => turn.blocks);
  const calls = blocks.filter(isClientCall);
  const keys = keysOf(run, calls, turns, at, state);
  const entry = keys && state.ledger.find(keys);
  if (entry === undefined || !sameMaker(entry.model, state.target.model)) return run;
  if (entry.protocol !== state.target.protocol) return run;
  state.left -= entry.pieces.length;
  if (state.left < 0) return run;
  const seals = callSeals(entry);
  const { protocol } = state.target;
  const signed = mapUnchanged(withTextSeals(run, entry.pieces, protocol), (turn) =>
    withCallSeals(turn, seals, state.target),
  );
  const reasoning = entry.pieces.flatMap((piece) =>
    piece.type === 'reasoning' &&
    isReplayed(piece.block, state.target, state.rules, calls.length > 0)
      ? [piece.block]
      : [],
  );
  if (reasoning.length === 0) return signed;
  if (needsReasoning(blocks, reasoning, state.target)) {
    const bare = mapUnchanged(signed, withoutReasoning);
    return items
      ? insertItems(bare, entry, reasoning, state)
      : bare.map((turn) => insertBlocks(turn, entry, reasoning, state));
  }
  if (!state.unordered) return signed;
  return mapUnchanged(signed, (turn) => reorder(turn, entry, reasoning, state));
}

/**
 * Moves reasoning that the client sent back to its original positions. Returns the same turn if the order
 * is right already, if a piece is of another answer, or if no position is known for one.
 */
function reorder(
  turn: Turn,
  entry: LedgerEntry,
  reasoning: readonly ReasoningBlock[],
  state: RestoreState,
): Turn {
  const sent = turn.blocks.filter((block) => block.type === 'reasoning');
  const own = reasoningKeys(reasoning);
  const bare = withoutReasoning(turn);
  if (
    sent.length === 0 ||
    bare === undefined ||
    !sent.every((block) => own.has(reasoningKey(block)))
  ) {
    return turn;
  }
  const whole = insertBlocks(bare, entry, reasoning, state);
  const there = reasoningKeys(whole.blocks);
  const complete = sent.every((block) => there.has(reasoningKey(block)));
  return complete && !sameOrder(whole.blocks, turn.blocks) ? whole : turn;
}

/** Identifies a client's reasoning block: by its seal, or by its text if it has none. */
const reasoningKey = ({ sealed, text }: ReasoningBlock): string =>
  sealed === undefined ? `text ${text.trim()}` : `${sealed.protocol} ${sealed.value}`;

/** All keys by which a client may send these blocks back. */
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

/** Whose answers are recognised: those of one owner ('' without auth) by one provider. */
export const scopeOf = (owner: string, { provider }: Target): string => `${owner}\0${provider}`;

/** Characters that are used from either end of the text before an answer, since results can be megabytes. */
const END_LENGTH = 300;

/** The text of the two turns before index `at`, shortened to both ends of each. */
export function textBefore(turns: readonly Turn[], at: number): string {
  return `${ends(turns[at - 1])}\0${ends(turns[at - 2])}`;
}

function ends(turn: Turn | undefined): string {
  const text = textOf(turn, true).trim();
  return withoutSpace(
    text.length <= 2 * END_LENGTH ? text : text.slice(0, END_LENGTH) + text.slice(-END_LENGTH),
  );
}

/** The text of a turn; with `results`, also the text of tool results. */
function textOf(turn: Turn | undefined, results = false): string {
  let text = '';
  for (const block of turn?.blocks ?? []) {
    if (block.type === 'text') text += block.text;
    else if (results && block.type === 'tool-result') {
      for (const part of block.content) if (part.type === 'text') text += part.text;
    }
  }
  return text;
}

/** The keys by which an answer is looked up; undefined: it is not. */
function keysOf(
  run: readonly Turn[],
  calls: readonly ToolCallBlock[],
  turns: readonly Turn[],
  at: number,
  { scope, rules }: Pick<RestoreState, 'scope' | 'rules'>,
): readonly string[] | undefined {
  let text: string | undefined;
  const before = () => {
    text ??= textBefore(turns, at);
    return text;
  };
  if (calls.length > 0) return calls.map(({ id }) => callKey(scope, id, before));
  if (!rules.sealed && rules.text !== 'all') return undefined;
  return textKeys(scope, run.map((turn) => textOf(turn)).join(''), before);
}

/**
 * Does the answer need its reasoning restored? Not if the client sent it back. If the client kept only the
 * text of sealed reasoning, the sealed form replaces it.
 */
function needsReasoning(
  blocks: readonly Block[],
  reasoning: readonly ReasoningBlock[],
  { protocol, profile }: Target,
): boolean {
  const sent = blocks.filter((block) => block.type === 'reasoning');
  if (sent.some(({ sealed }) => sealed !== undefined && sealed.value !== '')) return false;
  if (sent.every(({ text }) => text.trim() === '')) return true;
  return reasoning.some(
    ({ sealed }) => isGenuine(sealed, protocol, profile) && sealed.value !== '',
  );
}

/** The seals of an answer's calls, by call id. */
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
  return mapBlocks(turn, (block) => {
    if (!isClientCall(block) || block.sealed !== undefined) return block;
    const sealed = seals.get(block.id);
    return sealed?.protocol === protocol ? editNode(block, { sealed }) : block;
  });
}

function withoutReasoning(turn: Turn): Turn | undefined {
  const left = mapBlocks(turn, (block) => (block.type === 'reasoning' ? undefined : block));
  return left !== turn && left.blocks.length === 0 ? undefined : left;
}

/** Maps each block to the reasoning that originally preceded it. */
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
  // From the end: a piece goes before the nearest later block that the client still has.
  let behind: Block | undefined;
  for (let i = entry.pieces.length - 1; i >= 0; i--) {
    const piece = entry.pieces[i]!;
    if (piece.type === 'text') behind = text ?? behind;
    else if (piece.type === 'call') behind = calls.get(piece.id) ?? behind;
    else if (piece.type === 'reasoning' && wanted.has(piece.block)) {
      const name = `${entry.id}#${i}`;
      // On Chat reasoning is a field of the message, so its position does not matter.
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
  state: RestoreState,
): Turn {
  const found = placements(turn.blocks, entry, reasoning, state);
  if (found.size === 0) return turn;
  const blocks = turn.blocks.flatMap((block) => [...(found.get(block) ?? []), block]);
  return editNode(turn, { blocks });
}

function insertItems(
  run: readonly Turn[],
  entry: LedgerEntry,
  reasoning: readonly ReasoningBlock[],
  state: RestoreState,
): readonly Turn[] {
  const blocks = run.flatMap((turn) => turn.blocks);
  const found = placements(blocks, entry, reasoning, state);
  return run.flatMap((turn) => {
    const lead = turn.blocks.flatMap((block) => found.get(block) ?? []);
    return [...lead.map((block): Turn => ({ role: 'assistant', blocks: [block] })), turn];
  });
}
