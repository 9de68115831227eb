/** What a tool that the vendor ran gave back: it stands inside the item of its call. */

import type { ToolResultBlock } from '../../../conversation/types.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { isObject } from '../../../lib/json/json.ts';
import { objects, ownResidue, ownWire, text, wireOf } from '../wire.ts';

/**
 * The readable result of a hosted call of the history: `output` or `error` of an `mcp_call`, `outputs`
 * of a `code_interpreter_call`, `results` of a search. Undefined where the item has none. Its `wire` is
 * the whole item, as that of the call.
 */
export function hostedResult(item: JsonObject): ToolResultBlock | undefined {
  const failure = textOf(item.error);
  const said = failure === '' ? resultText(item) : failure;
  if (said === '') return undefined;
  return {
    type: 'tool-result',
    callId: text(item, 'id') ?? text(item, 'call_id') ?? '',
    kind: 'function',
    content: [{ type: 'text', text: said }],
    isError: failure !== '',
    by: 'provider',
    wire: wireOf(item),
  };
}

/** Is this a result that goes out with the item of its call? */
export function isInCallItem(block: ToolResultBlock): boolean {
  const item = ownWire(block) ?? ownResidue(block);
  return isObject(item) && typeof item.type === 'string' && item.type.endsWith('_call');
}

function resultText(item: JsonObject): string {
  const output = textOf(item.output);
  if (output !== '') return output;
  // An image that the code drew has no words.
  const drawn = objects(item.outputs).map((part) => text(part, 'logs') ?? '[image]');
  if (drawn.length > 0) return drawn.join('\n');
  return objects(item.results).map(searchHitText).join('\n\n');
}

/** A hit of a search: its name or address, and what it says. */
function searchHitText(result: JsonObject): string {
  return ['title', 'filename', 'url', 'text'].flatMap((key) => text(result, key) ?? []).join('\n');
}

function textOf(value: Json | undefined): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
