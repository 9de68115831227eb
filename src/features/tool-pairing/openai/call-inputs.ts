/** Makes the arguments of past calls parsable: servers parse the whole history and fail on one that is not. */

import { editNode, mapBlocks, mapUnchanged } from '../../../conversation/edit.ts';
import type { Notes } from '../../../conversation/notes.ts';
import type { ToolCallBlock, Turn } from '../../../conversation/types.ts';
import { isObject, tryParse } from '../../../lib/json/json.ts';

/**
 * Makes the arguments of every function call a JSON object, for Chat and Responses. Clients send back calls
 * that were cut off. llama.cpp and vLLM parse the arguments of the whole history, so every later request
 * would fail ("Failed to parse tool call arguments as JSON"). The text stays readable under `input`, as the
 * Messages codec writes it.
 */
export function parsableInputs(
  turns: readonly Turn[],
  where: string,
  notes: Notes,
): readonly Turn[] {
  return mapUnchanged(turns, (turn, at) => {
    if (turn.role !== 'assistant') return turn;
    return mapBlocks(turn, (block) => {
      if (block.type !== 'tool-call' || block.by === 'provider' || block.kind !== 'function') {
        return block;
      }
      const input = objectText(block);
      if (input === block.input) return block;
      const why = input === '{}' ? 'there are no arguments' : 'the arguments are no JSON object';
      notes.add('tool_input_wrapped', `${where}/${at}`, why);
      return editNode(block, { input });
    });
  });
}

function objectText({ input, wire }: ToolCallBlock): string {
  // A codec that writes the call itself writes {} for empty arguments.
  if (input.trim() === '') return wire === undefined ? input : '{}';
  const value = tryParse(input);
  return isObject(value) ? input : JSON.stringify({ input: value ?? input });
}
