/** Encodes a reply as a whole GenerateContentResponse. */

import { type Reply, toolEventMembers } from '../../../conversation/events.ts';
import { replyEvents } from '../../../conversation/reply-builder.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import type { ClientContext } from '../../codec.ts';
import { compact, object, PROTOCOL } from '../wire.ts';
import { AnswerParts } from './answer-parts.ts';
import { encodeFinish, promptFeedbackOf } from './finish-reason.ts';
import { encodeUsage } from './usage.ts';

/** Encodes a reply. An unchanged reply of this protocol goes out as it came. */
export function encodeReply(reply: Reply, context: ClientContext): JsonObject {
  const own = reply.wire?.protocol === PROTOCOL ? object(reply.wire.value) : undefined;
  if (own !== undefined) return own;
  const writer = new AnswerParts(context);
  const parts: JsonObject[] = [];
  for (const event of replyEvents(reply)) {
    for (const part of writer.event(event)) {
      const last = parts.at(-1);
      if (last !== undefined && isMoreText(last, part)) {
        parts[parts.length - 1] = { ...last, ...part, text: `${last.text}${part.text}` };
      } else parts.push(part);
    }
  }
  const feedback = promptFeedbackOf(reply.details);
  const candidate = compact({
    content: { role: 'model', parts: parts.length > 0 ? parts : [{ text: '' }] },
    ...encodeFinish({ reason: reply.finish, details: reply.details }),
    groundingMetadata: writer.grounding,
    index: 0,
  });
  return compact({
    candidates: feedback === undefined ? [candidate] : undefined,
    promptFeedback: feedback,
    usageMetadata: reply.usage === undefined ? undefined : encodeUsage(reply.usage),
    modelVersion: reply.model || context.request.model,
    responseId: reply.id || context.requestId,
    ...toolEventMembers(reply),
  });
}

/** Does the part go on with the text, or the thought, of the part before? */
function isMoreText(last: JsonObject, part: JsonObject): boolean {
  return (
    typeof last.text === 'string' &&
    typeof part.text === 'string' &&
    last.thought === part.thought &&
    last.thoughtSignature === undefined &&
    (part.thought === true || part.thoughtSignature === undefined)
  );
}
