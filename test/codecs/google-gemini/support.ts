/** Contexts, targets and recorded exchanges for tests of the Gemini codec. */

import type { ClientContext, UpstreamContext } from '../../../src/codecs/codec.ts';
import { googleGemini } from '../../../src/codecs/google-gemini/index.ts';
import type { StreamEvent } from '../../../src/conversation/events.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { Profile } from '../../../src/conversation/profile-facts.ts';
import type { Target } from '../../../src/conversation/target.ts';
import type { Conversation } from '../../../src/conversation/types.ts';
import { isObject, type JsonObject, parseJson } from '../../../src/lib/json/json.ts';
import { decodeCut } from '../../support/chunkings.ts';
import { fixtures, fixtureText } from '../../support/fixtures.ts';

/** Every recorded exchange of `generateContent`, at Google AI and at Vertex. */
export const rows = fixtures(({ file }) => /^(?:google|vertex)-gemini\//.test(file));

/** Recorded request bodies, with the model that the gateway writes into them. */
export const recordedBodies = (): readonly (readonly [string, JsonObject])[] =>
  [...new Set(rows.flatMap(({ request }) => request ?? []))].flatMap((file) => {
    const body = parseJson(fixtureText(file));
    const asks = isObject(body) && body.contents !== undefined;
    return asks ? [[file, { model: 'm', ...body }] as const] : [];
  });

export const target = (profile: Partial<Profile> = {}, model = 'm'): Target => ({
  provider: 'vendor',
  model,
  protocol: 'google-gemini',
  profile: { name: 'test', ...profile },
});

export const NOTHING_SENT: Conversation = {
  model: 'm',
  system: [],
  turns: [],
  tools: [],
  settings: { stream: true },
};

export const upstream = (sent: Conversation = NOTHING_SENT): UpstreamContext => ({
  sent,
  target: target(),
  notes: new Notes(),
});

export const client = (request: Conversation = NOTHING_SENT): ClientContext => ({
  request,
  requestId: 'req_1_abc',
  provider: 'vendor',
  notes: new Notes(),
});

/** The events of a stream; `cuts` are the places where its bytes are split. */
export const decodeAll = (
  bytes: Uint8Array,
  cuts: readonly number[] = [],
  sent: Conversation = NOTHING_SENT,
): StreamEvent[] => decodeCut(googleGemini.decodeStream(upstream(sent)), bytes, cuts);

/** Ids of calls that came without one are random: they are numbered, so that two runs compare. */
export function withoutIds(events: readonly StreamEvent[]): unknown {
  const ids = new Map<string, string>();
  return JSON.parse(JSON.stringify(events), (key, value: unknown) => {
    if ((key !== 'id' && key !== 'callId') || typeof value !== 'string') return value;
    if (!value.startsWith('call_')) return value;
    if (!ids.has(value)) ids.set(value, `call ${ids.size}`);
    return ids.get(value);
  });
}

/** The bytes of a stream of these chunks. */
export const sse = (...chunks: readonly JsonObject[]): Uint8Array =>
  new TextEncoder().encode(chunks.map((one) => `data: ${JSON.stringify(one)}\r\n\r\n`).join(''));

/** A chunk with one candidate. */
export const chunk = (
  parts: readonly JsonObject[],
  more: JsonObject = {},
  rest: JsonObject = {},
): JsonObject => ({
  candidates: [{ content: { parts, role: 'model' }, ...more, index: 0 }],
  modelVersion: 'm',
  responseId: 'r1',
  ...rest,
});
