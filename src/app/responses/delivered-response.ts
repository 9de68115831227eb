/** The response object of an answer as the client got it, from its frames, its reply or its JSON. */

import { openaiResponses } from '../../codecs/openai-responses/index.ts';
import { outputItems } from '../../codecs/openai-responses/stored-items.ts';
import type { FrameContent } from '../../gateway/stream/pipeline.ts';
import type { ExchangeFeatures } from '../../gateway/types.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../lib/json/json.ts';

export type Answer = Parameters<NonNullable<ExchangeFeatures['onAnswer']>>[0];

/** The response object, and its output as a later request may send it. */
export interface DeliveredResponse {
  readonly response: JsonObject;
  readonly output: readonly JsonObject[];
}

/** Undefined if the answer holds no response object. */
export function deliveredBy(answer: Answer): DeliveredResponse | undefined {
  if (answer.kind === 'json') return delivered(tryParse(answer.text));
  const last = responseIn(answer.frames, OVER);
  const done = itemsOf(answer.frames);
  if (last !== undefined) return delivered(last, done);
  if (answer.kind === 'frames') return undefined;
  const made = delivered(openaiResponses.encodeReply(answer.reply, answer.client));
  return made && { ...made, output: asFirstDelivered(made.output, done) };
}

/** @param done the items of the single events, for a vendor that leaves them out of the last one */
function delivered(
  value: Json | undefined,
  done: readonly JsonObject[] = [],
): DeliveredResponse | undefined {
  if (!isObject(value)) return undefined;
  const response = withoutToolEvents(value);
  const output = outputItems(response);
  return output.length > 0 || done.length === 0
    ? { response, output }
    : { response: { ...response, output: done }, output: done };
}

const OVER = ['response.completed', 'response.incomplete'];

/** The response object as its first event has it; undefined if the answer has none. */
export const responseBegun = (frames: readonly FrameContent[]): JsonObject | undefined =>
  responseIn(frames, ['response.created']);

/** The response object in the last event of these types. */
function responseIn(
  frames: readonly FrameContent[],
  types: readonly string[],
): JsonObject | undefined {
  for (let at = frames.length - 1; at >= 0; at--) {
    const event = parsed(frames[at]!);
    if (!isObject(event?.response)) continue;
    if (types.includes(String(event.type ?? frames[at]!.event))) return event.response;
  }
  return undefined;
}

const itemsOf = (frames: readonly FrameContent[]): readonly JsonObject[] =>
  frames.flatMap((frame) => {
    const event = parsed(frame);
    const isDone = (event?.type ?? frame.event) === 'response.output_item.done';
    return isDone && isObject(event?.item) ? [event.item] : [];
  });

const parsed = ({ data }: FrameContent): JsonObject | undefined => {
  const value = data === undefined ? undefined : tryParse(data);
  return isObject(value) ? value : undefined;
};

/**
 * A stream that had to be changed halfway: its first items went out as the vendor's bytes, under the
 * vendor's ids, and clients refer to the ids that they got first.
 * @param made all items of the last event
 * @param done the first ones as they came
 */
function asFirstDelivered(
  made: readonly JsonObject[],
  done: readonly JsonObject[],
): readonly JsonObject[] {
  const output: JsonObject[] = [];
  let at = 0;
  for (const item of made) {
    // Reasoning without text is not sent again.
    while (at < done.length && done[at]!.type === 'reasoning' && item.type !== 'reasoning') {
      output.push(done[at++]!);
    }
    const first = done[at];
    if (first?.type === item.type && first?.call_id === item.call_id) {
      output.push(first!);
      at++;
    } else output.push(item);
  }
  return output;
}

/** Results of tools, recalled memory included, go to the client once and are not stored. */
function withoutToolEvents(response: JsonObject): JsonObject {
  if (response.hopgate === undefined) return response;
  const { hopgate: _, ...rest } = response;
  return rest;
}
