/** Decodes a whole Gemini answer into a reply. */

import { brokenAnswer } from '../../../conversation/errors.ts';
import type { Reply, StreamEvent } from '../../../conversation/events.ts';
import { ReplyBuilder } from '../../../conversation/reply-builder.ts';
import { isObject, type Json } from '../../../lib/json/json.ts';
import type { UpstreamContext } from '../../codec.ts';
import { decodeStream } from '../stream/decode-stream.ts';
import { field, list, objects, wireOf } from '../wire.ts';

/**
 * Decodes the first candidate; further ones stay in `wire`. A list of chunks, which is a stream without
 * `alt=sse`, is one answer.
 * @throws GatewayError `fromUpstream` if the body is an error or not an answer
 */
export function decodeReply(body: Json, context: UpstreamContext): Reply {
  const chunks = list(body) === undefined ? objects([body]) : objects(body);
  const isAnswer = chunks.some(
    (chunk) =>
      chunk.candidates !== undefined ||
      field(chunk, 'promptFeedback') !== undefined ||
      chunk.error !== undefined ||
      field(chunk, 'usageMetadata') !== undefined,
  );
  if (!isAnswer) {
    throw brokenAnswer(
      'The upstream answered with something that is not a GenerateContentResponse.',
    );
  }
  const decoder = decodeStream(context);
  const fold = new ReplyBuilder();
  const add = (events: readonly StreamEvent[]) => {
    for (const event of events) {
      if (event.type === 'error') throw event.error;
      fold.push(event);
    }
  };
  for (const chunk of chunks) add(decoder.chunk(chunk));
  add(decoder.end());
  if (!isObject(body)) return fold.reply;
  const reply = { ...fold.reply, wire: wireOf(body) };
  return fold.complete ? reply : { ...reply, oddFinish: 'finish_reason' };
}
