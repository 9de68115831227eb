/** Digests a forwarded Responses answer from its body or from its first and last frames. */

import { needles } from '../../../lib/bytes/bytes.ts';
import { ERROR_LINE, type SseFrame } from '../../../lib/bytes/sse.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import type { Digest } from '../../codec.ts';
import { object, objects, text } from '../wire.ts';
import { decodeErrorEvent, vendorError } from './errors.ts';
import { failureOf, finishOfOutput } from './finish-reason.ts';
import { usageOf } from './usage.ts';

const UNFINISHED = ['in_progress', 'queued', 'failed', 'cancelled'];

/** Digests a whole response object. */
export function digestReply(body: Json): Digest {
  if (!isObject(body)) return { complete: false, semantic: false };
  if (body.output === undefined && body.error !== undefined && body.error !== null) {
    return { complete: false, semantic: false, error: vendorError(undefined, body.error) };
  }
  const status = text(body.status) ?? 'completed';
  const digest = digestResponse(body, status);
  if ((status === 'queued' || status === 'in_progress') && text(body.id) !== undefined) {
    return { ...digest, pending: body.background === true ? 'background' : 'unasked' };
  }
  if (!digest.complete || digest.error !== undefined) return digest;
  // A relay's own JSON, which is no response.
  if (!Array.isArray(body.output)) return { complete: false, semantic: false };
  return { ...digest, texts: plainTexts(body.output) };
}

function digestResponse(response: JsonObject, status: string): Digest {
  const error = failureOf({ ...response, status });
  const complete = !UNFINISHED.includes(status);
  const usage = usageOf(response);
  return {
    complete,
    semantic: objects(response.output).some(hasContent),
    answered: objects(response.output).some(
      (item) => item.type !== 'reasoning' && hasContent(item),
    ),
    usage,
    counted: usage && true,
    model: text(response.model),
    finish: complete ? finishOfOutput({ ...response, status }) : undefined,
    error,
  };
}

function plainTexts(output: Json | undefined): Digest['texts'] {
  const texts: string[] = [];
  for (const item of Array.isArray(output) ? output : []) {
    if (!isObject(item) || item.type !== 'message') return undefined;
    if (!Array.isArray(item.content)) return undefined;
    for (const part of item.content) {
      if (!isObject(part) || part.type !== 'output_text') return undefined;
      const value = text(part.text) ?? '';
      if (value === '' || objects(part.annotations).length > 0) return undefined;
      texts.push(value);
    }
  }
  return texts.length > 0 ? texts : undefined;
}

/** Does this item hold anything that a user would miss? */
function hasContent(item: JsonObject): boolean {
  if (item.type !== 'message' && item.type !== 'reasoning') return true;
  if (typeof item.content === 'string') return item.content !== '';
  return [...objects(item.content), ...objects(item.summary)].some(
    (part) => (text(part.text) ?? text(part.refusal) ?? '') !== '',
  );
}

/** Digests the first and last frames of a stream. */
export function digestStream(frames: readonly SseFrame[]): Digest {
  let semantic = false;
  let finished = false;
  let end: Digest | undefined;
  let last = '';
  for (const frame of frames) {
    if (frame.data === undefined) continue;
    if (frame.data === '[DONE]') {
      finished = true;
      continue;
    }
    const data = tryParse(frame.data);
    if (!isObject(data)) continue;
    const type = text(data.type) ?? frame.event;
    semantic ||= isSemanticEvent(type, data);
    end = terminalDigest(type, data) ?? end;
    last = type;
  }
  // A relay that lost the last event still sends `[DONE]`: enough if no item is open.
  const whole = finished && semantic && last === 'response.output_item.done';
  if (end === undefined) return { complete: whole, semantic };
  return { ...end, semantic: semantic || end.semantic };
}

function isSemanticEvent(type: string, data: JsonObject): boolean {
  if (type.endsWith('.delta')) return data.delta !== '' && data.delta !== undefined;
  const item = object(data.item);
  if (item === undefined) return false;
  return type === 'response.output_item.done' && hasContent(item);
}

function terminalDigest(type: string, data: JsonObject): Digest | undefined {
  switch (type) {
    case 'response.completed':
    case 'response.incomplete':
    case 'response.failed': {
      const response = object(data.response) ?? {};
      return digestResponse(response, text(response.status) ?? type.slice('response.'.length));
    }
    case 'error':
      return { complete: false, semantic: false, error: decodeErrorEvent(data) };
    case '':
    case ERROR_LINE:
      return data.error === undefined
        ? undefined
        : // Codex goes by the type.
          { complete: false, semantic: false, error: decodeErrorEvent(data), unsaid: true };
    default:
      return undefined;
  }
}

const ENDINGS = ['response.completed', 'response.incomplete', 'response.failed'];

/** Prefixes of the terminal events, with and without an `event:` line, with and without spaces. */
export const terminalPrefixes = ENDINGS.flatMap((type) =>
  needles(
    `event: ${type}`,
    `event:${type}`,
    `data: {"type":"${type}"`,
    `data:{"type":"${type}"`,
    `data: {"type": "${type}"`,
  ),
);

const FRAMES_WITH_IDS = /^response\.(created|output_item\.done|completed|incomplete)$/;

/** True for the first frame, frames of finished items, and the last frame. Vendors may leave out the `event:` line. */
export function carriesItemIds({ event, data }: Pick<SseFrame, 'event' | 'data'>): boolean {
  if (event !== '') return FRAMES_WITH_IDS.test(event);
  return (
    data !== undefined &&
    (data.includes('"response.created"') ||
      data.includes('"response.output_item.done"') ||
      data.includes('"response.completed"') ||
      data.includes('"response.incomplete"'))
  );
}
