/** Arguments of past calls: servers parse them, and one that cannot be parsed would end the conversation. */

import { editNode, mapUnchanged } from '../../../conversation/edit.ts';
import type { Notes } from '../../../conversation/notes.ts';
import type { Block, ToolCallBlock, Turn } from '../../../conversation/types.ts';
import { isObject, tryParse } from '../../../lib/json/json.ts';

/**
 * The turns with a JSON object as the arguments of every function call, for Chat and Responses. A call
 * that was cut off comes back from its client as it is; llama.cpp and vLLM parse the arguments of the
 * whole history, so that every later request would fail ("Failed to parse tool call arguments as JSON").
 * The words stay readable under `input`, as the Messages codec writes them.
 */
export function parsableInputs(
  turns: readonly Turn[],
  where: string,
  notes: Notes,
): readonly Turn[] {
  return mapUnchanged(turns, (turn, at) => {
    if (turn.role !== 'assistant') return turn;
    const blocks = mapUnchanged(turn.blocks, (block): Block => {
      if (block.type !== 'tool-call' || block.by === 'provider' || block.kind !== 'function') {
        return block;
      }
      const input = objectText(block);
      if (input === block.input) return block;
      const why = input === '{}' ? 'there are no arguments' : 'the arguments are no JSON object';
      notes.add('tool_input_wrapped', `${where}/${at}`, why);
      return editNode(block, { input });
    });
    return blocks === turn.blocks ? turn : editNode(turn, { blocks });
  });
}

function objectText({ input, wire }: ToolCallBlock): string {
  // Codecs write nothing as {} themselves, where they write the call at all.
  if (input.trim() === '') return wire === undefined ? input : '{}';
  const value = tryParse(input);
  return isObject(value) ? input : JSON.stringify({ input: value ?? input });
}
