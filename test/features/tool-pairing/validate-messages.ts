/** The history rules of api.anthropic.com with its error messages: the first violation, or undefined. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';

type Block = Record<string, Json>;

interface Placed {
  readonly block: Block;
  readonly message: number;
  readonly index: number;
}

interface Turn {
  readonly role: string;
  readonly blocks: Placed[];
}

export interface Strict {
  /** Bedrock and older deployments: roles alternate, and results are in the very next message. */
  readonly alternate?: boolean;
}

const isRecord = (value: unknown): value is Block =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const blocksOf = (message: Block): readonly Block[] =>
  typeof message.content === 'string'
    ? message.content === ''
      ? []
      : [{ type: 'text', text: message.content }]
    : (message.content as Block[]);

const TYPES = new Set([
  'text',
  'image',
  'document',
  'search_result',
  'thinking',
  'redacted_thinking',
  'tool_use',
  'tool_result',
  'server_tool_use',
  'mcp_tool_use',
  'mcp_tool_result',
  'web_search_tool_result',
  'web_fetch_tool_result',
  'code_execution_tool_result',
  'bash_code_execution_tool_result',
  'text_editor_code_execution_tool_result',
  'tool_search_tool_result',
  'advisor_tool_result',
  'container_upload',
  'compaction',
]);
const NESTED = new Set(['document', 'image', 'search_result', 'text', 'tool_reference']);

class Refusal extends Error {}

function refuse(message: string): never {
  throw new Refusal(message);
}

/** The vendor's error for a body's history; undefined if it is accepted. */
export function complaint(body: JsonObject, strict: Strict = {}): string | undefined {
  try {
    check(body, strict);
    return undefined;
  } catch (thrown) {
    if (thrown instanceof Refusal) return thrown.message;
    return `the validator itself: ${(thrown as Error).stack}`;
  }
}

function check(body: JsonObject, strict: Strict): void {
  const messages = body.messages as readonly Block[];
  if (!Array.isArray(messages) || messages.length === 0)
    refuse('messages: at least one message is required');
  if (Array.isArray(body.system)) {
    for (const block of body.system as Block[]) {
      if (String(block.text).trim() === '') refuse('system: text content blocks must be non-empty');
    }
  }
  messages.forEach((message, i) => {
    checkMessage(message, i, i === messages.length - 1);
    if (strict.alternate && i > 0 && message.role === messages[i - 1]!.role) {
      refuse(
        `messages: roles must alternate between "user" and "assistant", but found multiple "${message.role}" roles in a row`,
      );
    }
  });
  const turns = turnsOf(messages);
  checkCalls(turns);
  checkServerCalls(turns);
  checkThinking(body, messages);
  const marks = countMarks(body.system) + countMarks(body.tools) + countMarks(messages);
  if (marks > 4)
    refuse(`A maximum of 4 blocks with cache_control may be provided. Found ${marks}.`);
}

function checkMessage(message: Block, i: number, last: boolean): void {
  const at = `messages.${i}`;
  if (!isRecord(message)) refuse(`${at}: Input should be a valid dictionary`);
  if (message.role !== 'user' && message.role !== 'assistant' && message.role !== 'system') {
    refuse(`messages: Unexpected role "${message.role}"`);
  }
  if (typeof message.content !== 'string' && !Array.isArray(message.content)) {
    refuse(`${at}.content: Input should be a valid list`);
  }
  const prefill = last && message.role === 'assistant';
  const blocks = blocksOf(message);
  if (blocks.length === 0 && !prefill) {
    refuse(
      `${at}: all messages must have non-empty content except for the optional final assistant message`,
    );
  }
  blocks.forEach((block, j) => {
    checkBlock(block, `${at}.content.${j}`, String(message.role));
  });
  const final = blocks.at(-1);
  if (prefill && final?.type === 'text' && /\s$/.test(String(final.text))) {
    refuse('messages: final assistant content cannot end with trailing whitespace');
  }
}

