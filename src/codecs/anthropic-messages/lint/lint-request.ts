/** Checks a Messages request as strictly as api.anthropic.com does, with its error messages. */

import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { didYouMean, type Finding, findings, OWN_FIELD, type Report } from '../../lint.ts';
import { lintBlock, lintText } from './lint-blocks.ts';
import { lintHistory } from './lint-history.ts';

/** Top-level fields of the API and its betas. */
const FIELDS = new Set([
  'model',
  'messages',
  'max_tokens',
  'system',
  'tools',
  'tool_choice',
  'stream',
  'temperature',
  'top_p',
  'top_k',
  'stop_sequences',
  'thinking',
  'metadata',
  'service_tier',
  'cache_control',
  'container',
  'context_management',
  'compaction',
  'diagnostics',
  'fallbacks',
  'fallback_credit_token',
  'billing_policy',
  'inference_geo',
  'mcp_servers',
  'output_config',
  'output_format',
  'speed',
  'thread',
  'betas',
  'user_profile_id',
  'workspace_id',
  'anthropic_beta',
  'anthropic_version',
  OWN_FIELD,
]);
const ROLES = ['user', 'assistant', 'system'];
const NAME = /^[a-zA-Z0-9_-]{1,128}$/;
const MAX_MARKS = 4;
/** Models that refuse a prefilled assistant message. */
const NO_PREFILL = /(opus|sonnet)-4-[6-9]|(opus|sonnet|haiku|fable|mythos)-[5-9]/;

/** Everything in the body that the API refuses. */
export function lintRequest(body: Json): readonly Finding[] {
  const { list, report } = findings();
  if (!isObject(body)) {
    report('', 'body-object', 'Input should be a valid dictionary');
    return list;
  }
  for (const key of ['model', 'max_tokens', 'messages']) {
    // Vertex and Bedrock name the model in the URL, and the version in the body.
    if (key === 'model' && body.anthropic_version !== undefined) continue;
    if (body[key] === undefined) report(`/${key}`, 'field-required', `${key}: Field required`);
  }
  for (const key of Object.keys(body)) {
    if (!FIELDS.has(key)) {
      const meant = didYouMean(key, FIELDS);
      report(`/${key}`, 'extra-input', `${key}: Extra inputs are not permitted${meant}`);
    }
  }
  lintParameters(body, report);
  lintThinkingParameter(body, report);
  lintTools(body, report);
  lintSystem(body.system, report);
  lintMessages(body, report);
  const marks = countMarks(body.system) + countMarks(body.tools) + countMarks(body.messages);
  if (marks > MAX_MARKS) {
    const words = `A maximum of 4 blocks with cache_control may be provided. Found ${marks}.`;
    report('', 'cache-marks', words);
  }
  return list;
}

function lintParameters(body: JsonObject, report: Report): void {
  const { max_tokens: cap, temperature, top_p: topP, stop_sequences: stops } = body;
  if (cap !== undefined && (!Number.isInteger(cap) || Number(cap) < 0)) {
    report('/max_tokens', 'max-tokens', 'max_tokens: Input should be a valid integer');
  }
  const within = (value: Json | undefined) =>
    value === undefined || (typeof value === 'number' && value >= 0 && value <= 1);
  if (!within(temperature)) {
    report('/temperature', 'temperature', 'temperature: range: 0..1');
  }
  if (!within(topP)) report('/top_p', 'top-p', 'top_p: range: 0..1');
  if (Array.isArray(stops)) {
    stops.forEach((stop, i) => {
      if (typeof stop === 'string' && stop.trim() !== '') return;
      const words = 'stop_sequences: each stop sequence must contain non-whitespace';
      report(`/stop_sequences/${i}`, 'stop-blank', words);
    });
  }
}

function lintThinkingParameter(body: JsonObject, report: Report): void {
  const { thinking, tool_choice: choice, temperature } = body;
  if (!isObject(thinking) || thinking.type !== 'enabled') return;
  const budget = Number(thinking.budget_tokens);
  if (!(budget >= 1024)) {
    const words = 'thinking.enabled.budget_tokens: Input should be greater than or equal to 1024';
    report('/thinking/budget_tokens', 'thinking-budget', words);
  } else if (typeof body.max_tokens === 'number' && budget >= body.max_tokens) {
    const words = '`max_tokens` must be greater than `thinking.budget_tokens`.';
    report('/max_tokens', 'thinking-budget', words);
  }
  if (temperature !== undefined && temperature !== 1) {
    const words = '`temperature` may only be set to 1 when thinking is enabled.';
    report('/temperature', 'thinking-temperature', words);
  }
  if (isObject(choice) && (choice.type === 'any' || choice.type === 'tool')) {
    const words = 'Thinking may not be enabled when tool_choice forces tool use.';
    report('/tool_choice', 'thinking-forced-tool', words);
  }
}

