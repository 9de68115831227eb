/** Digests a Messages answer without converting it. */

import type { GatewayError } from '../../../conversation/errors.ts';
import type { FinishReason } from '../../../conversation/events.ts';
import { tokenCount } from '../../../conversation/usage.ts';
import type { SseFrame } from '../../../lib/bytes/sse.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import { put } from '../../../lib/json/json-members.ts';
import type { Digest } from '../../codec.ts';
import { isThinking, objects, text } from '../wire.ts';
import { decodeErrorBody } from './errors.ts';
import { decodeFinish, oddFinish } from './finish-reason.ts';
import { decodeUsage } from './usage.ts';

export function digestReply(body: Json): Digest {
  if (!isObject(body)) return { complete: false, semantic: false };
  if (body.type === 'error') {
    const error = decodeErrorBody(body, { status: undefined });
    const usage = decodeUsage(body.usage);
    return { complete: false, semantic: false, error, ...(usage && { usage, counted: true }) };
  }
  const blocks = contentOf(body);
  const semantic = blocks.some(hasContent);
  const complete = typeof body.stop_reason === 'string' || semantic;
  const isOdd = oddFinish(body.stop_reason, false) !== undefined || isOddMessage(body);
  return {
    complete,
    semantic,
    answered: blocks.some((block) => hasContent(block) && !isThinking(block)),
    texts: isOdd ? undefined : plainTexts(body.content),
    usage: decodeUsage(body.usage),
    model: text(body.model),
    finish: complete ? decodeFinish(body.stop_reason) : undefined,
  };
}

/** The blocks of a message, or its text, which some relays send. */
export const contentOf = ({ role, content }: JsonObject): readonly JsonObject[] =>
  typeof content === 'string' && role === 'assistant'
    ? [{ type: 'text', text: content }]
    : objects(content);

/** Does it lack what Anthropic's clients read? */
export const isOddMessage = (body: JsonObject): boolean =>
  !isObject(body.usage) || typeof body.content === 'string' || contentOf(body).some(isOddCall);

const isOddCall = ({ type, id, input }: JsonObject): boolean =>
  type === 'tool_use' && (!text(id) || !isObject(input));

function plainTexts(content: Json | undefined): Digest['texts'] {
  const texts: string[] = [];
  for (const block of Array.isArray(content) ? content : []) {
    if (!isObject(block) || block.type !== 'text' || typeof block.text !== 'string')
      return undefined;
    const cited = Array.isArray(block.citations) ? block.citations.length > 0 : block.citations;
    if (block.text === '' || cited) return undefined;
    texts.push(block.text);
  }
  return texts.length > 0 ? texts : undefined;
}

/** Is this a block that a user would miss: anything but empty text and empty thinking? */
function hasContent(block: JsonObject): boolean {
  if (block.type === 'text') return block.text !== '';
  return block.type !== 'thinking' || block.thinking !== '';
}

/** Usage is that of message_start, overwritten by the totals of message_delta. */
export function digestStream(frames: readonly SseFrame[]): Digest {
  let usage: JsonObject = {};
  let complete = false;
  let counted = false;
  let semantic = false;
  let finish: FinishReason | undefined;
  let model: string | undefined;
  let error: GatewayError | undefined;
  let unsaid = false;
  for (const { data, event: name } of frames) {
    const event = data === undefined ? undefined : tryParse(data);
    if (!isObject(event)) continue;
    switch (event.type ?? (isObject(event.error) ? 'error' : name)) {
      case 'message_start':
        if (!isObject(event.message)) break;
        usage = mergeUsage(usage, event.message.usage);
        model = text(event.message.model);
        break;
      case 'content_block_start':
        semantic ||= isObject(event.content_block) && hasContent(event.content_block);
        break;
      case 'content_block_delta':
        semantic ||= isObject(event.delta) && hasText(event.delta);
        break;
      case 'message_delta': {
        usage = mergeUsage(usage, event.usage, counted);
        counted ||= countsOutput(event.usage);
        const reason = isObject(event.delta) ? event.delta.stop_reason : undefined;
        if (typeof reason === 'string') finish = decodeFinish(reason);
        break;
      }
      case 'message_stop':
        complete = true;
        break;
      case 'error':
        error = decodeErrorBody(event, { status: undefined });
        // Anthropic's clients go by the name of the event.
        unsaid = name !== 'error';
        usage = mergeUsage(usage, event.usage, counted);
        counted ||= countsOutput(event.usage);
        break;
    }
  }
  const counts = decodeUsage(usage);
  return {
    complete,
    semantic,
    usage: counted ? counts : counts && { ...counts, unknown: 'output' },
    counted: counts && counted,
    model,
    finish,
    error,
    unsaid: unsaid || undefined,
  };
}

const OUTPUT = 'output_tokens';

/** Does the end of a stream say its output? What stands at the start is no count of it. */
export const countsOutput = (usage: Json | undefined): boolean =>
  isObject(usage) && tokenCount(usage[OUTPUT]) !== undefined;

const TEXTS = ['text', 'thinking', 'partial_json'] as const;

const hasText = (delta: JsonObject) =>
  TEXTS.some((key) => typeof delta[key] === 'string' && delta[key] !== '');

const PROMPT = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'] as const;

const promptTokens = (usage: JsonObject): number => {
  let sum = 0;
  for (const key of PROMPT) sum += tokenCount(usage[key]) ?? 0;
  return sum;
};

/**
 * Later counts over earlier ones. Null counts as not reported. Counts are cumulative and cannot sink: relays end
 * streams with zeros. A prompt that is split anew between input and cache (Kimi) counts as long as its parts add
 * up to what was known.
 * @param isCounted the output is known already
 */
export function mergeUsage(
  before: JsonObject,
  later: Json | undefined,
  isCounted = false,
): JsonObject {
  if (!isObject(later)) return before;
  const merged: Record<string, Json | undefined> = { ...before };
  for (const [key, value] of Object.entries(later)) {
    if (value === null || value === undefined) continue;
    if (key === OUTPUT && isCounted && !tokenCount(value)) continue;
    put(merged, key, value);
  }
  if (promptTokens(merged) < promptTokens(before)) {
    for (const key of [...PROMPT, 'cache_creation']) {
      if (before[key] !== undefined) merged[key] = before[key];
      else delete merged[key];
    }
  }
  const [known, now] = [before.server_tool_use, merged.server_tool_use];
  if (isObject(known) && isObject(now) && known !== now) {
    const calls: Record<string, Json | undefined> = { ...now };
    for (const [name, count] of Object.entries(known)) {
      put(calls, name, Math.max(tokenCount(count) ?? 0, tokenCount(calls[name]) ?? 0));
    }
    merged.server_tool_use = calls as JsonObject;
  }
  return merged as JsonObject;
}
