/** A reply to a response object: the very one that a stream of the same reply would end with. */

import type { Reply, StreamEvent } from '../../../conversation/events.ts';
import { replyEvents } from '../../../conversation/reply-builder.ts';
import { toolEventMembers } from '../../../conversation/tools/tool-events.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { isObject } from '../../../lib/json/json.ts';
import type { ClientContext } from '../../codec.ts';
import { encodeStream } from '../stream/encode-stream.ts';
import { ownWire } from '../wire.ts';

/** A reply that is still what this protocol said goes out as it came. */
export function encodeReply(reply: Reply, context: ClientContext): JsonObject {
  const wire: Json | undefined = ownWire(reply);
  if (isObject(wire)) {
    // Where the earlier response was expanded here, the vendor never heard of it.
    const earlier = context.request.settings.previousResponseId;
    return earlier === undefined || wire.previous_response_id === earlier
      ? wire
      : { ...wire, previous_response_id: earlier };
  }
  const encoder = encodeStream(context);
  for (const event of eventsOf(reply)) encoder.event(event);
  return { ...encoder.response(), ...toolEventMembers(reply) };
}

/** Events of a reply in which items of this protocol's hosted tools keep their own form. */
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
