/** Loads recorded exchanges and captured requests of the Messages protocol; the lists are empty without them. */

import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import type { ClientContext, UpstreamContext } from '../../../src/codecs/codec.ts';
import type { StreamEvent } from '../../../src/conversation/events.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { NO_PROFILE, type Profile } from '../../../src/conversation/profile-facts.ts';
import type { Target } from '../../../src/conversation/target.ts';
import type { Conversation } from '../../../src/conversation/types.ts';
import { SseParser } from '../../../src/lib/bytes/sse.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import {
  captures,
  fixtureRequest,
  fixtures,
  fixtureText,
  haveFixtures,
} from '../../support/fixtures.ts';

/** For `test.skip` names: says that nothing was tested, and why. */
export const ABSENT = haveFixtures
  ? undefined
  : 'SKIPPED: the recorded exchanges are not beside this checkout';

export interface Recorded {
  readonly file: string;
  readonly text: string;
  readonly status: number;
  readonly anomalies: readonly string[];
  /** The request body, where the source had it. */
  readonly request: JsonObject | undefined;
}

/** Recorded Messages answers (also through Vertex). */
export const recorded = (kind: 'sse' | 'json'): readonly Recorded[] =>
  fixtures(
    ({ protocol, file }) => /^messages(?:-vertex)?$/.test(protocol) && file.endsWith(`.${kind}`),
  ).map((row) => ({
    file: row.file,
    text: fixtureText(row.file),
    status: row.status!,
    anomalies: row.anomalies,
    request: fixtureRequest(row),
  }));

const FOLDERS = /^(?:anthropic-messages(?:-count-tokens)?|vertex-messages-vertex)\//;

/** Every available Messages request body: recorded ones, and those that real clients sent. */
export function requests(): readonly { readonly file: string; readonly body: JsonObject }[] {
  const files = new Set(
    fixtures(({ file }) => FOLDERS.test(file)).flatMap((row) => row.request ?? []),
  );
  const recordings = [...files].map((file) => ({
    file,
    body: JSON.parse(fixtureText(file)) as JsonObject,
  }));
  const captured = captures().flatMap(({ name: file, body }) =>
    /messages(_count_tokens)?\.json$/.test(file) && Array.isArray(body?.messages)
      ? [{ file, body }]
      : [],
  );
  return [...recordings, ...captured];
}

export function target(more: Partial<Target> = {}, profile: Partial<Profile> = {}): Target {
  return {
    provider: 'up',
    model: 'claude-test',
    protocol: 'anthropic-messages',
    profile: { ...NO_PROFILE, ...profile },
    ...more,
  };
}

export const EMPTY: Conversation = {
  model: 'claude-test',
  system: [],
  turns: [],
  tools: [],
  settings: { stream: false },
};

export const upstream = (sent: Conversation = EMPTY): UpstreamContext => ({
  sent,
  target: target(),
  notes: new Notes(),
});

export const client = (request: Conversation = EMPTY): ClientContext => ({
  request: request,
  requestId: 'req_1_abcdef',
  provider: 'up',
  notes: new Notes(),
});

/** The conversation of a recorded request; an empty one where it is unknown. */
export function conversationOf(request: JsonObject | undefined): Conversation {
  if (request === undefined) return EMPTY;
  return anthropicMessages.decodeRequest({ model: 'm', max_tokens: 1, ...request });
}

/** Events of a stream that arrives in these chunks. */
export function eventsOf(
  chunks: readonly Uint8Array[],
  context: UpstreamContext = upstream(),
): readonly StreamEvent[] {
  const parser = new SseParser();
  const decoder = anthropicMessages.decodeStream(context);
  const events: StreamEvent[] = [];
  for (const chunk of chunks) {
    for (const frame of parser.push(chunk)) events.push(...decoder.push(frame));
  }
  for (const frame of parser.end()) events.push(...decoder.push(frame));
  events.push(...decoder.end());
  return events;
}

export const bytes = (text: string) => new TextEncoder().encode(text);

/** SSE text of several events, each `{type, …}`. */
export const sse = (...events: readonly JsonObject[]): string =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
