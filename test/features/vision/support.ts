/** Conversations with images, and a vision model that answers by rule. */

import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { Profile } from '../../../src/conversation/profile-facts.ts';
import type { Conversation } from '../../../src/conversation/types.ts';
import type { FeatureContext } from '../../../src/features/feature.ts';
import {
  type AskVisionModel,
  DESCRIPTIONS,
  type VisionOptions,
  visionFeature,
} from '../../../src/features/vision/index.ts';
import type { Json } from '../../../src/lib/json/json.ts';
import { memoryRoom } from '../../support/entries.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';

export const PROTOCOLS = {
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
  'anthropic-messages': anthropicMessages,
};

export const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** A different image for every name. */
export const png = (name: string) => Buffer.from(`${PNG}${name}`).toString('base64');
export const dataUrl = (name: string) => `data:image/png;base64,${png(name)}`;

export function context(
  client: ProtocolName = 'openai-chat',
  profile: Partial<Profile> = { images: false },
  model = 'text',
): FeatureContext & { readonly notes: Notes } {
  const target = { provider: 'p', model, protocol: client, profile: { name: 'none', ...profile } };
  return { target, client, notes: new Notes(), hop: 1 };
}

export const signal = () => new AbortController().signal;

/** A feature whose model answers `seen <n>` to its n-th question; `requests` holds what it got. */
export function eyes(more: Partial<VisionOptions> = {}, answer?: AskVisionModel) {
  const descriptions = memoryRoom(DESCRIPTIONS);
  const requests: { target: string; conversation: Conversation }[] = [];
  const events: string[] = [];
  const ask: AskVisionModel = async (target, conversation, abort, payer) => {
    requests.push({ target, conversation });
    return answer === undefined
      ? `seen ${requests.length}`
      : answer(target, conversation, abort, payer);
  };
  const feature = visionFeature({
    settings: () => ({ target: 'v/eyes', timeoutMs: 1000 }),
    store: () => descriptions,
    askModel: ask,
    log: (event, { why }) => events.push(why === undefined ? event : `${event}: ${why}`),
    ...more,
  });
  /** Runs both passes and returns the body that goes out. */
  const send = async (client: ProtocolName, body: Json, where = context(client)) => {
    const conversation = PROTOCOLS[client].decodeRequest(body);
    await feature.prepare!(conversation, where, signal());
    const sent = feature.request!(conversation, where);
    return {
      sent,
      conversation,
      notes: where.notes.all.map(({ what }) => what),
      wire: PROTOCOLS[client].encodeRequest(sent, where.target, where.notes),
    };
  };
  return { feature, requests, events, send };
}
