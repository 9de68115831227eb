/** Checks a Responses request's input items: shapes, ids, pairing, reasoning. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import {
  expectFields,
  expectFilled,
  expectId,
  expectLength,
  expectName,
  expectOneOf,
  expectType,
} from './check-openai-fields.ts';
import type { Fields, Strictness } from './check-schema.ts';
import { isRecord, refuseWith } from './refusal.ts';
import { encryptedHolds } from './seals.ts';

type Item = Record<string, Json>;

const COMMON: Fields = {
  type: 'string',
  id: 'string?',
  status: 'string?',
  // Codex's own item types, which the vendor accepts.
  internal_chat_message_metadata_passthrough: 'object?',
};

const FIELDS: Readonly<Record<string, Fields>> = {
  message: { ...COMMON, role: 'string', content: 'any', phase: 'string?' },
  function_call: {
    ...COMMON,
    call_id: 'string',
    name: 'string',
    arguments: 'string',
    namespace: 'string?',
    caller: 'object?',
  },
  function_call_output: { ...COMMON, call_id: 'string', output: 'any' },
  custom_tool_call: {
    ...COMMON,
    call_id: 'string',
    name: 'string',
    input: 'string',
    namespace: 'string?',
    caller: 'object?',
  },
  custom_tool_call_output: { ...COMMON, call_id: 'string', output: 'any' },
  reasoning: { ...COMMON, summary: 'array', content: 'array?', encrypted_content: 'string?' },
  item_reference: { type: 'string', id: 'string' },
};
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  message: ['role', 'content'],
  function_call: ['call_id', 'name', 'arguments'],
  function_call_output: ['call_id', 'output'],
  custom_tool_call: ['call_id', 'name', 'input'],
  custom_tool_call_output: ['call_id', 'output'],
  reasoning: ['summary'],
  item_reference: ['id'],
};
/** Item types that are accepted without a check of their content. */
const OTHERS = [
  'file_search_call',
  'computer_call',
  'computer_call_output',
  'web_search_call',
  'image_generation_call',
  'code_interpreter_call',
  'local_shell_call',
  'local_shell_call_output',
  'shell_call',
  'shell_call_output',
  'apply_patch_call',
  'apply_patch_call_output',
  'mcp_list_tools',
  'mcp_approval_request',
  'mcp_approval_response',
  'mcp_call',
  'compaction',
  'tool_search_call',
  'tool_search_output',
  'additional_tools',
  'agent_message',
];
const PREFIX: Readonly<Record<string, string>> = {
  message: 'msg',
  function_call: 'fc',
  function_call_output: 'fc',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctc',
  reasoning: 'rs',
  web_search_call: 'ws',
};

function checkId(item: Item, type: string, at: string): void {
  if (typeof item.id !== 'string') return;
  const shown = `Invalid '${at}.id': '${item.id}'.`;
  const prefix = PREFIX[type];
  if (!/^[a-zA-Z0-9_-]+$/.test(item.id)) {
    refuseWith(
      `${shown} Expected an ID that contains letters, numbers, underscores, or dashes, but this value contained additional characters.`,
      `${at}.id`,
      'invalid_value',
    );
  }
  if (prefix !== undefined && !item.id.startsWith(prefix)) {
    refuseWith(
      `${shown} Expected an ID that begins with '${prefix}'.`,
      `${at}.id`,
      'invalid_value',
    );
  }
  expectLength(item.id, 64, `${at}.id`);
}

const INPUT_PARTS = ['input_text', 'input_image', 'input_file'];

function checkParts(content: Json | undefined, allowed: readonly string[], at: string): void {
  if (typeof content === 'string') return;
  expectType(content, 'array', at);
  (content as Json[]).forEach((part, i) => {
    const where = `${at}[${i}]`;
    expectType(part, 'object', where);
    const value = part as Item;
    expectOneOf(value.type, allowed, where);
    if (value.type === 'input_text' || value.type === 'output_text') {
      const fields: Fields = {
        type: 'string',
        text: 'string',
        ...(value.type === 'output_text'
          ? { annotations: 'array', logprobs: 'array' }
          : { prompt_cache_breakpoint: 'object?' }),
      };
      expectFields(value, fields, ['text'], where);
    }
    if (value.type === 'input_image') {
      if (value.image_url !== undefined)
        expectType(value.image_url, 'string?', `${where}.image_url`);
      if (!value.image_url && !value.file_id) {
        refuseWith(
          `Missing required parameter: '${where}.image_url'.`,
          `${where}.image_url`,
          'missing_required_parameter',
        );
      }
    }
  });
}

function checkMessage(item: Item, at: string): void {
  expectOneOf(item.role, ['assistant', 'system', 'developer', 'user'], `${at}.role`);
  const allowed = item.role === 'assistant' ? ['output_text', 'refusal'] : INPUT_PARTS;
  checkParts(item.content, allowed, `${at}.content`);
}

