/** Checks the messages of a Chat request: roles, content, and which calls are answered. */

import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import type { Report } from '../../lint.ts';

const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function'];
const NONE: ReadonlySet<string> = new Set();
/** Longer ids are refused with `string_above_max_length`; older deployments allow 40. */
const ID_LIMIT = 64;
/** Part types that each role accepts, as in the API's error messages. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  system: ['text'],
  developer: ['text'],
  user: ['text', 'image_url', 'input_audio', 'file', 'refusal', 'audio'],
  assistant: ['text', 'refusal'],
  tool: ['text'],
};

export function lintMessages(messages: readonly Json[], report: Report): void {
  /** Calls of the last assistant message that no tool message has answered yet. */
  let open = new Set<string>();
  let known = NONE;
  let callMessage = 0;
  const unanswered = () => {
    if (open.size === 0) return;
    const words = `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...open].join(', ')}`;
    report(`/messages/${callMessage}/tool_calls`, 'unanswered-call', words);
  };
  messages.forEach((message, i) => {
    const at = `/messages/${i}`;
    if (!isObject(message)) {
      report(at, 'message-object', `Invalid type for 'messages[${i}]': expected an object.`);
      return;
    }
    const role = String(message.role);
    if (!ROLES.includes(role)) {
      const words = `Invalid value: '${role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.`;
      report(`${at}/role`, 'role', words);
      return;
    }
    lintContent(message, role, i, report);
    if (role === 'tool') {
      lintAnswer(message, i, open, known, report);
      return;
    }
    unanswered();
    known = role === 'assistant' ? lintCalls(message, i, report) : NONE;
    open = new Set(known);
    callMessage = i;
  });
  unanswered();
}

/** Checks a tool message and removes its call from the open ones. */
function lintAnswer(
  message: JsonObject,
  i: number,
  open: Set<string>,
  known: ReadonlySet<string>,
  report: Report,
): void {
  const at = `/messages/${i}`;
  const id = message.tool_call_id;
  if (typeof id !== 'string') {
    const words = `Missing required parameter: 'messages[${i}].tool_call_id'.`;
    report(`${at}/tool_call_id`, 'tool-call-id', words);
    return;
  }
  if (known.size === 0) {
    const words =
      "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
    report(`${at}/role`, 'stray-tool-message', words);
  } else if (!known.has(id)) {
    const words = `Invalid parameter: 'tool_call_id' of '${id}' not found in 'tool_calls' of previous message.`;
    report(`${at}/tool_call_id`, 'unknown-call', words);
  }
  open.delete(id);
}

function lintContent(message: JsonObject, role: string, i: number, report: Report): void {
  const { content } = message;
  const at = `/messages/${i}/content`;
  if (content === undefined || content === null) {
    const other = message.tool_calls ?? message.function_call ?? message.refusal ?? message.audio;
    if (role === 'assistant' && other !== undefined && other !== null) return;
    if (role === 'function') return;
    report(at, 'content-null', "Invalid value for 'content': expected a string, got null.");
    return;
  }
  if (typeof content === 'string') return;
  if (!Array.isArray(content)) {
    const words = `Invalid type for 'messages[${i}].content': expected one of a string or array of objects.`;
    report(at, 'content-type', words);
    return;
  }
  if (content.length === 0) {
    const words = `Invalid 'messages[${i}].content': empty array. Expected an array with minimum length 1, but got an empty array instead.`;
    report(at, 'content-empty', words);
  }
  (content as readonly Json[]).forEach((part, j) => {
    const type = isObject(part) ? part.type : undefined;
    const takes = memberOf(PARTS, role) ?? ['text'];
    if (typeof type !== 'string') {
      const words = `Missing required parameter: 'messages[${i}].content[${j}].type'.`;
      report(`${at}/${j}`, 'part-type', words);
    } else if (!takes.includes(type)) {
      const words = `Invalid value: '${type}'. Supported values are: ${takes.map((t) => `'${t}'`).join(', ')}.`;
      report(`${at}/${j}/type`, 'part-type', words);
    } else if (type === 'text' && isObject(part) && typeof part.text !== 'string') {
      const words = `Missing required parameter: 'messages[${i}].content[${j}].text'.`;
      report(`${at}/${j}/text`, 'part-text', words);
    }
  });
}

/** Checks the calls of a message and returns their ids. */
function lintCalls(message: JsonObject, i: number, report: Report): ReadonlySet<string> {
  const calls = message.tool_calls;
  if (calls === undefined || calls === null) return NONE;
  const at = `/messages/${i}/tool_calls`;
  const path = `messages[${i}].tool_calls`;
  if (!Array.isArray(calls)) {
    report(at, 'tool-calls', `Invalid type for '${path}': expected an array of objects.`);
    return NONE;
  }
  if (calls.length === 0) {
    const words = `Invalid '${path}': empty array. Expected an array with minimum length 1, but got an empty array instead.`;
    report(at, 'tool-calls-empty', words);
  }
  const ids = new Set<string>();
  (calls as readonly Json[]).forEach((call, j) => {
    const place = `${path}[${j}]`;
    if (!isObject(call)) {
      report(`${at}/${j}`, 'tool-calls', `Invalid type for '${place}': expected an object.`);
      return;
    }
    const { id } = call;
    if (typeof id !== 'string' || id === '') {
      report(`${at}/${j}/id`, 'call-id', `Missing required parameter: '${place}.id'.`);
    } else {
      if (id.length > ID_LIMIT) {
        const words = `Invalid '${place}.id': string too long. Expected a string with maximum length ${ID_LIMIT}, but got a string with length ${id.length} instead.`;
        report(`${at}/${j}/id`, 'call-id-long', words);
      }
      if (ids.has(id)) {
        report(
          `${at}/${j}/id`,
          'call-id-twice',
          `Duplicate value for 'tool_call_id' of '${id}' in '${path}'.`,
        );
      }
      ids.add(id);
    }
    lintCall(call, `${at}/${j}`, place, report);
  });
  return ids;
}

function lintCall(call: JsonObject, at: string, path: string, report: Report): void {
  const kind = call.type === 'custom' ? 'custom' : 'function';
  const declared = call[kind];
  if (call.type !== 'function' && call.type !== 'custom') {
    const words =
      call.type === undefined
        ? `Missing required parameter: '${path}.type'.`
        : `Invalid value: '${String(call.type)}'. Supported values are: 'function' and 'custom'.`;
    report(`${at}/type`, 'call-type', words);
  }
  if (!isObject(declared) || typeof declared.name !== 'string') {
    report(
      `${at}/${kind}/name`,
      'call-name',
      `Missing required parameter: '${path}.${kind}.name'.`,
    );
    return;
  }
  const key = kind === 'custom' ? 'input' : 'arguments';
  if (typeof declared[key] !== 'string') {
    const words = `Invalid type for '${path}.${kind}.${key}': expected a string, but got ${declared[key] === undefined ? 'nothing' : 'something else'} instead.`;
    report(`${at}/${kind}/${key}`, 'call-arguments', words);
  }
}
