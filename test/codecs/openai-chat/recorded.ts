/** Loads recorded exchanges and captured requests of the Chat protocol, if they are available. */

import type { ClientContext, UpstreamContext } from '../../../src/codecs/codec.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { Target } from '../../../src/conversation/target.ts';
import type { Conversation } from '../../../src/conversation/types.ts';
import { isObject, type JsonObject, parseJson } from '../../../src/lib/json/json.ts';
import { object } from '../../../src/lib/json/typed-reads.ts';
import { captures, type Fixture, fixtures, fixtureText } from '../../support/fixtures.ts';

/** Every recorded Chat exchange. */
export const rows = fixtures((row) => row.protocol === 'chat' && row.file.includes('-chat/'));

export const jsonOf = (file: string) => parseJson(fixtureText(file));

export const requestOf = ({ request }: Fixture): JsonObject | undefined =>
  request === null ? undefined : object(jsonOf(request));

/** Bodies that real clients posted to `/v1/chat/completions`. */
export const capturedBodies = (): readonly (readonly [name: string, body: JsonObject])[] =>
  captures().flatMap(({ name, body }) =>
    name.endsWith('v1_chat_completions.json') && isObject(body) ? [[name, body] as const] : [],
  );

export const target = (profile: Partial<Target['profile']> = {}): Target => ({
  provider: 'vendor',
  model: 'model-x',
  protocol: 'openai-chat',
  profile: { name: 'test', ...profile },
});

export const NOTHING_SENT: Conversation = {
  model: 'model-x',
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
  request: request,
  requestId: 'req_1_abc',
  provider: 'vendor',
  notes: new Notes(),
});
