/** Tells calls and results of the client's tools from those of tools that the vendor runs itself. */

import type { Block, ToolCallBlock, ToolResultBlock } from '../types.ts';

/** A call that the client (or this gateway) answers. */
export const isClientCall = (block: Block): block is ToolCallBlock =>
  block.type === 'tool-call' && block.by !== 'provider';

/** A result that the model reads as a tool message; the vendor's own tools answer in blocks of their own. */
export const isClientResult = (block: Block): block is ToolResultBlock =>
  block.type === 'tool-result' && block.by !== 'provider';
