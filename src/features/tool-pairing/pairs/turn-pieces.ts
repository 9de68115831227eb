/** Pieces of turns that are being written back, and tests on the order of their blocks. */

import type { Block, Turn } from '../../../conversation/types.ts';

/** Blocks of one turn. `host` is the turn they came from, if any. */
export interface TurnPiece {
  readonly host: Turn | undefined;
  readonly role: Turn['role'];
  blocks: Block[];
  /** A later part of a turn that was split. */
  readonly rest?: boolean;
}

/** The number of results before any other block. */
export function countLeadingResults(blocks: readonly Block[]): number {
  const end = blocks.findIndex((block) => block.type !== 'tool-result');
  return end < 0 ? blocks.length : end;
}

/** The original of a block that was changed. */
export const sourceOf = (origin: ReadonlyMap<Block, Block>, block: Block): Block =>
  origin.get(block) ?? block;

/** Does the piece hold exactly the blocks of its turn? */
export const isUnchanged = ({ host, blocks }: TurnPiece): boolean =>
  host !== undefined &&
  host.blocks.length === blocks.length &&
  host.blocks.every((block, i) => block === blocks[i]);

/** A turn that came empty. */
export const cameEmpty = ({ host }: TurnPiece): boolean =>
  host !== undefined && host.blocks.length === 0;

/** A turn that holds exactly one result, as on Chat and Responses. */
export const isLoneResult = (turn: Turn): boolean =>
  turn.blocks.length === 1 && turn.blocks[0]!.type === 'tool-result';

/**
 * Moves text that follows the last call to before the calls; returns the same list if there is none. Blocks
 * of the vendor's own tools may stay after the calls.
 */
export function callsLast(blocks: Block[], isCall: (block: Block) => boolean): Block[] {
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
