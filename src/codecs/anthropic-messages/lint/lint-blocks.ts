/** Checks single blocks of a Messages history: type, fields, and the role of their message. */

import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { wordSet } from '../../../lib/text/words.ts';
import type { Report } from '../../lint.ts';
import { isKnownField } from '../request/known-fields.ts';

const CALL_ID = /^[a-zA-Z0-9_-]+$/;
const SERVER_ID = /^srvtoolu_[a-zA-Z0-9_]+$/;

/** Block types by the role of their message. The API knows no other types. */
const USERS = new Set(['image', 'document', 'search_result', 'tool_result', 'container_upload']);
const ASSISTANTS = wordSet(`
  thinking redacted_thinking tool_use server_tool_use mcp_tool_use mcp_tool_result
  mcp_tool_listing web_search_tool_result web_fetch_tool_result code_execution_tool_result
  bash_code_execution_tool_result text_editor_code_execution_tool_result tool_search_tool_result
  advisor_tool_result fallback`);
const EITHER = new Set(['text', 'compaction', 'tool_addition', 'tool_removal']);
const NESTED = ['document', 'image', 'search_result', 'text', 'tool_reference'];

const quoted = (types: Iterable<string>) => [...types].map((type) => `'${type}'`).join(', ');

export function lintBlock(
  block: Json,
  at: string,
  path: string,
  role: string,
  report: Report,
): void {
  if (!isObject(block)) {
    report(at, 'block-object', `${path}: Input should be a valid dictionary`);
    return;
  }
  const type = String(block.type);
  if (!USERS.has(type) && !ASSISTANTS.has(type) && !EITHER.has(type)) {
    const words = `${path}: Input tag '${type}' found using 'type' does not match any of the expected tags: ${quoted([...EITHER, ...USERS, ...ASSISTANTS])}`;
    report(at, 'unknown-block', words);
    return;
  }
  const wrong = role === 'user' ? ASSISTANTS.has(type) : role === 'assistant' && USERS.has(type);
  if (wrong) {
    const whose = role === 'user' ? 'assistant' : 'user';
    const words = `${path}: \`${type}\` blocks can only be in \`${whose}\` messages`;
    report(at, 'block-role', words);
  }
  lintFields(block, at, `${path}.${type}`, report);
  switch (type) {
    case 'text':
      lintText(block, at, path, 'messages', report);
      return;
    case 'tool_use':
      lintCall(block, at, path, report);
      return;
    case 'server_tool_use':
      matches(block.id, SERVER_ID, `${at}/id`, `${path}.server_tool_use.id`, report);
      return;
    case 'tool_result':
      lintResult(block, at, path, report);
      return;
    case 'thinking':
    case 'redacted_thinking':
      lintThinking(block, at, path, report);
  }
}

function lintFields(block: JsonObject, at: string, path: string, report: Report): void {
  for (const key of Object.keys(block)) {
    if (isKnownField(String(block.type), key)) continue;
    report(`${at}/${key}`, 'extra-input', `${path}.${key}: Extra inputs are not permitted`);
  }
}

/** Checks a text block. @param where the API's name for the list that holds the block */
export function lintText(
  block: JsonObject,
  at: string,
  path: string,
  where: string,
  report: Report,
): void {
  const { text } = block;
  if (typeof text !== 'string') {
    report(`${at}/text`, 'field-required', `${path}.text.text: Field required`);
  } else if (text === '') {
    if (isObject(block.cache_control)) {
      const words = `${path}.text: cache_control cannot be set for empty text blocks`;
      report(`${at}/cache_control`, 'cache-on-empty-text', words);
    }
    report(`${at}/text`, 'empty-text', `${where}: text content blocks must be non-empty`);
  } else if (text.trim() === '') {
    const words = `${where}: text content blocks must contain non-whitespace text`;
    report(`${at}/text`, 'blank-text', words);
  }
}

function lintCall(block: JsonObject, at: string, path: string, report: Report): void {
  matches(block.id, CALL_ID, `${at}/id`, `${path}.tool_use.id`, report);
  if (typeof block.name !== 'string' || block.name === '') {
    report(`${at}/name`, 'field-required', `${path}.tool_use.name: Field required`);
  }
  if (!isObject(block.input)) {
    const words = `${path}.tool_use.input: Input should be a valid dictionary`;
    report(`${at}/input`, 'input-object', words);
  }
}

function lintResult(block: JsonObject, at: string, path: string, report: Report): void {
  matches(
    block.tool_use_id,
    CALL_ID,
    `${at}/tool_use_id`,
    `${path}.tool_result.tool_use_id`,
    report,
  );
  const { content } = block;
  const empty =
    content === undefined || content === '' || (Array.isArray(content) && content.length === 0);
  if (block.is_error === true && empty) {
    const words = `${path}.tool_result: content cannot be empty if \`is_error\` is true`;
    report(`${at}/content`, 'empty-error-result', words);
  }
  if (content === undefined || typeof content === 'string') return;
  if (!Array.isArray(content)) {
    const words = `${path}.tool_result.content: Input should be a valid list`;
    report(`${at}/content`, 'result-content', words);
    return;
  }
  (content as readonly Json[]).forEach((inner, k) => {
    const place = `${at}/content/${k}`;
    const name = `${path}.tool_result.content.${k}`;
    if (!isObject(inner) || !NESTED.includes(String(inner.type))) {
      const type = isObject(inner) ? String(inner.type) : typeof inner;
      const words = `${name}: Input tag '${type}' found using 'type' does not match any of the expected tags: ${quoted(NESTED)}`;
      report(place, 'unknown-block', words);
      return;
    }
    lintFields(inner, place, `${name}.${String(inner.type)}`, report);
    if (inner.type === 'text') lintText(inner, place, name, 'messages', report);
  });
}

function lintThinking(block: JsonObject, at: string, path: string, report: Report): void {
  const type = String(block.type);
  for (const key of type === 'thinking' ? ['thinking', 'signature'] : ['data']) {
    if (typeof block[key] === 'string') continue;
    report(`${at}/${key}`, 'field-required', `${path}.${type}.${key}: Field required`);
  }
  // Genuine signatures are base64.
  const seal = type === 'thinking' ? block.signature : block.data;
  if (typeof seal === 'string' && !/^[A-Za-z0-9+/_-]+={0,2}$/.test(seal)) {
    const key = type === 'thinking' ? 'signature' : 'data';
    report(`${at}/${key}`, 'signature', `${path}: Invalid \`${key}\` in \`${type}\` block`);
  }
}

function matches(
  value: Json | undefined,
  pattern: RegExp,
  at: string,
  path: string,
  report: Report,
): void {
  if (typeof value === 'string' && pattern.test(value)) return;
  const words =
    value === undefined ? 'Field required' : `String should match pattern '${pattern.source}'`;
  report(at, value === undefined ? 'field-required' : 'id-pattern', `${path}: ${words}`);
}
