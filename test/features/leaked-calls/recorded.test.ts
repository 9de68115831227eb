/** Recorded replies hold no leak, so all events pass unchanged. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../../src/codecs/codec.ts';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import type { StreamEvent } from '../../../src/conversation/events.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { replyEvents } from '../../../src/conversation/reply-builder.ts';
import type { Conversation, ProtocolName, Tool } from '../../../src/conversation/types.ts';
import { SoundAnswer } from '../../../src/gateway/sound-answer.ts';
import { type Json, parseJson } from '../../../src/lib/json/json.ts';
import { decodeCut } from '../../support/chunkings.ts';
import {
  type Fixture,
  fixtureBytes,
  fixtures,
  fixtureText,
  haveFixtures,
  unlessRecorded,
} from '../../support/fixtures.ts';
import { play, TOOLS, targetWith } from './transcript.ts';

const PROTOCOLS: Readonly<Record<string, Codec>> = {
  messages: anthropicMessages,
  'messages-vertex': anthropicMessages,
  chat: openaiChat,
  responses: openaiResponses,
};

const rows = fixtures(
  ({ file, protocol, status, anomalies }) =>
    protocol in PROTOCOLS &&
    // Calls without ids are rewritten.
    !file.includes('without_id') &&
    (status ?? 200) < 400 &&
    !anomalies.some((each) => /start/.test(each)),
);

/** The recorded request; without one (or without tools in it), a request with tools that the reply does not call. */
function sentOf(row: Fixture, protocol: Codec): Conversation {
  const nothing: Conversation = {
    model: 'm',
    system: [],
    turns: [],
    tools: TOOLS,
    settings: { stream: true },
  };
  if (row.request === null) return nothing;
  try {
    const body = parseJson(fixtureText(row.request)) as Json;
    const sent = protocol.decodeRequest(body);
    // Thinking in tags without any tool to call: the feature does not read it, so it stays as recorded.
    const thinks = /(?:<|\\u003c)think/.test(fixtureText(row.file));
    return sent.tools.length > 0 || thinks ? sent : { ...sent, tools: TOOLS };
  } catch {
    return nothing;
  }
}

function eventsOf(row: Fixture, sent: Conversation): StreamEvent[] {
  const protocol = PROTOCOLS[row.protocol]!;
  const target = { ...targetWith(), protocol: protocol.name as ProtocolName };
  const context = { sent, target, notes: new Notes() };
  const bytes = fixtureBytes(row.file);
  if (row.kind !== 'sse') {
    const body = parseJson(new TextDecoder().decode(bytes));
    return [...replyEvents(protocol.decodeReply(body, context))];
  }
  return decodeCut(protocol.decodeStream(context), bytes);
}

/** Other tests cover recorded calls that are broken on the wire. */
function changed(row: Fixture): string | undefined {
  const sent = sentOf(row, PROTOCOLS[row.protocol]!);
  let events: StreamEvent[];
  try {
    events = eventsOf(row, sent);
  } catch {
    return undefined;
  }
  const sound = new SoundAnswer(new Notes());
  const right = events.flatMap((event) => sound.event(event));
  const played = play(right, {
    tools: sent.tools as readonly Tool[],
    turns: sent.turns,
    settings: sent.settings,
    protocol: PROTOCOLS[row.protocol]!.name,
  });
  if (played.same && right.every((event, i) => event === events[i])) return undefined;
  const at = played.events.findIndex((event, i) => event !== events[i]);
  return `${row.file}: ${played.notes || 'no note'} at ${at} ${JSON.stringify(events[at])?.slice(0, 200)}`;
}

describe.skipIf(!haveFixtures)(`recorded replies${unlessRecorded}`, () => {
  test('the recordings cover all three protocols', () => {
    expect(rows.length).toBeGreaterThan(1000);
    expect(new Set(rows.map(({ protocol }) => protocol)).size).toBeGreaterThan(2);
  });

  test('recorded streams pass as the same events, but for content in parts', () => {
    const all = rows.filter(({ kind }) => kind === 'sse').flatMap((row) => changed(row) ?? []);
    expect(all).toEqual([
      expect.stringMatching(/^mistral-chat\/ai__mistral-reasoning.*"odd":"form"/),
    ]);
  });

  test('recorded whole replies pass unchanged, but for calls that Snowflake ends with stop, Mistral’s content in parts and calls without a type, and a choice that Azure’s filter left without a message', () => {
    const all = rows.filter(({ kind }) => kind !== 'sse').flatMap((row) => changed(row) ?? []);
    const [snowflake, parts, calls, azure] = [
      /^snowflake-chat.*"finish".*"odd":"finish_reason"/,
      /^mistral-chat.*"start".*"odd":"form"/,
      /^mistral-chat.*"tool-call".*"odd":true/,
      /^azure-chat.*content_filtering.*"start"/,
    ].map((pattern) => all.filter((one) => pattern.test(one)));
    expect([snowflake, parts, calls, azure].map((each) => each!.length)).toEqual([2, 5, 19, 1]);
    expect(all).toHaveLength(27);
  });
});
