/** Decodes and encodes Gemini's finish and block reasons. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { FinishDetails, FinishEvent, FinishReason } from '../../../conversation/events.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import { wordSet } from '../../../lib/text/words.ts';
import { compact, field, object, PROTOCOL, text } from '../wire.ts';

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
const FAILURES = wordSet(`
  MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS MALFORMED_RESPONSE OTHER
  IMAGE_OTHER`);

/** The error that a finish reason reports; undefined for others. */
export function finishFailure(reason: string, message?: string): GatewayError | undefined {
  if (reason === 'MISSING_THOUGHT_SIGNATURE') {
    const words = message ?? 'A function call of the history lacks its thought_signature.';
    return new GatewayError('invalid_request', words, {
      fromUpstream: true,
      code: reason.toLowerCase(),
    });
  }
  if (!FAILURES.has(reason)) return undefined;
  const words = `The upstream stopped with finishReason ${reason}${message ? `: ${message}` : '.'}`;
  return new GatewayError('upstream', words, { fromUpstream: true, code: reason.toLowerCase() });
}

/** Words of other protocols, which relays hand on. */
const FOREIGN: Readonly<Record<string, string>> = {
  END_TURN: 'STOP',
  TOOL_CALLS: 'STOP',
  TOOL_USE: 'STOP',
  FUNCTION_CALL: 'STOP',
  LENGTH: 'MAX_TOKENS',
  CONTENT_FILTER: 'SAFETY',
};

/** Google's word for the finish reason of a candidate; undefined: it says none. */
export function finishReasonOf(candidate: JsonObject): string | undefined {
  const reason = text(field(candidate, 'finishReason'))?.toUpperCase();
  if (!reason || reason === 'FINISH_REASON_UNSPECIFIED') return undefined;
  return memberOf(FOREIGN, reason) ?? reason;
}

/** The meaning of a finish reason; unknown ones mean `stop`, and `stop` after a call means `tool-calls`. */
export function decodeFinish(reason: string, calls: boolean): FinishReason {
  const meaning = memberOf(REASONS, reason) ?? 'stop';
  return meaning === 'stop' && calls ? 'tool-calls' : meaning;
}

/** What a candidate says of its end besides the reason; undefined if it says no more than the usual. */
export function finishDetails(candidate: JsonObject): FinishDetails | undefined {
  const finishReason = finishReasonOf(candidate);
  const message = text(field(candidate, 'finishMessage'));
  const isUsual = finishReason === 'STOP' || finishReason === 'MAX_TOKENS';
  if (finishReason === undefined || (isUsual && !message)) return undefined;
  const value = compact({
    finishReason,
    finishMessage: message,
    safetyRatings: field(candidate, 'safetyRatings'),
  });
  const explanation = message || `The answer ended with finishReason ${finishReason}.`;
  return { protocol: PROTOCOL, value, explanation };
}

/** The reason for which a prompt was not answered at all; undefined: it was not blocked. */
export function blockDetails(reply: JsonObject): FinishDetails | undefined {
  const feedback = object(field(reply, 'promptFeedback'));
  const blockReason = feedback && text(field(feedback, 'blockReason'));
  if (!blockReason || blockReason === 'BLOCK_REASON_UNSPECIFIED') return undefined;
  const message = text(field(feedback, 'blockReasonMessage'));
  const explanation = message || `The prompt was blocked with blockReason ${blockReason}.`;
  return { protocol: PROTOCOL, value: { promptFeedback: feedback }, explanation };
}

const WIRE: Readonly<Record<FinishReason, string>> = {
  stop: 'STOP',
  'stop-sequence': 'STOP',
  'tool-calls': 'STOP',
  // Not TOO_MANY_TOOL_CALLS, which says this of Google's own models: clients take it for an error and throw the answer away.
  pause: 'MAX_TOKENS',
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
  const own = ownDetails(details);
  if (own?.finishReason !== undefined) return own;
  return compact({ finishReason: WIRE[reason], finishMessage: details?.explanation });
}

/** The `promptFeedback` of an answer to a prompt that Google blocked; undefined for others. */
export const promptFeedbackOf = (details: FinishDetails | undefined): JsonObject | undefined =>
  object(ownDetails(details)?.promptFeedback);

const ownDetails = (details: FinishDetails | undefined): JsonObject | undefined =>
  details?.protocol === PROTOCOL ? object(details.value) : undefined;
