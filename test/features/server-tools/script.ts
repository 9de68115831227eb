/** Drives the engine without I/O: scripted hops through a real encoder, as the gateway runs them. */

import { expect } from 'bun:test';
import { CODECS } from '../../../src/app/codecs.ts';
import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../../src/codecs/codec.ts';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import type { FinishReason, StreamEvent } from '../../../src/conversation/events.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { Profile } from '../../../src/conversation/profile-facts.ts';
import type { Target } from '../../../src/conversation/target.ts';
import type { Conversation } from '../../../src/conversation/types.ts';
import type { Usage } from '../../../src/conversation/usage.ts';
import { HOPS, type HopLedger } from '../../../src/features/server-tools/hop-ledger.ts';
import { serverTools } from '../../../src/features/server-tools/index.ts';
import { toolRegistry } from '../../../src/features/server-tools/registry.ts';
import type { ServerToolOptions } from '../../../src/features/server-tools/session.ts';
import type { ServerTool, ToolOutcome } from '../../../src/features/server-tools/tool.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { memoryRoom } from '../../support/entries.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';

export const PROTOCOLS: Readonly<Record<ProtocolName, Codec>> = {
  'anthropic-messages': anthropicMessages,
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
};

export const target = (protocol: ProtocolName, profile: Partial<Profile> = {}): Target => ({
  provider: 'up',
  model: 'up-model',
  protocol,
  profile: { name: 'none', ...profile },
});

/** One block of a scripted answer. */
export type ScriptedBlock =
  | { readonly text: string }
  | { readonly reasoning: string }
  | { readonly call: string; readonly id: string; readonly input: string };

export interface Script {
  readonly say: readonly ScriptedBlock[];
  readonly finish?: FinishReason;
  readonly usage?: Usage;
  /** Breaks the connection before the end. */
  readonly cut?: boolean;
}

export function eventsOf(script: Script, id = 'up_1'): StreamEvent[] {
  const events: StreamEvent[] = [{ type: 'start', id, model: 'up-model' }];
  script.say.forEach((message, index) => {
    if ('text' in message) {
      events.push({ type: 'block-start', index, head: { type: 'text' } });
      for (const text of pieces(message.text)) events.push({ type: 'delta', index, text });
    } else if ('reasoning' in message) {
      events.push({ type: 'block-start', index, head: { type: 'reasoning' } });
      events.push({ type: 'delta', index, text: message.reasoning });
    } else {
      const { id: callId, call: name } = message;
      const head = { type: 'tool-call', id: callId, name, kind: 'function', by: 'client' } as const;
      events.push({ type: 'block-start', index, head });
      for (const text of pieces(message.input)) events.push({ type: 'delta', index, text });
    }
    events.push({ type: 'block-stop', index });
  });
  if (script.cut) return events;
  if (script.usage) events.push({ type: 'usage', usage: script.usage });
  const calls = script.say.some((message) => 'call' in message);
  const reason = script.finish ?? (calls ? 'tool-calls' : 'stop');
  events.push({ type: 'finish', reason }, { type: 'end' });
  return events;
}

const pieces = (text: string) => text.match(/[\s\S]{1,7}/g) ?? [];

/** A tool that answers from a table, or `found: <arguments>`. */
export function fakeTool(name: string, more: Partial<ServerTool> = {}): ServerTool {
  return {
    name,
    description: `The tool ${name}.`,
    schema: { type: 'object', properties: { query: { type: 'string' } } },
    limits: { timeoutMs: 1000 },
    inject: 'force',
    run: async (args): Promise<ToolOutcome> => ({
      ok: true,
      payload: { args } as Json,
      text: `found: ${JSON.stringify(args)}`,
    }),
    ...more,
  };
}

export const PAGES = [
  { url: 'https://a.example/1', title: 'Page A', text: 'Text of A' },
  { url: 'https://b.example/2', title: 'Page B', text: 'Text of B', published: '2026-07-14' },
];

/** A web search that always finds the same two pages. */
export const fakeSearch = (more: Partial<ServerTool> = {}): ServerTool =>
  fakeTool('web_search', {
    hosted: 'web_search',
    inject: 'declared',
    run: async ({ query }) => ({
      ok: true,
      payload: { query: query ?? null },
      text: (first) => JSON.stringify(PAGES.map((page, at) => ({ n: first + at, ...page }))),
      sources: PAGES,
    }),
    ...more,
  });

