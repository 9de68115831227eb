/** Runs the feature as the gateway does, with the real codecs, and returns the result. */

import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import type { Notes as NotesType } from '../../../src/conversation/notes.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { NO_PROFILE, type Profile } from '../../../src/conversation/profile-facts.ts';
import { repairBody, toolPairing } from '../../../src/features/tool-pairing/index.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';

export const PROTOCOLS = {
  'anthropic-messages': anthropicMessages,
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
} as const;

export interface Repaired {
  /** The request is unchanged: the client's bytes go out. */
  readonly same: boolean;
  readonly body: JsonObject;
  readonly notes: NotesType;
  readonly names: readonly string[];
}

export interface RunOptions {
  readonly to?: ProtocolName;
  readonly profile?: Profile;
}

/** The body sent for a body of protocol `from`. */
export function run(body: Json, from: ProtocolName, options: RunOptions = {}): Repaired {
  const { to = from, profile = NO_PROFILE } = options;
  const notes = new Notes();
  const target = { provider: 'upstream', model: 'm', protocol: to, profile };
  const mended = repairBody(body, from, notes);
  const conversation = PROTOCOLS[from].decodeRequest(mended);
  const context = { target: { ...target, model: conversation.model }, client: from, notes, hop: 1 };
  const out = toolPairing.request!(conversation, context);
  const same = out === conversation && mended === body && from === to;
  const sent = same
    ? (body as JsonObject)
    : PROTOCOLS[to].encodeRequest(out, context.target, notes);
  // As the vendor reads it: undefined members disappear.
  const read = JSON.parse(JSON.stringify(sent)) as JsonObject;
  return { same, body: read, notes, names: notes.all.map(({ name }) => name) };
}

/** The marks (`T12.`, `R7.`) in a body's texts and results. */
export const marksIn = (body: Json): ReadonlySet<string> =>
  new Set(JSON.stringify(body).match(/[TR]\d+\./g) ?? []);
