/** Decodes and encodes Gemini's finish and block reasons. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { FinishEvent, FinishReason } from '../../../conversation/events.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import { compact, field, isOwnDetails, object, text } from '../wire.ts';

/** https://ai.google.dev/api/generate-content#FinishReason */
const REASONS: Readonly<Record<string, FinishReason>> = {
  STOP: 'stop',
  MAX_TOKENS: 'length',
  SAFETY: 'content-filter',
  RECITATION: 'content-filter',
  LANGUAGE: 'content-filter',
  BLOCKLIST: 'content-filter',
  PROHIBITED_CONTENT: 'content-filter',
  SPII: 'content-filter',
  MODEL_ARMOR: 'content-filter',
  IMAGE_SAFETY: 'content-filter',
  IMAGE_PROHIBITED_CONTENT: 'content-filter',
  IMAGE_RECITATION: 'content-filter',
  NO_IMAGE: 'stop',
};

/** Reasons that report a failure of the model: another try may succeed. */
const FAILURES: ReadonlySet<string> = new Set([
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MALFORMED_RESPONSE',
  'OTHER',
  'IMAGE_OTHER',
]);

/** The error that a finish reason reports; undefined for others. */
export function finishFailure(reason: string, message?: string): GatewayError | undefined {
  if (reason === 'MISSING_THOUGHT_SIGNATURE') {
    const words = message ?? 'A function call of the history lacks its thought_signature.';
    return new GatewayError('invalid_request', words, { fromUpstream: true, code: reason });
  }
  if (!FAILURES.has(reason)) return undefined;
  const words = `The upstream stopped with finishReason ${reason}${message ? `: ${message}` : '.'}`;
  return new GatewayError('upstream', words, { fromUpstream: true, code: reason });
}

/** The meaning of a finish reason; unknown ones mean `stop`, and `stop` after a call means `tool-calls`. */
export function decodeFinish(reason: string, calls: boolean): FinishReason {
  const meaning = memberOf(REASONS, reason) ?? 'stop';
  return meaning === 'stop' && calls ? 'tool-calls' : meaning;
}

/** What a candidate says of its end besides the reason; undefined if it says no more than the usual. */
export function finishDetails(candidate: JsonObject): JsonObject | undefined {
  const finishReason = text(field(candidate, 'finishReason'));
  if (finishReason === undefined || finishReason === 'STOP' || finishReason === 'MAX_TOKENS') {
    return undefined;
  }
  const message = text(field(candidate, 'finishMessage'));
  return compact({
    finishReason,
    finishMessage: message,
    safetyRatings: field(candidate, 'safetyRatings'),
  });
}

/** The reason for which a prompt was not answered at all; undefined: it was not blocked. */
export function blockDetails(reply: JsonObject): JsonObject | undefined {
  const feedback = object(field(reply, 'promptFeedback'));
  const blockReason = feedback && text(field(feedback, 'blockReason'));
  if (!blockReason || blockReason === 'BLOCK_REASON_UNSPECIFIED') return undefined;
  return { promptFeedback: feedback! };
}

const WIRE: Readonly<Record<FinishReason, string>> = {
  stop: 'STOP',
  'stop-sequence': 'STOP',
  'tool-calls': 'STOP',
  pause: 'STOP',
  length: 'MAX_TOKENS',
  'context-overflow': 'MAX_TOKENS',
  refusal: 'SAFETY',
  'content-filter': 'SAFETY',
};

/** The members of the last candidate that say how the answer ended: Google's own where they came from there. */
export function encodeFinish({
  reason,
  details,
}: Pick<FinishEvent, 'reason' | 'details'>): JsonObject {
  const own = isOwnDetails(details) ? object(details) : undefined;
  return own?.finishReason === undefined ? { finishReason: WIRE[reason] } : own;
}

/** The `promptFeedback` of an answer to a prompt that Google blocked; undefined for others. */
export const promptFeedbackOf = (details: Json | undefined): JsonObject | undefined =>
  object(object(details)?.promptFeedback);