function lintTools(body: JsonObject, report: Report): void {
  const tools = Array.isArray(body.tools) ? body.tools : [];
  const names = new Set<string>();
  tools.forEach((tool, i) => {
    const at = `/tools/${i}`;
    if (!isObject(tool)) {
      report(at, 'tool-object', `tools.${i}: Input should be a valid dictionary`);
      return;
    }
    const own = tool.type === undefined || tool.type === 'custom';
    const { name } = tool;
    if (own && (typeof name !== 'string' || !NAME.test(name))) {
      const words = `tools.${i}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`;
      report(`${at}/name`, 'tool-name', words);
    }
    if (own && !isObject(tool.input_schema)) {
      report(`${at}/input_schema`, 'tool-schema', `tools.${i}.custom.input_schema: Field required`);
    } else if (own && isObject(tool.input_schema) && tool.input_schema.type !== 'object') {
      const words = `tools.${i}.custom.input_schema.type: Input should be 'object'`;
      report(`${at}/input_schema/type`, 'tool-schema', words);
    }
    if (typeof name === 'string' && names.has(name)) {
      report(`${at}/name`, 'tool-names-unique', 'tools: Tool names must be unique.');
    }
    if (typeof name === 'string') names.add(name);
  });
  const choice = body.tool_choice;
  if (!isObject(choice)) return;
  if (tools.length === 0 && !isObject(body.thread) && body.mcp_servers === undefined) {
    const words = 'tool_choice may only be specified while providing tools.';
    report('/tool_choice', 'tool-choice-without-tools', words);
  } else if (choice.type === 'tool' && tools.length > 0 && !names.has(String(choice.name))) {
    const words = `Tool '${String(choice.name)}' not found in provided tools`;
    report('/tool_choice/name', 'tool-choice-unknown', words);
  }
}

function lintSystem(system: Json | undefined, report: Report): void {
  if (!Array.isArray(system)) return;
  system.forEach((block, i) => {
    if (isObject(block) && block.type === 'text') {
      lintText(block, `/system/${i}`, `system.${i}`, 'system', report);
      return;
    }
    const words = `system.${i}: Input tag '${isObject(block) ? String(block.type) : ''}' found using 'type' does not match any of the expected tags: 'text'`;
    report(`/system/${i}`, 'unknown-block', words);
  });
}

function lintMessages(body: JsonObject, report: Report): void {
  const { messages } = body;
  if (messages === undefined) return;
  if (!Array.isArray(messages) || messages.length === 0) {
    report('/messages', 'messages-empty', 'messages: at least one message is required');
    return;
  }
  const last = messages.length - 1;
  messages.forEach((message, i) => {
    lintMessage(message, i, i === last, report);
  });
  const final = messages[last];
  if (isObject(final) && final.role === 'assistant' && NO_PREFILL.test(String(body.model))) {
    const words =
      'This model does not support assistant message prefill. The conversation must end with a user message.';
    report(`/messages/${last}`, 'prefill', words);
  }
  const complete = messages.every(
    (message) =>
      isObject(message) &&
      (typeof message.content === 'string' || Array.isArray(message.content)) &&
      ROLES.includes(String(message.role)),
  );
  if (complete) lintHistory(body, messages.filter(isObject), report);
}

function lintMessage(message: Json, i: number, last: boolean, report: Report): void {
  const at = `/messages/${i}`;
  const path = `messages.${i}`;
  if (!isObject(message)) {
    report(at, 'message-object', `${path}: Input should be a valid dictionary`);
    return;
  }
  for (const key of Object.keys(message)) {
    if (key === 'role' || key === 'content') continue;
    // Instructions in mid-conversation may set the effort from there on.
    if (key === 'output_config' && message.role === 'system') continue;
    report(`${at}/${key}`, 'extra-input', `${path}.${key}: Extra inputs are not permitted`);
  }
  const { role, content } = message;
  if (!ROLES.includes(String(role))) {
    const words = `messages: Unexpected role "${String(role)}". Allowed roles are "user" or "assistant"`;
    report(`${at}/role`, 'role', words);
    return;
  }
  if (typeof content !== 'string' && !Array.isArray(content)) {
    const words =
      content === undefined ? 'Field required' : 'Input should be a valid string or list';
    report(`${at}/content`, 'field-required', `${path}.content: ${words}`);
    return;
  }
  const prefill = last && role === 'assistant';
  if (content.length === 0 && !prefill) {
    const words = `${path}: all messages must have non-empty content except for the optional final assistant message`;
    report(`${at}/content`, 'empty-message', words);
  } else if (typeof content === 'string' && content.length > 0 && content.trim() === '') {
    const words = 'messages: text content blocks must contain non-whitespace text';
    report(`${at}/content`, 'blank-text', words);
  }
  if (Array.isArray(content)) {
    (content as readonly Json[]).forEach((block, j) => {
      lintBlock(block, `${at}/content/${j}`, `${path}.content.${j}`, String(role), report);
    });
  }
  if (prefill) lintTrailingBlank(content as string | readonly Json[], at, report);
}

function lintTrailingBlank(content: string | readonly Json[], at: string, report: Report): void {
  const final = typeof content === 'string' ? content : content.at(-1);
  const text = isObject(final) && final.type === 'text' ? final.text : final;
  if (typeof text !== 'string' || text.trimEnd() === text) return;
  const words = 'messages: final assistant content cannot end with trailing whitespace';
  report(`${at}/content`, 'trailing-whitespace', words);
}

/** Counts cache marks on blocks, on blocks within results, and on tools. */
function countMarks(value: Json | undefined): number {
  if (Array.isArray(value)) {
    return (value as readonly Json[]).reduce<number>((sum, one) => sum + countMarks(one), 0);
  }
  if (!isObject(value)) return 0;
  return (isObject(value.cache_control) ? 1 : 0) + countMarks(value.content);
}