function checkBlock(block: Block, at: string, role: string): void {
  if (!isRecord(block)) refuse(`${at}: Input should be a valid dictionary`);
  const type = String(block.type);
  if (!TYPES.has(type)) {
    refuse(`${at}: Input tag '${type}' found using 'type' does not match any of the expected tags`);
  }
  const assistants = /^(tool_use|server_tool_use|mcp_tool_use|thinking|redacted_thinking)$/.test(
    type,
  );
  if (assistants && role !== 'assistant') {
    refuse(`${at}: \`${type}\` blocks can only be in \`assistant\` messages`);
  }
  if (type === 'tool_result' && role !== 'user') {
    refuse(`${at}: \`tool_result\` blocks can only be in \`user\` messages`);
  }
  if (type === 'text') checkText(block, at);
  if (type === 'tool_use') {
    matches(block.id, /^[a-zA-Z0-9_-]+$/, `${at}.tool_use.id`);
    matches(block.name, /^[a-zA-Z0-9_-]{1,200}$/, `${at}.tool_use.name`);
    if (!isRecord(block.input)) refuse(`${at}.tool_use.input: Input should be a valid dictionary`);
  }
  if (type === 'server_tool_use')
    matches(block.id, /^srvtoolu_[a-zA-Z0-9_]+$/, `${at}.server_tool_use.id`);
  if (type === 'tool_result') checkResult(block, at);
  if (type === 'thinking') {
    if (typeof block.thinking !== 'string') refuse(`${at}.thinking.thinking: Field required`);
    if (typeof block.signature !== 'string') refuse(`${at}.thinking.signature: Field required`);
    if (!isGenuine(block.signature)) refuse(`${at}: Invalid \`signature\` in \`thinking\` block`);
  }
  if (type === 'redacted_thinking' && !/^[A-Za-z0-9+/]+={0,2}$/.test(String(block.data))) {
    refuse(`${at}: Invalid \`data\` in \`redacted_thinking\` block`);
  }
  if (/thinking$/.test(type) && block.cache_control !== undefined) {
    refuse(`${at}.${type}.cache_control: Extra inputs are not permitted`);
  }
}

/** Signatures of these tests: `EuYB` and 96 digits of base64; no foreign signature begins like that. */
export const isGenuine = (signature: string): boolean =>
  /^E[A-Za-z0-9+/]{40,}={0,2}$/.test(signature);

function checkText(block: Block, at: string): void {
  if (typeof block.text !== 'string') refuse(`${at}.text.text: Field required`);
  if (block.text === '' && block.cache_control !== undefined) {
    refuse(`${at}.text: cache_control cannot be set for empty text blocks`);
  }
  if (block.text === '') refuse('messages: text content blocks must be non-empty');
  if (block.text.trim() === '')
    refuse('messages: text content blocks must contain non-whitespace text');
}

function matches(value: Json | undefined, pattern: RegExp, at: string): void {
  if (typeof value !== 'string' || !pattern.test(value)) {
    refuse(`${at}: String should match pattern '${pattern.source}'`);
  }
}

function checkResult(block: Block, at: string): void {
  matches(block.tool_use_id, /^[a-zA-Z0-9_-]+$/, `${at}.tool_result.tool_use_id`);
  const { content } = block;
  const none =
    content === undefined || content === '' || (Array.isArray(content) && content.length === 0);
  if (block.is_error === true && none) {
    refuse(`${at}.tool_result: content cannot be empty if \`is_error\` is true`);
  }
  if (content === undefined || typeof content === 'string') return;
  if (!Array.isArray(content)) refuse(`${at}.tool_result.content: Input should be a valid list`);
  (content as Block[]).forEach((inner, k) => {
    if (!isRecord(inner) || !NESTED.has(String(inner.type))) {
      refuse(
        `${at}.tool_result.content.${k}: Input tag '${inner?.type}' found using 'type' does not match any of the expected tags: 'document', 'image', 'search_result', 'text', 'tool_reference'`,
      );
    }
    if (inner.type === 'text') checkText(inner, `${at}.tool_result.content.${k}`);
  });
}

/** Neighbours of one role are one turn; system messages do not separate turns. */
function turnsOf(messages: readonly Block[]): readonly Turn[] {
  const turns: Turn[] = [];
  messages.forEach((message, at) => {
    if (message.role === 'system') return;
    if (turns.at(-1)?.role !== message.role) turns.push({ role: String(message.role), blocks: [] });
    blocksOf(message).forEach((block, index) => {
      turns.at(-1)!.blocks.push({ block, message: at, index });
    });
  });
  return turns;
}

