/** Repairs Chat messages whose form the API refuses: no content, an empty list of calls, arguments that are no string. */

import { editNode, mapUnchanged } from '../../../conversation/edit.ts';
import type { Block, Turn } from '../../../conversation/types.ts';
import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import { legalName } from '../replacements.ts';

// tools[].function.name and tool_calls[].function.name
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/** The turns with messages that the API accepts. The codec writes an edited one anew. */
export function cleanChat(turns: readonly Turn[], note: (at: number) => void): readonly Turn[] {
  return mapUnchanged(turns, (turn, at) => {
    const value = turn.wire?.protocol === 'openai-chat' ? turn.wire.value : undefined;
    if (!isObject(value)) return turn;
    const blocks = mapUnchanged(turn.blocks, cleanCall);
    if (blocks === turn.blocks && !isRefused(value)) return turn;
    note(at);
    // Instructions without parts cannot be written in another form.
    const isInstruction = turn.role === 'system' || turn.role === 'developer';
    if (isInstruction && turn.blocks.length === 0) return undefined;
    return editNode(turn, { blocks });
  });
}

function cleanCall(block: Block): Block {
  if (block.type === 'tool-result') {
    const value = block.wire?.value;
    return isObject(value) && isRefused(value) ? editNode(block, {}) : block;
  }
  if (block.type !== 'tool-call' || block.wire === undefined) return block;
  const { value } = block.wire;
  if (!isObject(value)) return block;
  const custom = value.type === 'custom';
  const inner = custom ? value.custom : value.function;
  const typed = custom || value.type === 'function';
  const text = isObject(inner) && typeof (custom ? inner.input : inner.arguments) === 'string';
  if (typed && text && NAME.test(block.name)) return block;
  return editNode(block, { name: legalName(block.name) });
}

/** "Invalid value for 'content': expected a string, got null."; an empty array is refused like it. */
function isRefused(message: JsonObject): boolean {
  const { content, tool_calls: calls, role } = message;
  if (Array.isArray(calls) && calls.length === 0) return true;
  if (Array.isArray(content)) return content.length === 0;
  if (content !== null && content !== undefined) return false;
  if (role !== 'assistant') return true;
  const alternatives = [calls, message.refusal, message.audio, message.function_call];
  return !alternatives.some((value) => value !== undefined && value !== null);
}
