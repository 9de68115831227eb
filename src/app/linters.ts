/** The linters for the command line: each protocol's own, and what a vendor's profile adds to them. */

import type { Lint } from '../cli/command.ts';
import { lintRequest as lintMessages } from '../codecs/anthropic-messages/lint/lint-request.ts';
import { lintStream as lintMessagesStream } from '../codecs/anthropic-messages/lint/lint-stream.ts';
import { lintRequest as lintGemini } from '../codecs/google-gemini/lint/lint-request.ts';
import { lintStream as lintGeminiStream } from '../codecs/google-gemini/lint/lint-stream.ts';
import type { Finding, Linter } from '../codecs/lint.ts';
import { lintRequest as lintChat } from '../codecs/openai-chat/lint/lint-request.ts';
import { lintStream as lintChatStream } from '../codecs/openai-chat/lint/lint-stream.ts';
import { lintRequest as lintResponses } from '../codecs/openai-responses/lint/lint-request.ts';
import { lintStream as lintResponsesStream } from '../codecs/openai-responses/lint/lint-stream.ts';
import { Notes } from '../conversation/notes.ts';
import type { Target } from '../conversation/target.ts';
import type { Conversation, ProtocolName } from '../conversation/types.ts';
import { vendorFit } from '../features/vendor-fit/index.ts';
import { shapeBody } from '../gateway/parameters.ts';
import { isObject, type Json } from '../lib/json/json.ts';
import { CODECS } from './codecs.ts';

const LINTERS: Readonly<Record<ProtocolName, Linter>> = {
  'anthropic-messages': {
    name: 'anthropic-messages',
    request: lintMessages,
    stream: lintMessagesStream,
  },
  'openai-chat': { name: 'openai-chat', request: lintChat, stream: lintChatStream },
  'openai-responses': {
    name: 'openai-responses',
    request: lintResponses,
    stream: lintResponsesStream,
  },
  'google-gemini': { name: 'google-gemini', request: lintGemini, stream: lintGeminiStream },
};

/**
 * What the gateway would have to change for this vendor, as findings: the facts of a profile are in
 * one place, and this reads them off the pass that applies them. Nothing for a body that cannot be
 * read at all, of which the protocol's linter has said enough.
 */
function vendorFindings(body: Json, target: Target): readonly Finding[] {
  if (!isObject(body)) return [];
  const protocol = CODECS[target.protocol];
  let conversation: Conversation;
  try {
    conversation = protocol.decodeRequest(body);
  } catch {
    return [];
  }
  const notes = new Notes();
  const fitted = vendorFit().request!(conversation, {
    target,
    client: target.protocol,
    notes,
    hop: 1,
  });
  const sent = fitted === conversation ? body : protocol.encodeRequest(fitted, target, notes);
  shapeBody(sent, target.profile, notes);
  return notes.all.map(({ name, where = '', what }) => ({
    at: where === '' || where.startsWith('/') ? where : `/${where.replaceAll('.', '/')}`,
    rule: name.replaceAll('_', '-'),
    message: `${target.profile.name} does not take this as it is${what === undefined ? '' : `: ${what}`}`,
  }));
}

/** For {@link Deps.lint}. */
export const LINT: Lint = { linters: LINTERS, vendor: vendorFindings };
