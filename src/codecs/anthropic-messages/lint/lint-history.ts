/** Checks a Messages history beyond single blocks: which calls are answered, and where thinking stands. */

import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import type { Report } from '../../lint.ts';
import { isThinking } from '../wire.ts';

interface PlacedBlock {
  readonly block: JsonObject;
  /** `messages.3.content.1` and its JSON pointer. */
  readonly path: string;
  readonly at: string;
  readonly message: number;
}

interface CombinedTurn {
  readonly role: string;
  readonly blocks: PlacedBlock[];
}

export function lintHistory(
  body: JsonObject,
  messages: readonly JsonObject[],
  report: Report,
): void {
  const turns = turnsOf(messages);
  // With a thread the vendor stores the beginning of the history, so results may answer calls that are not here.
  const hasThread = isObject(body.thread) || typeof body.thread === 'string';
  lintCalls(turns, hasThread, report);
  lintServerCalls(turns, report);
  lintThinking(body, messages, report);
}

const blocksOf = (message: JsonObject): readonly Json[] =>
  Array.isArray(message.content)
    ? (message.content as readonly Json[])
    : message.content === ''
      ? []
      : [{ type: 'text', text: message.content }];

/** Combines consecutive messages of one role into a turn. System messages are skipped. */
function turnsOf(messages: readonly JsonObject[]): readonly CombinedTurn[] {
  const turns: CombinedTurn[] = [];
  messages.forEach((message, i) => {
    if (message.role === 'system') return;
    const role = String(message.role);
    if (turns.at(-1)?.role !== role) turns.push({ role, blocks: [] });
    blocksOf(message).forEach((block, j) => {
      if (!isObject(block)) return;
      const place = { path: `messages.${i}.content.${j}`, at: `/messages/${i}/content/${j}` };
      turns.at(-1)!.blocks.push({ block, message: i, ...place });
    });
  });
  return turns;
}

const callsOf = (turn: CombinedTurn | undefined) =>
  turn?.role === 'assistant' ? turn.blocks.filter(({ block }) => block.type === 'tool_use') : [];

function lintCalls(turns: readonly CombinedTurn[], hasThread: boolean, report: Report): void {
  const seen = new Set<string>();
  turns.forEach((turn, i) => {
    for (const { block, path, at } of callsOf(turn)) {
      const id = String(block.id);
      if (seen.has(id))
        report(`${at}/id`, 'duplicate-call-id', `${path}: \`tool_use\` ids must be unique`);
      seen.add(id);
    }
    lintAnswers(turns[i - 1], turn, hasThread && i === 0, report);
    const calls = callsOf(turn);
    if (calls.length === 0) return;
    const last = turn.blocks.indexOf(calls.at(-1)!);
    const speaks = turn.blocks.slice(last + 1).some(({ block }) => block.type === 'text');
    if (turns[i + 1] === undefined || speaks) unanswered(calls, report);
  });
}