export interface Exchange {
  readonly client: ProtocolName;
  readonly body: JsonObject;
  readonly hops: readonly Script[];
  readonly tools: readonly ServerTool[];
  readonly upstream?: Target;
  readonly ledger?: HopLedger;
  readonly options?: Partial<ServerToolOptions>;
  readonly signal?: AbortSignal;
}

export interface ExchangeResult {
  /** The SSE text that the client got. */
  readonly sse: string;
  readonly events: readonly StreamEvent[];
  /** The conversations sent to the upstream, hop by hop. */
  readonly sent: readonly Conversation[];
  /** Their wire bodies. */
  readonly bodies: readonly JsonObject[];
  readonly log: readonly { readonly event: string; readonly fields: JsonObject }[];
  readonly notes: Notes;
}

/** Runs an exchange: request passes, scripted answer, interceptor, next hop; all events go into one encoder. */
export async function exchange(given: Exchange): Promise<ExchangeResult> {
  const { client, hops } = given;
  const upstream = given.upstream ?? target('openai-chat');
  const log: { event: string; fields: JsonObject }[] = [];
  const notes = new Notes();
  const feature = serverTools({
    registry: toolRegistry(given.tools),
    ledger: given.ledger ?? memoryRoom(HOPS),
    client,
    owner: '',
    limits: { rounds: 8 },
    log: (event, fields) => log.push({ event, fields }),
    ...given.options,
  });
  const request = PROTOCOLS[client].decodeRequest({ model: 'm', stream: true, ...given.body });
  const context = { request: request, requestId: 'req_1_abcdef', provider: 'up', notes };
  const encoder = PROTOCOLS[client].encodeStream(context);
  const events: StreamEvent[] = [];
  const sent: Conversation[] = [];
  const bodies: JsonObject[] = [];
  let sse = '';
  const emit = (list: readonly StreamEvent[]) => {
    for (const event of list) {
      events.push(event);
      sse += encoder.event(event);
    }
  };
  let conversation = request;
  const signal = given.signal ?? new AbortController().signal;
  for (let hop = 1; ; hop++) {
    const script = hops[hop - 1];
    if (script === undefined) throw new Error(`hop ${hop} was not scripted`);
    const at = { target: upstream, client, notes, hop };
    await feature.prepare?.(conversation, at, signal);
    const passed = feature.request!(conversation, at);
    expect(feature.request!(passed, at)).toBe(passed);
    sent.push(passed);
    bodies.push(CODECS[upstream.protocol].encodeRequest(passed, upstream, new Notes()));
    const interceptor = feature.intercept?.(passed, at);
    for (const event of eventsOf(script, `up_${hop}`)) {
      const out = interceptor?.event(event) ?? event;
      emit(Array.isArray(out) ? out : [out as StreamEvent]);
    }
    emit(interceptor?.end() ?? []);
    const next = interceptor?.continuation?.();
    if (next === undefined) break;
    conversation = await next.run(signal, emit);
    if (next.last) break;
  }
  return { sse, events, sent, bodies, log, notes };
}

/** The text that the client read. */
export const textOf = (events: readonly StreamEvent[]): string =>
  events.map((event) => (event.type === 'delta' ? event.text : '')).join('');

/** Expects one start, gapless blocks one at a time, one finish, one end. */
export function expectLegal(events: readonly StreamEvent[]): void {
  let index = -1;
  let open = false;
  const count = (type: StreamEvent['type']) => events.filter((e) => e.type === type).length;
  for (const event of events) {
    if (event.type === 'block-start') {
      expect(open).toBe(false);
      expect(event.index).toBe(index + 1);
      index = event.index;
      open = true;
    } else if (event.type === 'block-stop') {
      expect(open).toBe(true);
      expect(event.index).toBe(index);
      open = false;
    } else if ('index' in event) {
      expect(open).toBe(true);
      expect(event.index).toBe(index);
    }
  }
  expect(open).toBe(false);
  expect([count('start'), count('finish'), count('end')]).toEqual([1, 1, 1]);
  expect(events[0]?.type).toBe('start');
  expect(events.at(-1)?.type).toBe('end');
}
