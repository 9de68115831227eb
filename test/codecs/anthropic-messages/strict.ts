/** Checks every structural rule of the Messages API that can be checked without a key. */

import { isObject, type Json, type JsonObject, tryParse } from '../../../src/lib/json/json.ts';

const TOP = new Set([
  'model',
  'max_tokens',
  'messages',
  'system',
  'tools',
  'tool_choice',
  'stream',
  'temperature',
  'top_p',
  'top_k',
  'stop_sequences',
  'thinking',
  'output_config',
  'metadata',
  'service_tier',
]);
const NAME = /^[a-zA-Z0-9_-]{1,128}$/;
const ID = /^[a-zA-Z0-9_-]+$/;
const ROLES: Readonly<Record<string, readonly string[]>> = {
  text: ['user', 'assistant', 'system'],
  image: ['user'],
  document: ['user'],
  tool_result: ['user'],
  tool_use: ['assistant'],
  thinking: ['assistant'],
  redacted_thinking: ['assistant'],
};
const RESULT_CONTENT = ['text', 'image', 'document', 'search_result', 'tool_reference'];

/** The structural errors that the API would report; pairing of calls and results is not checked. */
export function faults(request: JsonObject): readonly string[] {
  const found: string[] = [];
  const fault = (path: string, what: string) => found.push(`${path}: ${what}`);
  // JSON drops undefined members.
  const body = tryParse(JSON.stringify(request)) as JsonObject;
  for (const key of Object.keys(body)) if (!TOP.has(key)) fault(key, 'extra input');
  if (typeof body.model !== 'string' || body.model === '') fault('model', 'required');
  if (!Number.isInteger(body.max_tokens) || Number(body.max_tokens) < 1)
    fault('max_tokens', 'required');
  const { temperature } = body;
  if (temperature !== undefined && !(Number(temperature) >= 0 && Number(temperature) <= 1)) {
    fault('temperature', 'range');
  }
  if (typeof body.system === 'string' ? body.system.trim() === '' : body.system !== undefined) {
    if (!Array.isArray(body.system) || body.system.length === 0) fault('system', 'empty');
    else checkContent(body.system, 'system', 'system', fault);
  }
  checkThinking(body, fault);
  const calls = checkMessages(body, fault);
  checkTools(body, calls, fault);
  return found;
}

type Fault = (path: string, what: string) => void;

function checkThinking(body: JsonObject, fault: Fault): void {
  const thinking = body.thinking;
  if (!isObject(thinking)) return;
  if (thinking.type === 'enabled') {
    const budget = Number(thinking.budget_tokens);
    if (!(budget >= 1024)) fault('thinking', 'budget too small');
    if (!(budget < Number(body.max_tokens))) fault('thinking', 'budget not below max_tokens');
    if (isObject(body.tool_choice) && ['any', 'tool'].includes(String(body.tool_choice.type))) {
      fault('thinking', 'forced tool');
    }
  }
  if (thinking.type === 'disabled') return;
  if (body.temperature !== undefined && body.temperature !== 1) fault('temperature', 'thinking');
  if (body.top_k !== undefined) fault('top_k', 'thinking');
  if (body.top_p !== undefined && Number(body.top_p) < 0.95) fault('top_p', 'thinking');
}

function checkMessages(body: JsonObject, fault: Fault): boolean {
  const messages = body.messages;
  if (!Array.isArray(messages) || messages.length === 0) {
    fault('messages', 'at least one message is required');
    return false;
  }
  let calls = false;
  let before = '';
  for (const [i, message] of messages.entries()) {
    const path = `messages.${i}`;
    if (!isObject(message)) {
      fault(path, 'not an object');
      continue;
    }
    const { role, content } = message;
    if (Object.keys(message).length !== 2) fault(path, 'extra inputs');
    if (i === 0 && role !== 'user') fault(path, 'first message must be user');
    if (role === before && role !== 'system') fault(path, 'two in a row');
    before = String(role);
    if (typeof content === 'string') {
      if (content.trim() === '') fault(path, 'empty content');
      continue;
    }
    if (!Array.isArray(content) || content.length === 0) {
      fault(path, 'empty content');
      continue;
    }
    checkContent(content, String(role), path, fault);
    checkOrder(content.filter(isObject), String(role), path, fault);
    calls ||= content.some((block) => isObject(block) && block.type === 'tool_use');
    const last = content.at(-1);
    const final = i === messages.length - 1 && role === 'assistant' && isObject(last);
    if (final && last.type === 'text' && String(last.text) !== String(last.text).trimEnd()) {
      fault(path, 'trailing blank');
    }
  }
  return calls;
}