function checkReasoning(item: Item, body: JsonObject, at: string, strictness: Strictness): void {
  const sealed = typeof item.encrypted_content === 'string' && item.encrypted_content !== '';
  // Open models send raw reasoning; the vendor's own models accept none of it back.
  if (Array.isArray(item.content) && item.content.length > 0 && !strictness.lenientFields) {
    refuseWith(
      `Invalid '${at}.content': array too long. Expected an array with maximum length 0, but got an array with length ${item.content.length} instead.`,
      `${at}.content`,
      'array_above_max_length',
    );
  }
  if (!sealed && body.store === false && typeof item.id === 'string') {
    refuseWith(
      `Item with id '${item.id}' not found. Items are not persisted when \`store\` is set to false. Try again with \`store\` set to true, or remove this item from your input.`,
      'input',
    );
  }
  if (sealed && !strictness.anySeal && !encryptedHolds(String(item.encrypted_content))) {
    refuseWith(
      `The encrypted content for item ${String(item.id)} could not be verified. Reason: Encrypted content could not be decrypted or parsed.`,
      undefined,
      'invalid_encrypted_content',
    );
  }
}

/** What may follow a reasoning item: an item that the model made. */
const MADE = new Set([
  'function_call',
  'custom_tool_call',
  'web_search_call',
  'file_search_call',
  'code_interpreter_call',
  'image_generation_call',
  'local_shell_call',
  'shell_call',
  'apply_patch_call',
  'computer_call',
  'mcp_call',
  'mcp_list_tools',
  'tool_search_call',
  'reasoning',
  'item_reference',
]);

/** A reasoning item with an id requires the exact item that it led to, by id. */
function isFollowed(reasoning: Item, next: Json | undefined): boolean {
  if (!isRecord(next)) return false;
  if (typeOf(next) === 'message') {
    if (next.role !== 'assistant') return false;
    return typeof reasoning.id !== 'string' || typeof next.id === 'string';
  }
  return MADE.has(typeOf(next));
}

const typeOf = (item: Item) => (item.type === undefined ? 'message' : String(item.type));

const PAIRS = [
  ['function_call', 'function_call_output', 'function call'],
  ['custom_tool_call', 'custom_tool_call_output', 'custom tool call'],
  ['tool_search_call', 'tool_search_output', 'tool search call'],
] as const;

function checkPairs(items: readonly Item[], body: JsonObject): void {
  const continued = body.previous_response_id ?? body.conversation;
  for (const [callType, outputType, textPart] of PAIRS) {
    const open = new Set<string>();
    for (const item of items) {
      const id = String(item.call_id);
      // The vendor's own tool searches need no output from the client.
      const own = item.execution === 'server';
      if (typeOf(item) === callType && typeof item.call_id === 'string' && !own) {
        if (open.has(id)) refuseWith(`No tool output found for ${textPart} ${id}.`, 'input');
        open.add(id);
      }
      if (typeOf(item) !== outputType || typeof item.call_id !== 'string' || own) continue;
      if (!open.delete(id) && (continued === undefined || continued === null)) {
        refuseWith(`No tool call found for ${textPart} output with call_id ${id}.`, 'input');
      }
    }
    const [first] = open;
    if (first !== undefined) refuseWith(`No tool output found for ${textPart} ${first}.`, 'input');
  }
}

/** @throws Refusal with OpenAI's message */
export function checkInput(body: JsonObject, strictness: Strictness): void {
  const { input } = body;
  if (input === undefined && (body.prompt || body.previous_response_id || body.conversation))
    return;
  if (input === undefined || input === null) {
    refuseWith(
      'One of "input" or "previous_response_id" or \'prompt\' or \'conversation\' must be provided.',
      'input',
      'missing_required_parameter',
    );
  }
  if (typeof input === 'string') return;
  expectType(input, 'array', 'input');
  const items = input as Item[];
  if (!body.previous_response_id && !body.conversation) expectFilled(items, 'input');
  const ids = new Set<string>();
  items.forEach((item, i) => {
    const at = `input[${i}]`;
    expectType(item, 'object', at);
    const type = typeOf(item);
    if (!OTHERS.includes(type)) {
      expectOneOf(type, [...Object.keys(FIELDS), ...OTHERS], at);
      expectFields(item, FIELDS[type]!, REQUIRED[type]!, at, strictness.lenientFields);
    }
    if (type !== 'item_reference') checkId(item, type, at);
    if (typeof item.id === 'string') {
      if (ids.has(item.id)) {
        refuseWith(
          `Duplicate item found with id ${item.id}. Remove duplicate items from your input and try again.`,
          'input',
        );
      }
      ids.add(item.id);
    }
    expectId(item.call_id, `${at}.call_id`);
    if (type === 'message') checkMessage(item, at);
    if (type.endsWith('tool_call') || type === 'function_call') expectName(item.name, `${at}.name`);
    if (type === 'function_call_output' || type === 'custom_tool_call_output') {
      checkParts(item.output, INPUT_PARTS, `${at}.output`);
    }
    if (type === 'item_reference' && body.store === false) {
      refuseWith(
        `Item with id '${String(item.id)}' not found. Items are not persisted when \`store\` is set to false. Try again with \`store\` set to true, or remove this item from your input.`,
        'input',
      );
    }
    if (type === 'reasoning') {
      checkReasoning(item, body, at, strictness);
      if (!isFollowed(item, items[i + 1])) {
        refuseWith(
          `Item '${String(item.id)}' of type 'reasoning' was provided without its required following item.`,
          'input',
        );
      }
    }
  });
  if (items.some((item) => !isRecord(item))) return;
  checkPairs(items, body);
}
