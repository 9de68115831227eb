/** Runs one turn of a chat through an in-process gateway: the chat features around a scripted vendor. */

import { withConversationTools } from '../../../src/app/chat-apps.ts';
import type { StreamEvent } from '../../../src/conversation/events.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { ReplyBuilder } from '../../../src/conversation/reply-builder.ts';
import { conversationParts } from '../../../src/features/chat-apps/index.ts';
import { leakedCalls } from '../../../src/features/leaked-calls/index.ts';
import { HOPS, serverTools, toolRegistry } from '../../../src/features/server-tools/index.ts';
import { toolPairing } from '../../../src/features/tool-pairing/index.ts';
import { toolResults } from '../../../src/features/tool-results/index.ts';
import { SHORT_RESULTS } from '../../../src/features/tool-results/short-result-ledger.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import type { ToolRun } from '../../../src/samples/recording.ts';
import {
  type Answered,
  PROTOCOLS,
  type Scripted,
  scriptedGateway,
} from '../../gateway/scripted.ts';
import { memoryRoom } from '../../support/entries.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';
import { type TestMemory, testMemory } from './memory.ts';

export interface Chat {
  readonly client: ProtocolName;
  readonly upstream?: ProtocolName;
  readonly body: JsonObject;
  readonly hopgate: JsonObject;
  readonly script: Scripted[];
  readonly memory?: TestMemory;
  readonly rounds?: number;
}

export type ScriptedPart =
  | { readonly text: string }
  | { readonly call: string; readonly args: JsonObject };

/** A vendor's reply on the wire: streamed in pieces of that many characters, or whole. */
export function vendor(
  protocol: ProtocolName,
  messages: readonly ScriptedPart[],
  { stream = true, piece = 5 }: { readonly stream?: boolean; readonly piece?: number } = {},
): Scripted {
  const request = PROTOCOLS['openai-chat'].decodeRequest({
    model: 'm',
    messages: [{ role: 'user', content: 'x' }],
  });
  const context = {
    request: request,
    requestId: 'req_1_abcdef',
    provider: 'up',
    notes: new Notes(),
  };
  const calls = messages.some((one) => 'call' in one);
  const events: StreamEvent[] = [
    { type: 'start', id: '', model: 'm' },
    ...messages.flatMap((one, index): StreamEvent[] => {
      const text = 'text' in one ? one.text : JSON.stringify(one.args);
      const head =
        'text' in one
          ? ({ type: 'text' } as const)
          : ({
              type: 'tool-call',
              id: `call_${index}${Bun.hash(text).toString(36)}`,
              name: one.call,
              kind: 'function',
              by: 'client',
            } as const);
      const pieces = text.match(new RegExp(`[\\s\\S]{1,${piece}}`, 'g')) ?? [];
      return [
        { type: 'block-start', index, head },
        ...pieces.map((more): StreamEvent => ({ type: 'delta', index, text: more })),
        { type: 'block-stop', index },
      ];
    }),
    { type: 'usage', usage: { input: 10, output: 5 } },
    { type: 'finish', reason: calls ? 'tool-calls' : 'stop' },
    { type: 'end' },
  ];
  if (stream) {
    const encoder = PROTOCOLS[protocol].encodeStream(context);
    return { sse: events.map((event) => encoder.event(event)) };
  }
  const fold = new ReplyBuilder();
  for (const event of events) fold.push(event);
  return { json: PROTOCOLS[protocol].encodeReply(fold.reply, context) };
}

export const ALL = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const;

/** A request in this protocol: instructions and alternating messages, the user's first. */
export function asking(
  client: ProtocolName,
  messages: readonly string[],
  {
    stream = true,
    system = '你是小明。',
  }: { readonly stream?: boolean; readonly system?: string } = {},
): JsonObject {
  const parts = messages.map((content, at) => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    content,
  }));
  switch (client) {
    case 'openai-chat':
      return { stream, messages: [{ role: 'system', content: system }, ...parts] };
    case 'openai-responses':
      return { stream, instructions: system, input: parts };
    case 'anthropic-messages':
      return { stream, max_tokens: 500, system, messages: parts };
  }
}

export interface Chatted extends Answered {
  readonly sent: readonly JsonObject[];
  readonly notes: readonly string[];
  readonly leaks: readonly string[];
  readonly runs: readonly ToolRun[];
}

export async function chat(given: Chat): Promise<Chatted> {
  const { client, upstream = client, hopgate, script, memory = testMemory() } = given;
  const leaks: string[] = [];
  const runs: ToolRun[] = [];
  const body = { model: 'm', ...given.body };
  const parts = conversationParts({
    extension: hopgate,
    headers: new Headers(),
    request: () => PROTOCOLS[client].decodeRequest(body),
    memory,
    mayUse: () => true,
    locale: 'zh',
    texts: {},
    onQuery: () => {},
    onMarkup: () => leaks.push('dsml:suppressed'),
    onCaptureFailed: () => {},
  })!;
  const server = serverTools({
    registry: withConversationTools(toolRegistry([]), parts.tools),
    ledger: memoryRoom(HOPS),
    client,
    owner: '',
    limits: { rounds: given.rounds ?? 8 },
    log: () => {},
    forced: parts.forced,
    events: parts.toolEvents,
    onRun: (run) => runs.push(run),
  });
  const features = [
    leakedCalls(({ family, outcome }) => leaks.push(`${family}:${outcome}`), { everyAnswer: true }),
    ...parts.before,
    server,
    toolPairing,
    toolResults({ limit: () => 8192, ledger: memoryRoom(SHORT_RESULTS) }),
    vendorFit(),
    ...parts.after,
  ];
  const gateway = scriptedGateway(upstream, script, features);
  const answered = await gateway.ask(client, body);
  const notes = gateway.summaries.flatMap((summary) => summary.notes.map(({ name }) => name));
  return { ...answered, sent: gateway.sent as JsonObject[], notes, leaks, runs };
}
