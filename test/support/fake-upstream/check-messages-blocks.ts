/** Checks the content blocks of a Messages request: their members, ids and the content of results. */

import type { Json } from '../../../src/lib/json/json.ts';
import { fail, fields } from './check-messages-fields.ts';
import type { Fields, Strictness } from './check-schema.ts';
import { isRecord, refuseWith } from './refusal.ts';

const CACHE: Fields = { type: 'string', cache_control: 'object?' };

interface Shape {
  fields: Fields;
  required: readonly string[];
}

const SHAPES: Readonly<Record<string, Shape>> = {
  text: { fields: { ...CACHE, text: 'string', citations: 'array?' }, required: ['text'] },
  image: {
    fields: { ...CACHE, source: 'object', transformations: 'object?' },
    required: ['source'],
  },
  document: {
    fields: {
      ...CACHE,
      source: 'object',
      citations: 'object?',
      context: 'string?',
      title: 'string?',
    },
    required: ['source'],
  },
  search_result: {
    fields: { ...CACHE, content: 'array', source: 'string', title: 'string', citations: 'object' },
    required: ['content', 'source', 'title'],
  },
  thinking: {
    fields: { type: 'string', thinking: 'string', signature: 'string' },
    required: ['signature', 'thinking'],
  },
  redacted_thinking: { fields: { type: 'string', data: 'string' }, required: ['data'] },
  tool_use: {
    fields: {
      ...CACHE,
      id: 'string',
      name: 'string',
      input: 'object',
      caller: 'object',
      toolset_name: 'string?',
    },
    required: ['id', 'input', 'name'],
  },
  tool_result: {
    fields: {
      ...CACHE,
      tool_use_id: 'string',
      content: 'any',
      is_error: 'boolean',
      toolset_name: 'string?',
    },
    required: ['tool_use_id'],
  },
  server_tool_use: {
    fields: { ...CACHE, id: 'string', name: 'string', input: 'object', caller: 'object' },
    required: ['id', 'input', 'name'],
  },
  tool_reference: { fields: { ...CACHE, tool_name: 'string' }, required: ['tool_name'] },
};

/** Blocks that are accepted without a check of their content. */
const OTHERS = [
  'web_search_tool_result',
  'web_fetch_tool_result',
  'advisor_tool_result',
  'code_execution_tool_result',
  'bash_code_execution_tool_result',
  'text_editor_code_execution_tool_result',
  'tool_search_tool_result',
  'mcp_tool_use',
  'mcp_tool_result',
  'container_upload',
  'compaction',
  'tool_addition',
  'tool_removal',
  'mcp_tool_listing',
  'fallback',
];
const IN_MESSAGES = [
  ...Object.keys(SHAPES).filter((one) => one !== 'tool_reference'),
  ...OTHERS,
].sort();
const IN_RESULTS = ['document', 'image', 'search_result', 'text', 'tool_reference'];

const CLIENT_ID = /^[a-zA-Z0-9_-]+$/;
const SERVER_ID = /^srvtoolu_[a-zA-Z0-9_]+$/;

function matchId(id: Json | undefined, pattern: RegExp, at: string): void {
  if (!pattern.test(String(id))) fail(at, `String should match pattern '${pattern.source}'`);
}

function checkImage(source: Record<string, Json>, at: string): void {
  if (source.type === 'url' || source.type === 'file') return;
  if (source.type !== 'base64') {
    fail(
      at,
      `Input tag '${String(source.type)}' found using 'type' does not match any of the expected tags: 'base64', 'file', 'url'`,
    );
  }
  const fieldsOf: Fields = { type: 'string', media_type: 'string', data: 'string' };
  fields(source, fieldsOf, ['data', 'media_type'], `${at}.base64`);
  const types = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];
  if (!types.includes(String(source.media_type))) {
    fail(
      `${at}.base64.media_type`,
      "Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
    );
  }
}

function checkResult(block: Record<string, Json>, at: string, strictness: Strictness): void {
  matchId(block.tool_use_id, CLIENT_ID, `${at}.tool_use_id`);
  const { content } = block;
  if (block.is_error === true && (content === undefined || content === '' || isEmpty(content))) {
    fail(at, 'content cannot be empty if `is_error` is true');
  }
  if (content === undefined || typeof content === 'string') return;
  if (!Array.isArray(content)) fail(`${at}.content`, 'Input should be a valid list');
  (content as Json[]).forEach((one, i) => {
    checkBlock(one, `${at}.content.${i}`, IN_RESULTS, strictness);
  });
}

function checkText(text: string, at: string): void {
  const list = at.split('.', 1)[0];
  if (text === '') refuseWith(`${list}: text content blocks must be non-empty`);
  if (text.trim() !== '') return;
  refuseWith(`${list}: text content blocks must contain non-whitespace text`);
}

const isEmpty = (content: Json) => Array.isArray(content) && content.length === 0;

/** @throws Refusal with Anthropic's message; `at` is the block's dotted path */
export function checkBlock(
  block: Json,
  at: string,
  kinds: readonly string[] | undefined,
  strictness: Strictness,
): void {
  if (!isRecord(block)) fail(at, 'Input should be a valid dictionary');
  const value = block as Record<string, Json>;
  const expected = kinds ?? IN_MESSAGES;
  if (value.type === undefined) fail(`${at}.type`, 'Field required');
  const type = String(value.type);
  if (!expected.includes(type)) {
    const tags = expected.map((one) => `'${one}'`).join(', ');
    fail(
      at,
      `Input tag '${type}' found using 'type' does not match any of the expected tags: ${tags}`,
    );
  }
  const shape = SHAPES[type];
  if (shape === undefined) return;
  const path = `${at}.${type}`;
  fields(value, shape.fields, shape.required, path);
  if (isRecord(value.cache_control)) {
    fields(
      value.cache_control,
      { type: 'string', ttl: 'string', scope: 'string' },
      ['type'],
      `${path}.cache_control`,
    );
    if (type === 'text' && value.text === '') {
      refuseWith(`${path}: cache_control cannot be set for empty text blocks`);
    }
  }
  if (type === 'text') checkText(String(value.text), at);
  if (type === 'tool_use') {
    matchId(value.id, CLIENT_ID, `${path}.id`);
    if (!/^[a-zA-Z0-9_-]{1,200}$/.test(String(value.name))) {
      fail(`${path}.name`, "String should match pattern '^[a-zA-Z0-9_-]{1,200}$'");
    }
  }
  if (type === 'server_tool_use') matchId(value.id, SERVER_ID, `${path}.id`);
  if (type === 'tool_result') checkResult(value, path, strictness);
  if (type === 'image') checkImage(value.source as Record<string, Json>, `${path}.source`);
}
