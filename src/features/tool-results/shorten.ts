/** Turns the results of the last tool round into short text, and keeps those of earlier rounds as they were sent. */

import { editNode, mapUnchanged } from '../../conversation/edit.ts';
import type { Notes } from '../../conversation/notes.ts';
import type { Block, TextBlock, ToolResultBlock, Turn } from '../../conversation/types.ts';
import { CUT_MARK, cutText } from './cut.ts';
import { type Outcome, readEnvelope, shortText } from './envelope.ts';
import { isToolResult, lastRound } from './rounds.ts';
import { keyOf, type SentShort } from './sent-short.ts';

export interface ShortenOptions {
  /** Characters of one result's text; 0 = no limit. */
  readonly limit: number;
  readonly ledger: SentShort;
  /** The target has no flag for failed results: the words say it. */
  readonly errorsAsText: boolean;
  readonly notes: Notes;
}

/** The same reference where nothing is to be shortened. */
export function shortenResults(turns: readonly Turn[], options: ShortenOptions): readonly Turn[] {
  const round = lastRound(turns);
  if (round === undefined) return turns;
  return mapUnchanged(turns, (turn, at) => {
    if (!turn.blocks.some(isToolResult)) return turn;
    const blocks = mapUnchanged(turn.blocks, (block) => {
      if (!isToolResult(block)) return block;
      const current = at >= round.from && round.ids.has(block.callId);
      return current ? shortNow(block, options) : shortAsBefore(block, options);
    });
    return blocks === turn.blocks ? turn : editNode(turn, { blocks });
  });
}

function shortNow(block: ToolResultBlock, options: ShortenOptions): ToolResultBlock {
  const short = shorten(block, options.limit, options.errorsAsText);
  if (short === block) return block;
  options.ledger.put(keyOf(block.callId, textOf(block)), options.limit);
  options.notes.add('tool_text_shortened', '/messages', block.callId);
  return short;
}

/** History is left alone but for what already went out short: the vendor's prompt cache has that. */
function shortAsBefore(block: ToolResultBlock, options: ShortenOptions): ToolResultBlock {
  const { ledger, notes } = options;
  const text = textOf(block);
  // Only what could have been shortened is looked up.
  if (text === '') return block;
  const limit = ledger.limitOf(keyOf(block.callId, text));
  if (limit === undefined) return block;
  const short = shorten(block, limit, options.errorsAsText);
  if (short !== block) notes.add('tool_text_shortened', '/messages', block.callId);
  return short;
}

const textOf = (block: ToolResultBlock) =>
  block.content.map((part) => (part.type === 'text' ? part.text : '')).join('\n');

/**
 * One result. An executed-tool record becomes words; all texts of the result together keep to the
 * limit. Idempotent: words are no record, and a text that was cut is not cut again.
 */
function shorten(block: ToolResultBlock, limit: number, errorsAsText: boolean): ToolResultBlock {
  let failed = false;
  const said = mapUnchanged(block.content, (part) => {
    if (part.type !== 'text') return part;
    const outcome: Outcome | undefined = readEnvelope(part.text);
    if (outcome === undefined) return part;
    failed ||= !outcome.ok;
    return editNode(part, { text: shortText(outcome) });
  });
  const content = limit > 0 ? within(said, limit) : said;
  if (content === block.content) return block;
  return editNode(block, { content, ...(failed && errorsAsText ? { isError: false } : {}) });
}

/** The parts with their texts, taken together, within the limit. */
function within(parts: readonly Block[], limit: number): readonly Block[] {
  let left = limit;
  let cut = false;
  return mapUnchanged(parts, (part) => {
    if (part.type !== 'text' || part.text === '') return part;
    if (cut) return undefined;
    const text = cutText(part.text, left);
    // Cut now, or when it was first sent: nothing follows it.
    cut = text !== part.text || (text.length > left && text.endsWith(CUT_MARK));
    left -= Math.min(left, [...text].length);
    return text === part.text ? part : (editNode(part, { text }) as TextBlock);
  });
}