/** Compares the results of a turn with the calls of the turn before it. */
function lintAnswers(
  before: CombinedTurn | undefined,
  turn: CombinedTurn,
  hasThread: boolean,
  report: Report,
): void {
  const due = new Map(callsOf(before).map((call) => [String(call.block.id), call]));
  const given = new Set<string>();
  const late: PlacedBlock[] = [];
  let leads = true;
  for (const { block, path, at } of turn.blocks) {
    if (block.type !== 'tool_result') {
      leads = false;
      continue;
    }
    const id = String(block.tool_use_id);
    const call = due.get(id);
    if (call === undefined) {
      if (hasThread) continue;
      const words = `${path}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
      report(at, 'stray-result', words);
    } else if (given.has(id)) {
      const words = `${path}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`;
      report(at, 'duplicate-result', words);
    } else if (!leads) late.push(call);
    given.add(id);
  }
  if (turn.role !== 'user') return;
  const missing = [...due].filter(([id]) => !given.has(id)).map(([, call]) => call);
  if (missing.length + late.length > 0) unanswered([...missing, ...late], report);
}

function unanswered(calls: readonly PlacedBlock[], report: Report): void {
  const { message, at } = calls[0]!;
  const ids = calls.map(({ block }) => String(block.id)).join(', ');
  const words = `messages.${message}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
  report(at, 'unanswered-call', words);
}

/** Checks hosted tools: a result needs a call before it, and a call needs a result after it. */
function lintServerCalls(turns: readonly CombinedTurn[], report: Report): void {
  // Calls of the last turn may be unanswered: the vendor continues that turn itself.
  const onlyResults = (turn: CombinedTurn) =>
    turn.blocks.every(({ block }) => block.type === 'tool_result');
  const spoken = turns.findLastIndex((turn) => !onlyResults(turn));
  turns.forEach((turn, i) => {
    if (turn.role !== 'assistant') return;
    const open = new Map<string, PlacedBlock>();
    for (const placed of turn.blocks) {
      const { block, path, at } = placed;
      const type = String(block.type);
      if (type === 'server_tool_use') open.set(String(block.id), placed);
      if (!type.endsWith('_tool_result') || type === 'mcp_tool_result') continue;
      const id = String(block.tool_use_id);
      if (!open.delete(id)) {
        const words = `${path}: unexpected \`tool_use_id\` found in \`${type}\` blocks: ${id}. Each \`${type}\` block must have a corresponding \`server_tool_use\` block before it.`;
        report(at, 'stray-server-result', words);
      }
    }
    if (i >= spoken) return;
    for (const [id, { block, at, message }] of open) {
      const name = String(block.name);
      const words = `messages.${message}: \`${name}\` tool use with id \`${id}\` was found without a corresponding \`${name}_tool_result\` block`;
      report(at, 'unanswered-server-call', words);
    }
  });
}

function lintThinking(body: JsonObject, messages: readonly JsonObject[], report: Report): void {
  const mode = isObject(body.thinking) ? String(body.thinking.type) : 'disabled';
  messages.forEach((message, i) => {
    if (message.role !== 'assistant') return;
    const blocks = blocksOf(message);
    if (isThinking(blocks.at(-1))) {
      const words = `messages.${i}: The final block in an assistant message cannot be \`thinking\`.`;
      report(`/messages/${i}/content/${blocks.length - 1}`, 'thinking-last', words);
    }
  });
  const last = messages.length - 1;
  if (mode === 'disabled' && messages[last]!.role === 'assistant') {
    const found = blocksOf(messages[last]!).findIndex(isThinking);
    if (found >= 0) {
      const words = `messages.${last}.content.${found}: When thinking is disabled, an \`assistant\` message in the final position cannot contain \`thinking\`. To use thinking blocks, enable \`thinking\` in your request.`;
      report(`/messages/${last}/content/${found}`, 'thinking-disabled', words);
    }
  }
  if (mode === 'enabled') lintLoopHead(messages, report);
}

/** The open tool loop (the assistant messages after the user's last text) must begin with thinking. */
function lintLoopHead(messages: readonly JsonObject[], report: Report): void {
  let head: number | undefined;
  let answers = false;
  for (let i = messages.length - 1; i >= 0; i--) {
    const { role } = messages[i]!;
    if (role === 'system') continue;
    if (role === 'assistant') head = i;
    else {
      const results = blocksOf(messages[i]!).some((b) => isObject(b) && b.type === 'tool_result');
      if (!results && messages[i - 1]?.role !== 'user') break;
      answers ||= results;
    }
  }
  const first = head === undefined ? undefined : blocksOf(messages[head]!)[0];
  if (!answers || !isObject(first) || isThinking(first)) return;
  const words = `messages.${head}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${String(first.type)}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks).`;
  report(`/messages/${head}/content/0`, 'thinking-first', words);
}
