/** Sends a Chat transcript through the feature and back to the wire, as a vendor with short results gets it. */

import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { Target } from '../../../src/conversation/target.ts';
import type { Conversation } from '../../../src/conversation/types.ts';
import type { FeatureContext } from '../../../src/features/feature.ts';
import {
  SHORT_RESULTS,
  type ShortResultLedger,
  toolResults,
} from '../../../src/features/tool-results/index.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { memoryRoom } from '../../support/entries.ts';

export const TARGET: Target = {
  provider: 'glm',
  model: 'glm-4.7',
  protocol: 'openai-chat',
  profile: { name: 'glm', shortToolResults: true },
};

export const context = (target = TARGET): FeatureContext => ({
  target,
  client: 'openai-chat',
  notes: new Notes(),
  hop: 1,
});

/** An executed-tool record as such gateways write it. */
export const record = (result: JsonObject, more: JsonObject = {}): string =>
  JSON.stringify({
    version: 'rcc.tool.v1',
    tool: { name: 'shell', call_id: 'call_1' },
    arguments: { command: ['ls', '-l'] },
    executed: { command: ['ls', '-l'], workdir: '/repo' },
    result,
    meta: { timestamp: 1_761_896_456 },
    ...more,
  });

export const assistant = (...ids: string[]): JsonObject => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({
    id,
    type: 'function',
    function: { name: 'shell', arguments: '{"command":["ls"]}' },
  })),
});
export const result = (id: string, content: Json): JsonObject => ({
  role: 'tool',
  tool_call_id: id,
  content,
});
export const user = (content: string): JsonObject => ({ role: 'user', content });

export interface Passed {
  readonly messages: readonly JsonObject[];
  readonly notes: readonly string[];
  readonly same: boolean;
  readonly conversation: Conversation;
}

/** One request through the pass; `again` is the result of a second pass. */
export function pass(
  messages: readonly JsonObject[],
  options: { limit?: number; ledger?: ShortResultLedger; target?: Target } = {},
): Passed & { readonly again: Conversation } {
  const target = options.target ?? TARGET;
  const feature = toolResults({
    limit: options.limit ?? 8192,
    ledger: options.ledger ?? memoryRoom(SHORT_RESULTS),
  });
  const request = openaiChat.decodeRequest({ model: 'glm-4.7', messages });
  const here = context(target);
  const sent = feature.request!(request, here);
  const body = openaiChat.encodeRequest(sent, target, new Notes());
  return {
    messages: body.messages as JsonObject[],
    notes: here.notes.all.map((note) => note.name),
    same: sent === request,
    conversation: sent,
    again: feature.request!(sent, context(target)),
  };
}
