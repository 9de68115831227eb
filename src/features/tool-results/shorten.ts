/** Shortens the results of the last tool round, and keeps earlier ones as short as they were sent. */

import {
  editNode,
  isClientCall,
  isClientResult,
  mapBlocks,
  mapUnchanged,
} from '../../conversation/edit.ts';
import type { Notes } from '../../conversation/notes.ts';
import type { Block, TextBlock, ToolResultBlock, Turn } from '../../conversation/types.ts';
import { readEnvelope, shortText } from './envelope.ts';
import { resultKey, type ShortResultLedger } from './short-result-ledger.ts';

export interface ShortenOptions {
  /** Maximum characters of one result's text; 0 means no limit. */
  readonly limit: number;
  readonly ledger: ShortResultLedger;
  /** The target has no flag for failed results, so the text has to say it. */
  readonly errorsAsText: boolean;
  readonly notes: Notes;
}

/** Returns the same reference where there is nothing to shorten. */
export function shortenResults(turns: readonly Turn[], options: ShortenOptions): readonly Turn[] {
  const round = lastRound(turns);
  if (round === undefined) return turns;
  return mapUnchanged(turns, (turn, at) => {
    if (!turn.blocks.some(isClientResult)) return turn;
    return mapBlocks(turn, (block) => {
      if (!isClientResult(block)) return block;
      const isCurrent = at >= round.from && round.ids.has(block.callId);
      return isCurrent ? shortenNew(block, options) : shortenAsSent(block, options);
    });
  });
}

const callIds = (turn: Turn) =>
  turn.role === 'assistant' ? turn.blocks.filter(isClientCall).map(({ id }) => id) : [];

/**
 * The last round of calls: the index of its first assistant turn, and the ids of its calls. Neighbouring
 * assistant turns are one answer (Responses has one item per call). Undefined if there is no call.
 */
function lastRound(
  turns: readonly Turn[],
): { readonly from: number; readonly ids: ReadonlySet<string> } | undefined {
  const last = turns.findLastIndex((turn) => callIds(turn).length > 0);
  if (last < 0) return undefined;
  let from = last;
  while (from > 0 && turns[from - 1]!.role === 'assistant') from--;
  return { from, ids: new Set(turns.slice(from, last + 1).flatMap(callIds)) };
}

/** The keys of all results with text, those of the last round too: it may have been sent before. */
export const resultKeys = (turns: readonly Turn[]): readonly string[] =>
  turns.flatMap(({ blocks }) =>
    blocks.flatMap((block) => {
      const text = isClientResult(block) ? textOf(block) : '';
      return isClientResult(block) && text !== '' ? [resultKey(block.callId, text)] : [];
    }),
  );

function shortenNew(block: ToolResultBlock, options: ShortenOptions): ToolResultBlock {
  const short = shorten(block, options.limit, options.errorsAsText);
  if (short === block) return block;
  options.ledger.put([resultKey(block.callId, textOf(block))], options.limit);
  options.notes.add('tool_text_shortened', '/messages', block.callId);
  return short;
}

/** Changes only what was sent short before: the vendor's prompt cache holds the short text. */
function shortenAsSent(block: ToolResultBlock, options: ShortenOptions): ToolResultBlock {
  const { ledger, notes } = options;
  const text = textOf(block);
  // A result without text was never shortened.
  if (text === '') return block;
  const limit = ledger.find([resultKey(block.callId, text)]);
  if (limit === undefined) return block;
  const short = shorten(block, limit, options.errorsAsText);
  if (short !== block) notes.add('tool_text_shortened', '/messages', block.callId);
  return short;
}

const textOf = (block: ToolResultBlock) =>
  block.content.map((part) => (part.type === 'text' ? part.text : '')).join('\n');

/**
 * Shortens one result: an executed-tool record becomes plain text, and all texts of the result together
 * keep to the limit. Idempotent: plain text is no record, and a text that was cut is not cut again.
 */
function shorten(block: ToolResultBlock, limit: number, errorsAsText: boolean): ToolResultBlock {
  let failed = false;
  const plain = mapUnchanged(block.content, (part) => {
    if (part.type !== 'text') return part;
    const outcome = readEnvelope(part.text);
    if (outcome === undefined) return part;
    failed ||= !outcome.ok;
    return editNode(part, { text: shortText(outcome) });
  });
  const content = limit > 0 ? cutParts(plain, limit) : plain;
  if (content === block.content) return block;
  return editNode(block, { content, ...(failed && errorsAsText ? { isError: false } : {}) });
}

/** Cuts the texts of all parts together to `limit` characters. */
function cutParts(parts: readonly Block[], limit: number): readonly Block[] {
  let left = limit;
  let cut = false;
  return mapUnchanged(parts, (part) => {
    if (part.type !== 'text' || part.text === '') return part;
    if (cut) return undefined;
    const text = cutText(part.text, left);
    // Cut now, or when it was first sent: the parts after it are dropped.
    cut = text !== part.text || (text.length > left && text.endsWith(CUT_MARK));
    left -= Math.min(left, [...text].length);
    return text === part.text ? part : (editNode(part, { text }) as TextBlock);
  });
}

/** The end of a cut text. It is not counted in the limit. */
const CUT_MARK = '...(truncated)';

/**
 * The first `limit` characters (Unicode code points) and the mark. Returns the text itself if it is short
 * enough or was cut to this length before.
 */
function cutText(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const body = text.endsWith(CUT_MARK) ? text.slice(0, -CUT_MARK.length) : text;
  if (body !== text && endOf(body, limit) === body.length) return text;
  const end = endOf(text, limit);
  return end === text.length ? text : text.slice(0, end) + CUT_MARK;
}

/** The index after the first `limit` code points. */
function endOf(text: string, limit: number): number {
  if (text.length <= limit) return text.length;
  let at = 0;
  for (let left = limit; left > 0 && at < text.length; left--) {
    at += text.codePointAt(at)! > 0xffff ? 2 : 1;
  }
  return at;
}
