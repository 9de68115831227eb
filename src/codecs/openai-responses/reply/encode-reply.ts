/** Encodes a reply as a response object, the same one that a stream of this reply ends with. */

import { type Reply, type StreamEvent, toolEventMembers } from '../../../conversation/events.ts';
import { replyEvents } from '../../../conversation/reply-builder.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import type { ClientContext } from '../../codec.ts';
import { ResponsesStreamEncoder } from '../stream/encode-stream.ts';
import { ownWire } from '../wire.ts';

/** An unchanged reply of this protocol goes out as it came. */
export function encodeReply(reply: Reply, context: ClientContext): JsonObject {
  const wire: Json | undefined = ownWire(reply);
  if (isObject(wire)) {
    // If the gateway expanded the earlier response, the vendor does not know its id.
    const earlier = context.request.settings.previousResponseId;
    return earlier === undefined || wire.previous_response_id === earlier
      ? wire
      : { ...wire, previous_response_id: earlier };
  }
  return { ...encoded(reply, context).response(), ...toolEventMembers(reply) };
}

/** {@link encodeReply} as JSON text. */
export function encodeReplyText(reply: Reply, context: ClientContext): string {
  const more = JSON.stringify(toolEventMembers(reply)).slice(1, -1);
  if (isObject(ownWire(reply)) || more !== '') return JSON.stringify(encodeReply(reply, context));
  return encoded(reply, context).responseText();
}

function encoded(reply: Reply, context: ClientContext): ResponsesStreamEncoder {
  const encoder = new ResponsesStreamEncoder(context, 'object');
  for (const event of eventsOf(reply)) encoder.event(event);
  return encoder;
}

/** The events of a reply, with hosted calls of this protocol as whole items. */
export function* eventsOf(reply: Reply): Generator<StreamEvent> {
  let whole = -1;
  for (const event of replyEvents(reply)) {
    if (event.type === 'block-start') {
      const block = reply.blocks[event.index];
      if (block?.type === 'tool-call' && block.by === 'provider' && ownWire(block) !== undefined) {
        whole = event.index;
        yield { type: 'block-start', index: event.index, head: { type: 'whole', block } };
        continue;
      }
    } else if (event.type === 'delta' && event.index === whole) continue;
    yield event;
  }
}
