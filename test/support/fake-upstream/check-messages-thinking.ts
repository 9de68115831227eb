/** Anthropic's rules for thinking: the parameter, the signatures, and the positions of the blocks. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { fail, fields } from './check-messages-fields.ts';
import type { Strictness } from './check-schema.ts';
import { isRecord, refuseWith } from './refusal.ts';
import { signatureHolds } from './seals.ts';

const isThinking = (block: Json | undefined) =>
  isRecord(block) && (block.type === 'thinking' || block.type === 'redacted_thinking');

/** @throws Refusal with Anthropic's message */
export function checkThinkingParameter(body: JsonObject): void {
  const { thinking } = body;
  if (!isRecord(thinking)) return;
  const kinds = ['adaptive', 'between_tools', 'disabled', 'enabled'];
  if (!kinds.includes(String(thinking.type))) {
    fail(
      'thinking',
      `Input tag '${String(thinking.type)}' found using 'type' does not match any of the expected tags: ${kinds.map((one) => `'${one}'`).join(', ')}`,
    );
  }
  const display = { display: 'string?', block_binding: 'object?' } as const;
  if (thinking.type === 'disabled') {
    fields(thinking, { type: 'string' }, [], 'thinking.disabled');
    return;
  }
  if (thinking.type !== 'enabled') {
    fields(thinking, { type: 'string', ...display }, [], `thinking.${String(thinking.type)}`);
  } else {
    const shape = { type: 'string', budget_tokens: 'integer', ...display } as const;
    fields(thinking, shape, ['budget_tokens'], 'thinking.enabled');
    const budget = thinking.budget_tokens as number;
    if (budget < 1024) {
      fail('thinking.enabled.budget_tokens', 'Input should be greater than or equal to 1024');
    }
    if (typeof body.max_tokens === 'number' && body.max_tokens <= budget) {
      refuseWith(
        '`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size',
      );
    }
  }
  if (typeof body.temperature === 'number' && body.temperature !== 1) {
    refuseWith('`temperature` may only be set to 1 when thinking is enabled.');
  }
  if (body.top_k !== undefined) {
    refuseWith('`top_k` must be unset when thinking is enabled.');
  }
  // Adaptive thinking accepts it: the model then does not think.
  const choice = body.tool_choice;
  if (
    thinking.type === 'enabled' &&
    isRecord(choice) &&
    (choice.type === 'any' || choice.type === 'tool')
  ) {
    refuseWith('Thinking may not be enabled when tool_choice forces tool use.');
  }
}

function checkBlocks(messages: readonly JsonObject[], strictness: Strictness): void {
  messages.forEach((message, i) => {
    if (message.role !== 'assistant' || !Array.isArray(message.content)) return;
    const blocks = message.content as Record<string, Json>[];
    blocks.forEach((block, j) => {
      if (block.type !== 'thinking' || strictness.anySeal) return;
      if (signatureHolds(String(block.thinking), String(block.signature))) return;
      refuseWith(`messages.${i}.content.${j}: Invalid \`signature\` in \`thinking\` block`);
    });
    if (!blocks.some(isThinking)) return;
    if (!strictness.anyOrder && !isThinking(blocks[0])) {
      refuseWith(
        `messages.${i}: If an assistant message contains any thinking blocks, the first block must be \`thinking\` or \`redacted_thinking\`. Found \`${String(blocks[0]!.type)}\`.`,
      );
    }
    if (isThinking(blocks.at(-1))) {
      refuseWith(`messages.${i}: The final block in an assistant message cannot be \`thinking\`.`);
    }
  });
}

/** The last assistant turn inside a tool loop, and its position. */
function loopHead(messages: readonly JsonObject[]): [JsonObject, number] | undefined {
  let head: [JsonObject, number] | undefined;
  for (let i = messages.length - 1; i >= 0; i--) {
    const message = messages[i]!;
    if (message.role === 'system') continue;
    if (message.role === 'assistant') {
      head = [message, i];
      continue;
    }
    const content = Array.isArray(message.content) ? message.content : [];
    const results = content.some((block) => isRecord(block) && block.type === 'tool_result');
    // Neighbours of one role are one turn: results may stand in the message before.
    if (!results && messages[i - 1]?.role !== 'user') break;
  }
  return head;
}

/** @throws Refusal with Anthropic's message */
export function checkThinking(
  body: JsonObject,
  messages: readonly JsonObject[],
  strictness: Strictness,
): void {
  const thinking = body.thinking;
  checkBlocks(messages, strictness);
  if (strictness.anyOrder) return;
  const head = loopHead(messages);
  if (head === undefined) return;
  const { content } = head[0];
  const text = content === '' ? [] : [{ type: 'text' }];
  const [first] = (typeof content === 'string' ? text : content) as JsonObject[];
  if (isRecord(thinking) && thinking.type === 'enabled') {
    if (first !== undefined && !isThinking(first)) {
      refuseWith(
        `messages.${head[1]}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${String(first.type)}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking`,
      );
    }
    return;
  }
  const last = messages.at(-1);
  const off = !isRecord(thinking) || thinking.type === 'disabled';
  if (!off || last?.role !== 'assistant' || !Array.isArray(last.content)) return;
  const found = last.content.findIndex(isThinking);
  if (found < 0) return;
  refuseWith(
    `messages.${messages.length - 1}.content.${found}: When thinking is disabled, an \`assistant\` message in the final position cannot contain \`thinking\`. To use thinking blocks, enable \`thinking\` in your request.`,
  );
}
