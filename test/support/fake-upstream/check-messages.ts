/** Checks a Messages request, with Anthropic's messages. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { checkBlock } from './check-messages-blocks.ts';
import { fail, fields, wantType } from './check-messages-fields.ts';
import { checkPairing } from './check-messages-pairing.ts';
import { checkThinking, checkThinkingParameter } from './check-messages-thinking.ts';
import { checkMessagesTools } from './check-messages-tools.ts';
import type { Fields, Strictness } from './check-schema.ts';
import { isRecord, refuseWith } from './refusal.ts';

const TOP: Fields = {
  model: 'string',
  messages: 'array',
  max_tokens: 'integer',
  cache_control: 'object?',
  container: 'any',
  diagnostics: 'object?',
  inference_geo: 'string?',
  metadata: 'object',
  output_config: 'object',
  service_tier: 'string',
  speed: 'string?',
  stop_sequences: 'array',
  stream: 'boolean',
  system: 'any',
  temperature: 'number',
  thinking: 'object',
  tool_choice: 'object',
  tools: 'array',
  top_k: 'integer',
  top_p: 'number',
  user_profile_id: 'string',
  workspace_id: 'string',
};

/** Accepted only with their beta header, else refused as unknown. */
const BETA: Readonly<Record<string, RegExp>> = {
  context_management: /context-management|compact/,
  mcp_servers: /mcp-client/,
  output_format: /structured-outputs/,
  compaction: /compact/,
  fallbacks: /fallback/,
  thread: /message-threads/,
};

function checkSystem(system: Json | undefined): void {
  if (system === undefined || typeof system === 'string') return;
  if (!Array.isArray(system)) fail('system', 'Input should be a valid list');
  (system as Json[]).forEach((block, i) => {
    checkBlock(block, `system.${i}`, ['text'], {});
  });
}

function checkSampling(body: JsonObject): void {
  if ((body.max_tokens as number) < 1) {
    fail('max_tokens', 'Input should be greater than or equal to 1');
  }
  for (const key of ['temperature', 'top_p']) {
    const value = body[key];
    if (typeof value !== 'number') continue;
    if (value < 0) fail(key, 'Input should be greater than or equal to 0');
    if (value > 1) fail(key, 'Input should be less than or equal to 1');
  }
  const stops = (body.stop_sequences ?? []) as Json[];
  stops.forEach((stop, i) => {
    wantType(stop, 'string', `stop_sequences.${i}`);
    if (String(stop).trim() === '') {
      refuseWith('stop_sequences: each stop sequence must contain non-whitespace');
    }
  });
  if (isRecord(body.metadata)) fields(body.metadata, { user_id: 'string?' }, [], 'metadata');
  if (isRecord(body.output_config)) {
    fields(
      body.output_config,
      { effort: 'string?', format: 'object?', task_budget: 'object?' },
      [],
      'output_config',
    );
  }
}

/** Roles, contents and blocks of one message. */
function checkMessage(message: Json, i: number, last: boolean, strictness: Strictness): void {
  const at = `messages.${i}`;
  if (!isRecord(message)) fail(at, 'Input should be a valid dictionary');
  const value = message as Record<string, Json>;
  const extra: Fields = value.role === 'system' ? { output_config: 'object' } : {};
  fields(value, { role: 'string', content: 'any', ...extra }, ['content', 'role'], at);
  const roles = strictness.noSystemRole ? ['user', 'assistant'] : ['user', 'assistant', 'system'];
  if (!roles.includes(String(value.role))) {
    refuseWith(
      `messages: Unexpected role "${String(value.role)}". The Messages API accepts a top-level \`system\` parameter, not "system" as an input message role.`,
    );
  }
  const { content } = value;
  const optional = last && value.role === 'assistant';
  const empty = () =>
    refuseWith(
      `${at}: all messages must have non-empty content except for the optional final assistant message`,
    );
  if (typeof content === 'string') {
    if (content === '' && !optional) empty();
    if (content !== '' && content.trim() === '' && !optional) {
      refuseWith('messages: text content blocks must contain non-whitespace text');
    }
    if (optional && /\s$/.test(content)) {
      refuseWith('messages: final assistant content cannot end with trailing whitespace');
    }
    return;
  }
  if (!Array.isArray(content)) fail(`${at}.content`, 'Input should be a valid list');
  const blocks = content as Json[];
  if (blocks.length === 0 && !optional) empty();
  blocks.forEach((block, j) => {
    checkBlock(block, `${at}.content.${j}`, undefined, strictness);
  });
  const final = blocks.at(-1);
  if (optional && isRecord(final) && final.type === 'text' && /\s$/.test(String(final.text))) {
    refuseWith('messages: final assistant content cannot end with trailing whitespace');
  }
}

function checkRoles(messages: readonly JsonObject[], strictness: Strictness): void {
  if (strictness.firstUser && messages[0]?.role !== 'user') {
    refuseWith('messages: first message must use the "user" role');
  }
  if (strictness.alternate) {
    const twice = messages.find((one, i) => i > 0 && one.role === messages[i - 1]!.role);
    if (twice !== undefined) {
      refuseWith(
        `messages: roles must alternate between "user" and "assistant", but found multiple "${String(twice.role)}" roles in a row`,
      );
    }
  }
  if (strictness.noPrefill && messages.at(-1)?.role === 'assistant') {
    refuseWith(
      'This model does not support assistant message prefill. The conversation must end with a user message.',
    );
  }
}

/** Blocks with a cache mark, in any position. */
function cacheMarks(value: unknown): number {
  if (Array.isArray(value)) return value.reduce((sum: number, one) => sum + cacheMarks(one), 0);
  if (!isRecord(value)) return 0;
  const own = isRecord(value.cache_control) ? 1 : 0;
  return own + cacheMarks(value.content);
}

/** @throws Refusal with Anthropic's message */
export function checkMessages(
  body: JsonObject,
  headers: Record<string, string>,
  options: Strictness & { counting?: boolean },
): void {
  const betas = headers['anthropic-beta'] ?? '';
  const allowed: Record<string, Fields[string]> = { ...TOP };
  for (const [key, beta] of Object.entries(BETA)) if (beta.test(betas)) allowed[key] = 'any';
  const required = ['messages', 'model', ...(options.counting ? [] : ['max_tokens'])];
  fields(body as Record<string, Json>, allowed, required, '');
  if (!options.counting) checkSampling(body);
  checkMessagesTools(body);
  checkThinkingParameter(body);
  checkHistory(body, options);
}

/** Instructions and messages. @throws Refusal with Anthropic's message */
export function checkHistory(body: JsonObject, strictness: Strictness): void {
  const messages = body.messages as Json[];
  if (messages.length === 0) refuseWith('messages: at least one message is required');
  checkSystem(body.system);
  messages.forEach((message, i) => {
    checkMessage(message, i, i === messages.length - 1, strictness);
  });
  const turns = messages as readonly JsonObject[];
  checkRoles(turns, strictness);
  const marks = cacheMarks(body.system) + cacheMarks(body.tools) + cacheMarks(turns);
  if (marks > 4) {
    refuseWith(`A maximum of 4 blocks with cache_control may be provided. Found ${marks}.`);
  }
  checkPairing(turns, strictness);
  checkThinking(body, turns, strictness);
}
