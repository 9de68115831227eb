/** Replacement texts for missing results, results without a call, and empty messages. */

import { isBlank, NO_CONTENT } from '../../conversation/edit.ts';
import type { Block, ToolCallBlock, ToolResultBlock } from '../../conversation/types.ts';

/** A tool's name as every API accepts it: `^[a-zA-Z0-9_-]{1,64}$`. */
export const legalName = (name: string): string =>
  name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || 'unknown';

/**
 * A result for a call that has none. An error result must have text ("content cannot be empty if
 * `is_error` is true"), and the model should read what happened.
 */
export function missingResult(call: ToolCallBlock, id: string): ToolResultBlock {
  return {
    type: 'tool-result',
    callId: id,
    kind: call.kind,
    content: [{ type: 'text', text: 'No result was recorded for this tool call.' }],
    isError: true,
    by: 'client',
  };
}

/** A result without a call as user content: its text, followed by its media. */
export function strayAsText(result: ToolResultBlock): readonly Block[] {
  const texts: string[] = [];
  const media: Block[] = [];
  for (const block of result.content) {
    if (block.type === 'media') media.push(block);
    else {
      const text = blockText(block);
      if (!isBlank(text)) texts.push(text);
    }
  }
  const head = result.isError ? 'Error of an earlier tool call' : 'Result of an earlier tool call';
  const text = texts.length > 0 ? texts.join('\n') : media.length > 0 ? '' : NO_CONTENT;
  return [{ type: 'text', text: `${head}: ${text}`.trimEnd() }, ...media];
}

export function blockText(block: Block): string {
  switch (block.type) {
    case 'text':
    case 'refusal':
    case 'reasoning':
      return block.text;
    case 'opaque':
      return block.text ?? JSON.stringify(block.wire.value) ?? '';
    case 'media':
      return `[${block.media}]`;
    default:
      return '';
  }
}

export const comparableContent = (result: ToolResultBlock): readonly unknown[] =>
  result.content.map((block) =>
    block.type === 'media' ? [block.media, block.source] : blockText(block),
  );
