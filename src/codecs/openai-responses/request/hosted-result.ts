/** Reads the results of hosted tools, which are part of the item of the call. */

import type { ToolResultBlock } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { objects, ownResidue, ownWire, text, wireOf } from '../wire.ts';

/**
 * The readable result of a hosted call in the history: `output` or `error` of an `mcp_call`, `outputs` of a
 * `code_interpreter_call`, `results` of a search. Undefined if the item has none. Its `wire` is the whole
 * item, like the call's.
 */
export function hostedResult(item: JsonObject): ToolResultBlock | undefined {
  const failure = textOf(item.error);
  const result = failure === '' ? resultText(item) : failure;
  if (result === '') return undefined;
  return {
    type: 'tool-result',
    callId: text(item.id) ?? text(item.call_id) ?? '',
    kind: 'function',
    content: [{ type: 'text', text: result }],
    isError: failure !== '',
    by: 'provider',
    wire: wireOf(item),
  };
}

export function isInCallItem(block: ToolResultBlock): boolean {
  const item = ownWire(block) ?? ownResidue(block);
  return isObject(item) && typeof item.type === 'string' && item.type.endsWith('_call');
}

function resultText(item: JsonObject): string {
  const output = textOf(item.output);
  if (output !== '') return output;
  // Images that the code made have no text.
  const outputs = objects(item.outputs).map((part) => text(part.logs) ?? '[image]');
  if (outputs.length > 0) return outputs.join('\n');
  return objects(item.results).map(searchHitText).join('\n\n');
}

/** A search hit as text: title, file name, address, content. */
function searchHitText(result: JsonObject): string {
  return ['title', 'filename', 'url', 'text'].flatMap((key) => text(result[key]) ?? []).join('\n');
}

function textOf(value: Json | undefined): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
