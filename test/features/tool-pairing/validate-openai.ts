/** The history rules of OpenAI, Chat and Responses, with its error messages: the first violation, or undefined. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';

type Item = Record<string, Json>;

class Refusal extends Error {}

function refuse(message: string): never {
  throw new Refusal(message);
}

const reportsOf = (check: () => void): string | undefined => {
  try {
    check();
    return undefined;
  } catch (thrown) {
    if (thrown instanceof Refusal) return thrown.message;
    return `the validator itself: ${(thrown as Error).stack}`;
  }
};

const isRecord = (value: unknown): value is Item =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The error for a Chat body's messages. */
export const chatComplaint = (body: JsonObject): string | undefined =>
  reportsOf(() => checkChat(body));

/** The error for a Responses body's input. */
export const responsesComplaint = (body: JsonObject): string | undefined =>
  reportsOf(() => checkResponses(body));

function checkChat(body: JsonObject): void {
  const messages = body.messages as readonly Item[];
  if (!Array.isArray(messages) || messages.length === 0) refuse("Invalid 'messages': empty array.");
  let open: string[] = [];
  let known: string[] = [];
  const unanswered = () =>
    refuse(
      `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${open.join(', ')}`,
    );
  messages.forEach((message, i) => {
    if (!isRecord(message)) refuse(`Invalid type for 'messages[${i}]': expected an object.`);
    const role = String(message.role);
    if (!['system', 'developer', 'user', 'assistant', 'tool'].includes(role))
      refuse(`Invalid value: '${role}'.`);
    checkContent(message, i);
    if (role === 'tool') {
      if (typeof message.tool_call_id !== 'string')
        refuse(`Missing required parameter: 'messages[${i}].tool_call_id'.`);
      if (known.length === 0) {
        refuse(
          "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        );
      }
      const at = open.indexOf(message.tool_call_id);
      if (at < 0)
        refuse(
          `'tool_call_id' of '${message.tool_call_id}' not found in 'tool_calls' of previous message`,
        );
      // OpenAI accepts any order; templates without ids pair by order.
      if (at > 0)
        refuse(
          `The result of '${message.tool_call_id}' stands before others' that were called first`,
        );
      open.shift();
      return;
    }
    if (open.length > 0) unanswered();
    known = role === 'assistant' ? callsOf(message, i) : [];
    open = [...known];
  });
  if (open.length > 0) unanswered();
}

function checkContent(message: Item, i: number): void {
  const { content } = message;
  if (content === null || content === undefined) {
    const says = message.tool_calls ?? message.refusal;
    if (message.role === 'assistant' && says !== undefined && says !== null) return;
    refuse("Invalid value for 'content': expected a string, got null.");
  }
  if (typeof content === 'string') return;
  if (!Array.isArray(content) || content.length === 0)
    refuse(`Invalid 'messages[${i}].content': empty array.`);
  for (const part of content as Json[]) {
    if (!isRecord(part) || typeof part.type !== 'string')
      refuse(`Invalid type for 'messages[${i}].content[0]'.`);
    if (part.type === 'text' && typeof part.text !== 'string')
      refuse(`Invalid type for 'messages[${i}].content[0].text'.`);
  }
}

function callsOf(message: Item, i: number): string[] {
  const calls = message.tool_calls;
  if (calls === undefined) return [];
  if (!Array.isArray(calls) || calls.length === 0)
    refuse(`Invalid 'messages[${i}].tool_calls': empty array.`);
  const ids = (calls as Json[]).map((call) => {
    if (!isRecord(call) || call.type !== 'function' || !isRecord(call.function))
      refuse(`Invalid type for 'messages[${i}].tool_calls[0]'.`);
    const { id } = call;
    if (typeof id !== 'string' || id === '')
      refuse(`Missing required parameter: 'messages[${i}].tool_calls[0].id'.`);
    if (id.length > 64) refuse(`Invalid 'messages[${i}].tool_calls[0].id': string too long.`);
    if (typeof call.function.arguments !== 'string')
      refuse(`Invalid type for 'messages[${i}].tool_calls[0].function.arguments'.`);
    const { name } = call.function;
    if (typeof name !== 'string' || !/^[a-zA-Z0-9_-]{1,64}$/.test(name))
      refuse(`Invalid 'messages[${i}].tool_calls[0].function.name'.`);
    return id;
  });
  if (new Set(ids).size < ids.length) refuse(`Duplicate ids in 'messages[${i}].tool_calls'.`);
  return ids;
}

const PREFIX: Readonly<Record<string, string>> = {
  message: 'msg',
  function_call: 'fc',
  function_call_output: 'fc',
  reasoning: 'rs',
};
const typeOf = (item: Item) => String(item.type ?? 'message');

function checkResponses(body: JsonObject): void {
  const { input } = body;
  if (typeof input === 'string') return;
  if (!Array.isArray(input) || input.length === 0) refuse("Invalid 'input': empty array.");
  const items = input as Item[];
  const ids = new Set<string>();
  const open = new Set<string>();
  items.forEach((item, i) => {
    if (!isRecord(item)) refuse(`Invalid type for 'input[${i}]': expected an object.`);
    const type = typeOf(item);
    if (typeof item.id === 'string') {
      const prefix = PREFIX[type];
      if (!/^[a-zA-Z0-9_-]+$/.test(item.id))
        refuse(
          `Invalid 'input[${i}].id': '${item.id}'. Expected an ID that contains letters, numbers, underscores, or dashes`,
        );
      if (prefix !== undefined && !item.id.startsWith(prefix))
        refuse(
          `Invalid 'input[${i}].id': '${item.id}'. Expected an ID that begins with '${prefix}'.`,
        );
      if (item.id.length > 64) refuse(`Invalid 'input[${i}].id': string too long.`);
      if (ids.has(item.id)) refuse(`Duplicate item found with id ${item.id}.`);
      ids.add(item.id);
    } else if (item.id !== undefined && item.id !== null)
      refuse(`Invalid type for 'input[${i}].id'.`);
    if (type === 'message') checkMessage(item, i);
    else if (type === 'function_call') {
      checkCallId(item, i);
      if (typeof item.arguments !== 'string') refuse(`Invalid type for 'input[${i}].arguments'.`);
      if (typeof item.name !== 'string') refuse(`Missing required parameter: 'input[${i}].name'.`);
      const id = String(item.call_id);
      if (open.has(id)) refuse(`No tool output found for function call ${id}.`);
      open.add(id);
    } else if (type === 'function_call_output') {
      checkCallId(item, i);
      if (typeof item.output !== 'string' && !Array.isArray(item.output))
        refuse(`Missing required parameter: 'input[${i}].output'.`);
      if (!open.delete(String(item.call_id)))
        refuse(`No tool call found for function call output with call_id ${item.call_id}.`);
    } else if (type === 'reasoning') {
      if (!Array.isArray(item.summary))
        refuse(`Missing required parameter: 'input[${i}].summary'.`);
      checkReasoning(item, items[i + 1]);
    } else refuse(`Invalid value: '${type}'.`);
  });
  const [first] = open;
  if (first !== undefined) refuse(`No tool output found for function call ${first}.`);
}

function checkCallId(item: Item, i: number): void {
  const id = item.call_id;
  if (typeof id !== 'string' || id === '')
    refuse(`Missing required parameter: 'input[${i}].call_id'.`);
  if (id.length > 64)
    refuse(
      `Invalid 'input[${i}].call_id': string too long. Expected a string with maximum length 64`,
    );
}

function checkMessage(item: Item, i: number): void {
  if (!['user', 'assistant', 'system', 'developer'].includes(String(item.role)))
    refuse(`Invalid value: '${item.role}'.`);
  if (typeof item.content === 'string') return;
  if (!Array.isArray(item.content)) refuse(`Missing required parameter: 'input[${i}].content'.`);
  const legal =
    item.role === 'assistant'
      ? ['output_text', 'refusal']
      : ['input_text', 'input_image', 'input_file'];
  for (const part of item.content as Item[]) {
    if (!isRecord(part) || !legal.includes(String(part.type)))
      refuse(`Invalid value: '${part?.type}'. Supported values are: ${legal.join()}.`);
  }
}

function checkReasoning(item: Item, next: Item | undefined): void {
  const type = next === undefined ? '' : typeOf(next);
  const made =
    type === 'function_call' ||
    type === 'reasoning' ||
    (type === 'message' && next!.role === 'assistant');
  const named = type !== 'message' || typeof item.id !== 'string' || typeof next!.id === 'string';
  if (!made || !named) {
    refuse(
      `Item '${item.id}' of type 'reasoning' was provided without its required following item.`,
    );
  }
}
