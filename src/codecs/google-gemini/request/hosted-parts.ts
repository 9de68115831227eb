/** Decodes the parts of tools that Google runs: code and its result, and the calls and responses of its other tools. */

import type { Block, ToolCallBlock, ToolResultBlock } from '../../../conversation/types.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import { field, list, object, text, wireOf } from '../wire.ts';
import type { CallIds } from './call-ids.ts';

const CODE_TOOL = 'code_execution';
const SEARCH = 'web_search';

/** The canonical names of a `toolType`; another has its own in lower case, since its result means nothing elsewhere. */
const TOOL_TYPES: Readonly<Record<string, string>> = {
  GOOGLE_SEARCH_WEB: SEARCH,
  GOOGLE_SEARCH_IMAGE: SEARCH,
};

/** What Google ran, as a call of a hosted tool or as its result; undefined for other parts. */
export function hostedBlock(part: JsonObject, ids: CallIds): Block | undefined {
  const code = object(field(part, 'executableCode'));
  if (code !== undefined) {
    return call(part, CODE_TOOL, { code: text(code.code) ?? '' }, text(code.id), ids);
  }
  const result = object(field(part, 'codeExecutionResult'));
  if (result !== undefined) {
    const outcome = text(result.outcome);
    const failed = outcome !== undefined && outcome !== 'OUTCOME_OK';
    const said: Block = { type: 'text', text: text(result.output) ?? '' };
    return resultOf(part, CODE_TOOL, [said], text(result.id), ids, failed);
  }
  const asked = object(field(part, 'toolCall'));
  if (asked !== undefined) {
    const name = nameOf(asked);
    const args = object(asked.args) ?? {};
    return call(part, name, name === SEARCH ? searchInput(args) : args, text(asked.id), ids);
  }
  const answered = object(field(part, 'toolResponse'));
  if (answered === undefined) return undefined;
  const name = nameOf(answered);
  const response = object(answered.response);
  // Google shows what a search found in `groundingMetadata`; here is only a widget.
  const said: readonly Block[] =
    name === SEARCH || response === undefined
      ? []
      : [{ type: 'text', text: JSON.stringify(response) }];
  return resultOf(part, name, said, text(answered.id), ids, false);
}

function nameOf(tool: JsonObject): string {
  const type = text(field(tool, 'toolType')) ?? '';
  return memberOf(TOOL_TYPES, type) ?? (type.toLowerCase() || 'google_tool');
}

/** The first of the queries stands where other protocols look for it. */
function searchInput(args: JsonObject): JsonObject {
  const [query] = list(args.queries) ?? [];
  return typeof query === 'string' ? { query, ...args } : args;
}

function call(
  part: JsonObject,
  name: string,
  input: JsonObject,
  id: string | undefined,
  ids: CallIds,
): ToolCallBlock {
  return {
    type: 'tool-call',
    id: ids.ofCall(id, name),
    name,
    kind: 'function',
    input: JSON.stringify(input),
    by: 'provider',
    wire: wireOf(part),
  };
}

function resultOf(
  part: JsonObject,
  name: string,
  content: readonly Block[],
  id: string | undefined,
  ids: CallIds,
  isError: boolean,
): ToolResultBlock {
  return {
    type: 'tool-result',
    callId: ids.ofResult(id, name),
    kind: 'function',
    content,
    isError,
    by: 'provider',
    wire: wireOf(part),
  };
}