function checkCalls(turns: readonly Turn[]): void {
  const seen = new Set<string>();
  turns.forEach((turn, i) => {
    const calls = turn.blocks.filter(({ block }) => block.type === 'tool_use');
    for (const { block, message, index } of calls) {
      if (seen.has(String(block.id)))
        refuse(`messages.${message}.content.${index}: \`tool_use\` ids must be unique`);
      seen.add(String(block.id));
    }
    const previous = turns[i - 1];
    const due = new Set(
      previous?.role === 'assistant'
        ? previous.blocks
            .filter(({ block }) => block.type === 'tool_use')
            .map(({ block }) => String(block.id))
        : [],
    );
    const given = new Set<string>();
    let led = true;
    for (const { block, message, index } of turn.blocks) {
      if (block.type !== 'tool_result') {
        led = false;
        continue;
      }
      const id = String(block.tool_use_id);
      const at = `messages.${message}.content.${index}`;
      if (!due.has(id)) {
        refuse(
          `${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
        );
      }
      if (given.has(id)) {
        refuse(
          `${at}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`,
        );
      }
      if (!led) missing(turn.blocks[0]!.message - 1, [id]);
      given.add(id);
    }
    if (turn.role === 'user' && due.size > given.size) {
      missing(
        turn.blocks[0]!.message - 1,
        [...due].filter((id) => !given.has(id)),
      );
    }
    if (calls.length === 0) return;
    const ids = calls.map(({ block }) => String(block.id));
    if (turns[i + 1] === undefined) missing(calls[0]!.message, ids);
    const last = turn.blocks.findLastIndex(({ block }) => block.type === 'tool_use');
    const behind = turn.blocks.slice(last + 1);
    if (behind.some(({ block }) => block.type === 'text')) missing(calls[0]!.message, ids);
  });
}

function missing(message: number, ids: readonly string[]): never {
  refuse(
    `messages.${message}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
  );
}

function checkServerCalls(turns: readonly Turn[]): void {
  turns.forEach((turn, i) => {
    const open = new Map<string, string>();
    for (const { block, message, index } of turn.blocks) {
      const type = String(block.type);
      if (type === 'server_tool_use') open.set(String(block.id), String(block.name));
      if (type === 'tool_result' || !type.endsWith('_tool_result') || type === 'mcp_tool_result')
        continue;
      const id = String(block.tool_use_id);
      const name = open.get(id);
      if (name === undefined || `${name}_tool_result` !== type) {
        refuse(
          `messages.${message}.content.${index}: unexpected \`tool_use_id\` found in \`${type}\` blocks: ${id}. Each \`${type}\` block must have a corresponding \`server_tool_use\` block before it.`,
        );
      }
      open.delete(id);
    }
    const [first] = open;
    if (first === undefined) return;
    const after = turns.slice(i + 1).flatMap(({ blocks }) => blocks);
    const known = ['web_search', 'web_fetch', 'code_execution'].includes(first[1]);
    if (known && after.every(({ block }) => block.type === 'tool_result')) return;
    refuse(
      `messages.${i}: \`${first[1]}\` tool use with id \`${first[0]}\` was found without a corresponding \`${first[1]}_tool_result\` block`,
    );
  });
}

const isThinking = (block: Block | undefined) => /thinking$/.test(String(block?.type));

function checkThinking(body: JsonObject, messages: readonly Block[]): void {
  messages.forEach((message, i) => {
    if (message.role !== 'assistant') return;
    const blocks = blocksOf(message);
    if (!blocks.some(isThinking)) return;
    if (!isThinking(blocks[0])) {
      refuse(
        `messages.${i}: If an assistant message contains any thinking blocks, the first block must be \`thinking\` or \`redacted_thinking\`. Found \`${blocks[0]!.type}\`.`,
      );
    }
    if (isThinking(blocks.at(-1)))
      refuse(`messages.${i}: The final block in an assistant message cannot be \`thinking\`.`);
  });
  const thinking = isRecord(body.thinking) ? body.thinking.type : 'disabled';
  const last = messages.at(-1)!;
  if (thinking === 'disabled' && last.role === 'assistant') {
    const at = blocksOf(last).findIndex(isThinking);
    if (at >= 0) {
      refuse(
        `messages.${messages.length - 1}.content.${at}: When thinking is disabled, an \`assistant\` message in the final position cannot contain \`thinking\`.`,
      );
    }
  }
  if (thinking !== 'enabled') return;
  let head: number | undefined;
  for (let i = messages.length - 1; i >= 0; i--) {
    const message = messages[i]!;
    if (message.role === 'system') continue;
    if (message.role === 'assistant') head = i;
    else if (!blocksOf(message).some((block) => block.type === 'tool_result')) {
      // Adjacent user messages are one turn, so results may be in the previous one.
      if (messages[i - 1]?.role !== 'user') break;
    }
  }
  if (head === undefined) return;
  const [first] = blocksOf(messages[head]!);
  if (first !== undefined && !isThinking(first)) {
    refuse(
      `messages.${head}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first.type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks).`,
    );
  }
}

function countMarks(value: unknown): number {
  if (Array.isArray(value)) return value.reduce((sum: number, one) => sum + countMarks(one), 0);
  if (!isRecord(value)) return 0;
  return (isRecord(value.cache_control) ? 1 : 0) + countMarks(value.content);
}
