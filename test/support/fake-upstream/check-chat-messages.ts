/** Checks a Chat request's messages: roles, contents, and the pairing of calls and results. */

import type { Json } from '../../../src/lib/json/json.ts';
import {
  expectFields,
  expectFilled,
  expectId,
  expectName,
  expectOneOf,
  expectType,
} from './check-openai-fields.ts';
import type { Fields, Strictness } from './check-schema.ts';
import { isRecord, refuseWith } from './refusal.ts';

type Message = Record<string, Json>;

const ROLES = ['system', 'assistant', 'user', 'function', 'tool', 'developer'];

const FIELDS: Readonly<Record<string, Fields>> = {
  system: { role: 'string', content: 'any', name: 'string?' },
  developer: { role: 'string', content: 'any', name: 'string?' },
  user: { role: 'string', content: 'any', name: 'string?' },
  tool: { role: 'string', content: 'any', tool_call_id: 'string', name: 'string?' },
  function: { role: 'string', content: 'any', name: 'string' },
  assistant: {
    role: 'string',
    content: 'any',
    name: 'string?',
    refusal: 'string?',
    audio: 'object?',
    annotations: 'array?',
    function_call: 'object?',
    tool_calls: 'array',
  },
};

const PARTS: Readonly<Record<string, Fields>> = {
  text: { type: 'string', text: 'string', prompt_cache_breakpoint: 'object?' },
  image_url: { type: 'string', image_url: 'object', prompt_cache_breakpoint: 'object?' },
  input_audio: { type: 'string', input_audio: 'object' },
  file: { type: 'string', file: 'object' },
  refusal: { type: 'string', refusal: 'string' },
};
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  user: ['text', 'image_url', 'input_audio', 'file'],
  assistant: ['text', 'refusal'],
  system: ['text'],
  developer: ['text'],
  tool: ['text'],
  function: ['text'],
};

function checkContent(message: Message, at: string): void {
  const { content } = message;
  const role = String(message.role);
  if (content === null || content === undefined) {
    const says = message.tool_calls ?? message.refusal ?? message.audio ?? message.function_call;
    if (role === 'assistant' && says !== undefined && says !== null) return;
    refuseWith("Invalid value for 'content': expected a string, got null.", `${at}.content`);
  }
  if (typeof content === 'string') return;
  if (!Array.isArray(content)) {
    refuseWith(
      `Invalid type for '${at}.content': expected one of a string or array of objects, but got an object instead.`,
      `${at}.content`,
      'invalid_type',
    );
  }
  expectFilled(content, `${at}.content`);
  content.forEach((part, i) => {
    const where = `${at}.content[${i}]`;
    expectType(part, 'object', where);
    const value = part as Message;
    expectOneOf(value.type, ALLOWED[role] ?? ['text'], `${where}.type`);
    const type = String(value.type);
    // Unknown members of parts are ignored: the vendor's own agents SDK sends some.
    expectFields(value, PARTS[type]!, [type], where, true);
    if (type === 'image_url') {
      const image = value.image_url as Message;
      expectFields(image, { url: 'string', detail: 'string?' }, ['url'], `${where}.image_url`);
      if (!/^(https?:|data:image\/(png|jpeg|jpg|gif|webp);base64,)/.test(String(image.url))) {
        refuseWith(
          `Invalid '${where}.image_url.url'. Expected a valid URL, but got a value with an invalid format.`,
          `${where}.image_url.url`,
          'invalid_value',
        );
      }
    }
  });
}

/** The ids of an assistant message's calls, checked. */
function checkCalls(message: Message, at: string): string[] {
  if (!Array.isArray(message.tool_calls)) return [];
  expectFilled(message.tool_calls, `${at}.tool_calls`);
  const ids = message.tool_calls.map((call, i) => {
    const where = `${at}.tool_calls[${i}]`;
    expectType(call, 'object', where);
    const value = call as Message;
    expectOneOf(value.type, ['function', 'custom'], `${where}.type`);
    const kind = String(value.type);
    // Clients that fold a stream leave `index` in; the vendor ignores it.
    const fields: Fields = { id: 'string', type: 'string', [kind]: 'object', index: 'integer' };
    expectFields(value, fields, ['id', kind], where);
    expectId(value.id, `${where}.id`);
    const inner = value[kind] as Message;
    const text = kind === 'function' ? 'arguments' : 'input';
    expectFields(inner, { name: 'string', [text]: 'string' }, ['name', text], `${where}.${kind}`);
    expectName(inner.name, `${where}.${kind}.name`);
    return String(value.id);
  });
  if (new Set(ids).size < ids.length) {
    refuseWith(`Invalid '${at}.tool_calls': ids must be unique.`, `${at}.tool_calls`);
  }
  return ids;
}

/** @throws Refusal with OpenAI's message */
export function checkChatMessages(messages: readonly Json[], strictness: Strictness): void {
  expectFilled(messages, 'messages');
  // Calls of the last assistant message without a tool message so far, and all its calls.
  let open: string[] = [];
  let known: string[] = [];
  let openAt = 0;
  const unanswered = () =>
    refuseWith(
      `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${open.join(', ')}`,
      `messages.[${openAt}].role`,
    );
  messages.forEach((message, i) => {
    const at = `messages[${i}]`;
    expectType(message, 'object', at);
    if (!isRecord(message)) return;
    expectOneOf(message.role, ROLES, `${at}.role`);
    const role = String(message.role);
    const extra: Fields =
      role === 'assistant' && !strictness.noReasoningField
        ? { reasoning_content: 'string?', reasoning: 'string?', reasoning_details: 'array?' }
        : {};
    expectFields(message, { ...FIELDS[role], ...extra }, [], at, strictness.lenientFields);
    checkContent(message, at);
    if (role === 'tool') {
      const id = message.tool_call_id;
      expectType(id, 'string', `${at}.tool_call_id`);
      if (known.length === 0) {
        refuseWith(
          "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
          `messages.[${i}].role`,
        );
      }
      if (!open.includes(String(id))) {
        refuseWith(
          `Invalid parameter: 'tool_call_id' of '${String(id)}' not found in 'tool_calls' of previous message.`,
          `messages.[${i}].tool_call_id`,
        );
      }
      open = open.filter((one) => one !== id);
      return;
    }
    if (open.length > 0) unanswered();
    known = [];
    if (role !== 'assistant') return;
    known = checkCalls(message, at);
    open = [...known];
    openAt = i;
  });
  if (open.length > 0) unanswered();
}
