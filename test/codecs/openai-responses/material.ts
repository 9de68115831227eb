/** Loads recorded exchanges and captured requests of the Responses protocol, if they are available. */

import type { ClientContext, UpstreamContext } from '../../../src/codecs/codec.ts';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { NO_PROFILE, type Profile } from '../../../src/conversation/profile-facts.ts';
import type { Target } from '../../../src/conversation/target.ts';
import type { Conversation } from '../../../src/conversation/types.ts';
import { type SseFrame, SseParser } from '../../../src/lib/bytes/sse.ts';
import { isObject, type Json, type JsonObject } from '../../../src/lib/json/json.ts';
import {
  captures,
  type Fixture,
  fixtureRequest,
  fixtures,
  fixtureText,
} from '../../support/fixtures.ts';

/** The index rows of all providers' Responses exchanges; [] when the recordings are absent. */
export const recorded = fixtures((row) => row.protocol === 'responses');

export const bodyOf = ({ file }: Fixture): string => fixtureText(file);

export interface NamedBody {
  readonly name: string;
  readonly body: JsonObject;
}

// Some recordings are of other endpoints: cancel, retrieve, a search.
const asks = (body: JsonObject | undefined): body is JsonObject =>
  isObject(body) && body.model !== undefined && body.input !== undefined;

/** Every recorded and every captured request in Responses. */
export const requests = (): readonly NamedBody[] => [
  ...recorded.flatMap((row) => {
    const body = fixtureRequest(row);
    return asks(body) ? [{ name: row.request!, body }] : [];
  }),
  ...captures().flatMap(({ name, body }) =>
    isObject(body) && body.input !== undefined && body.commands === undefined
      ? [{ name, body }]
      : [],
  ),
];

/** The request of a recorded answer, or the smallest valid one. */
export function requestOf(row: Fixture): JsonObject {
  const body = fixtureRequest(row);
  return asks(body) ? body : { model: 'gpt-5', input: 'Hello' };
}

export function target(model: string, profile: Profile = NO_PROFILE, provider = 'vendor'): Target {
  return { provider, model, protocol: 'openai-responses', profile };
}

export function upstream(sent: Conversation, profile?: Profile): UpstreamContext {
  return { sent, target: target(sent.model, profile), notes: new Notes() };
}

export function client(request: Conversation, provider = 'vendor'): ClientContext {
  return { request: request, requestId: 'req_1763474589000_abc123', provider, notes: new Notes() };
}

export const conversation = (body: JsonObject): Conversation => openaiResponses.decodeRequest(body);

/** The frames of a stream's text. */
export function frames(text: string, size = Number.POSITIVE_INFINITY): readonly SseFrame[] {
  const parser = new SseParser();
  const bytes = new TextEncoder().encode(text);
  const out: SseFrame[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    out.push(...parser.push(bytes.subarray(at, Math.min(bytes.length, at + size))));
  }
  return [...out, ...parser.end()];
}

/** The object's JSON without undefined members, as on the wire. */
export const plain = <T>(value: T): Json => JSON.parse(JSON.stringify(value)) as Json;
