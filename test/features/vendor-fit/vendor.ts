/** Builds the request that a vendor of the built-in table receives: request pass, codec and key order. */

import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import { googleGemini } from '../../../src/codecs/google-gemini/index.ts';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { Target } from '../../../src/conversation/target.ts';
import type { Conversation, ProtocolName } from '../../../src/conversation/types.ts';
import type { FeatureContext } from '../../../src/features/feature.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import { shapeBody } from '../../../src/gateway/parameters.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { profileFor } from '../../../src/routing/targets.ts';
import { PROFILES } from '../../../src/vendors/index.ts';

export const PROTOCOLS = {
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
  'anthropic-messages': anthropicMessages,
  'google-gemini': googleGemini,
} as const;

export function targetOf(profile: string, model: string, protocol?: ProtocolName): Target {
  const facts = PROFILES[profile];
  if (facts === undefined) throw new Error(`no profile ${profile}`);
  const spoken =
    protocol ??
    (profile === 'anthropic' || profile.endsWith('-anthropic')
      ? 'anthropic-messages'
      : 'openai-chat');
  return { provider: profile, model, protocol: spoken, profile: profileFor(facts, model) };
}

export interface VendorRequest {
  /** The wire body. */
  readonly body: JsonObject;
  readonly notes: readonly string[];
  /** Unchanged: the client's own bytes go out. */
  readonly same: boolean;
  /** The byte prefilter found nothing to do. */
  readonly idle: boolean;
  readonly again: boolean;
}

/** A client's request as the vendor gets it. */
export function vendorRequest(
  target: Target,
  request: JsonObject,
  client: ProtocolName = 'openai-chat',
): VendorRequest {
  const notes = new Notes();
  const feature = vendorFit();
  const context: FeatureContext = { target, client, notes, hop: 1 };
  const conversation = PROTOCOLS[client].decodeRequest(request as Json);
  const bytes = new TextEncoder().encode(JSON.stringify(request));
  const sent = feature.request!(conversation, context);
  const same = sent === conversation && client === target.protocol;
  const written = same ? request : encoded(sent, target, notes);
  const repeated = feature.request!(sent, { ...context, notes: new Notes() });
  return {
    body: shapeBody(written, target.profile, notes),
    notes: notes.all.map(({ name, where }) => `${name} ${where ?? ''}`.trim()),
    same: sent === conversation,
    idle: !feature.mayApply!(Buffer.from(bytes), context),
    again: repeated === sent,
  };
}

function encoded(conversation: Conversation, target: Target, notes: Notes): JsonObject {
  const body = PROTOCOLS[target.protocol].encodeRequest(
    { ...conversation, model: target.model },
    target,
    notes,
  );
  return JSON.parse(JSON.stringify(body));
}

const tool = (name = 'look'): JsonObject => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: {} } },
});

/** A Chat request with one user message and other fields. */
export const chat = (more: JsonObject = {}): JsonObject => ({
  model: 'any',
  messages: [{ role: 'user', content: 'Hi' }],
  ...more,
});
export const withTool = (more: JsonObject = {}): JsonObject => chat({ tools: [tool()], ...more });
export const call = (id: string): JsonObject => ({
  id,
  type: 'function',
  function: { name: 'look', arguments: '{}' },
});
