/** What a vendor says of a history, by the checks of the fake one: its first error, or undefined. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { checkChatMessages } from '../../support/fake-upstream/check-chat-messages.ts';
import { checkHistory } from '../../support/fake-upstream/check-messages.ts';
import { checkInput } from '../../support/fake-upstream/check-responses-input.ts';
import { isRecord, Refusal, refuseWith } from '../../support/fake-upstream/refusal.ts';

function complaintOf(check: () => void): string | undefined {
  try {
    check();
    return undefined;
  } catch (thrown) {
    if (thrown instanceof Refusal) return thrown.message;
    throw thrown;
  }
}

export const messagesComplaint = (body: JsonObject): string | undefined =>
  complaintOf(() => {
    checkHistory(body, { anySeal: true });
    checkSeals(body.messages as readonly JsonObject[]);
  });

export const chatComplaint = (body: JsonObject): string | undefined =>
  complaintOf(() => {
    checkChatMessages(body.messages as Json[], { lenientFields: true });
    checkOrder(body.messages as readonly JsonObject[]);
  });

export const responsesComplaint = (body: JsonObject): string | undefined =>
  complaintOf(() => checkInput(body, { anySeal: true, lenientFields: true }));

/** Signatures of these tests: `EuYB` and 96 digits of base64; no foreign signature begins like that. */
function checkSeals(messages: readonly JsonObject[]): void {
  messages.forEach(({ content }, i) => {
    if (!Array.isArray(content)) return;
    content.filter(isRecord).forEach(({ type, signature, data }, j) => {
      const at = `messages.${i}.content.${j}`;
      if (type === 'thinking' && !/^E[A-Za-z0-9+/]{40,}={0,2}$/.test(String(signature)))
        refuseWith(`${at}: Invalid \`signature\` in \`thinking\` block`);
      if (type === 'redacted_thinking' && !/^[A-Za-z0-9+/]+={0,2}$/.test(String(data)))
        refuseWith(`${at}: Invalid \`data\` in \`redacted_thinking\` block`);
    });
  });
}

/** OpenAI accepts results in any order; templates without ids pair them with calls by order. */
function checkOrder(messages: readonly JsonObject[]): void {
  let open: Json[] = [];
  for (const { role, tool_calls: calls, tool_call_id: id } of messages) {
    if (role === 'assistant') {
      open = Array.isArray(calls) ? calls.filter(isRecord).map((call) => call.id ?? null) : [];
    } else if (role === 'tool' && id !== open.shift()) {
      refuseWith(`The result of '${id}' stands before others' that were called first`);
    }
  }
}
