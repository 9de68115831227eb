/** Checks the input items of a Responses request: ids, content, and which calls are answered. */

import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import type { Report } from '../../lint.ts';

const ID = /^[a-zA-Z0-9_-]+$/;
const ID_LIMIT = 64;
/** The prefixes of item ids. */
const PREFIX: Readonly<Record<string, string>> = {
  message: 'msg',
  function_call: 'fc',
  reasoning: 'rs',
};
/** Output item types of calls that the client runs, and the type of their call. */
const ANSWERS: Readonly<Record<string, string>> = {
  function_call_output: 'function_call',
  custom_tool_call_output: 'custom_tool_call',
  computer_call_output: 'computer_call',
  shell_call_output: 'shell_call',
  apply_patch_call_output: 'apply_patch_call',
};
const CALLS = new Set(Object.values(ANSWERS));
/** Calls that must have an output. */
const MUST_ANSWER = new Set(['function_call', 'custom_tool_call']);
const INPUT_PARTS = ['input_text', 'input_image', 'input_file', 'input_audio'];
const OUTPUT_PARTS = ['output_text', 'refusal'];

const typeOf = (item: JsonObject) => (typeof item.type === 'string' ? item.type : 'message');

/** @param continues the vendor stores earlier items, so outputs may answer calls that are not in the request */
export function lintItems(items: readonly Json[], continues: boolean, report: Report): void {
  const ids = new Set<string>();
  const open = new Map<string, number>();
  const called = new Set<string>();
  items.forEach((item, i) => {
    const at = `/input/${i}`;
    if (!isObject(item)) {
      report(at, 'item-object', `Invalid type for 'input[${i}]': expected an object.`);
      return;
    }
    const type = typeOf(item);
    lintId(item, type, i, ids, report);
    if (type === 'message') lintMessage(item, i, report);
    else if (type === 'reasoning') lintReasoning(items, i, item, report);
    else if (CALLS.has(type)) {
      lintCallId(item, i, report);
      called.add(String(item.call_id));
      if (type === 'function_call') lintCall(item, i, report);
      if (MUST_ANSWER.has(type)) open.set(String(item.call_id), i);
    } else if (Object.hasOwn(ANSWERS, type)) {
      lintCallId(item, i, report);
      const id = String(item.call_id);
      if (!called.has(id) && !continues) {
        const words = `No tool call found for function call output with call_id ${id}.`;
        report(at, 'stray-output', words);
      }
      open.delete(id);
    }
  });
  for (const [id, i] of open) {
    report(`/input/${i}`, 'unanswered-call', `No tool output found for function call ${id}.`);
  }
}

function lintId(item: JsonObject, type: string, i: number, ids: Set<string>, report: Report): void {
  const { id } = item;
  if (id === undefined || id === null || type === 'item_reference') return;
  const at = `/input/${i}/id`;
  if (typeof id !== 'string') {
    report(at, 'item-id', `Invalid type for 'input[${i}].id': expected a string.`);
    return;
  }
  const prefix = memberOf(PREFIX, type);
  if (!ID.test(id)) {
    const words = `Invalid 'input[${i}].id': '${id}'. Expected an ID that contains letters, numbers, underscores, or dashes, but this value contained additional characters.`;
    report(at, 'item-id', words);
  } else if (prefix !== undefined && !id.startsWith(prefix)) {
    const words = `Invalid 'input[${i}].id': '${id}'. Expected an ID that begins with '${prefix}'.`;
    report(at, 'item-id-prefix', words);
  }
  if (ids.has(id)) {
    const words = `Duplicate item found with id ${id}. Remove duplicate items from your input and try again.`;
    report(at, 'duplicate-item', words);
  }
  ids.add(id);
}

function lintCallId(item: JsonObject, i: number, report: Report): void {
  const id = item.call_id;
  const at = `/input/${i}/call_id`;
  if (typeof id !== 'string' || id === '') {
    report(at, 'call-id', `Missing required parameter: 'input[${i}].call_id'.`);
  } else if (id.length > ID_LIMIT) {
    const words = `Invalid 'input[${i}].call_id': string too long. Expected a string with maximum length ${ID_LIMIT}, but got a string with length ${id.length} instead.`;
    report(at, 'call-id-long', words);
  }
}

function lintCall(item: JsonObject, i: number, report: Report): void {
  if (typeof item.name !== 'string' || item.name === '') {
    report(`/input/${i}/name`, 'call-name', `Missing required parameter: 'input[${i}].name'.`);
  }
  if (typeof item.arguments !== 'string') {
    const words = `Invalid type for 'input[${i}].arguments': expected a string.`;
    report(`/input/${i}/arguments`, 'call-arguments', words);
  }
}

function lintMessage(item: JsonObject, i: number, report: Report): void {
  const role = String(item.role);
  const at = `/input/${i}`;
  if (!['user', 'assistant', 'system', 'developer'].includes(role)) {
    const words = `Invalid value: '${role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'.`;
    report(`${at}/role`, 'role', words);
    return;
  }
  const { content } = item;
  if (typeof content === 'string') return;
  if (!Array.isArray(content)) {
    report(`${at}/content`, 'content', `Missing required parameter: 'input[${i}].content'.`);
    return;
  }
  const takes = role === 'assistant' ? OUTPUT_PARTS : INPUT_PARTS;
  (content as readonly Json[]).forEach((part, j) => {
    const type = isObject(part) ? String(part.type) : typeof part;
    if (takes.includes(type)) return;
    const words = `Invalid value: '${type}'. Supported values are: ${takes.map((t) => `'${t}'`).join(', ')}.`;
    report(`${at}/content/${j}/type`, 'part-type', words);
  });
}

/** Reasoning must be followed by the item that it led to: an item of the model. */
function lintReasoning(items: readonly Json[], i: number, item: JsonObject, report: Report): void {
  if (!Array.isArray(item.summary)) {
    const words = `Missing required parameter: 'input[${i}].summary'.`;
    report(`/input/${i}/summary`, 'summary', words);
  }
  const next = items[i + 1];
  const type = isObject(next) ? typeOf(next) : '';
  const own =
    isObject(next) &&
    (type === 'message' ? next.role === 'assistant' : !type.endsWith('_output') && type !== '');
  if (own) return;
  const words = `Item '${String(item.id)}' of type 'reasoning' was provided without its required following item.`;
  report(`/input/${i}`, 'lone-reasoning', words);
}
