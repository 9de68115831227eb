/** Loads recorded exchanges and captured requests of the Responses protocol, if they are available. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { ClientContext, UpstreamContext } from '../../../src/codecs/codec.ts';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { NO_PROFILE, type Profile } from '../../../src/conversation/profile-facts.ts';
import type { Target } from '../../../src/conversation/target.ts';
import type { Conversation } from '../../../src/conversation/types.ts';
import { type SseFrame, SseParser } from '../../../src/lib/bytes/sse.ts';
import { isObject, type Json, type JsonObject } from '../../../src/lib/json/json.ts';

const FIXTURES = new URL('../../../../shared/fixtures/', import.meta.url).pathname;
const CAPTURES = new URL('../../../../shared/captures/', import.meta.url).pathname;

export const hasFixtures = existsSync(`${FIXTURES}index.json`);
export const hasCaptures = existsSync(CAPTURES);

export interface Recorded {
  readonly file: string;
  readonly kind: 'json' | 'sse';
  readonly status: number | null;
  readonly provider: string;
  readonly request: string | undefined;
  readonly anomalies: readonly string[];
  readonly sdk_accumulator: string | null;
}

/** The index rows of all providers' Responses exchanges; [] when the recordings are absent. */
export const recorded: readonly Recorded[] = hasFixtures
  ? (
      JSON.parse(readFileSync(`${FIXTURES}index.json`, 'utf8')) as (Recorded & {
        protocol: string;
      })[]
    ).filter((row) => row.protocol === 'responses')
  : [];

export const bodyOf = (row: Recorded): string => readFileSync(FIXTURES + row.file, 'utf8');

export interface NamedBody {
  readonly name: string;
  readonly body: JsonObject;
}

/** Every recorded and every captured request in Responses. */
export function requests(): readonly NamedBody[] {
  const out: NamedBody[] = [];
  for (const row of recorded) {
    if (row.request === undefined || row.request === null) continue;
    const body = JSON.parse(readFileSync(FIXTURES + row.request, 'utf8')) as Json;
    // Some recordings are of other endpoints: cancel, retrieve, a search.
    if (isObject(body) && body.model !== undefined && body.input !== undefined) {
      out.push({ name: row.request, body });
    }
  }
  if (hasCaptures) {
    for (const path of readdirSync(CAPTURES, { recursive: true }) as string[]) {
      if (!path.endsWith('.json')) continue;
      const value = JSON.parse(readFileSync(CAPTURES + path, 'utf8')) as Json;
      const body = isObject(value) ? value.body : undefined;
      if (!isObject(body) || body.input === undefined || body.commands !== undefined) continue;
      out.push({ name: path, body });
    }
  }
  return out;
}

/** The request of a recorded answer, or the smallest valid one. */
export function requestOf(row: Recorded): JsonObject {
  if (row.request !== undefined && row.request !== null) {
    const body = JSON.parse(readFileSync(FIXTURES + row.request, 'utf8')) as Json;
    if (isObject(body) && body.model !== undefined && body.input !== undefined) return body;
  }
  return { model: 'gpt-5', input: 'Hello' };
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
