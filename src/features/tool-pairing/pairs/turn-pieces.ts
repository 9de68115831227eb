/** Turns in the making: pieces of the turns they come from, and how blocks stand in them. */

import type { Block, Turn } from '../../../conversation/types.ts';

/** Blocks that come from one turn, or from none. */
export interface TurnPiece {
  readonly host: Turn | undefined;
  readonly role: Turn['role'];
  blocks: Block[];
  /** A later part of a turn that was split. */
  readonly rest?: boolean;
}

/** How many results stand at the front. */
export function countLeadingResults(blocks: readonly Block[]): number {
  const end = blocks.findIndex((block) => block.type !== 'tool-result');
  return end < 0 ? blocks.length : end;
}

/** The block as it came, for one that goes out changed. */
export const sourceOf = (origin: ReadonlyMap<Block, Block>, block: Block): Block =>
  origin.get(block) ?? block;

/** Exactly the blocks of its turn. */
export const isUnchanged = ({ host, blocks }: TurnPiece): boolean =>
  host !== undefined &&
  host.blocks.length === blocks.length &&
  host.blocks.every((block, i) => block === blocks[i]);

/** A turn that came empty. */
export const cameEmpty = ({ host }: TurnPiece): boolean =>
  host !== undefined && host.blocks.length === 0;

/** A turn that is one result and nothing else, as Chat and Responses write them. */
export const isLoneResult = (turn: Turn): boolean =>
  turn.blocks.length === 1 && turn.blocks[0]!.type === 'tool-result';

/**
 * Text behind the last call moves before the calls it follows; the same list where there is none.
 * What the vendor's own tools do may stand there.
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
