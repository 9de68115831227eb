/** Digests a Chat answer that is forwarded unchanged. */

import { laterUsage, withServiceTier } from '../../../conversation/usage.ts';
import type { SseFrame } from '../../../lib/bytes/sse.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import type { Digest } from '../../codec.ts';
import { list, object, text } from '../wire.ts';
import { inBandError, isSaid } from './errors.ts';
import { decodeFinish, finishFailure, saysCalls } from './finish-reason.ts';
import { decodeUsage } from './usage.ts';

/** Which kinds of content a message or a delta holds. */
function contentKinds(message: JsonObject) {
  const content = message.content;
  const written =
    (typeof content === 'string' && content !== '') ||
    (list(content)?.length ?? 0) > 0 ||
    (list(message.images)?.length ?? 0) > 0 ||
    isObject(message.audio);
  const visible =
    written ||
    Boolean(text(message.reasoning_content)) ||
    Boolean(text(message.reasoning)) ||
    (list(message.reasoning_details)?.length ?? 0) > 0;
  const refusal = Boolean(text(message.refusal));
  const calls =
    (list(message.tool_calls)?.length ?? 0) > 0 ||
    Boolean(text(object(message.function_call)?.name));
  return { visible, refusal, calls, answered: written || refusal || calls };
}

/** Fields of a reply, and of its message, that hold more than the text. */
const SOURCES = ['search_results', 'web_search', 'citations'];
const OTHER_CONTENT = [
  'reasoning_content',
  'reasoning',
  'reasoning_details',
  'refusal',
  'tool_calls',
  'function_call',
  'annotations',
  'audio',
  'images',
  'extra_content',
];

const holdsAny = (value: JsonObject, keys: readonly string[]): boolean => {
  for (const key of keys) if (!isNothing(value[key])) return true;
  return false;
};

const isNothing = (value: Json | undefined) =>
  value === undefined || value === null || value === '' || list(value)?.length === 0;

function plainTexts(reply: JsonObject, choices: readonly Json[]): Digest['texts'] {
  const message = choices.length === 1 ? object(object(choices[0])?.message) : undefined;
  const content = text(message?.content);
  if (message === undefined || content === undefined || content === '') return undefined;
  if (holdsAny(message, OTHER_CONTENT)) return undefined;
  return holdsAny(reply, SOURCES) ? undefined : [content];
}

/** Digests a whole reply. A body that is not a completion is incomplete and empty. */
export function digestReply(body: Json): Digest {
  const reply = object(body);
  const error = reply === undefined ? undefined : inBandError(reply, '');
  if (error !== undefined) {
    const usage = decodeUsage(reply?.usage);
    return { complete: false, semantic: false, error, ...(usage && { usage, counted: true }) };
  }
  const choices = list(reply?.choices);
  if (reply === undefined || choices === undefined) return { complete: false, semantic: false };
  const choice = object(choices[0]) ?? {};
  const found = contentKinds(object(choice.message) ?? {});
  const reason = text(choice.finish_reason) ?? '';
  const failure = finishFailure(reason);
  const isPlain = failure === undefined && !saysCalls(reason);
  return {
    complete: failure === undefined,
    semantic: found.visible || found.refusal || found.calls,
    answered: found.answered,
    texts: isPlain ? plainTexts(reply, choices) : undefined,
    finish: decodeFinish(reason, found),
    usage: withServiceTier(
      decodeUsage(reply.usage) ?? decodeUsage(choice.usage),
      reply.service_tier,
    ),
    model: text(reply.model),
    ...(failure && { counted: true }),
    error: failure,
  };
}

/** Digests the first and last frames of a stream. */
export function digestStream(frames: readonly SseFrame[]): Digest {
  let done = false;
  let reason: string | undefined;
  let usage: Digest['usage'];
  let tier: Json | undefined;
  let error: Digest['error'];
  let unsaid = false;
  let model: string | undefined;
  const found = { visible: false, refusal: false, calls: false };
  for (const frame of frames) {
    if (frame.data === undefined) continue;
    if (frame.data.trim() === '[DONE]') {
      done = true;
      continue;
    }
    const parsed = tryParse(frame.data);
    const chunk = Array.isArray(parsed) ? parsed[0] : parsed;
    if (!isObject(chunk)) continue;
    const failure = inBandError(chunk, frame.event);
    if (error === undefined && failure !== undefined) {
      error = failure;
      unsaid = chunk !== parsed || !isSaid(chunk, frame.event);
    }
    tier = chunk.service_tier ?? tier;
    model = text(chunk.model) || model;
    const now = decodeUsage(chunk.usage) ?? decodeUsage(object(chunk.x_groq)?.usage);
    if (now !== undefined) usage = laterUsage(usage, now);
    for (const value of list(chunk.choices) ?? []) {
      const choice = object(value) ?? {};
      usage = decodeUsage(choice.usage) ?? usage;
      reason ||= text(choice.finish_reason);
      const now = contentKinds(object(choice.delta) ?? object(choice.message) ?? {});
      found.visible ||= now.visible;
      found.refusal ||= now.refusal;
      found.calls ||= now.calls;
    }
  }
  if (error === undefined && reason !== undefined) {
    error = finishFailure(reason);
    unsaid = error !== undefined;
  }
  const complete = error === undefined && (done || Boolean(reason));
  return {
    complete,
    semantic: found.visible || found.refusal || found.calls,
    usage: withServiceTier(usage, tier),
    counted: usage && true,
    model,
    finish: complete ? decodeFinish(reason ?? '', found) : undefined,
    error,
    unsaid: unsaid || undefined,
  };
}