function checkContent(content: readonly Json[], role: string, at: string, fault: Fault): void {
  for (const [i, block] of content.entries()) {
    const path = `${at}.content.${i}`;
    if (!isObject(block)) {
      fault(path, 'not an object');
      continue;
    }
    const type = String(block.type);
    if (!(ROLES[type] ?? []).includes(role)) fault(path, `${type} in ${role}`);
    if (type === 'text' && String(block.text).trim() === '') fault(path, 'blank text');
    if (type === 'thinking' && !block.signature) fault(path, 'no signature');
    if (type === 'tool_use') {
      if (!ID.test(String(block.id))) fault(path, `id ${block.id}`);
      if (!NAME.test(String(block.name))) fault(path, `name ${block.name}`);
      if (!isObject(block.input)) fault(path, 'input is no object');
    }
    if (type === 'tool_result') checkResult(block, path, fault);
    if (type === 'image') checkImage(block, path, fault);
  }
}

function checkResult(block: JsonObject, path: string, fault: Fault): void {
  if (!ID.test(String(block.tool_use_id))) fault(path, `id ${block.tool_use_id}`);
  const { content } = block;
  const empty =
    content === undefined || content === '' || (Array.isArray(content) && content.length === 0);
  if (empty && block.is_error === true) fault(path, 'empty error');
  if (!Array.isArray(content)) return;
  content.forEach((part, i) => {
    if (!isObject(part) || !RESULT_CONTENT.includes(String(part.type)))
      fault(`${path}.${i}`, 'tag');
    else if (part.type === 'text' && String(part.text).trim() === '')
      fault(`${path}.${i}`, 'blank');
  });
}

function checkImage(block: JsonObject, path: string, fault: Fault): void {
  const source = isObject(block.source) ? block.source : {};
  const types = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];
  if (source.type === 'base64' && !types.includes(String(source.media_type)))
    fault(path, 'media type');
  if (source.type === 'url' && !String(source.url).startsWith('http')) fault(path, 'url');
}

function checkOrder(blocks: readonly JsonObject[], role: string, path: string, fault: Fault): void {
  const types = blocks.map(({ type }) => String(type));
  if (role === 'user') {
    const lead = types.findIndex((type) => type !== 'tool_result');
    if (lead >= 0 && types.slice(lead).includes('tool_result')) fault(path, 'results do not lead');
  }
  if (role === 'assistant') {
    const last = types.lastIndexOf('tool_use');
    if (last >= 0 && last !== types.length - 1) fault(path, 'something behind the last call');
    if (types.at(-1)?.endsWith('thinking')) fault(path, 'thinking last');
  }
}

function checkTools(body: JsonObject, calls: boolean, fault: Fault): void {
  const tools = Array.isArray(body.tools) ? body.tools.filter(isObject) : [];
  if (body.tools !== undefined && tools.length === 0) fault('tools', 'empty');
  if (calls && tools.length === 0) fault('tools', 'tool history without tools');
  if (body.tool_choice !== undefined && tools.length === 0) fault('tool_choice', 'no tools');
  const names = tools.map(({ name }) => String(name));
  if (new Set(names).size !== names.length) fault('tools', `names are not unique: ${names}`);
  for (const tool of tools) {
    if (!NAME.test(String(tool.name))) fault('tools', `name ${tool.name}`);
    if (tool.type !== undefined) continue;
    if (!isObject(tool.input_schema) || tool.input_schema.type !== 'object')
      fault('tools', 'schema');
    for (const key of ['anyOf', 'oneOf', 'allOf']) {
      if (isObject(tool.input_schema) && key in tool.input_schema) fault('tools', key);
    }
  }
  const choice = body.tool_choice;
  if (isObject(choice) && choice.type === 'tool' && !names.includes(String(choice.name))) {
    fault('tool_choice', 'unknown tool');
  }
}
