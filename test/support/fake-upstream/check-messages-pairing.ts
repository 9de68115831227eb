/** Anthropic's rules for tool histories: every call is answered next, once, and before anything else. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import type { Strictness } from './check-schema.ts';
import { isRecord, refuseWith } from './refusal.ts';

interface Turn {
  role: string;
  /** Index of its first message in `messages`. */
  at: number;
  blocks: { block: Record<string, Json>; message: number; index: number }[];
}

/** Messages as turns: neighbours of one role are one turn to the vendor; system messages do not separate turns. */
function turnsOf(messages: readonly JsonObject[]): Turn[] {
  const turns: Turn[] = [];
  messages.forEach((message, at) => {
    if (message.role === 'system') return;
    let turn = turns.at(-1);
    if (turn === undefined || turn.role !== message.role) {
      turn = { role: String(message.role), at, blocks: [] };
      turns.push(turn);
    }
    const content = Array.isArray(message.content)
      ? message.content
      : [{ type: 'text', text: message.content as string }];
    content.forEach((block: Json, index: number) => {
      if (isRecord(block)) turn.blocks.push({ block, message: at, index });
    });
  });
  return turns;
}

function checkRolesOfBlocks(turns: readonly Turn[]): void {
  for (const turn of turns) {
    for (const { block, message, index } of turn.blocks) {
      const at = `messages.${message}.content.${index}`;
      if (block.type === 'tool_result' && turn.role !== 'user') {
        refuseWith(`${at}: \`tool_result\` blocks can only be in \`user\` messages`);
      }
      const made = ['tool_use', 'server_tool_use', 'mcp_tool_use', 'thinking', 'redacted_thinking'];
      if (made.includes(String(block.type)) && turn.role !== 'assistant') {
        refuseWith(`${at}: \`${String(block.type)}\` blocks can only be in \`assistant\` messages`);
      }
    }
  }
}

function checkClientCalls(turns: readonly Turn[]): void {
  const seen = new Set<string>();
  turns.forEach((turn, i) => {
    const calls = turn.blocks.filter(({ block }) => block.type === 'tool_use');
    for (const { block, message, index } of calls) {
      if (seen.has(String(block.id))) {
        refuseWith(`messages.${message}.content.${index}: \`tool_use\` ids must be unique`);
      }
      seen.add(String(block.id));
    }
    checkResults(turn, turns[i - 1]);
    if (calls.length === 0) return;
    // The API counts from the message that holds the call.
    const named = calls.at(-1)!.message;
    const missing = (ids: readonly string[]) =>
      refuseWith(
        `messages.${named}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
      );
    const ids = calls.map(({ block }) => String(block.id));
    const next = turns[i + 1];
    if (next === undefined) missing(ids);
    const leading: string[] = [];
    for (const { block } of next!.blocks) {
      if (block.type !== 'tool_result') break;
      leading.push(String(block.tool_use_id));
    }
    const open = ids.filter((id) => !leading.includes(id));
    if (open.length > 0) missing(open);
    // Text after its last call: refused with the same message.
    const last = turn.blocks.findLastIndex(({ block }) => block.type === 'tool_use');
    if (turn.blocks.slice(last + 1).some(({ block }) => block.type === 'text')) missing(ids);
  });
}

function checkResults(turn: Turn, previous: Turn | undefined): void {
  const before = new Set(
    (previous?.role === 'assistant' ? previous.blocks : []).flatMap(({ block }) =>
      block.type === 'tool_use' ? [String(block.id)] : [],
    ),
  );
  const answered = new Set<string>();
  for (const { block, message, index } of turn.blocks) {
    if (block.type !== 'tool_result') continue;
    const id = String(block.tool_use_id);
    const at = `messages.${message}.content.${index}`;
    if (!before.has(id)) {
      refuseWith(
        `${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
      );
    }
    if (answered.has(id)) {
      refuseWith(
        `${at}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`,
      );
    }
    answered.add(id);
  }
}

function checkServerCalls(turns: readonly Turn[]): void {
  turns.forEach((turn, i) => {
    const open = new Map<string, string>();
    for (const { block, message, index } of turn.blocks) {
      const type = String(block.type);
      if (type === 'server_tool_use') open.set(String(block.id), String(block.name));
      if (type === 'tool_result' || !type.endsWith('_tool_result')) continue;
      const id = String(block.tool_use_id);
      if (type === 'mcp_tool_result') continue;
      const name = open.get(id);
      open.delete(id);
      // "tool_search_tool_regex" is answered by "tool_search_tool_result".
      if (name?.startsWith(type.slice(0, -'_tool_result'.length))) continue;
      refuseWith(
        `messages.${message}.content.${index}: unexpected \`tool_use_id\` found in \`${type}\` blocks: ${id}. Each \`${type}\` block must have a corresponding \`server_tool_use\` block before it.`,
      );
    }
    const [first] = open;
    if (first === undefined) return;
    // Still in progress: nothing, or only results, follows it.
    const after = turns.slice(i + 1).flatMap((later) => later.blocks);
    const isOwn = ['web_search', 'web_fetch', 'code_execution'].includes(first[1]);
    if (isOwn && after.every(({ block }) => block.type === 'tool_result')) return;
    refuseWith(
      `messages.${turn.at}: \`${first[1]}\` tool use with id \`${first[0]}\` was found without a corresponding \`${first[1]}_tool_result\` block`,
    );
  });
}

/** @throws Refusal with Anthropic's message */
export function checkPairing(messages: readonly JsonObject[], { anyOrder }: Strictness): void {
  const turns = turnsOf(messages);
  checkRolesOfBlocks(turns);
  if (anyOrder) return;
  checkClientCalls(turns);
  checkServerCalls(turns);
}
