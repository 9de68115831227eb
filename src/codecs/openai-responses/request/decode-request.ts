/** Decodes a Responses request body into a conversation, one turn for each input item. */

import { invalid, missing, wrongType } from '../../../conversation/errors.ts';
import { type KnownNodes, NOTHING_KNOWN } from '../../../conversation/session/known-nodes.ts';
import type { Block, Conversation, Tool, Turn } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { objects, PROTOCOL } from '../wire.ts';
import { decodeInputItem } from './decode-items.ts';
import { decodeSettings } from './decode-settings.ts';
import { addLoadedTools, decodeTool } from './decode-tools.ts';

/** Fields that may replace `input`, because the server then knows the prompt. */
const INPUT_ELSEWHERE = ['previous_response_id', 'conversation', 'prompt'];

/** @throws GatewayError invalid_request with `param` naming the field */
export function decodeRequest(body: Json, known: KnownNodes = NOTHING_KNOWN): Conversation {
  if (!isObject(body)) {
    throw invalid('We could not parse the JSON body of your request: expected a JSON object.');
  }
  const model = body.model;
  if (typeof model !== 'string' || model === '') {
    if (model === undefined || model === null || model === '') {
      throw missing('model', 'missing_required_parameter');
    }
    throw wrongType('model', 'a string', model);
  }
  const system = decodeInstructions(body.instructions);
  const turns = decodeInput(body, known);
  const declared = known.tools(body, decodeTools);
  const tools = addLoadedTools(declared, toolsLoadedBy(turns));
  const settings = decodeSettings(body);
  const parts = { model, system, turns, tools, settings };
  return { ...parts, origin: { protocol: PROTOCOL, value: body, parts } };
}

function decodeInstructions(value: Json | undefined): readonly Block[] {
  if (value === undefined || value === null || value === '') return [];
  if (typeof value === 'string') return [{ type: 'text', text: value }];
  // In response objects, instructions may be a list of items. Some clients send such a list.
  if (Array.isArray(value)) {
    return value.flatMap((item: Json, i) => decodeInputItem(item, `instructions[${i}]`).blocks);
  }
  throw wrongType('instructions', 'a string', value);
}

function decodeInput(body: JsonObject, known: KnownNodes): readonly Turn[] {
  const input = body.input;
  if (typeof input === 'string') {
    return [{ role: 'user', blocks: [{ type: 'text', text: input }] }];
  }
  if (Array.isArray(input)) {
    return input.map((item: Json, i) => known.turn(item, `input[${i}]`, decodeInputItem));
  }
  if (input === undefined || input === null) {
    if (INPUT_ELSEWHERE.some((key) => body[key] !== undefined && body[key] !== null)) return [];
    throw missing('input', 'missing_required_parameter');
  }
  throw wrongType('input', 'one of a string or an array of objects', input);
}

function decodeTools({ tools: value }: JsonObject): readonly Tool[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw wrongType('tools', 'an array of objects', value);
  return value.flatMap((tool: Json, i) => decodeTool(tool, `tools[${i}]`));
}

/** The tools that input items declare: `additional_tools` and the output of a tool search. */
export function toolsLoadedBy(turns: readonly Turn[]): readonly Tool[] {
  const tools: Tool[] = [];
  turns.forEach((turn, i) => {
    const item = turn.wire?.value;
    if (!isObject(item)) return;
    if (item.type !== 'additional_tools' && item.type !== 'tool_search_output') return;
    objects(item.tools).forEach((tool, k) => {
      tools.push(...decodeTool(tool, `input[${i}].tools[${k}]`));
    });
  });
  return tools;
}
